"""What is known of a loaded agent without running it: its description, and where each part came from.

No model is asked. Functions of the run (a model, a prompt, tools that are chosen for each run) are not called either:
they may ask a server, and what they choose for a run that there is not would be no answer.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, cast

from lousho.models.errors import redact
from lousho.models.resolve import DEMO_MODEL, KEY_VARIABLES, default_model_from_environment

if TYPE_CHECKING:
    from lousho.loader.target import Target
    from lousho.tools.definition import Tool

SCHEMA_VERSION = 1
"""Raised when a field of the JSON document changes its meaning or goes."""

_PACKAGE: Final = Path(__file__).resolve().parents[2] / "lousho"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that `lousho inspect` shows."""

    kind: str
    """`spec`, `directory` or `module`."""
    path: Path
    """The target, absolute."""
    description: str | None
    """What the agent does."""
    files: tuple[str, ...]
    """The files that were read or run, as seen from the target's folder."""
    skipped: tuple[tuple[str, str], ...]
    """What was found and not used, with the reason."""
    notes: tuple[str, ...]
    """What the loader had to say beside that."""
    fallback: str | None
    """The one of `notes` that says why a model was chosen that nothing names."""
    model_source: str
    """Where the model was named, in words."""
    model_label: str
    """The model, in words."""
    tool_sources: Mapping[str, str | None]
    """Tool to `file:line` as seen from the target's folder, or `built in`; None where nothing tells."""
    agent: Mapping[str, Any]
    """What `agent.describe()` returns; null for what a function chooses per run."""

    @property
    def all_notes(self) -> list[str]:
        """What the loader had to say, as sentences."""
        return [*self.notes, *(f"{path} was skipped: {reason}" for path, reason in self.skipped)]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as one JSON document."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "target": {
                "kind": self.kind,
                "path": str(self.path),
                "description": self.description,
                "files": list(self.files),
                "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
                "notes": list(self.notes),
                "modelSource": self.model_source,
                "toolSources": dict(self.tool_sources),
            },
            "agent": dict(self.agent),
        }


def facts_of(target: Target, *, model: str | None, from_file: Set[str]) -> Facts:
    """Return what is known of a loaded target.

    `model` is the one of the command line, `from_file` names the variables that `.env` set. Raises what
    `agent.describe()` raises.
    """
    folder = target.path if target.kind == "directory" else target.path.parent
    skipped = tuple((part.path, part.reason) for part in target.manifest.skipped)
    told = set(map(str, target.manifest.skipped))
    fallback = next((note for note in target.notes if DEMO_MODEL in note), None)
    if target.agent.options.model != DEMO_MODEL or model is not None:
        fallback = None
    agent = target.agent.describe_sync()
    return Facts(
        kind=target.kind,
        path=target.path,
        description=agent["description"] or redact(target.manifest.description or "") or None,
        files=tuple(_seen_from(folder, file) for file in target.manifest.files),
        skipped=skipped,
        notes=tuple(note for note in target.notes if note not in told),
        fallback=fallback,
        model_source="fallback: no model is named and no API key is set"
        if fallback is not None
        else _model_source(target, model, from_file),
        model_label=target.agent.model_label,
        tool_sources=_tool_sources(target, folder, [tool["name"] for tool in agent["tools"] or ()]),
        agent=agent,
    )


def _model_source(target: Target, model: str | None, from_file: Set[str]) -> str:
    options = target.agent.options
    if "model" in options.per_run:
        return "a function in its code"
    if model is not None and options.model == model:
        return "--model"
    if options.provider is not None:
        return "a provider object in its code"
    if options.model is None:
        return _environment_source(from_file)
    return "named in its code" if target.kind == "module" else "named in its files"


def _environment_source(from_file: Set[str]) -> str:
    name = "LOUSHO_MODEL"
    if not os.environ.get(name, "").strip():
        provider = (default_model_from_environment() or "").partition("/")[0]
        name = KEY_VARIABLES.get(provider, name)
        return f"the default for {name}, {_place(name, from_file)}"
    return f"{name}, {_place(name, from_file)}"


def _place(name: str, from_file: Set[str]) -> str:
    return "set in .env" if name in from_file else "set in the environment"


def _tool_sources(target: Target, folder: Path, offered: Sequence[str]) -> dict[str, str | None]:
    """Return where the tools that a run offers are written; what a run adds by itself is built in."""
    own = target.agent.tools
    return {name: _source_of(own[name], folder) if name in own else "built in" for name in offered}


def _source_of(tool: Tool, folder: Path) -> str | None:
    """Return where a tool's function is written."""
    function: Any = inspect.unwrap(tool.execute, stop=_is_not_plain)
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):  # an object that can be called
        function = getattr(cast("object", type(function)), "__call__", None)  # noqa: B004
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return None
    file = Path(code.co_filename)
    if not file.is_absolute():  # code that was made up at run time
        return None
    if file.is_relative_to(_PACKAGE):
        return "built in"
    return f"{_seen_from(folder, file)}:{code.co_firstlineno}"


def _is_not_plain(function: Callable[..., Any]) -> bool:
    return isinstance(function, functools.partial)


def _seen_from(folder: Path, file: Path) -> str:
    """Return a file as it is named from the target's folder; one that lies elsewhere by its whole path."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
