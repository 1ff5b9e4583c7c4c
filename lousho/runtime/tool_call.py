"""One tool call, from the model's words to the text the model reads: prepare, decide, run, settle.

Every path a call can take (first run, after an approval) goes through here. Source: tools page.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from lousho.core.cancel import CancelSignal
from lousho.core.errors import TimeoutError as OverdueError
from lousho.core.errors import ToolArgumentsValidationError, ToolExecutionError, deciding_error, never_wrap
from lousho.core.events import (
    AgentEvent,
    ErrorInfo,
    PermissionDecisionEvent,
    ToolDoneEvent,
    ToolErrorEvent,
    ToolPartialEvent,
    ToolStartEvent,
)
from lousho.core.json_values import Json, clean_text, dump_json, to_json_value, write_json
from lousho.policy.gate import RUN, Verdict, decide
from lousho.runtime.arguments import arguments_error, copied, read_arguments
from lousho.runtime.deps import RunDeps, ToolErrorInfo
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.racing import GIVE_WAY, Aborted, SelfCancelled, outcome_of, start, unless_aborted, wait_for
from lousho.runtime.state import CallSlot, RunState
from lousho.runtime.threads import in_thread
from lousho.tools.context import ApprovalInfo, ToolContext
from lousho.tools.definition import Tool
from lousho.tools.errors import cap_message, tool_error_result

_log = logging.getLogger("lousho.runtime")

CANCELLED = "The call was cancelled: the run was aborted before it finished."


@dataclass(slots=True)
class ReadyCall:
    """A call whose tool exists and whose arguments are valid, and what the gate said."""

    slot: CallSlot
    tool: Tool
    parsed: Any
    context: ToolContext
    verdict: Verdict
    started: float


def context_for(slot: CallSlot, state: RunState, deps: RunDeps, signal: CancelSignal | None = None) -> ToolContext:
    """Return what the tool may know: the transcript before the calling turn, the ids, the signal, the approval."""
    messages = state.messages
    before = messages[:-1] if messages and messages[-1].role == "assistant" else messages
    decision = slot.decision
    approval = None
    if decision is not None and slot.approval_id is not None:
        approval = ApprovalInfo(id=slot.approval_id, note=decision.note, by=decision.by)
    return ToolContext(
        tool_call_id=slot.tool_call_id,
        tool_name=slot.tool_name,
        abort_signal=signal or deps.signal,
        messages=tuple(before),
        run_id=deps.emitter.run_id,
        session_id=state.session_id,
        principal=deps.principal,
        approval=approval,
        report=partial(_report, slot, deps),
    )


def _report(slot: CallSlot, deps: RunDeps, event: AgentEvent) -> None:
    """Emit an event of a running tool; one that goes on after its call was settled is not heard any more."""
    if slot.status == "running":
        deps.emitter.emit(event)


def announce(slot: CallSlot, arguments: str, deps: RunDeps) -> str | None:
    """Read the model's arguments into the slot and emit `tool.start`; returns the complaint about them, if any."""
    read = read_arguments(arguments)
    slot.args, slot.raw_args = read.args, read.raw
    args = copied(read.args or {})
    deps.emitter.emit(
        ToolStartEvent(tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, args=args, raw_args=read.raw)
    )
    return read.problem


async def admit(slot: CallSlot, problem: str | None, state: RunState, deps: RunDeps) -> ReadyCall | None:
    """Prepare a call, waiting for its gate only as long as the run goes on; `None` when the call is settled."""
    started = time.monotonic()
    tool = deps.tools.get(slot.tool_name)
    if not deps.rules_wait and (tool is None or isinstance(tool.needs_approval, bool)):
        if deps.emitter.backlog is not None:
            await asyncio.sleep(0)  # whoever reads the stream sees the start before what the tool itself prints
        return await prepare(slot, problem, tool, state, deps)
    try:
        return await unless_aborted(prepare(slot, problem, tool, state, deps), deps.signal)
    except Aborted:
        settle_failed(slot, state, deps, started, CANCELLED, "cancelled")
    except SelfCancelled as error:
        settle_failed(slot, state, deps, started, error, None)
    return None


async def prepare(
    slot: CallSlot, problem: str | None, tool: Tool | None, state: RunState, deps: RunDeps
) -> ReadyCall | None:
    """Check a call and pass it through the gate; `None` when that settled it (unknown tool, bad arguments, denied)."""
    started = time.monotonic()
    if tool is None:
        known = ", ".join(sorted(deps.tools)) or "none"
        settle_failed(slot, state, deps, started, f"There is no tool {slot.tool_name!r}. Tools: {known}.", "not-found")
        return None
    try:
        if problem is not None or slot.args is None:
            raise arguments_error(slot.tool_name, problem or "arguments are missing")
        parsed = tool.parse(copied(slot.args))
        context = context_for(slot, state, deps)
        verdict = await decide(tool, copied(slot.args) if deps.rules_wait else slot.args, parsed, context, deps.rules)
    except (Exception, SystemExit) as error:
        # A validator's, a rule's or a gate's own failure is the call's failure, and the model is told.
        if isinstance(error, Exception) and never_wrap(error):
            raise
        settle_failed(slot, state, deps, started, error, None)
        return None
    _audit(slot, verdict, deps)
    if verdict.action == "deny":
        text = f"The call of the tool {slot.tool_name!r} was denied."
        reason = verdict.reason
        settle_failed(
            slot, state, deps, started, text if reason is None else f"{text} Reason: {reason}", "denied", reason=reason
        )
        return None
    return ReadyCall(slot, tool, parsed, context, verdict, started)


def ready_without_gate(slot: CallSlot, tool: Tool, state: RunState, deps: RunDeps) -> ReadyCall | None:
    """Return an approved call, its arguments checked again; `None` when they no longer fit and that settled it."""
    started = time.monotonic()
    try:
        parsed = tool.parse(copied(slot.args or {}))
    except Exception as error:  # noqa: BLE001 - bad arguments, or a validator that fails by itself
        settle_failed(slot, state, deps, started, error, None)
        return None
    return ReadyCall(slot, tool, parsed, context_for(slot, state, deps), RUN, started)


async def run_call(call: ReadyCall, state: RunState, deps: RunDeps) -> None:
    """Run a call and settle its slot. Raises only what ends the run: a `PropagatingToolError`, or cancellation."""
    slot = call.slot
    slot.status = "running"
    span = deps.tracer.start("tool", slot.tool_name, deps.span)
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
        settle_failed(slot, state, deps, call.started, error, None)
        if isinstance(error, Exception) and never_wrap(error):
            raise error from error.__cause__
    else:
        settle_done(slot, deps, call.started, result)
        for event in call.context.follow_ups:
            deps.emitter.emit(event)
    finally:
        span.end(failure)


async def _invoke(call: ReadyCall, deps: RunDeps) -> Any:
    """Return what the tool returns, bounded by its timeout and the run's signal."""
    tool, context = call.tool, call.context
    if tool.style == "async-generator":
        work = start(_drain(tool.invoke(call.parsed, context), call.slot, deps))
        return await _bounded(work, deps.signal, None, call, None)
    signal, own = deps.signal, None
    if tool.timeout_ms is not None:
        own = CancelSignal.any(deps.signal)
        from dataclasses import replace

        context = replace(context, abort_signal=own)
    if tool.style == "async":
        task: asyncio.Future[Any] = start(tool.invoke(call.parsed, context))
    else:
        task = in_thread(tool.invoke, call.parsed, context)
    value = await _bounded(task, signal, tool.timeout_ms, call, own)
    if inspect.isasyncgen(value):
        return await _bounded(start(_drain(value, call.slot, deps)), signal, None, call, None)
    if inspect.isawaitable(value):  # a sync function that handed back a coroutine
        value = await _bounded(start(value), signal, tool.timeout_ms, call, own)
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
    overdue = OverdueError(
        f"The tool {call.slot.tool_name!r} did not finish within {timeout_ms:g} ms.",
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


def settle_done(slot: CallSlot, deps: RunDeps, started: float, result: Json) -> None:
    """Record a call's result and emit `tool.done`."""
    slot.content = cap_result(result if isinstance(result, str) else write_json(result), deps.max_tool_result_chars)
    slot.is_error = False
    slot.status = "settled"
    deps.emitter.emit(
        ToolDoneEvent(
            tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, result=result, duration_ms=_elapsed(started)
        )
    )


def settle_failed(
    slot: CallSlot,
    state: RunState,
    deps: RunDeps,
    started: float,
    error: BaseException | str,
    kind: str | None,
    **details: Any,
) -> None:
    """Record a failed call as the error the model reads and emit `tool.error`."""
    if isinstance(error, BaseException):
        _log.debug("tool %s failed", slot.tool_name, exc_info=error)  # the traceback is in no event
    limit = deps.max_tool_result_chars
    details = {key: cap_result(value, limit) if isinstance(value, str) else value for key, value in details.items()}
    if isinstance(error, ToolArgumentsValidationError):
        details["issues"] = [issue.to_dict() for issue in error.issues]
    result = tool_error_result(tool_name=slot.tool_name, error=error, kind=kind, details=details)
    if result["kind"] == "execution" and isinstance(error, BaseException) and deps.tool_error_message is not None:
        result["message"] = cap_message(_shown_message(error, slot, deps))
    slot.content = dump_json(result)
    slot.is_error = True
    slot.status = "settled"
    if result["kind"] != "not-run":
        state.tool_errors += 1
    info = ErrorInfo(name=str(result["error"]), message=clean_text(str(result["message"])))
    deps.emitter.emit(
        ToolErrorEvent(
            tool_call_id=slot.tool_call_id, tool_name=slot.tool_name, error=info, duration_ms=_elapsed(started)
        )
    )


def _shown_message(error: BaseException, slot: CallSlot, deps: RunDeps) -> str:
    """Return the owner's text for a thrown error, or a neutral one when that function fails."""
    assert deps.tool_error_message is not None
    info = ToolErrorInfo(tool_name=slot.tool_name, tool_call_id=slot.tool_call_id)
    try:
        text = cast("object", deps.tool_error_message(error, info))
    except Exception:  # noqa: BLE001 - the function exists to hide details: its own failure must not show any
        return "The tool failed."
    return text if isinstance(text, str) else "The tool failed."


def cap_result(text: str, limit: float) -> str:
    """Return `text`, its middle replaced by a marker when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = max(int(limit) // 2, 1)
    cut = len(text) - 2 * half
    return f"{text[:half]}\n... [{cut} characters cut] ...\n{text[-half:]}"


def _audit(slot: CallSlot, verdict: Verdict, deps: RunDeps) -> None:
    if not deps.audits:
        return
    found = verdict.rule
    rule: dict[str, Any] | None = None
    if found is not None:
        rule = {"index": found.index}
        if found.rule.reason is not None:
            rule["reason"] = found.rule.reason
    event = PermissionDecisionEvent(
        tool_call_id=slot.tool_call_id,
        tool_name=slot.tool_name,
        decision=verdict.decision,
        rule=rule,
        reason=verdict.reason if verdict.action == "deny" and found is None else None,
        args=None if deps.redact_content else copied(slot.args),
        at=timestamp_now(),
    )
    deps.emitter.emit(event)
    if deps.on_permission_decision is not None:
        entry = event.to_dict()
        for key in ("type", "runId", "seq", "timestamp", "v"):
            entry.pop(key, None)
        deps.emitter.tell(deps.on_permission_decision, entry, deps.principal)


def _elapsed(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
