"""The outcome of checks as data: the command prints it, `--json` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "warn", "fail"]

SCHEMA_VERSION = 1
"""Raised when a field of the JSON document changes its meaning or goes."""

_RANK: dict[Status, int] = {"fail": 0, "warn": 1, "ok": 2}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `fix` is there for everything that is not ok. Never holds a secret."""

    id: str
    """Stable, for programs: `python`, `key.openai`, `agent.tools`."""
    name: str
    """What was looked at, for people."""
    status: Status
    found: str
    fix: str | None = None
    code: str | None = None
    """The code of the error behind it, `LOUSHO_*`, where there is one."""

    def to_dict(self) -> dict[str, object]:
        """Return the check as it stands in the JSON document."""
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "found": self.found,
            "fix": self.fix,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What was found out about the agent that doctor was pointed at."""

    path: str
    kind: str
    """`spec`, `directory` or `module`."""
    name: str
    model: str | None
    tools: tuple[str, ...]
    notes: tuple[str, ...]
    """What the loader had to say, e.g. which files it skipped and why."""

    def to_dict(self) -> dict[str, object]:
        """Return the facts as they stand in the JSON document."""
        return {
            "path": self.path,
            "kind": self.kind,
            "name": self.name,
            "model": self.model,
            "tools": list(self.tools),
            "notes": list(self.notes),
        }


@dataclass(slots=True)
class Report:
    """All checks, worst first, and the facts about the agent if one was loaded."""

    version: str
    checks: list[Check] = field(default_factory=list[Check])
    agent: AgentFacts | None = None

    def add(self, checks: Iterable[Check]) -> None:
        """Add checks; failures stand before warnings, those before what is ok, else in the order they were made."""
        self.checks = sorted([*self.checks, *checks], key=lambda check: _RANK[check.status])

    def count(self, status: Status) -> int:
        """Return how many checks ended like that."""
        return sum(check.status == status for check in self.checks)

    @property
    def healthy(self) -> bool:
        """Whether nothing failed; warnings do not count."""
        return self.count("fail") == 0

    @property
    def summary(self) -> str:
        """Return the closing line: `4 ok, 3 warnings, 1 failure`."""
        counts = (self.count("ok"), self.count("warn"), self.count("fail"))
        words = ("ok", _plural("warning", counts[1]), _plural("failure", counts[2]))
        return ", ".join(f"{count} {word}" for count, word in zip(counts, words, strict=True))

    def to_dict(self) -> dict[str, object]:
        """Return the whole report as one JSON document."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "lousho": self.version,
            "healthy": self.healthy,
            "summary": {"ok": self.count("ok"), "warnings": self.count("warn"), "failures": self.count("fail")},
            "checks": [check.to_dict() for check in self.checks],
            "agent": self.agent.to_dict() if self.agent is not None else None,
        }


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def listed(names: Sequence[str], limit: int = 12) -> str:
    """Return names as one text, cut after `limit` with a sign of how many are left out."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
