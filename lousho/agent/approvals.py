"""What paused runs wait for, and deciding it. A decided run goes on from its saved state alone.

Source: approvals page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Unpack

from lousho.agent.call_options import AnswerOptions, ResolveOptions, given_options
from lousho.agent.call_tools import CallToolsOption, tools_of_run
from lousho.agent.preparation import CallOptions, RunChannel, check_tools_of, listeners_of
from lousho.agent.running import start_run
from lousho.agent.tool_list import ToolsOption
from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError
from lousho.core.events import AgentEvent, RunDoneEvent, RunStartEvent
from lousho.core.ids import new_id
from lousho.core.json_values import clean_text
from lousho.core.redact import shown
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.blocking import BlockingStream, iterate_blocking, run_blocking
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import Emitter, timestamp_now
from lousho.runtime.loop import drive
from lousho.runtime.result import RunResult, result_of
from lousho.runtime.state import Decision, Paused, RunDecided, RunState
from lousho.runtime.state_json import state_from_json
from lousho.stores.protocol import PausedStepRecord

if TYPE_CHECKING:
    from lousho.agent.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """One call that waits for a person. `kind` is `question` for a question the model asks."""

    id: str
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: str = ""
    kind: Literal["question", "sign-in"] | None = None
    question: Mapping[str, Any] | None = None
    session_id: str | None = None
    expires_at: str | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any], session_id: str | None) -> PendingApproval:
        """Return the approval of a stored record."""
        return cls(
            id=record["id"],
            tool_call_id=record["toolCallId"],
            tool_name=record["toolName"],
            args=record.get("args") or {},
            created_at=record.get("createdAt", ""),
            kind=record.get("kind"),
            question=record.get("question"),
            session_id=session_id,
            expires_at=record.get("expiresAt"),
        )


class Approvals:
    """`agent.approvals`: list, read and decide what runs of the agent wait for."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def list(self) -> list[PendingApproval]:
        """Return the undecided approvals, oldest first."""
        steps = await self._agent.approval_store.list()
        return [
            PendingApproval.of(approval, step.session_id)
            for step in steps
            for approval in step.approvals
            if approval.get("decision") is None
        ]

    async def get(self, id: str) -> PendingApproval | None:  # noqa: A002 - the documented name
        """Return an undecided approval without deciding it; `None` when it is unknown or decided."""
        try:
            step, approval = await self._find(id)
        except SDKError:
            return None
        return PendingApproval.of(approval, step.session_id)

    async def resolve(
        self,
        *,
        id: str,  # noqa: A002 - the documented name
        approved: bool,
        note: str | None = None,
        signal: CancelSignal | None = None,
        tools: CallToolsOption | None = None,
        extra_tools: ToolsOption | None = None,
    ) -> RunResult:
        """Decide a call and continue its run; returns the continued run's result, which may be the next pause.

        While other calls of the same step are undecided nothing runs and the result is `awaiting-approval` again.
        `note` reaches the tool (approved) or the model (rejected). A run that was started with tools of its own gets the
        same ones again as `tools` and `extra_tools`. Raises `LOUSHO_APPROVAL_NOT_FOUND`, `LOUSHO_APPROVAL_CONFLICT`,
        `LOUSHO_RESUME_TOOL_MISSING`, `LOUSHO_CONFIG_RESOLVER_FAILED`; after any of them the call is still undecided.
        """
        call = CallOptions.check(signal=signal, tools=tools, extra_tools=extra_tools)
        return await self._decide(new_id("run"), id, _decision(approved, note), call, RunChannel.silent(call))

    async def answer(
        self,
        *,
        id: str,  # noqa: A002 - the documented name
        answer: str,
        signal: CancelSignal | None = None,
        tools: CallToolsOption | None = None,
        extra_tools: ToolsOption | None = None,
    ) -> RunResult:
        """Answer a question and continue its run. Raises `LOUSHO_APPROVAL_KIND_MISMATCH` when it is not a question."""
        await self._check_question(id)
        return await self.resolve(
            id=id, approved=True, note=answer, signal=signal, tools=tools, extra_tools=extra_tools
        )

    def stream_resolve(
        self,
        *,
        id: str,  # noqa: A002 - the documented name
        approved: bool,
        note: str | None = None,
        signal: CancelSignal | None = None,
        tools: CallToolsOption | None = None,
        extra_tools: ToolsOption | None = None,
    ) -> AgentRun:
        """Decide a call and stream its continued run; the iteration ends normally even when the run fails."""
        call = CallOptions.check(signal=signal, tools=tools, extra_tools=extra_tools)
        return self._stream(id, _decision(approved, note), call, question=False)

    def stream_answer(
        self,
        *,
        id: str,  # noqa: A002 - the documented name
        answer: str,
        signal: CancelSignal | None = None,
        tools: CallToolsOption | None = None,
        extra_tools: ToolsOption | None = None,
    ) -> AgentRun:
        """Answer a question and stream its continued run."""
        call = CallOptions.check(signal=signal, tools=tools, extra_tools=extra_tools)
        return self._stream(id, _decision(True, answer), call, question=True)

    def _stream(self, approval_id: str, decision: Decision, call: CallOptions, *, question: bool) -> AgentRun:
        run_id = new_id("run")

        async def start(channel: RunChannel) -> RunResult:
            if question:
                await self._check_question(approval_id)
            return await self._decide(run_id, approval_id, decision, call, channel)

        return start_run(run_id, self._agent.options, call.signal, start, throw_on_error=False)

    def list_sync(self) -> list[PendingApproval]:
        """Blocking twin of `list()`."""
        return run_blocking(self.list())

    def resolve_sync(self, **decision: Unpack[ResolveOptions]) -> RunResult:
        """Blocking twin of `resolve()`."""
        return run_blocking(self.resolve(**given_options(decision, ResolveOptions, "approvals.resolve_sync")))

    def answer_sync(self, **answer: Unpack[AnswerOptions]) -> RunResult:
        """Blocking twin of `answer()`."""
        return run_blocking(self.answer(**given_options(answer, AnswerOptions, "approvals.answer_sync")))

    def stream_resolve_sync(self, **decision: Unpack[ResolveOptions]) -> BlockingStream[AgentEvent]:
        """Blocking twin of `stream_resolve()`: yields the continued run's events."""
        given = given_options(decision, ResolveOptions, "approvals.stream_resolve_sync")
        holder: list[AgentRun] = []

        def open_stream() -> AgentRun:
            holder.append(self.stream_resolve(**given))
            return holder[0]

        async def close() -> None:
            await holder[0].aclose()

        return iterate_blocking(open_stream, close)

    async def _find(self, approval_id: str) -> tuple[PausedStepRecord, dict[str, Any]]:
        step = await self._agent.approval_store.load(str(approval_id).rpartition(".")[0])
        for approval in step.approvals if step is not None else ():
            if approval["id"] == approval_id and approval.get("decision") is None:
                assert step is not None
                return step, approval
        raise SDKError(
            f"No approval {shown(approval_id)} is waiting: it is unknown or was decided before.",
            code="LOUSHO_APPROVAL_NOT_FOUND",
        )

    async def _check_question(self, approval_id: str) -> None:
        _, approval = await self._find(approval_id)
        if approval.get("kind") != "question":
            raise SDKError(
                f"The approval {shown(approval_id)} is not a question; decide it with approved=True or False.",
                code="LOUSHO_APPROVAL_KIND_MISMATCH",
            )

    async def _decide(
        self, run_id: str, approval_id: str, decision: Decision, call: CallOptions, channel: RunChannel
    ) -> RunResult:
        try:
            return await self._decided(run_id, approval_id, decision, call, channel)
        finally:
            channel.signal.detach()

    async def _decided(
        self, run_id: str, approval_id: str, decision: Decision, call: CallOptions, channel: RunChannel
    ) -> RunResult:
        step, approval = await self._find(approval_id)
        if approval.get("kind") == "question" and decision.approved and not decision.note:
            raise SDKError(
                f"The approval {shown(approval_id)} is a question; answer it with answer(), or decline with approved=False.",
                code="LOUSHO_APPROVAL_KIND_MISMATCH",
            )
        state = _paused_state(step)
        options = self._agent.options
        if "tools" not in options.per_run:
            check_tools_of(state, options, tools_of_run(options.own_tools, call.tools, state.call_tools))
        approval["decision"] = {"approved": decision.approved, "note": decision.note, "at": timestamp_now()}
        undecided = [str(other["id"]) for other in step.approvals if other.get("decision") is None]
        if undecided:
            return await self._record(approval_id, step, state, undecided, run_id, channel)

        async def prepare() -> tuple[RunState, RunDeps]:
            # Claimed only once the session is ours: until then its pause keeps new turns out.
            state.run_id = run_id
            deps = await self._agent.resolved_dependencies(state, call, channel)
            if not channel.signal.aborted:
                check_tools_of(state, options, deps.tools)
            if not await self._agent.approval_store.claim(step.id, step.revision):
                raise _conflict(approval_id)
            state.call_tools = call.tools.remembered(state.call_tools)  # it may pause once more
            _apply(state, step)
            return state, deps

        if step.session_id is None:
            return await drive(*await prepare())
        return await self._agent.session(step.session_id).continue_turn(prepare)

    async def _record(
        self,
        approval_id: str,
        step: PausedStepRecord,
        state: RunState,
        undecided: list[str],
        run_id: str,
        channel: RunChannel,
    ) -> RunResult:
        """Keep a decision that leaves others open; the stream says only that the run still waits."""
        if not await self._agent.approval_store.save(step):
            raise _conflict(approval_id)
        state.run_id = run_id
        options = self._agent.options
        emitter = Emitter(run_id, listeners_of(options, channel))
        emitter.emit(RunStartEvent(agent_name=state.agent_name, version=options.version))
        emitter.emit(RunDoneEvent(finish_reason="awaiting-approval", text="", usage=state.usage))
        result = result_of(state)
        result.approval_ids = undecided
        result.approval_id = undecided[0]
        return result


def _paused_state(step: PausedStepRecord) -> RunState:
    """Return the saved run, which must wait for exactly the calls that the record asks about."""
    state = state_from_json(step.state)
    asked = [str(approval["id"]) for approval in step.approvals]
    paused = isinstance(state.next, Paused) and state.finish_reason == "awaiting-approval"
    if not paused or [slot.approval_id for slot in state.waiting()] != asked:
        raise SDKError(
            f"The saved run of {step.id!r} does not wait for what its record asks about.",
            code="LOUSHO_CHECKPOINT_CORRUPT",
        )
    return state


def _decision(approved: bool, note: str | None) -> Decision:
    if not isinstance(approved, bool) or (note is not None and not isinstance(note, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SDKError(
            "A decision is approved=True or approved=False, with an optional note as text.",
            code="LOUSHO_APPROVAL_DECISION_INVALID",
        )
    return Decision(approved=approved, note=None if note is None else clean_text(note))


def _apply(state: RunState, step: PausedStepRecord) -> None:
    """Write the decisions into the waiting calls and set the run going again."""
    decisions = {approval["id"]: approval for approval in step.approvals}
    for slot in state.waiting():
        made: Mapping[str, Any] = decisions[slot.approval_id]["decision"]
        slot.decision = Decision(approved=bool(made["approved"]), note=made.get("note"))
        expired = slot.expires_at is not None and str(made["at"]) > slot.expires_at
        slot.status = "expired" if expired else ("approved" if slot.decision.approved else "rejected")
    state.finish_reason = None
    state.next = RunDecided()


def _conflict(approval_id: str) -> SDKError:
    return SDKError(
        f"Somebody else decided on {shown(approval_id)} at the same moment; nothing was run here.",
        code="LOUSHO_APPROVAL_CONFLICT",
    )
