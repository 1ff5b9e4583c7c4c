"""What paused runs wait for, and deciding it. A decided run goes on from its saved state alone.

Source: approvals page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from lousho.agent.call_options import AnswerOptions, DecisionOptions, ResolveOptions
from lousho.agent.call_tools import tools_of_run
from lousho.agent.decisions import GivenDecision, all_given
from lousho.agent.preparation import RunChannel, check_tools_of, listeners_of
from lousho.agent.running import start_run, stream_blocking
from lousho.core.errors import ROOT_PATH, Issue, SDKError, ToolArgumentsValidationError
from lousho.core.events import AgentEvent, RunDoneEvent, RunStartEvent
from lousho.core.ids import new_id
from lousho.core.messages import FunctionCall, ToolCall
from lousho.core.redact import shown
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.arguments import copied
from lousho.runtime.blocking import BlockingStream, run_blocking
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import Emitter
from lousho.runtime.loop import drive
from lousho.runtime.result import RunResult, result_of
from lousho.runtime.state import Decision, Paused, RunDecided, RunState
from lousho.runtime.state_json import state_from_json
from lousho.stores.protocol import PausedStepRecord
from lousho.tools.definition import Tool

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

    async def resolve(self, **decision: Unpack[ResolveOptions]) -> RunResult:
        """Decide a call and continue its run; returns the continued run's result, which may be the next pause.

        `id` and `approved` are required. While other calls of the same step are undecided nothing runs and the result is
        `awaiting-approval` again. `note` reaches the tool (approved) or the model (rejected). `args` approves with edited
        arguments, which take the place of the model's in the transcript; `remember='session'` approves the same call for
        the rest of the session. `principal` says who decides. A run that was started with tools of its own gets the same
        ones again as `tools` and `extra_tools`; `signal` stops it.

        Raises `LOUSHO_APPROVAL_DECISION_INVALID`, `LOUSHO_CONFIG_INVALID`, `LOUSHO_APPROVAL_NOT_FOUND`,
        `LOUSHO_APPROVAL_KIND_MISMATCH` (a bare yes to a question, `args` or `remember` for one),
        `LOUSHO_TOOL_ARGS_INVALID` (edited arguments that the tool does not take), `LOUSHO_APPROVAL_CONFLICT`,
        `LOUSHO_RESUME_TOOL_MISSING`, `LOUSHO_CONFIG_RESOLVER_FAILED`, `LOUSHO_SESSION_BUSY` (the session's transcript was
        changed meanwhile); after any of them but a conflict the call is still undecided.
        """
        given = GivenDecision.check(decision, ResolveOptions, "approvals.resolve")
        return await self._decide(given, new_id("run"), RunChannel.silent(given.call))

    async def resolve_all(
        self, decisions: Iterable[Mapping[str, Any]], **options: Unpack[DecisionOptions]
    ) -> RunResult:
        """Decide several calls, one after the other in the order given; returns the last decision's result.

        `decisions` are mappings `{id, approved, note?, args?, remember?}`, `options` go for all of them. Nothing is
        decided unless all of them are well formed and wait. Raises what `resolve()` raises;
        `LOUSHO_APPROVAL_DECISION_INVALID` also for an empty list and for one call decided twice.
        """
        given = all_given(decisions, options)
        for one in given:
            _, approval = await self._find(one.id)
            one.check_kind(approval)
        result: RunResult | None = None
        for one in given:
            result = await self._decide(one, new_id("run"), RunChannel.silent(one.call))
        assert result is not None  # an empty list was refused
        return result

    async def answer(self, **answer: Unpack[AnswerOptions]) -> RunResult:
        """Answer a question and continue its run; `id` and `answer` are required, the rest is as for `resolve()`.

        Raises what `resolve()` raises, `LOUSHO_APPROVAL_KIND_MISMATCH` when the call is not a question.
        """
        given = GivenDecision.check(answer, AnswerOptions, "approvals.answer")
        return await self._decide(given, new_id("run"), RunChannel.silent(given.call))

    def stream_resolve(self, **decision: Unpack[ResolveOptions]) -> AgentRun:
        """Decide a call and stream its continued run; the iteration ends normally even when the run fails.

        Arguments as for `resolve()`, checked here and now.
        """
        return self._stream(GivenDecision.check(decision, ResolveOptions, "approvals.stream_resolve"))

    def stream_answer(self, **answer: Unpack[AnswerOptions]) -> AgentRun:
        """Answer a question and stream its continued run; arguments as for `answer()`, checked here and now."""
        return self._stream(GivenDecision.check(answer, AnswerOptions, "approvals.stream_answer"))

    def _stream(self, given: GivenDecision) -> AgentRun:
        run_id = new_id("run")

        async def start(channel: RunChannel) -> RunResult:
            return await self._decide(given, run_id, channel)

        return start_run(run_id, self._agent.options, given.call.signal, start, throw_on_error=False)

    def list_sync(self) -> list[PendingApproval]:
        """Blocking twin of `list()`."""
        return run_blocking(self.list())

    def resolve_sync(self, **decision: Unpack[ResolveOptions]) -> RunResult:
        """Blocking twin of `resolve()`."""
        return run_blocking(self.resolve(**decision))

    def get_sync(self, id: str) -> PendingApproval | None:  # noqa: A002 - the documented name
        """Blocking twin of `get()`."""
        return run_blocking(self.get(id))

    def resolve_all_sync(self, decisions: Iterable[Mapping[str, Any]], **options: Unpack[DecisionOptions]) -> RunResult:
        """Blocking twin of `resolve_all()`."""
        return run_blocking(self.resolve_all(decisions, **options))

    def answer_sync(self, **answer: Unpack[AnswerOptions]) -> RunResult:
        """Blocking twin of `answer()`."""
        return run_blocking(self.answer(**answer))

    def stream_resolve_sync(self, **decision: Unpack[ResolveOptions]) -> BlockingStream[AgentEvent]:
        """Blocking twin of `stream_resolve()`: yields the continued run's events."""
        return stream_blocking(lambda: self.stream_resolve(**decision))

    def stream_answer_sync(self, **answer: Unpack[AnswerOptions]) -> BlockingStream[AgentEvent]:
        """Blocking twin of `stream_answer()`: yields the continued run's events."""
        return stream_blocking(lambda: self.stream_answer(**answer))

    async def _find(self, approval_id: str) -> tuple[PausedStepRecord, dict[str, Any]]:
        known = isinstance(approval_id, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        step = await self._agent.approval_store.load(approval_id.rpartition(".")[0]) if known else None
        if step is not None:
            # A copy: the store may hand out what it keeps, and a decision that fails must leave that undecided.
            step = replace(step, approvals=[dict(approval) for approval in step.approvals])
            for approval in step.approvals:
                if approval["id"] == approval_id and approval.get("decision") is None:
                    return step, approval
        raise SDKError(
            f"No approval {shown(approval_id)} is waiting: it is unknown or was decided before.",
            code="LOUSHO_APPROVAL_NOT_FOUND",
        )

    async def _waits(self, step: PausedStepRecord) -> bool:
        """Whether nobody else decided meanwhile: that turn may be what is new in the transcript."""
        stored = await self._agent.approval_store.load(step.id)
        return stored is not None and stored.revision == step.revision

    async def _decide(self, given: GivenDecision, run_id: str, channel: RunChannel) -> RunResult:
        try:
            return await self._decided(given, run_id, channel)
        finally:
            channel.signal.detach()

    async def _decided(self, given: GivenDecision, run_id: str, channel: RunChannel) -> RunResult:
        call, decision = given.call, given.decision
        step, approval = await self._find(given.id)
        given.check_kind(approval)
        state = _paused_state(step)
        options = self._agent.options
        if "tools" not in options.per_run:
            check_tools_of(state, options, tools_of_run(options.own_tools, call.tools, state.call_tools))
        if given.args is not None:
            await self._check_edited(given, approval, state, channel)
        approval["decision"] = given.record()
        undecided = step.approval_ids
        if undecided:
            return await self._record(given.id, step, state, undecided, run_id, channel)

        session = None if step.session_id is None else self._agent.session(step.session_id)

        async def prepare() -> tuple[RunState, RunDeps]:
            # Claimed only once the session is ours: until then its pause keeps new turns out.
            state.run_id = run_id
            deps = await self._agent.resolved_dependencies(state, call, channel)
            if not channel.signal.aborted:
                check_tools_of(state, options, deps.tools)
            lost = session is not None and not await session.continues(state)
            if lost and decision.approved and await self._waits(step):
                # Before the call runs: its turn could not be saved any more.
                raise _lost_turn(
                    state, "nothing was run, and the call is still undecided; approved=False drops the turn"
                )
            if not await self._agent.approval_store.claim(step.id, step.revision):
                raise _conflict(given.id)
            if lost:
                raise _lost_turn(state, "the turn was dropped, and nothing more of it was run")
            state.call_tools = call.tools.remembered(state.call_tools)  # it may pause once more
            _apply(state, step)
            return state, deps

        return await drive(*await prepare()) if session is None else await session.continue_turn(prepare)

    async def _check_edited(
        self, given: GivenDecision, approval: Mapping[str, Any], state: RunState, channel: RunChannel
    ) -> None:
        """Raise `LOUSHO_TOOL_ARGS_INVALID` for edited arguments that the tool does not take."""
        name = str(approval["toolName"])
        options = self._agent.options
        tools: Mapping[str, Tool] = options.own_tools
        if "tools" in options.per_run:
            tools = (await self._agent.resolved_dependencies(state, given.call, channel)).tools
        else:
            tools = tools_of_run(tools, given.call.tools, state.call_tools)
        check_tools_of(state, options, tools)
        try:
            tools[name].parse(copied(given.args or {}))
        except ToolArgumentsValidationError:
            raise
        except Exception as error:
            raise ToolArgumentsValidationError(name, [Issue(ROOT_PATH, shown(error))], cause=error) from error

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


def _apply(state: RunState, step: PausedStepRecord) -> None:
    """Write the decisions into the waiting calls and set the run going again."""
    decisions = {approval["id"]: approval for approval in step.approvals}
    for slot in state.waiting():
        made: Mapping[str, Any] = decisions[slot.approval_id]["decision"]
        expired = slot.expires_at is not None and str(made["at"]) > slot.expires_at
        approved = bool(made["approved"])
        slot.decision = Decision(
            approved=approved and not expired,
            note=made.get("note"),
            by=made.get("by"),
            source=made.get("source", "human"),
            remember=made.get("remember") == "session",
        )
        slot.status = "expired" if expired else ("approved" if approved else "rejected")
        if slot.status == "approved" and made.get("args") is not None:
            slot.args, slot.raw_args = made["args"], None
            _rewrite(state, slot.tool_call_id, made["args"])
    state.finish_reason = None
    state.next = RunDecided()


def _rewrite(state: RunState, tool_call_id: str, args: Mapping[str, Any]) -> None:
    """Put edited arguments into the model's own call, so that the model reads what ran."""
    turn = state.messages[-1]
    edited = json.dumps(args, ensure_ascii=False)
    calls = tuple(
        ToolCall(call.id, FunctionCall(call.name, edited)) if call.id == tool_call_id else call
        for call in turn.tool_calls
    )
    state.messages[-1] = replace(turn, tool_calls=calls)


def _lost_turn(state: RunState, outcome: str) -> SDKError:
    other = "" if state.executor is None else " The executor began this run: resume_after_approval() goes on with it."
    return SDKError(
        f"The transcript of session {state.session_id!r} is not the one that this turn began with: {outcome}.{other}",
        code="LOUSHO_SESSION_BUSY",
    )


def _conflict(approval_id: str) -> SDKError:
    return SDKError(
        f"Somebody else decided on {shown(approval_id)} at the same moment; nothing was run here.",
        code="LOUSHO_APPROVAL_CONFLICT",
    )
