"""Checks of this machine: the interpreter, what is installed, the console, the directory, the network settings."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from lousho.diagnose.report import Check, listed

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class Distribution(NamedTuple):
    """What an installed Lousho says about itself."""

    version: str
    requires_python: str
    """A version specifier, e.g. `>=3.11`."""
    requirements: Sequence[str]
    """Requirement lines, the extras' among them with their markers."""


def this_distribution() -> Distribution:
    """Return the metadata of the installed distribution, or of the checkout when it is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("lousho")
    except PackageNotFoundError:
        return _checkout(Path(__file__).resolve().parents[2] / "pyproject.toml")
    metadata = installed.metadata
    floors = metadata.get_all("Requires-Python") or [""]
    return Distribution(installed.version, floors[0], installed.requires or [])


def check_python(version: str, requires: str) -> Check:
    """Check the interpreter's version against the floor of the distribution."""
    from packaging.specifiers import SpecifierSet

    if not requires or SpecifierSet(requires).contains(version, prereleases=True):
        return Check("python", "Python", "ok", f"{version} satisfies {requires or 'any version'}")
    return Check(
        "python",
        "Python",
        "fail",
        f"{version} does not satisfy {requires}",
        f"Install a Python that satisfies {requires} and Lousho into it, e.g. uv tool install lousho --python 3.12",
    )


def check_dependencies(requirements: Sequence[str], cwd: Path) -> list[Check]:
    """Check what Lousho cannot do without: one line when all is well, one for each that is not."""
    wanted = [requirement for requirement in _parsed(requirements) if not _extras(requirement)]
    checks: list[Check] = []
    for requirement in wanted:
        found = installed_version(requirement.name)
        label = f"Dependency {requirement.name}"
        fix = install_line(str(requirement), cwd)
        if found is None:
            checks.append(Check(f"dependency.{requirement.name}", label, "fail", "not installed", fix))
        elif not requirement.specifier.contains(found, prereleases=True):
            text = f"{found} does not satisfy {requirement.specifier}"
            checks.append(Check(f"dependency.{requirement.name}", label, "fail", text, fix))
    good = len(wanted) - len(checks)
    return [*checks, Check("dependencies", "Dependencies", "ok", f"{good} of {len(wanted)} installed and in range")]


def check_extras(requirements: Sequence[str], cwd: Path) -> list[Check]:
    """Check the optional parts: those in use must be in range; those that are not used are one line."""
    unused: list[str] = []
    used: list[str] = []
    checks: list[Check] = []
    for extra, parts in _by_extra(requirements).items():
        versions = {part.name: installed_version(part.name) for part in parts}
        if None in versions.values():
            unused.append(extra)
            continue
        used.append(extra)
        for part in parts:
            found = versions[part.name]
            if found is not None and not part.specifier.contains(found, prereleases=True):
                text = f"{part.name} {found} does not satisfy {part.specifier}"
                fix = install_line(f"lousho[{extra}]", cwd)
                checks.append(Check(f"extra.{extra}", f"Optional part {extra}", "warn", text, fix))
    found_text = f"installed: {listed(used)}; " if used else ""
    found_text += f"not installed: {listed(unused)} (nothing here needs them)" if unused else "nothing missing"
    return [*checks, Check("extras", "Optional parts", "ok", found_text)]


def check_console(encoding: str | None) -> Check:
    """Check whether the console can print what models write."""
    try:
        name = codecs.lookup(encoding or "ascii").name
    except LookupError:
        name = "ascii"
    if name.startswith("utf-8"):
        return Check("console", "Console encoding", "ok", name)
    return Check(
        "console",
        "Console encoding",
        "warn",
        f"{name}; characters it lacks are replaced",
        set_variable("PYTHONUTF8", "1"),
    )


def check_directory(folder: Path) -> Check:
    """Check whether sessions, traces and history can be kept under `.lousho/` here."""
    place = folder / ".lousho" if (folder / ".lousho").exists() else folder
    if os.access(place, os.W_OK | os.X_OK):
        return Check("directory", "Working directory", "ok", "writable")
    return Check(
        "directory",
        "Working directory",
        "warn",
        f"{place} cannot be written, so nothing is kept here",
        "Run lousho in a directory you can write to, or change its permissions.",
    )


def check_network_settings(env: Mapping[str, str]) -> list[Check]:
    """Show the proxy and certificate variables that apply, without credentials; a certificate file must exist."""
    checks: list[Check] = []
    shown: list[str] = []
    for name in PROXY_VARIABLES:
        value = env.get(name) or env.get(name.lower())
        if value:
            shown.append(f"{name} {value if name == 'NO_PROXY' else without_credentials(value)}")
    for name in CERTIFICATE_VARIABLES:
        value = env.get(name)
        if not value:
            continue
        shown.append(f"{name} {value}")
        if not Path(value).exists():
            fix = f"Point {name} at a file that exists, or remove the variable."
            checks.append(Check(f"network.{name}", name, "fail", f"{value} does not exist", fix))
    text = ", ".join(shown) or "no proxy and no certificate variables are set"
    return [*checks, Check("network", "Network settings", "ok", text)]


def without_credentials(url: str) -> str:
    """Return `url` without user, password, query, fragment and keys: what may stand in a public issue."""
    from urllib.parse import urlsplit, urlunsplit

    from lousho.models.errors import redact

    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        netloc = f"{host}:{parts.port}" if parts.port is not None else host
    except ValueError:
        return "(not a URL)"
    return redact(urlunsplit((parts.scheme, netloc, parts.path, "", "")).removeprefix("//"))


def set_variable(name: str, value: str, *, windows: bool = os.name == "nt") -> str:
    """Return how to set an environment variable in the person's shell, as a sentence."""
    example = f'$env:{name}="{value}"' if windows else f"export {name}={value}"
    return f"Set {name} in your environment, e.g. {example}"


def install_line(requirement: str, cwd: Path) -> str:
    """Return the command that installs `requirement`, for uv where the project here has a uv lock file."""
    return f"uv add '{requirement}'" if (cwd / "uv.lock").exists() else f"pip install '{requirement}'"


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution, None when it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _parsed(requirements: Sequence[str]) -> list[Requirement]:
    from packaging.requirements import Requirement

    return [Requirement(line) for line in requirements]


def _extras(requirement: Requirement) -> list[str]:
    """Return the extras that a requirement's marker names."""
    import re

    return re.findall(r"""extra\s*==\s*["']([^"']+)["']""", str(requirement.marker or ""))


def _by_extra(requirements: Sequence[str]) -> dict[str, list[Requirement]]:
    groups: dict[str, list[Requirement]] = {}
    for requirement in _parsed(requirements):
        for extra in _extras(requirement):
            if extra != "all":
                groups.setdefault(extra, []).append(requirement)
    return groups


def _checkout(pyproject: Path) -> Distribution:
    import tomllib

    document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = cast("dict[str, object]", document["project"])
    extras = cast("dict[str, list[str]]", project.get("optional-dependencies", {}))
    lines = list(cast("list[str]", project.get("dependencies", [])))
    lines += [f"{line}; extra == '{extra}'" for extra, parts in extras.items() for line in parts]
    return Distribution(str(project.get("version", "0")), str(project.get("requires-python", "")), lines)
