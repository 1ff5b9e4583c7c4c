"""An agent written as a directory of files, and the options of `create_agent()` that it stands for.

Loading runs the directory's Python files with the permissions of this process: load only what you trust.
Source: agent-directories page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lousho.loader.config_file import ConfigFile
from lousho.loader.directory_config import config_options, read_config
from lousho.loader.directory_layout import Layout, look_at, read_instructions, refuse
from lousho.loader.directory_tools import tools_of
from lousho.loader.import_failure import shown_path
from lousho.loader.manifest import Manifest
from lousho.loader.python_code import CodeLoad, absolute

if TYPE_CHECKING:
    from lousho.agent.agent import Agent
    from lousho.agent.per_run import PerRun
    from lousho.tools.definition import Tool

StrPath = str | PathLike[str]

STRIPPABLE: Final = ("hooks", "approve")
"""Options whose `None` takes the directory's own wiring away; any other `None` counts as not given."""


@dataclass(slots=True, kw_only=True)
class ResolvedAgentDir:
    """What a directory says: `create_agent(**resolved.config)` makes the agent."""

    config: dict[str, Any]
    """The options, overrides included."""
    manifest: Manifest
    """What was found, by name."""
    _load: CodeLoad

    def unload(self) -> None:
        """Forget the modules of the directory's Python files. Tools in use go on working."""
        self._load.unload()


async def load_agent_dir(dir: StrPath, **overrides: Any) -> Agent:  # noqa: A002 - the documented name
    """Return the agent that a directory describes. Runs the directory's Python files.

    `overrides` are options of `create_agent()`; they win over the files. Raises `LOUSHO_AGENT_DIR_INVALID` naming the
    file, and what `create_agent()` raises. Source: agent-directories page.
    """
    import asyncio

    return await asyncio.to_thread(lambda: load_agent_dir_sync(dir, **overrides))


def load_agent_dir_sync(dir: StrPath, **overrides: Any) -> Agent:  # noqa: A002
    """The blocking twin of `load_agent_dir()`."""
    directory = AgentDirectory.read(Path(dir), without=stripped(overrides))
    try:
        return directory.agent(overrides)
    except BaseException:
        directory.load.unload()
        raise


async def resolve_agent_dir(dir: StrPath, **overrides: Any) -> ResolvedAgentDir:  # noqa: A002
    """Return the options that a directory describes, without building the agent, and a manifest of its parts.

    Runs the directory's Python files. Raises `LOUSHO_AGENT_DIR_INVALID` naming the file. Source: agent-directories page.
    """
    import asyncio

    return await asyncio.to_thread(lambda: resolve_agent_dir_sync(dir, **overrides))


def resolve_agent_dir_sync(dir: StrPath, **overrides: Any) -> ResolvedAgentDir:  # noqa: A002
    """The blocking twin of `resolve_agent_dir()`."""
    directory = AgentDirectory.read(Path(dir), without=stripped(overrides))
    return ResolvedAgentDir(
        config=directory.options(overrides), manifest=directory.manifest(overrides), _load=directory.load
    )


def stripped(overrides: Mapping[str, Any]) -> frozenset[str]:
    """Return the guards that overrides take away."""
    return frozenset(name for name in STRIPPABLE if name in overrides and overrides[name] is None)


@dataclass(slots=True, kw_only=True)
class AgentDirectory:
    """A directory after its files were read and run: from here agents can be built, on one model or another."""

    layout: Layout
    load: CodeLoad
    config: ConfigFile | None
    settings: dict[str, Any]
    """The options of the config file."""
    base: PerRun[str] | None
    """The instructions without those of a model family."""
    families: dict[str, str]
    tools: list[Tool]

    @classmethod
    def read(cls, folder: Path, *, without: frozenset[str] = frozenset()) -> AgentDirectory:
        """Read a directory and run its Python files. Raises `LOUSHO_AGENT_DIR_INVALID`."""
        layout = look_at(absolute(folder), without=without)
        load = CodeLoad(layout.folder)
        try:
            config = read_config(load, layout.config) if layout.config is not None else None
            settings = config_options(config, without=without) if config is not None else {}
            base = read_instructions(layout.instructions) if layout.instructions is not None else None
            if base is not None and "instructions" in settings:
                refuse(
                    f"'{shown_path(layout.folder)}' has instructions twice: the key 'instructions' in its config file"
                    " and instructions.md. Keep one of them"
                )
            return cls(
                layout=layout,
                load=load,
                config=config,
                settings=settings,
                base=base if base is not None else settings.get("instructions"),
                families={file.stem: read_instructions(file) for file in layout.families},
                tools=tools_of(load, layout.tools),
            )
        except BaseException:
            load.unload()
            raise

    @property
    def names_model(self) -> bool:
        """Whether the config file names a model or gives a provider."""
        return "model" in self.settings or "provider" in self.settings

    @property
    def instructed(self) -> bool:
        """Whether any file says what the agent is for."""
        return self.base is not None or bool(self.families)

    def options(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of `create_agent()`: the files' and, winning over them, `overrides`."""
        given = {key: value for key, value in overrides.items() if value is not None}
        options: dict[str, Any] = {"name": self.layout.folder.name or "agent", **self.settings}
        options.pop("description", None)
        if "model" in given or "provider" in given:
            # A model string of the file would turn into the bare model id of the provider given here.
            options.pop("model", None)
            options.pop("provider", None)
        options["tools"] = list(self.tools)
        options.update(given)
        if "instructions" not in given and "prompt" not in given:
            instructions = self._instructions(resolved_model_id(options))
            if instructions is not None:
                options["instructions"] = instructions
        elif "prompt" in given:
            options.pop("instructions", None)
        return options

    def agent(self, overrides: Mapping[str, Any]) -> Agent:
        """Build the agent. Raises what `create_agent()` raises."""
        from lousho.agent import create_agent

        return create_agent(**self.options(overrides))

    def manifest(self, overrides: Mapping[str, Any] | None = None) -> Manifest:
        """Return the parts that were found."""
        name = (overrides or {}).get("name") or self.settings.get("name") or self.layout.folder.name or "agent"
        read = [self.layout.config, self.layout.instructions, *self.layout.families]
        files = dict.fromkeys([*(file for file in read if file is not None), *self.load.files()])
        return Manifest(
            name=name,
            description=self.settings.get("description"),
            tools=[tool.name for tool in self.tools],
            skipped=list(self.layout.skipped),
            files=list(files),
        )

    def _instructions(self, model_id: str) -> PerRun[str] | None:
        addition = next((text for family, text in self.families.items() if family in model_id), None)
        if addition is None:
            return self.base
        if callable(self.base):
            refuse(
                f"'{shown_path(self.layout.folder)}' has instructions for a family of models, and a function as"
                " 'instructions' in its config file. Keep one of them"
            )
        if self.base is None:
            from lousho.agent.options import DEFAULT_INSTRUCTIONS

            return f"{DEFAULT_INSTRUCTIONS}\n\n{addition}"
        return f"{self.base}\n\n{addition}"


def resolved_model_id(options: Mapping[str, Any]) -> str:
    """Return the `provider/model` an agent of these options runs on, or an empty text when nothing says so beforehand."""
    provider = options.get("provider")
    model = options.get("model")
    if callable(model):
        return ""
    if provider is not None:
        name = getattr(provider, "name", "")
        return f"{name}/{model or getattr(provider, 'default_model', '')}"
    if model is not None:
        return str(model)
    from lousho.models.resolve import default_model_from_environment

    return default_model_from_environment() or ""
