"""All checks of one `lousho doctor`, in one report."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from lousho.diagnose.keys import check_default_model, check_keys
from lousho.diagnose.machine import (
    check_console,
    check_dependencies,
    check_directory,
    check_extras,
    check_network_settings,
    check_python,
    this_distribution,
)
from lousho.diagnose.report import Check, Report


def examine(
    agent: str | None, *, env: MutableMapping[str, str], cwd: Path, encoding: str | None, ping: bool = False
) -> Report:
    """Check this machine, the keys and, if named, the agent at the path `agent`.

    `./.env` of `cwd` is loaded into `env` first, as for every command that runs an agent. Source: installation page,
    "Troubleshooting: lousho doctor".
    """
    import platform

    from_file = _load_dotenv(env, cwd)
    distribution = this_distribution()
    report = Report(distribution.version)
    report.add([check_python(platform.python_version(), distribution.requires_python)])
    report.add(check_dependencies(distribution.requirements, cwd))
    report.add(check_extras(distribution.requirements, cwd))
    report.add(_dotenv_check(from_file, cwd))
    report.add(check_keys(env, from_file))
    report.add([check_default_model(env, from_file)])
    if agent is not None:
        from lousho.diagnose.agent import examine_agent

        examined = examine_agent(agent, env, from_file, cwd)
        report.add(examined.checks)
        report.agent = examined.facts
    if ping:
        from lousho.diagnose.ping import ping_providers

        report.add(ping_providers(env))
    report.add([check_directory(cwd), check_console(encoding), *check_network_settings(env)])
    return report


def _load_dotenv(env: Mapping[str, str], cwd: Path) -> frozenset[str]:
    """Load `./.env`; return the names of the variables that came from it."""
    from lousho.loader.dotenv import load_dotenv_file

    before = frozenset(env)
    load_dotenv_file(cwd)
    return frozenset(env) - before


def _dotenv_check(from_file: frozenset[str], cwd: Path) -> list[Check]:
    if not (cwd / ".env").is_file():
        return []
    names = ", ".join(sorted(from_file)) or "nothing new: what it sets is set in the environment already, or empty"
    return [Check("dotenv", ".env", "ok", f"set {names}" if from_file else names)]
