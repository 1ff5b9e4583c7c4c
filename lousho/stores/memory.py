"""The store of a process: everything is gone when it ends.

Records are kept as JSON text, so what comes back has passed through JSON exactly as it would with a database. Several
event loops in several threads may share one.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict

from lousho.stores.protocol import AgentStore, PausedStepRecord, SessionRecord


class InMemorySessionStore:
    """Transcripts in a dictionary."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()

    async def load(self, session_id: str) -> SessionRecord:
        """Return the session, or an empty record of revision 0."""
        return self.load_now(session_id)

    def load_now(self, session_id: str) -> SessionRecord:
        """Return what `load()` returns, without waiting."""
        revision, text = self._records.get(session_id, (0, "[]"))
        return SessionRecord(id=session_id, messages=json.loads(text), revision=revision)

    async def save(self, record: SessionRecord) -> bool:
        """Write `record` if nobody else wrote since it was read."""
        text = json.dumps(record.messages, ensure_ascii=False)
        with self._lock:
            if self._records.get(record.id, (0, ""))[0] != record.revision:
                return False
            self._records[record.id] = (record.revision + 1, text)
        return True

    async def delete(self, session_id: str) -> None:
        """Forget the session."""
        self._records.pop(session_id, None)


class InMemoryApprovalStore:
    """Paused steps in a dictionary: an agent's default."""

    def __init__(self) -> None:
        self._steps: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()

    async def save(self, step: PausedStepRecord) -> bool:
        """Write `step` if nobody else wrote since it was read."""
        revision = step.revision + 1
        text = json.dumps(asdict(step) | {"revision": revision}, ensure_ascii=False)
        with self._lock:
            if self._steps.get(step.id, (0, ""))[0] != step.revision:
                return False
            self._steps[step.id] = (revision, text)
        return True

    async def load(self, step_id: str) -> PausedStepRecord | None:
        """Return the step without claiming it."""
        found = self._steps.get(step_id)
        return None if found is None else PausedStepRecord(**json.loads(found[1]))

    async def claim(self, step_id: str, revision: int) -> bool:
        """Remove the step for exactly one caller."""
        with self._lock:
            if self._steps.get(step_id, (-1, ""))[0] != revision:
                return False
            del self._steps[step_id]
        return True

    async def list(self) -> list[PausedStepRecord]:
        """Return the waiting steps, oldest first."""
        with self._lock:
            steps = list(self._steps.values())
        return [PausedStepRecord(**json.loads(text)) for _, text in steps]


def writes_at_once(store: object) -> bool:
    """Whether `store` is one of these, whose calls never wait and so cannot be cut off half-way."""
    return type(store) in (InMemorySessionStore, InMemoryApprovalStore)


def memory_store() -> AgentStore:
    """Return a store that lives as long as the process."""
    return AgentStore(sessions=InMemorySessionStore(), approvals=InMemoryApprovalStore())
