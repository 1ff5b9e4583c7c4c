"""The run loop, in one sentence: ask the model, run the tools it asked for, save, and go on until the run ends or waits.

Each step is a function from the state to the state; what comes next is a value in the state, so a pause, a crash and a
hand-over to another process are all "save it, load it elsewhere". Source: agents page, durable-execution page.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lousho.core.errors import attach_usage
from lousho.core.events import (
    ErrorEvent,
    ErrorInfo,
    RunDoneEvent,
    RunStartEvent,
    TextDoneEvent,
    bare_message,
    error_name,
)
from lousho.core.json_values import clean_text
from lousho.core.messages import FunctionCall, Message, ToolCall, text_of
from lousho.runtime.deps import RunDeps
from lousho.runtime.inbox import Steered
from lousho.runtime.loop_guard import no_answer_text, stuck_call
from lousho.runtime.model_output import default_model, provider_name
from lousho.runtime.model_turn import ModelTurn, copy_of_request, request_for, response_of, take_turn, usage_of
from lousho.runtime.racing import Aborted
from lousho.runtime.result import RunResult, result_of
from lousho.runtime.state import CallModel, CallSlot, Finished, Paused, RunDecided, RunState, RunTools
from lousho.runtime.step_events import close_step, last_usage, open_step
from lousho.runtime.tool_batch import StepFunction, cancel_unsettled, record_results, run_decided, run_tools
from lousho.runtime.tool_names import tool_name_of


async def drive(state: RunState, deps: RunDeps) -> RunResult:
    """Move a run from where its state is to its end or its next pause.

    Returns the result; raises what the run failed with (its `usage` attached) after `error` and `run.done` were
    emitted. An abort by signal is a result. When the calling task is cancelled the run keeps what it has, like an
    abort, and the cancellation goes on once that is saved.
    """
    deps.span = deps.start_span("run", state.agent_name)
    if deps.spilled is not None:
        deps.spilled.open(state)
    deps.emitter.emit(RunStartEvent(agent_name=state.agent_name, agent_id=deps.agent_id, version=deps.agent_version))
    if deps.inbox is not None:
        deps.inbox.open(deps.emitter)
    failure: BaseException | None = None
    try:
        await _advance(state, deps)
        if deps.inbox is not None:
            deps.inbox.close()
        if isinstance(state.next, Finished):
            await deps.save(deps.checkpointer.finished(state), waits=deps.checkpointer.finish_waits)
    except BaseException as error:
        failure = error
        if deps.inbox is not None:
            deps.inbox.close()
        _emit_failure(state, deps, error)
        deps.emitter.close()
        if deps.cancelled is not None:
            raise deps.cancelled from error
        raise
    finally:
        deps.signal.detach()
        deps.span.end(failure or deps.cancelled)
    _emit_done(state, deps)
    deps.emitter.close()
    if deps.cancelled is not None:
        raise deps.cancelled
    return result_of(state)


async def _advance(state: RunState, deps: RunDeps) -> None:
    """Take step after step until the run has ended or waits. A stop from outside ends it as `aborted`."""
    try:
        while not isinstance(state.next, (Paused, Finished)):
            if deps.signal.aborted:
                raise Aborted(deps.signal.reason)
            await _STEPS[type(state.next)](state, deps)
    except Aborted as stop:
        _finish_aborted(state, deps, stop.reason)
    except asyncio.CancelledError as cancelled:
        deps.cancelled = cancelled
        deps.signal.abort("The task that ran the agent was cancelled.")
        _finish_aborted(state, deps, deps.signal.reason)


async def call_model(state: RunState, deps: RunDeps) -> None:
    """Ask the model once and record its turn."""
    if state.step >= deps.max_steps:
        finish(state, "max-steps", _max_steps_text(state, deps.max_steps))
        return
    state.text = ""
    if deps.inbox is not None and deps.inbox.apply(state.messages, state.step + 1):
        state.failing = []  # a person said something new: what failed before may well be right now
    open_step(state, deps)
    turn = ModelTurn()
    request = request_for(state, deps)
    if deps.observers.on_llm_request is not None:
        deps.emitter.tell(deps.observers.on_llm_request, copy_of_request(request))
    name = request.model or default_model(deps.provider) or provider_name(deps.provider)
    span = deps.start_span("chat", name, deps.span)
    failure: BaseException | None = None
    try:
        await take_turn(request, deps, turn)
    except Steered:
        close_step(state, deps, "steered")
        state.next = CallModel()
        return
    except BaseException as error:
        failure = error
        if isinstance(error, (Aborted, asyncio.CancelledError)):
            _keep_partial_turn(state, turn)
        raise
    finally:
        span.end(failure)
    usage = usage_of(turn, request)
    state.usage.add(usage, _model_name(turn, deps))
    state.step_usage.append(usage)
    if deps.observers.on_llm_response is not None:
        deps.emitter.tell(deps.observers.on_llm_response, response_of(turn))
    _record_turn(state, deps, turn)
    await deps.checkpointer.model_turn(state)


def _record_turn(state: RunState, deps: RunDeps, turn: ModelTurn) -> None:
    text = turn.text
    if text:
        deps.emitter.emit(TextDoneEvent(text=text))
    stuck = stuck_call(state) if deps.loop_guard else None
    # Without tools there is nothing to call: what the model asks for all the same is no part of its last answer.
    calls = () if stuck is not None else _distinct_calls(turn.tool_calls, state, deps)
    state.messages.append(Message("assistant", text, tool_calls=calls, reasoning=tuple(turn.reasoning)))
    state.text = text
    reason = turn.finish_reason or "other"
    state.model = turn.served_by.model if turn.served_by is not None else deps.model
    if calls:
        state.turn_finish = reason
        state.batch = [CallSlot(tool_call_id=call.id, tool_name=call.name) for call in calls]
        state.next = RunTools()
        return
    close_step(state, deps, reason, last_usage(state))
    if deps.inbox is not None and deps.inbox.goes_on(may=state.step < deps.max_steps):
        state.next = CallModel()
        return
    if not text and stuck is not None:
        text = no_answer_text(stuck)
    elif not text and reason == "length":
        text = _NO_ROOM
    # A turn that says "tool calls" and brings none has nothing left to do: it is an answer.
    finish(state, "stop" if reason == "tool_calls" else reason, text)


def finish(state: RunState, reason: Any, text: str) -> None:
    """End the run with `reason` and `text`."""
    state.finish_reason = reason
    state.text = text
    state.next = Finished()


def _distinct_calls(calls: list[ToolCall], state: RunState, deps: RunDeps) -> tuple[ToolCall, ...]:
    """Return the calls as the transcript holds them: ids that are set and unique within the run, so that every result
    has one owner, and names that a provider takes back.
    """
    taken = {call.id for message in state.new_messages for call in message.tool_calls}
    distinct: list[ToolCall] = []
    for call in calls:
        call_id = call.id or f"call_{len(taken) + 1}"
        number = 2
        while call_id in taken:
            call_id = f"{call.id or 'call'}_{number}"
            number += 1
        taken.add(call_id)
        name = tool_name_of(call.name, deps.tools, match=deps.match_tool_names)
        kept = call_id == call.id and name == call.name
        distinct.append(call if kept else ToolCall(call_id, FunctionCall(name, call.arguments)))
    return tuple(distinct)


def _keep_partial_turn(state: RunState, turn: ModelTurn) -> None:
    """Keep what the model had said when it was cut off; tool calls of an unfinished turn never count."""
    state.text = turn.text
    if turn.text:
        state.messages.append(Message("assistant", turn.text, interrupted=True))


def _finish_aborted(state: RunState, deps: RunDeps, reason: BaseException | None) -> None:
    cancel_unsettled(state, deps)
    if state.batch:
        record_results(state, deps)
    close_step(state, deps, "aborted")
    if reason is not None:
        state.abort_reason = {"name": error_name(reason), "message": clean_text(bare_message(reason))}
    finish(state, "aborted", state.text)


def _emit_failure(state: RunState, deps: RunDeps, error: BaseException) -> None:
    attach_usage(error, state.usage)
    close_step(state, deps, "error")
    deps.emitter.emit(ErrorEvent(error=ErrorInfo.of(error)))
    deps.emitter.emit(RunDoneEvent(finish_reason="error", text=""))
    state.finish_reason = "error"
    state.next = Finished()


def _emit_done(state: RunState, deps: RunDeps) -> None:
    usage = state.usage.copied() if deps.emitter.listening else None
    deps.emitter.emit(RunDoneEvent(finish_reason=state.finish_reason or "other", text=state.text, usage=usage))


def _model_name(turn: ModelTurn, deps: RunDeps) -> str:
    if turn.served_by is not None:
        return f"{turn.served_by.provider}/{turn.served_by.model or ''}".rstrip("/")
    return f"{provider_name(deps.provider)}/{deps.model or default_model(deps.provider) or ''}".rstrip("/")


_NO_ROOM = "Stopped: the model's reply reached its token limit (max_tokens) before it had any text."


def _max_steps_text(state: RunState, max_steps: int) -> str:
    """Return what the model said last, also if it was before a pause, and why nothing follows."""
    last = next((message for message in reversed(state.new_messages) if message.role == "assistant"), None)
    said = "" if last is None else text_of(last)
    steps = "1 step" if max_steps == 1 else f"{max_steps} steps"
    explained = f"Stopped after {steps}: the step limit was reached before the task was finished."
    return f"{said}\n\n{explained}" if said else explained


_STEPS: dict[type[Any], StepFunction] = {CallModel: call_model, RunTools: run_tools, RunDecided: run_decided}
