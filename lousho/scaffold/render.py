"""Templates to files, in memory: nothing is written here.

`templates/projects/common` is in every project, the folder named like the template is added to it. A name that starts
with `dot-` becomes a dotfile, `.j2` at the end is cut off. Every file is a Jinja template, and an unknown value is an
error, never an empty text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lousho.core.errors import ConfigurationError
from lousho.scaffold.options import ProjectOptions
from lousho.scaffold.package_managers import package_manager
from lousho.scaffold.sdk_source import version_range
from lousho.scaffold.shell import command_line

SDK_FOLDER = "vendor"
"""Where a wheel named by `--sdk-path` is copied to, kept out of git."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """One file to write."""

    path: PurePosixPath
    """Relative to the project."""
    content: bytes


def render_project(options: ProjectOptions) -> list[ProjectFile]:
    """Return every file of the project, sorted by path. Raises `LOUSHO_CONFIG_INVALID` if the templates are missing."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - what is rendered are not web pages
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["quoted"] = quoted_string
    values = template_values(options)
    files: dict[PurePosixPath, ProjectFile] = {}
    for folder in (templates_folder() / "common", templates_folder() / options.template):
        for source in sorted(folder.rglob("*.j2")):
            path = target_path(PurePosixPath(source.relative_to(folder).as_posix()))
            text = environment.from_string(source.read_text(encoding="utf-8")).render(values)
            files[path] = ProjectFile(path, text.encode("utf-8"))
    wheel = options.sdk.path
    if options.sdk.kind == "wheel" and wheel is not None:
        path = PurePosixPath(SDK_FOLDER, wheel.name)
        files[path] = ProjectFile(path, wheel.read_bytes())
    return [files[path] for path in sorted(files)]


def templates_folder() -> Path:
    """Return the folder with the project templates, in an installed package or in a checkout."""
    for root in (Path(__file__).parent, Path(__file__).parents[2]):
        folder = root / "templates" / "projects"
        if folder.is_dir():
            return folder
    raise ConfigurationError("the project templates are not part of this installation; reinstall lousho")


def target_path(source: PurePosixPath) -> PurePosixPath:
    """Return where a template's text goes: `dot-gitignore.j2` is `.gitignore`."""
    name = source.name.removesuffix(".j2")
    return source.with_name(f".{name.removeprefix('dot-')}" if name.startswith("dot-") else name)


def quoted_string(text: str) -> str:
    """Return `text` as a string literal that Python, TOML and YAML read alike."""
    return json.dumps(text, ensure_ascii=False)


def target_of(template: str) -> str:
    """Return what to name after `lousho chat` in a project made from `template`."""
    return "agent.yaml" if template == "yaml" else "."


def template_values(options: ProjectOptions) -> Mapping[str, object]:
    """Return what the templates may use; `tests/cli/test_init.py` renders them all, so a missing one is seen."""
    manager = package_manager(options.package_manager)
    wheel = options.sdk.path.name if options.sdk.kind == "wheel" and options.sdk.path is not None else None
    provider, _, model = options.provider.model.partition("/")
    return {
        "name": options.name,
        "template": options.template,
        "target": target_of(options.template),
        "model": options.provider.model,
        "provider_name": provider,
        "model_id": model,
        "key_variable": options.provider.key_variable,
        "keys_page": options.provider.keys_page,
        "package_manager": options.package_manager,
        "install_line": manager.install_line,
        "lousho_line": command_line(manager.program("lousho")),
        "pytest_line": command_line(manager.program("pytest")),
        "ruff_line": command_line(manager.program("ruff")),
        "dependency": dependency(options),
        "uv_source": uv_source(options),
        "vendored": wheel is not None,
        "python_minor": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def dependency(options: ProjectOptions) -> str:
    """Return the requirement on Lousho in `pyproject.toml`."""
    sdk = options.sdk
    if sdk.kind == "index":
        return f"lousho{version_range(sdk.version)}"
    if sdk.kind == "repository":
        return f"lousho @ {sdk.url}"
    if options.package_manager == "uv":
        return "lousho"
    return f"lousho @ {sdk_path(options).as_uri()}"


def uv_source(options: ProjectOptions) -> str | None:
    """Return the inline table for `[tool.uv.sources]`, None where the requirement says it all."""
    if options.package_manager != "uv" or options.sdk.kind not in ("wheel", "checkout"):
        return None
    if options.sdk.kind == "wheel":
        relative = sdk_path(options).relative_to(options.directory).as_posix()
        return f"{{ path = {quoted_string(relative)} }}"
    return f"{{ path = {quoted_string(sdk_path(options).as_posix())}, editable = true }}"


def sdk_path(options: ProjectOptions) -> Path:
    """Return the checkout, or the project's own copy of the wheel."""
    path = options.sdk.path
    assert path is not None
    return options.directory / SDK_FOLDER / path.name if options.sdk.kind == "wheel" else path
