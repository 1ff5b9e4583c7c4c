"""What a loaded target consists of, by name: for `lousho doctor`, for tests, and for what a command says on stderr."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Skipped(NamedTuple):
    """A part that was found and not used."""

    path: str
    """The file or folder, relative to the agent directory."""
    reason: str
    meant: str | None = None
    """The name that it looks like a misspelling of."""

    def __str__(self) -> str:
        return f"{self.path} was skipped: {self.reason}"


@dataclass(slots=True, kw_only=True)
class Manifest:
    """The parts of an agent. Source: agent-directories page."""

    name: str
    description: str | None = None
    """What the agent does, for an agent that delegates to it."""
    tools: list[str] = field(default_factory=list[str])
    """Names of the tools that were found, in the order of their files."""
    skills: list[str] = field(default_factory=list[str])
    subagents: list[str] = field(default_factory=list[str])
    channels: list[str] = field(default_factory=list[str])
    schedules: list[str] = field(default_factory=list[str])
    memory: list[str] = field(default_factory=list[str])
    registry: None = None
    """Whether installed files still match their receipt; `None` without a receipt."""
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    files: list[Path] = field(default_factory=list[Path])
    """Every file that was read or run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as JSON."""
        return {
            "name": self.name,
            "description": self.description,
            "tools": list(self.tools),
            "skills": list(self.skills),
            "subagents": list(self.subagents),
            "channels": list(self.channels),
            "schedules": list(self.schedules),
            "memory": list(self.memory),
            "registry": self.registry,
            "skipped": [{"path": part.path, "reason": part.reason} for part in self.skipped],
            "files": [str(file) for file in self.files],
        }
