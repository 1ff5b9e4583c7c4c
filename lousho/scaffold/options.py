"""What a new project is made of, resolved and checked before a file is written."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lousho.scaffold.errors import InitUsageError
from lousho.scaffold.package_managers import NAMES, PackageManagerName, default_package_manager, is_available
from lousho.scaffold.providers import PROVIDERS, StarterProvider, default_provider
from lousho.scaffold.sdk_source import SdkSource, find_sdk
from lousho.scaffold.shell import expanded

DEFAULT_DIRECTORY = "my-agent"
TEMPLATES: Mapping[str, str] = {
    "minimal": "an agent with one tool",
    "tools": "an agent with three tools, one of which asks for approval",
    "yaml": "an agent.yaml spec file",
}
DEFAULT_TEMPLATE = "minimal"

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """One project to make. Every choice is made: nothing is asked or looked up after this."""

    directory: Path
    """Absolute."""
    provider: StarterProvider
    template: str
    package_manager: PackageManagerName
    sdk: SdkSource
    install: bool
    git: bool
    force: bool
    key_is_set: bool
    """Whether the provider's key is in the environment now."""

    @property
    def name(self) -> str:
        """The project's name, made of the directory's: lower case ASCII words with dashes."""
        plain = unicodedata.normalize("NFKD", self.directory.name).encode("ascii", "ignore").decode()
        return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or DEFAULT_DIRECTORY


def resolve_options(
    *,
    directory: str | None,
    provider: str | None,
    template: str | None,
    package_manager: str | None,
    sdk_path: str | None,
    install: bool,
    git: bool,
    force: bool,
    env: Mapping[str, str],
) -> ProjectOptions:
    """Return the checked choices; what is None gets its default. Raises `InitUsageError` for what cannot be.

    Source: installation page, "Scaffolding a new project".
    """
    chosen_provider = PROVIDERS[one_of("provider", provider or default_provider(env), tuple(PROVIDERS))]
    chosen_template = one_of("template", template or DEFAULT_TEMPLATE, tuple(TEMPLATES))
    manager: PackageManagerName = (
        one_of("package-manager", package_manager, NAMES) if package_manager else default_package_manager()
    )
    if install and not is_available(manager):
        raise InitUsageError(
            f"{manager} is not on the PATH. Install it, choose another with --package-manager, or pass --no-install."
        )
    folder = Path(os.path.abspath(expanded(directory or DEFAULT_DIRECTORY)))  # noqa: PTH100 - keep links
    if folder.exists() and not folder.is_dir():
        raise InitUsageError(f"{directory!r} is a file. Name a directory.")
    key = chosen_provider.key_variable
    return ProjectOptions(
        directory=folder,
        provider=chosen_provider,
        template=chosen_template,
        package_manager=manager,
        sdk=find_sdk(sdk_path, env),
        install=install,
        git=git,
        force=force,
        key_is_set=key is None or bool(env.get(key)),
    )


def one_of(flag: str, value: str, allowed: tuple[Name, ...]) -> Name:
    """Return `value` if it is allowed for `--<flag>`; raises `InitUsageError` with what is, and the nearest."""
    for name in allowed:
        if name == value:
            return name
    from lousho.core.console_text import one_line
    from lousho.core.suggest import nearest

    close = nearest(value[:60], allowed)
    hint = f" Did you mean {close!r}?" if close else ""
    raise InitUsageError(f"--{flag} {one_line(value, 60)!r} is not one of {', '.join(allowed)}.{hint}")
