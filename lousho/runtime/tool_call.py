"""One tool call, from the model's words to the text the model reads: read, check, pass the gate, run, settle.

Every path a call can take (first run, after an approval) goes through here. Source: tools page.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lousho.core.cancel import AbortError, CancelSignal
from lousho.core.errors import TimeoutError as OverdueError
from lousho.core.errors import ToolArgumentsValidationError, ToolExecutionError, deciding_error, never_wrap
from lousho.core.events import AgentEvent, ToolPartialEvent, ToolStartEvent
from lousho.core.json_values import to_json_value
from lousho.policy.gate import RUN, Verdict, decide, under_mode
from lousho.policy.modes import PermissionMode
from lousho.runtime.argument_types import fitted_arguments
from lousho.runtime.arguments import Ending, arguments_error, copied, read_arguments
from lousho.runtime.deps import RunDeps
from lousho.runtime.loop_guard import refusal
from lousho.runtime.permission_audit import audit
from lousho.runtime.racing import GIVE_WAY, Aborted, SelfCancelled, outcome_of, start, unless_aborted, wait_for
from lousho.runtime.state import CallSlot, RunState
from lousho.runtime.threads import ThreadCall, in_thread
from lousho.runtime.tool_names import unknown_tool_text
from lousho.runtime.tool_result import CANCELLED, settle_done, settle_failed
from lousho.tools.context import ApprovalInfo, ToolContext
from lousho.tools.definition import Tool

_ENDINGS: dict[str, Ending] = {
    "stop": "own",
    "tool_calls": "own",
    "length": "cut",
    "content_filter": "cut",
    "error": "cut",
}


@dataclass(slots=True)
class CheckedCall:
    """A call as the model meant it: its tool, if there is one, and its parsed arguments, or what is wrong with them."""

    slot: CallSlot
    tool: Tool | None
    parsed: Any = None
    failure: BaseException | None = None
    mode: PermissionMode = "default"
    """The permission mode when the call came up; a switch that its start causes holds from the next call on."""


@dataclass(slots=True)
class ReadyCall:
    """A call whose tool exists and whose arguments are valid, and what the gate said."""

    slot: CallSlot
    tool: Tool
    parsed: Any
    context: ToolContext
    verdict: Verdict
    started: float


def context_for(slot: CallSlot, state: RunState, deps: RunDeps) -> ToolContext:
    """Return what the tool may know: the transcript before the calling turn, the ids, the signal, the approval."""
    messages = state.messages
    first = 0
    while first < len(messages) and messages[first].role == "system":  # a caller's own, which stands for ours
        first += 1
    last = len(messages) - 1 if messages and messages[-1].role == "assistant" else len(messages)
    decision = slot.decision
    approval = None
    if decision is not None and slot.approval_id is not None:
        approval = ApprovalInfo(id=slot.approval_id, note=decision.note, by=decision.by)
    return ToolContext(
        tool_call_id=slot.tool_call_id,
        tool_name=slot.tool_name,
        abort_signal=deps.signal,
        messages=tuple(messages[first:last]),
        run_id=deps.emitter.run_id,
        session_id=state.session_id,
        principal=deps.principal,
        approval=approval,
        arguments=slot.args,
        report=partial(_report, slot, deps),
    )


def _report(slot: CallSlot, deps: RunDeps, event: AgentEvent) -> None:
    """Emit an event of a running tool; one that goes on after its call was settled is not heard any more."""
    if slot.status == "running":
        deps.emitter.emit(event)


def announce(slot: CallSlot, arguments: str, state: RunState, deps: RunDeps) -> CheckedCall:
    """Read and check the model's arguments, and say that the call starts."""
    checked = check(slot, arguments, state, deps)
    try:
        checked.mode = deps.permission_mode()
    except Exception as error:  # noqa: BLE001 - where nobody can say the mode, the call must not run
        checked.failure = checked.failure or error
    event = ToolStartEvent(
        tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, args=copied(slot.args or {}), raw_args=slot.raw_args
    )
    deps.emitter.emit(event)
    listener = deps.observers.on_tool_call
    if listener is not None:
        deps.emitter.tell(listener, deps.emitter.stamped(replace(event, args=copied(event.args))))
    return checked


def check(slot: CallSlot, arguments: str, state: RunState, deps: RunDeps) -> CheckedCall:
    """Read the arguments into the slot and let the tool parse them, repaired where that is wanted and possible."""
    last = slot is state.batch[-1]
    read = read_arguments(
        arguments,
        repair=deps.repair_arguments,
        ending=_ENDINGS.get(state.turn_finish, "unknown") if last else "own",
    )
    slot.args, slot.raw_args = read.args, read.raw
    checked = CheckedCall(slot, deps.tools.get(slot.tool_name))
    tool = checked.tool
    if tool is None:
        return checked
    if slot.args is None:
        checked.failure = arguments_error(slot.tool_name, read.problem or "arguments are missing")
        return checked
    try:
        checked.parsed = tool.parse(copied(slot.args))
    except ToolArgumentsValidationError as error:
        checked.failure = error
        if deps.repair_arguments:
            _fit_types(checked, tool, slot.args, arguments, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a validator's own failure is the call's
        checked.failure = error
    return checked


def _fit_types(
    checked: CheckedCall, tool: Tool, args: dict[str, Any], arguments: str, error: ToolArgumentsValidationError
) -> None:
    """Take the arguments in the types that the schema wants, if the tool then accepts them."""
    fitted = fitted_arguments(tool, args, error)
    if fitted is None:
        return
    try:
        checked.parsed = tool.parse(copied(fitted))
    except (Exception, SystemExit):  # noqa: BLE001 - what the model is told is about what it sent
        return
    checked.failure = None
    checked.slot.args, checked.slot.raw_args = fitted, arguments


async def admit(call: CheckedCall, state: RunState, deps: RunDeps) -> ReadyCall | None:
    """Prepare a call, waiting for its gate only as long as the run goes on; `None` when the call is settled."""
    started = time.monotonic()
    slot, tool = call.slot, call.tool
    if not deps.rules_wait and (tool is None or isinstance(tool.needs_approval, bool)):
        if deps.emitter.backlog is not None:
            await asyncio.sleep(0)  # whoever reads the stream sees the start before what the tool itself prints
        return await prepare(call, state, deps, started)
    try:
        return await unless_aborted(prepare(call, state, deps, started), deps.signal)
    except Aborted:
        settle_failed(slot, state, deps, started, CANCELLED, "cancelled")
    except SelfCancelled as error:
        settle_failed(slot, state, deps, started, error, None)
    return None


async def prepare(call: CheckedCall, state: RunState, deps: RunDeps, started: float) -> ReadyCall | None:
    """Pass a call through the gate; `None` when it was settled (unknown tool, bad arguments, denied)."""
    slot, tool = call.slot, call.tool
    if state.failing and (refused := refusal(slot, state)) is not None:
        settle_failed(slot, state, deps, started, refused[0], "denied", reason=refused[1])
        return None
    if tool is None:
        text = unknown_tool_text(slot.tool_name, deps.tools, match=deps.match_tool_names)
        settle_failed(slot, state, deps, started, text, "not-found")
        return None
    try:
        if call.failure is not None:
            raise call.failure
        if _unconfined(slot, tool, state, deps, started):
            return None
        context = context_for(slot, state, deps)
        verdict = await _verdict(slot, tool, call.parsed, context, deps)
    except (Exception, SystemExit) as error:
        # A validator's, a rule's or a gate's own failure is the call's failure, and the model is told.
        if isinstance(error, Exception) and never_wrap(error):
            raise
        settle_failed(slot, state, deps, started, error, None)
        return None
    verdict = under_mode(verdict, tool, call.mode)
    audit(slot, verdict, deps, call.mode)
    if verdict.action == "deny":
        _deny(slot, verdict, state, deps, started)
        return None
    return ReadyCall(slot, tool, call.parsed, context, verdict, started)


def _deny(slot: CallSlot, verdict: Verdict, state: RunState, deps: RunDeps, started: float) -> None:
    text, reason = f"The call of the tool {slot.tool_name!r} was denied.", verdict.reason
    settle_failed(
        slot, state, deps, started, text if reason is None else f"{text} Reason: {reason}", "denied", reason=reason
    )


async def _verdict(slot: CallSlot, tool: Tool, parsed: Any, context: ToolContext, deps: RunDeps) -> Verdict:
    if _reads_results(tool, deps):
        return RUN  # it shows a model only what it was given before
    return await decide(
        tool, copied(slot.args or {}) if deps.rules_wait else slot.args or {}, parsed, context, deps.rules
    )


def _reads_results(tool: Tool, deps: RunDeps) -> bool:
    return deps.spilled is not None and tool is deps.spilled.reader


def _unconfined(slot: CallSlot, tool: Tool, state: RunState, deps: RunDeps, started: float) -> bool:
    """Refuse a call that may only run in a sandbox where there is none; it must never run outside of one."""
    if not tool.requires_sandbox:
        return False
    lacks = "the tool has no sandbox_execute" if tool.sandbox_execute is None else "the agent has no sandbox"
    text = f"The tool {slot.tool_name!r} runs in a sandbox only, and {lacks}; it did not run."
    settle_failed(slot, state, deps, started, text, "sandbox")
    return True


def ready_without_gate(slot: CallSlot, tool: Tool, state: RunState, deps: RunDeps) -> ReadyCall | None:
    """Return an approved call, its arguments checked again; `None` when something refuses it now and that settled it.

    Of the permission modes only `plan` does: the others are about asking, and a person was asked.
    """
    started = time.monotonic()
    try:
        parsed = tool.parse(copied(slot.args or {}))
        mode = deps.permission_mode()
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception) and never_wrap(error):
            raise
        settle_failed(slot, state, deps, started, error, None)
        return None
    if _unconfined(slot, tool, state, deps, started):
        return None
    verdict = under_mode(RUN, tool, mode)
    if verdict.action == "deny":
        audit(slot, verdict, deps, mode)
        _deny(slot, verdict, state, deps, started)
        return None
    return ReadyCall(slot, tool, parsed, context_for(slot, state, deps), RUN, started)


async def run_call(call: ReadyCall, state: RunState, deps: RunDeps) -> None:
    """Run a call and settle its slot. Raises only what ends the run: a `PropagatingToolError`, or cancellation."""
    slot = call.slot
    slot.status = "running"
    span = deps.start_span("tool", slot.tool_name, deps.span)
    failure: BaseException | None = None
    try:
        result = to_json_value(await _invoke(call, deps))
    except Aborted:
        settle_failed(slot, state, deps, call.started, CANCELLED, "cancelled")
    except asyncio.CancelledError:
        settle_failed(slot, state, deps, call.started, CANCELLED, "cancelled")
        raise
    except BaseException as raised:
        failure = error = deciding_error(raised)
        if not isinstance(error, (Exception, SystemExit)):  # an interrupt, or the exit of a test runner
            raise
        if _because_of_the_abort(error, deps.signal):
            settle_failed(slot, state, deps, call.started, CANCELLED, "cancelled")
            return
        settle_failed(slot, state, deps, call.started, error, None)
        if isinstance(error, Exception) and never_wrap(error):
            raise error from error.__cause__
    else:
        await settle_done(slot, state, deps, call.started, result, may_spill=not _reads_results(call.tool, deps))
        for event in call.context.follow_ups:
            deps.emitter.emit(event)
    finally:
        span.end(failure)


def _because_of_the_abort(error: BaseException, signal: CancelSignal) -> bool:
    """Whether a tool raised only because it saw that the run is aborted: that is no failure of the tool."""
    return signal.aborted and (error is signal.reason or isinstance(error, AbortError))


async def _invoke(call: ReadyCall, deps: RunDeps) -> Any:
    """Return what the tool returns, bounded by its timeout and the run's signal."""
    tool, context = call.tool, call.context
    if tool.style == "async-generator":  # it may go on for as long as it has something to show
        work = start(_drain(tool.invoke(call.parsed, context), call.slot, deps))
        return await _bounded(work, deps.signal, None, call, None)
    signal, own = deps.signal, None
    timeout_ms = deps.tool_timeout_ms if tool.timeout_ms is None else tool.timeout_ms
    if timeout_ms is not None:
        own = CancelSignal.any(deps.signal)
        context = replace(context, abort_signal=own)
    try:
        if tool.style == "async":
            task: asyncio.Future[Any] = start(tool.invoke(call.parsed, context))
        else:
            task = in_thread(tool.invoke, call.parsed, context)
        value = await _bounded(task, signal, timeout_ms, call, own)
        if inspect.isasyncgen(value):
            return await _bounded(start(_drain(value, call.slot, deps)), signal, None, call, None)
        if inspect.isawaitable(value):  # a sync function that handed back a coroutine
            value = await _bounded(start(value), signal, timeout_ms, call, own)
    finally:
        if own is not None:
            own.detach()
    if inspect.isgenerator(value):
        raise ToolExecutionError(
            f"The tool {tool.name!r} returned a generator, which is no result: "
            "return a list, or make it an async generator to stream.",
            tool.name,
        )
    return value


async def _bounded(
    task: asyncio.Future[Any], signal: CancelSignal, timeout_ms: float | None, call: ReadyCall, own: CancelSignal | None
) -> Any:
    outcome = await wait_for(task, signal, timeout_ms)
    if outcome == "done":
        if signal.aborted and task.cancelled():
            raise Aborted(signal.reason)
        return outcome_of(task)
    if outcome == "aborted":
        raise Aborted(signal.reason)
    waited = isinstance(task, ThreadCall) and task.place == "waiting"
    what = "begin" if waited else "finish"
    why = ", because all threads for plain functions are busy" if waited else ""
    overdue = OverdueError(
        f"The tool {call.slot.tool_name!r} did not {what} within {timeout_ms:g} ms{why}.",
        f"tool {call.slot.tool_name}",
        timeout_ms,
    )
    if own is not None:
        own.abort(overdue)
    raise overdue


async def _drain(snapshots: AsyncIterator[Any], slot: CallSlot, deps: RunDeps) -> Any:
    """Emit every snapshot of a generator tool; the last one is the result. The generator is always closed.

    One that goes on after the call was settled, because it ignored its cancellation, is not heard any more.
    """
    last: Any = None
    index = 0
    try:
        async for snapshot in snapshots:
            if slot.status != "running":
                return None
            last = snapshot
            deps.emitter.emit(
                ToolPartialEvent(
                    tool_call_id=slot.tool_call_id,
                    tool_name=slot.tool_name,
                    output=to_json_value(snapshot),
                    index=index,
                )
            )
            index += 1
            if index % GIVE_WAY == 0:
                await asyncio.sleep(0)  # a generator that never waits must not keep an abort from being heard
        return last
    finally:
        close = getattr(snapshots, "aclose", None)
        if close is not None:
            await close()
