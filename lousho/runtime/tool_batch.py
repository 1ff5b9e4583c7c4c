"""The tool calls of one model turn: started in call order, run in parallel, recorded in call order.

Calls that need a decision wait until the others have run; then the run pauses once, on all of them.
Source: agents page ("Parallel tool calls"), approvals page.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from lousho.core.events import ApprovalRequestedEvent, ToolResumeEvent
from lousho.core.ids import new_id
from lousho.core.messages import Message
from lousho.policy.approval_memory import approval_note
from lousho.policy.gate import APPROVAL_EXPIRED_REASON, Verdict
from lousho.policy.modes import PermissionMode
from lousho.runtime.approver import decide_in_code
from lousho.runtime.arguments import copied
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.loop_guard import note_outcomes
from lousho.runtime.permission_audit import audit
from lousho.runtime.questions import question_of
from lousho.runtime.racing import Aborted
from lousho.runtime.state import CallModel, CallSlot, Paused, RunDecided, RunState
from lousho.runtime.step_events import close_step, last_usage
from lousho.runtime.tool_call import ReadyCall, admit, announce, ready_without_gate, run_call
from lousho.runtime.tool_result import CANCELLED, NOT_RUN, settle_failed
from lousho.tools.definition import Tool


class Batch:
    """Runs calls side by side, at most `tool_concurrency` at once, and some tools' calls alone. Leaving it waits for
    those that run.

    An error that ends the run stops further starts; the calls that are running settle first. Only a cancellation of
    the run's task cuts them short.
    """

    def __init__(self, state: RunState, deps: RunDeps) -> None:
        self._state = state
        self._deps = deps
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    @property
    def stopped(self) -> bool:
        """Whether no more calls may start."""
        return self._failure is not None or self._deps.signal.aborted

    async def __aenter__(self) -> Batch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, GeneratorExit):  # the loop is gone: nothing can be awaited
            return
        if isinstance(error, asyncio.CancelledError):
            await self._cut_short()
            return
        try:
            while self._running:
                await asyncio.wait(self._running)
        except asyncio.CancelledError:
            await self._cut_short()
            raise
        if error is None and self._failure is not None:
            raise self._failure

    async def _cut_short(self) -> None:
        """Cancel the running calls and wait until they are settled, which no tool can delay."""
        for task in self._running:
            task.cancel()
        while self._running:
            try:
                await asyncio.wait(self._running)
            except asyncio.CancelledError:  # once is enough
                continue

    def crowded(self, tool: Tool | None) -> bool:
        """Whether a call of `tool` has to wait for one that runs."""
        if not self._running:
            return False
        limit = 1 if tool is not None and not tool.concurrent else self._deps.tool_concurrency
        return limit is not None and len(self._running) >= limit

    async def place(self, tool: Tool | None) -> None:
        """Wait until a call of `tool` may run beside those that run."""
        while self.crowded(tool):
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)

    async def start(self, call: ReadyCall, *, last: bool) -> None:
        """Start a call that has a place; the last one of a batch, or one that runs alone, runs in this task."""
        if self.stopped:  # while its gate was asked
            settle_failed(call.slot, self._state, self._deps, call.started, CANCELLED, "cancelled")
            return
        if steered(self._deps):
            settle_failed(call.slot, self._state, self._deps, call.started, NOT_RUN, "not-run")
            return
        if self._deps.tool_concurrency == 1 or not call.tool.concurrent or (last and not self._running):
            await self._run(call)
            return
        task = asyncio.ensure_future(self._run(call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, call: ReadyCall) -> None:
        try:
            await run_call(call, self._state, self._deps)
            await self._deps.checkpointer.call_settled(self._state)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - kept until the running calls have settled, then raised
            if self._failure is None:
                self._failure = error


async def run_tools(state: RunState, deps: RunDeps) -> None:
    """Pass every new call of the step through the gate and run those that may run."""
    arguments = {call.id: call.arguments for call in state.messages[-1].tool_calls}
    slots = [slot for slot in state.batch if slot.status == "new"]
    async with Batch(state, deps) as batch:
        for index, slot in enumerate(slots):
            tool = deps.tools.get(slot.tool_name)
            if batch.crowded(tool):
                await batch.place(tool)
            if batch.stopped or steered(deps):
                break
            ready = await admit(announce(slot, arguments[slot.tool_call_id], state, deps), state, deps)
            if ready is None:
                await deps.checkpointer.call_settled(state)
            elif ready.verdict.action == "ask":
                slot.status = "waiting"
                slot.ttl_ms = deps.approval_ttl_ms if ready.verdict.ttl_ms is None else ready.verdict.ttl_ms
            else:
                await batch.start(ready, last=index == len(slots) - 1)
    if steered(deps) and not deps.signal.aborted:
        _skip_what_has_not_run(state, deps)
    await _after_batch(state, deps)


def steered(deps: RunDeps) -> bool:
    """Whether new input redirects the run, so that calls which have not begun are not run any more."""
    return deps.inbox is not None and deps.inbox.steering


def _skip_what_has_not_run(state: RunState, deps: RunDeps) -> None:
    """Give the calls that have not begun, those that would have to be asked about included, a result that says so."""
    for slot in state.batch:
        if slot.status == "waiting":
            settle_failed(slot, state, deps, time.monotonic(), NOT_RUN, "not-run")
        elif slot.status == "new":
            _settle_unheard(slot, NOT_RUN, "not-run")


async def run_decided(state: RunState, deps: RunDeps) -> None:
    """Settle the calls a person has decided: approved ones run in call order, rejected ones tell the model so."""
    slots = [slot for slot in state.batch if slot.status in ("approved", "rejected", "expired")]
    resumed = not (isinstance(state.next, RunDecided) and state.next.in_code)
    async with Batch(state, deps) as batch:
        for index, slot in enumerate(slots):
            tool = deps.tools[slot.tool_name]
            if batch.crowded(tool):
                await batch.place(tool)
            if batch.stopped:
                break
            args = copied(slot.args or {})
            if resumed:
                event = ToolResumeEvent(tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, args=args)
                deps.emitter.emit(event)
            if slot.status == "rejected":
                _reject(slot, tool, state, deps)
                continue
            if slot.status == "expired":
                audit(slot, Verdict("deny", "deny", APPROVAL_EXPIRED_REASON), deps, _mode_of(deps))
                text = f"Approval of {slot.tool_name!r} expired before it was decided"
                settle_failed(slot, state, deps, time.monotonic(), text, "denied")
                continue
            ready = ready_without_gate(slot, tool, state, deps)
            if ready is not None:
                await batch.start(ready, last=index == len(slots) - 1)
    await _after_batch(state, deps)


def _mode_of(deps: RunDeps) -> PermissionMode:
    """Return the permission mode; the denial of a call that nobody decided in time does not depend on it."""
    try:
        return deps.permission_mode()
    except (Exception, SystemExit):  # noqa: BLE001 - a mode function of the application, asked for the audit alone
        return "default"


def _reject(slot: CallSlot, tool: Tool, state: RunState, deps: RunDeps) -> None:
    note = slot.decision.note if slot.decision is not None else None
    if tool.pause_kind == "question":
        text = "The user declined to answer."
    else:
        text = f"A person rejected this call of {slot.tool_name!r}; it did not run."
    text = text if not note else f"{text} Note: {note}"
    settle_failed(slot, state, deps, time.monotonic(), text, "rejected", note=note)


async def _after_batch(state: RunState, deps: RunDeps) -> None:
    """Record the results in call order, or pause on the calls that wait."""
    if deps.signal.aborted:
        raise Aborted(deps.signal.reason)
    if state.waiting():
        await _decide_or_pause(state, deps)
        return
    record_results(state, deps)
    close_step(state, deps, state.turn_finish, last_usage(state))
    state.next = CallModel()


def record_results(state: RunState, deps: RunDeps) -> None:
    """Append one tool message per call, in the model's order, and close the batch."""
    if deps.loop_guard:
        note_outcomes(state)
    state.messages.extend(
        Message(
            "tool",
            "null" if slot.content is None else slot.content,
            tool_call_id=slot.tool_call_id,
            name=slot.tool_name,
            is_error=slot.is_error,
            metadata=_remembered(slot, deps),
        )
        for slot in state.batch
    )
    state.batch = []


def _remembered(slot: CallSlot, deps: RunDeps) -> dict[str, Any] | None:
    """Return what the transcript remembers of the decision on a call; an answer to a question is no approval."""
    decision, tool = slot.decision, deps.tools.get(slot.tool_name)
    if decision is None or not decision.approved or (tool is not None and tool.pause_kind is not None):
        return None
    note = approval_note(decision.source, slot.args or {}, remember=decision.remember)
    return {"approval": note}


def cancel_unsettled(state: RunState, deps: RunDeps) -> None:
    """Give every call that has no result a cancelled one, so that the transcript stays legal."""
    for slot in state.batch:
        if slot.status == "settled":
            continue
        if slot.status == "new":
            _settle_unheard(slot, CANCELLED, "cancelled")
        else:
            settle_failed(slot, state, deps, time.monotonic(), CANCELLED, "cancelled")


def _settle_unheard(slot: CallSlot, text: str, kind: str) -> None:
    """Settle a call that no event has told of, and therefore none does now."""
    from lousho.tools.errors import error_text, tool_error_result

    slot.content = error_text(tool_error_result(tool_name=slot.tool_name, error=text, kind=kind))
    slot.is_error = True
    slot.status = "settled"


async def _decide_or_pause(state: RunState, deps: RunDeps) -> None:
    """Ask the agent's `approve` function, if it has one; pause on what is still open then."""
    step_id = new_id("ap")
    for number, slot in enumerate(state.waiting(), start=1):
        slot.approval_id = f"{step_id}.{number}"
        slot.expires_at = None if slot.ttl_ms is None else timestamp_now(slot.ttl_ms / 1000)
    if deps.approve is not None:
        await decide_in_code(deps.approve, state, deps)
        if not state.waiting():
            state.next = RunDecided(in_code=True)
            return
    await pause(state, deps)


async def pause(state: RunState, deps: RunDeps) -> None:
    """Save the run, then say which decisions it waits for."""
    waiting = state.waiting()
    state.finish_reason = "awaiting-approval"
    state.text = ""
    state.next = Paused()
    await deps.save(deps.checkpointer.paused(state), waits=deps.checkpointer.pause_waits)
    for slot in waiting:
        question = question_of(slot, deps.tools.get(slot.tool_name))
        deps.emitter.emit(
            ApprovalRequestedEvent(
                approval_id=slot.approval_id or "",
                tool_call_id=slot.tool_call_id,
                tool_name=slot.tool_name,
                args=copied(slot.args or {}),
                kind="question" if question is not None else None,
                question=question,
                expires_at=slot.expires_at,
            )
        )
    close_step(state, deps, "awaiting-approval", last_usage(state))


StepFunction = Callable[[RunState, RunDeps], Awaitable[None]]
