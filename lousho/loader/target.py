"""The one entry from a path on the command line to an agent; every command that runs one starts here.

What the path is decides how it loads: a `.yaml`, `.yml` or `.json` file is a spec, a directory an agent directory, a
`.py` file a module. Source: cli page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from lousho.core.errors import ConfigurationError
from lousho.loader.config_file import DATA_SUFFIXES
from lousho.loader.import_failure import shown_path
from lousho.loader.manifest import Manifest
from lousho.loader.python_code import CodeLoad, absolute

if TYPE_CHECKING:
    from lousho.agent.agent import Agent
    from lousho.models.provider import LLMProvider

TargetKind: TypeAlias = Literal["spec", "directory", "module"]
Build: TypeAlias = "Callable[[Mapping[str, Any]], Agent]"

DEMO_COMMANDS: Final = frozenset({"chat", "dev", "inspect"})
"""Commands for looking around: with no model named and no key set they run on `mock/demo`."""
_SCRIPT_SUFFIXES: Final = (".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx")


@dataclass(slots=True, kw_only=True)
class Target:
    """What a path was loaded as."""

    agent: Agent
    kind: TargetKind
    path: Path
    """The path, absolute."""
    manifest: Manifest
    """The parts of the agent, by name."""
    notes: list[str] = field(default_factory=list[str])
    """What the person should know, one sentence each, for stderr."""
    lacking: str | None = None
    """The one of `notes` that says what an agent usually has and this one has not."""
    _build: Build
    _load: CodeLoad | None = None
    _changes: dict[str, Any] = field(default_factory=dict[str, Any])

    def rebuild(self, *, model: str | None = None, **changes: Any) -> Agent:
        """Build the agent again, on another model or with other options, and make it the target's agent.

        Files are not read again; sessions and pauses go on in the new agent. When building fails the current agent
        stays. Raises what `create_agent()` raises.
        """
        wanted = _merged(self._changes, {**changes, "model": model})
        self.agent = self._build({"store": self.agent.store, **wanted})
        self._changes = wanted
        return self.agent

    def unload(self) -> None:
        """Forget the modules of the target's Python files. The agent goes on working."""
        if self._load is not None:
            self._load.unload()


def load_target(
    path: str | PathLike[str],
    *,
    command: str,
    model: str | None = None,
    provider: LLMProvider | None = None,
    cwd: str | PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Target:
    """Load the agent at `path` for a command; runs its Python files.

    `model` (`provider/model`) or `provider` replaces what the target names, except for an agent that is already built.
    `overrides` are further options of `create_agent()`. A relative `path` starts at `cwd`.

    Raises `LOUSHO_SPEC_UNSUPPORTED_FORMAT`, `LOUSHO_SPEC_NOT_FOUND`, `LOUSHO_CONFIG_INVALID` naming the command,
    `LOUSHO_AGENT_DIR_INVALID`, and what loading a spec and building an agent raise. Source: cli page.
    """
    file = absolute(Path(cwd or "") / path)
    given = {**(overrides or {}), "model": model, "provider": provider}
    loader = _Loader(command, {key: value for key, value in given.items() if value is not None})
    kind = _kind(file, command)
    if kind == "directory":
        return loader.directory(file)
    return loader.spec(file) if kind == "spec" else loader.module(file)


def _kind(file: Path, command: str) -> TargetKind:
    """Return what a path is. Raises for a path that is nothing a command can load."""
    shown = shown_path(file)
    try:
        exists, is_directory, is_file = file.exists(), file.is_dir(), file.is_file()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"lousho {command}: '{shown}' cannot be read: {error}", cause=error) from error
    suffix = file.suffix.lower()
    if is_directory:
        return "directory"
    if suffix in DATA_SUFFIXES:
        return "spec"
    if suffix == ".py" and is_file:
        return "module"
    if suffix not in ("", ".py"):
        _refuse_format(shown, suffix, command, exists=exists)
    if not exists or suffix == ".py":
        what = "is not a regular file" if exists else "does not exist"
        raise ConfigurationError(
            f"lousho {command}: '{shown}' {what}. Give a spec file (.yaml, .yml, .json), an agent"
            " directory or a Python module (.py)."
        )
    return _refuse_format(shown, suffix, command, exists=True)


def _refuse_format(shown: str, suffix: str, command: str, *, exists: bool) -> NoReturn:
    if suffix in _SCRIPT_SUFFIXES:
        advice = "Agent modules are Python files: write it as a .py file"
    else:
        advice = "Give a spec file (.yaml, .yml, .json), an agent directory or a Python module (.py)"
    missing = "" if exists else ", and there is no such file"
    raise ConfigurationError(
        f"lousho {command}: '{shown}' is not something an agent can be loaded from{missing}. {advice}.",
        code="LOUSHO_SPEC_UNSUPPORTED_FORMAT",
    )


class _Loader:
    """Loads each kind for one command, with what overrides the files."""

    def __init__(self, command: str, overrides: Mapping[str, Any]) -> None:
        self.command = command
        self.overrides = dict(overrides)
        self.notes: list[str] = []

    def spec(self, file: Path) -> Target:
        from lousho.loader.spec_v1 import load_spec, spec_to_agent

        try:
            spec = load_spec(file)
        except ConfigurationError as error:
            raise _with_directory_advice(error, file) from error

        def build(changes: Mapping[str, Any]) -> Agent:
            return spec_to_agent(spec, **_merged(self.overrides, changes))

        agent = build({})
        manifest = Manifest(name=agent.name, tools=list(agent.tools), files=[file])
        return Target(agent=agent, kind="spec", path=file, manifest=manifest, notes=self.notes, _build=build)

    def directory(self, folder: Path) -> Target:
        from lousho.loader.directory import AgentDirectory, stripped
        from lousho.loader.directory_layout import INSTRUCTIONS

        directory = AgentDirectory.read(folder, without=stripped(self.overrides))
        self._fall_back(names_model=directory.names_model)

        def build(changes: Mapping[str, Any]) -> Agent:
            return directory.agent(_merged(self.overrides, changes))

        try:
            agent = build({})
        except BaseException:
            directory.load.unload()
            raise
        manifest = directory.manifest(self.overrides)
        self.notes.extend(str(part) for part in manifest.skipped)
        lacking = None
        if not directory.instructed and not {"instructions", "prompt"} & set(self.overrides):
            lacking = f"'{shown_path(folder)}' has no {INSTRUCTIONS}, so the agent has only the default instructions."
            self.notes.append(lacking)
        return Target(
            agent=agent,
            kind="directory",
            path=folder,
            manifest=manifest,
            notes=self.notes,
            lacking=lacking,
            _build=build,
            _load=directory.load,
        )

    def module(self, file: Path) -> Target:
        from lousho.agent.agent import Agent
        from lousho.loader.module import load_module

        found, load = load_module(file, command=self.command)
        self._mention_directory(file, built=isinstance(found, Agent))

        try:
            if isinstance(found, Agent):
                build = self._builder_of_agent(found)
            else:
                build = self._builder_of_options(found)
            agent = build({})
        except BaseException:
            load.unload()
            raise
        manifest = Manifest(name=agent.name, description=agent.description, tools=list(agent.tools), files=load.files())
        return Target(
            agent=agent, kind="module", path=file, manifest=manifest, notes=self.notes, _build=build, _load=load
        )

    def _builder_of_agent(self, agent: Agent) -> Build:
        """Return what builds from a finished agent: it takes every override but the model."""
        overrides = {key: value for key, value in self.overrides.items() if key not in ("model", "provider")}
        if len(overrides) < len(self.overrides):
            self.notes.append(f"The module's agent is already built, so it keeps its model {agent.model_label}.")

        def build(changes: Mapping[str, Any]) -> Agent:
            given = {key: value for key, value in {**overrides, **changes}.items() if value is not None}
            return agent.with_options(**given) if given else agent

        return build

    def _builder_of_options(self, options: Mapping[str, Any]) -> Build:
        """Return what builds from a mapping of `create_agent()` options."""
        from lousho.agent import create_agent

        self._fall_back(names_model=options.get("model") is not None or options.get("provider") is not None)

        def build(changes: Mapping[str, Any]) -> Agent:
            return create_agent(**_merged(_merged(options, self.overrides), changes))

        return build

    def _fall_back(self, *, names_model: bool) -> None:
        """Choose `mock/demo` where nothing names a model, no key is set, and the command is one for looking around."""
        if self.command not in DEMO_COMMANDS or names_model or {"model", "provider"} & set(self.overrides):
            return
        from lousho.models.resolve import DEMO_MODEL, default_model_from_environment

        if default_model_from_environment() is None:
            self.overrides["model"] = DEMO_MODEL
            self.notes.append(
                f"No model is named and no API key is set, so this runs on {DEMO_MODEL}, which needs neither."
                " For a real one pass --model, e.g. --model openai/gpt-4.1-mini, and set its key."
            )

    def _mention_directory(self, file: Path, *, built: bool) -> None:
        """Say that what lies beside an `agent.py` is not loaded, and how it would be: a directory takes no built agent."""
        from lousho.loader.directory_layout import INSTRUCTIONS

        if file.name == "agent.py" and ((file.parent / INSTRUCTIONS).is_file() or (file.parent / "tools").is_dir()):
            first = "write its options as config = {...} instead of a built agent, and " if built else ""
            self.notes.append(
                f"This loads '{shown_path(file)}' alone. To load instructions.md and tools/ beside it, {first}pass the"
                f" directory '{shown_path(file.parent)}'."
            )


def _merged(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with changes winning; a new model or provider replaces both of the old."""
    given = {key: value for key, value in changes.items() if value is not None}
    kept = dict(options)
    if "model" in given or "provider" in given:
        kept.pop("model", None)
        kept.pop("provider", None)
    if "instructions" in given or "prompt" in given:
        kept.pop("instructions", None)
        kept.pop("prompt", None)
    return {**kept, **given}


def _with_directory_advice(error: ConfigurationError, file: Path) -> ConfigurationError:
    """Return the error, with advice where the file is the config of an agent directory."""
    from lousho.loader.directory_layout import INSTRUCTIONS

    beside = (file.parent / INSTRUCTIONS).is_file() or (file.parent / "tools").is_dir()
    if file.stem != "agent" or not beside or error.code not in ("LOUSHO_SPEC_INVALID", "LOUSHO_SPEC_UNKNOWN_FIELD"):
        return error
    folder = shown_path(file.parent)
    return ConfigurationError(
        f"{error.detail}. The file seems to belong to an agent directory; to load that, pass '{folder}'.",
        code=error.code,
        cause=error,
    )
