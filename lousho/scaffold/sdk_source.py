"""Where a new project gets Lousho from: a package index, a wheel, a checkout or a repository.

A project made by an installed release depends on that release by version range. One made from a checkout, or by a wheel
that no index has, depends on exactly that one, so that the first install works. Source: installation page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

from lousho.scaffold.errors import InitUsageError
from lousho.scaffold.shell import expanded

SDK_PATH_VARIABLE = "LOUSHO_SDK_PATH"


@dataclass(frozen=True, slots=True)
class SdkSource:
    """One way to depend on Lousho."""

    kind: Literal["index", "wheel", "checkout", "repository"]
    version: str
    path: Path | None = None
    """The wheel or the checkout on this machine."""
    url: str | None = None
    """The repository with its commit, as pip writes it."""


def find_sdk(given: str | None, env: Mapping[str, str]) -> SdkSource:
    """Return the source named by `--sdk-path` or `LOUSHO_SDK_PATH`, else where the running Lousho came from.

    Raises `InitUsageError` when the named path is not a checkout or a wheel of Lousho.
    """
    named = given or env.get(SDK_PATH_VARIABLE)
    if named:
        return _named(expanded(named), "--sdk-path" if given else SDK_PATH_VARIABLE)
    return _running()


def version_range(version: str) -> str:
    """Return the releases that are compatible with `version`: up to the next minor before 1.0, else the next major."""
    release = version.partition("+")[0]
    numbers = release.split(".")
    if not all(part.isdigit() for part in numbers[:2]) or len(numbers) < 2:
        return f">={release}"
    major, minor = int(numbers[0]), int(numbers[1])
    return f">={release},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def _named(path: Path, origin: str) -> SdkSource:
    resolved = Path(os.path.abspath(path))  # noqa: PTH100 - not resolve(): a link is what the person meant
    if resolved.is_file() and resolved.name.startswith("lousho-") and resolved.name.endswith((".whl", ".tar.gz")):
        return SdkSource("wheel", resolved.name.split("-")[1].removesuffix(".tar.gz"), resolved)
    version = _checkout_version(resolved)
    if version is not None:
        return SdkSource("checkout", version, resolved)
    what = "is not a checkout, a wheel or a source distribution of Lousho" if resolved.exists() else "does not exist"
    raise InitUsageError(
        f"{origin} {str(path)!r} {what}. Name a directory with Lousho's pyproject.toml, or a lousho-*.whl or lousho-*.tar.gz file."
    )


def _running() -> SdkSource:
    from importlib.metadata import PackageNotFoundError, distribution

    here = Path(__file__).resolve().parents[2]
    try:
        installed = distribution("lousho")
    except PackageNotFoundError:
        return SdkSource("checkout", _checkout_version(here) or "0", here)
    try:
        origin = cast("dict[str, object]", json.loads(installed.read_text("direct_url.json") or "{}"))
    except ValueError:
        origin = {}
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        vcs = cast("dict[str, str]", origin["vcs_info"])
        return SdkSource("repository", installed.version, url=f"{vcs['vcs']}+{url}@{vcs['commit_id']}")
    path = _file_path(url)
    if path is not None and path.is_file() and path.suffix == ".whl":
        return SdkSource("wheel", installed.version, path)
    if path is not None and _checkout_version(path) is not None:
        return SdkSource("checkout", installed.version, path)
    return SdkSource("index", installed.version)


def _file_path(url: str) -> Path | None:
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    text = unquote(parts.path)
    if os.name == "nt":
        text = text.lstrip("/")
    return Path(text)


def _checkout_version(folder: Path) -> str | None:
    """Return the version in Lousho's own `pyproject.toml` in `folder`, None when there is no such file."""
    import tomllib

    try:
        document = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    project = cast("dict[str, object]", document.get("project", {}))
    return str(project.get("version", "0")) if project.get("name") == "lousho" else None
