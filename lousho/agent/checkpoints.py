"""Where the runs of an agent save themselves: pauses go to the approval store, session turns to the session store."""

from __future__ import annotations

from collections.abc import Mapping

from lousho.core.errors import SDKError
from lousho.core.json_values import JsonObject
from lousho.core.redact import shown
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.questions import question_of
from lousho.runtime.state import RunState
from lousho.runtime.state_json import state_to_json
from lousho.stores.memory import writes_at_once
from lousho.stores.protocol import ApprovalStore, PausedStepRecord, SessionRecord, SessionStore
from lousho.tools.definition import Tool


class AgentCheckpoints:
    """The saves of one run. Without a session only a pause is saved."""

    __slots__ = ("_approvals", "_sessions", "_tools")

    def __init__(self, approvals: ApprovalStore, sessions: SessionStore | None, tools: Mapping[str, Tool]) -> None:
        self._approvals = approvals
        self._sessions = sessions
        self._tools = tools

    @property
    def pause_waits(self) -> bool:
        """Whether saving a pause may take time."""
        return not writes_at_once(self._approvals)

    @property
    def finish_waits(self) -> bool:
        """Whether saving the turn may take time."""
        return self._sessions is not None and not writes_at_once(self._sessions)

    async def model_turn(self, state: RunState) -> None:
        """Nothing is kept between steps without a durable store."""

    async def call_settled(self, state: RunState) -> None:
        """Nothing is kept between steps without a durable store."""

    async def paused(self, state: RunState) -> None:
        """Save the whole run with the decisions it waits for.

        Raises `LOUSHO_STORAGE_FAILED` when the store did not write it: nobody could ever decide it.
        """
        waiting = state.waiting()
        step_id = (waiting[0].approval_id or "").rpartition(".")[0]
        approvals: list[JsonObject] = []
        for slot in waiting:
            record: JsonObject = {
                "id": slot.approval_id,
                "toolCallId": slot.tool_call_id,
                "toolName": slot.tool_name,
                "args": slot.args or {},
                "createdAt": timestamp_now(),
            }
            question = question_of(slot, self._tools.get(slot.tool_name))
            if question is not None:
                record["kind"] = "question"
                record["question"] = question  # type: ignore[assignment]
            if slot.expires_at is not None:
                record["expiresAt"] = slot.expires_at
            approvals.append(record)
        step = PausedStepRecord(
            id=step_id,
            state=state_to_json(state),
            approvals=approvals,
            session_id=state.session_id,
            created_at=timestamp_now(),
        )
        if not await self._approvals.save(step):
            raise SDKError(
                f"The pause was not saved: save() of {shown(self._approvals)} did not return True, as it must when it has"
                " written.",
                code="LOUSHO_STORAGE_FAILED",
            )

    async def finished(self, state: RunState) -> None:
        """Commit a session's turn; one that was aborted before the model was asked leaves nothing.

        Raises `LOUSHO_SESSION_BUSY` when another writer committed one meanwhile.
        """
        if self._sessions is None or state.session_id is None or not state.step:
            return
        record = SessionRecord(
            id=state.session_id,
            messages=[message.to_dict() for message in state.messages],
            revision=state.session_revision,
        )
        if not await self._sessions.save(record):
            raise SDKError(
                f"Session {state.session_id!r} was changed by another writer while this turn ran; "
                "the turn was not saved.",
                code="LOUSHO_SESSION_BUSY",
            )
