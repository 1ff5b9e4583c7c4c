"""What a store can do, in JSON records that any database can hold.

A store is given as a whole (`AgentStore`) or part by part. Every write that two writers could race on is a
compare-and-swap on a revision number, so a lost race is seen and never overwrites.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

JsonRecord: TypeAlias = "dict[str, Any]"


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """A session's transcript as stored: messages in their stored form, and how often it was written."""

    id: str
    messages: list[JsonRecord] = field(default_factory=list)
    revision: int = 0
    """0 for a session that was never written."""


class SessionStore(Protocol):
    """Keeps transcripts by session id."""

    async def load(self, session_id: str) -> SessionRecord:
        """Return the session, or an empty record of revision 0."""
        ...

    async def save(self, record: SessionRecord) -> bool:
        """Write `record` if the stored revision is still `record.revision`; return whether it was written."""
        ...

    async def delete(self, session_id: str) -> None:
        """Forget the session; an unknown id is fine."""
        ...


@dataclass(slots=True, kw_only=True)
class PausedStepRecord:
    """A step that waits for decisions: the saved run and every call of the step that needs a person.

    `approvals` are JSON records `{id, toolCallId, toolName, args, createdAt, kind?, question?, sessionId?, decision?}`.
    """

    id: str
    state: str
    """The run's state as JSON text."""
    approvals: list[JsonRecord]
    session_id: str | None = None
    created_at: str = ""
    revision: int = 0

    @property
    def approval_ids(self) -> list[str]:
        """The ids that are still to be decided, in call order."""
        return [str(approval["id"]) for approval in self.approvals if approval.get("decision") is None]


class ApprovalStore(Protocol):
    """Keeps paused steps. An approval's id starts with its step's id: `<step id>.<n>`."""

    async def save(self, step: PausedStepRecord) -> bool:
        """Write `step` if the stored revision is still `step.revision` (0: not stored yet); return whether it was."""
        ...

    async def load(self, step_id: str) -> PausedStepRecord | None:
        """Return the step without claiming it, or `None`."""
        ...

    async def claim(self, step_id: str, revision: int) -> bool:
        """Remove the step if its revision is still `revision`; exactly one of several callers gets `True`."""
        ...

    async def list(self) -> list[PausedStepRecord]:
        """Return the waiting steps, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStore:
    """Where an agent keeps what must outlive a call."""

    sessions: SessionStore
    approvals: ApprovalStore
