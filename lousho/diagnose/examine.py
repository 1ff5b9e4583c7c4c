"""All checks of one `lousho doctor`, in one report."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from lousho.loader.dotenv import DotenvFile


def examine(
    agent: str | None, *, env: MutableMapping[str, str], cwd: Path, encoding: str | None, ping: bool = False
) -> Report:
    """Check this machine, the keys and, if named, the agent at the path `agent`.

    `./.env` of `cwd` is loaded into `env` first, as for every command that runs an agent. Source: installation page,
    "Troubleshooting: lousho doctor".
    """
    import platform

    from lousho.loader.dotenv import load_dotenv_file, unread_dotenv_note

    dotenv = load_dotenv_file(cwd, environ=env)
    from_file = frozenset(dotenv.names)
    distribution = this_distribution()
    report = Report(distribution.version)
    report.add([check_python(platform.python_version(), distribution.requires_python)])
    report.add(check_dependencies(distribution.requirements, cwd))
    report.add(check_extras(distribution.requirements, cwd))
    report.add(_dotenv_checks(dotenv))
    report.add(check_keys(env, from_file))
    report.add([check_default_model(env, from_file)])
    if agent is not None:
        from lousho.diagnose.agent import examine_agent

        unread = unread_dotenv_note(agent, cwd)
        if unread is not None:
            found, _, fix = unread.rpartition(": ")
            report.add([Check("dotenv.unread", ".env", "warn", found, fix[0].upper() + fix[1:])])
        examined = examine_agent(agent, env, from_file, cwd)
        report.add(examined.checks)
        report.agent = examined.facts
    if ping:
        from lousho.diagnose.ping import ping_providers

        model = report.agent.model if report.agent is not None else None
        report.add(ping_providers(env, (model or "").partition("/")[0] or None))
    report.add([check_directory(cwd), check_console(encoding), *check_network_settings(env)])
    return report


def _dotenv_checks(dotenv: DotenvFile) -> list[Check]:
    """Say what `.env` brought: names only."""
    if dotenv.path is None:
        return []
    parts = [f"set {', '.join(dotenv.names)}"] if dotenv.names else []
    if dotenv.shadowed:
        parts.append(f"already set elsewhere, which wins: {', '.join(dotenv.shadowed)}")
    checks = [Check("dotenv", ".env", "ok", "; ".join(parts) or "sets nothing")]
    fix = "Write one NAME=value a line."
    return [*checks, *(Check("dotenv.note", ".env", "warn", note, fix) for note in dotenv.notes)]
