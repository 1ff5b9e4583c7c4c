"""One model call: the request, the answer as it streams in, and what is kept when it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from io import StringIO

from lousho.core.cancel import CancelSignal
from lousho.core.errors import LLMProviderError, deciding_error, never_wrap
from lousho.core.events import ReasoningDeltaEvent, ReasoningDoneEvent, ReasoningStartEvent, TextDeltaEvent
from lousho.core.json_values import clean_text
from lousho.core.messages import Message, ReasoningBlock, TextPart, ToolCall
from lousho.core.usage import ModelUsage, StepUsage, estimate_text_tokens, estimate_tokens
from lousho.models.errors import compact_provider_error
from lousho.models.provider import (
    Failure,
    Finish,
    FinishReason,
    ModelChunk,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    ReasoningEnd,
    ServedBy,
    TextDelta,
    ToolCallChunk,
    finish_reason_of,
)
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import Emitter
from lousho.runtime.inbox import Steered
from lousho.runtime.loop_guard import last_answer_note, stuck_call
from lousho.runtime.model_output import (
    can_stream,
    checked_call,
    checked_reasoning,
    checked_response,
    checked_server,
    checked_text,
    checked_usage,
    not_a_chunk,
    open_stream,
    provider_name,
)
from lousho.runtime.racing import GIVE_WAY, Aborted, unless_aborted
from lousho.runtime.state import RunState

MOST_TURN_CHARS = 50_000_000
"""What one model turn may hold of text, reasoning and arguments; far above any model, and below what a process has."""
_CALL_CHARS = 1_000
"""What a tool call counts for beside its arguments."""


@dataclass(slots=True)
class ModelTurn:
    """What has arrived of a model turn. `closed` drops what an abandoned call still sends."""

    text_buffer: StringIO = field(default_factory=StringIO)
    """The text in one buffer: a long answer must not keep every piece it came in."""
    reasoning_parts: list[str] = field(default_factory=list)
    reasoning: list[ReasoningBlock] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    usage: ModelUsage | None = None
    served_by: ServedBy | None = None
    reasoning_open: bool = False
    closed: bool = False
    spoken: bool = False
    """Whether it has emitted text or brought a tool call."""
    room: int = MOST_TURN_CHARS
    """How many characters more it may bring."""
    half: str = ""
    """The first half of a surrogate pair whose second half has not come yet."""

    @property
    def text(self) -> str:
        """The text so far."""
        return self.text_buffer.getvalue()

    @property
    def silent_reasoning(self) -> bool:
        """Whether reasoning that comes now is no longer shown: the step's text has begun."""
        return self.text_buffer.tell() > 0

    def finish(self, reason: str | None, usage: object, served_by: object) -> None:
        """Record how the model ended; of several ends the last one counts, and usage once given stays."""
        self.finish_reason = finish_reason_of(reason)
        self.usage = checked_usage(usage) or self.usage
        self.served_by = checked_server(served_by) or self.served_by


def request_for(state: RunState, deps: RunDeps) -> ModelRequest:
    """Return the request of the next model call: the system prompt, unless the transcript brings one, and all of it."""
    messages = state.messages
    if deps.instructions and not (messages and messages[0].role == "system"):
        messages = [Message("system", deps.instructions), *messages]
    else:
        messages = list(messages)
        if deps.prompt_note is not None:
            messages[0] = _with_note(messages[0], deps.prompt_note)
    tools = list(deps.definitions)
    if state.failing and deps.loop_guard and (stuck := stuck_call(state)) is not None:
        tools = []
        messages.append(Message("user", last_answer_note(stuck)))
    settings = dict(deps.settings)
    if not tools:
        settings.pop("tool_choice", None)
    if "stop" in settings:
        settings["stop"] = list(settings["stop"])
    # All of it is the provider's own: what it changes there is not heard of again.
    return ModelRequest(messages=messages, tools=tools, model=deps.model, signal=deps.signal, **settings)


def _with_note(prompt: Message, note: str) -> Message:
    """Return a caller's own system prompt with one more paragraph."""
    content = prompt.content
    if isinstance(content, str):
        return replace(prompt, content=f"{content}\n\n{note}" if content else note)
    return replace(prompt, content=(*content, TextPart(note)))


def copy_of_request(request: ModelRequest) -> ModelRequest:
    """Return a request that can be changed without changing `request`."""
    stop = None if request.stop is None else list(request.stop)
    return replace(request, messages=list(request.messages), tools=list(request.tools), stop=stop)


def response_of(turn: ModelTurn) -> ModelResponse:
    """Return a whole turn as a provider's answer, however it came in."""
    return ModelResponse(
        text=turn.text,
        tool_calls=tuple(turn.tool_calls),
        finish_reason=turn.finish_reason or "other",
        usage=turn.usage,
        reasoning=tuple(turn.reasoning),
        served_by=turn.served_by,
    )


async def take_turn(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    """Call the model and fill `turn`; deltas are emitted as they come.

    Raises `Aborted` when the run's signal fires (what had arrived stays in `turn`), `Steered` when new input cut the
    call short (nothing of it counts), else a coded provider error.
    """
    if deps.inbox is None:
        await _take_turn(request, deps, turn, deps.signal)
        return
    steered = False
    request.signal = deps.inbox.begin_call(turn, deps.signal)
    try:
        await _take_turn(request, deps, turn, request.signal)
    except Exception:
        steered = deps.inbox.end_call()
        if deps.signal.aborted or not steered:
            raise
    finally:
        steered = deps.inbox.end_call() or steered
    if steered:
        if deps.signal.aborted:
            raise Aborted(deps.signal.reason)
        raise Steered


async def _take_turn(request: ModelRequest, deps: RunDeps, turn: ModelTurn, signal: CancelSignal) -> None:
    try:
        await unless_aborted(_call(request, deps, turn), signal)
    except (Aborted, Steered, asyncio.CancelledError):
        turn.closed = True
        raise
    except Exception as error:
        turn.closed = True
        if deps.signal.aborted:
            raise Aborted(deps.signal.reason) from error
        cause = deciding_error(error)
        if never_wrap(cause):
            raise cause  # noqa: B904 - exactly as it is, its own cause included
        raise compact_provider_error(cause, provider=provider_name(deps.provider)) from cause
    finally:
        _close_reasoning(turn, deps.emitter)


async def _call(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    if deps.stream_model_calls and can_stream(deps.provider, request.model):
        await _stream(request, deps, turn)
    else:
        await _generate(request, deps, turn)


async def _generate(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    provider = deps.provider
    response = checked_response(await provider.generate(request), provider)
    if turn.closed:
        return
    for block in response.reasoning or ():
        checked = checked_reasoning(block, provider)
        _add_reasoning(turn, checked.text, deps)
        _end_reasoning(turn, checked, deps.emitter)
    text = checked_text(response.text, provider)
    if text:
        _emit_text(text, deps, turn)
    for call in response.tool_calls or ():
        _add_call(call, deps, turn)
    turn.finish(response.finish_reason, response.usage, response.served_by)


async def _stream(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    chunks = await open_stream(deps.provider, request)
    backlog = deps.emitter.backlog
    ended = False
    count = 0
    try:
        async for chunk in chunks:
            if turn.closed:
                return
            _take_chunk(chunk, deps, turn)
            if deps.signal.aborted:  # by a listener: it needs no turn of the event loop to be heard
                raise Aborted(deps.signal.reason)
            count += 1
            if count % GIVE_WAY == 0 or (backlog is not None and backlog() > GIVE_WAY):
                await asyncio.sleep(0)  # lets the reader catch up, and an abort be heard; never waits for either
        ended = True
    finally:
        if not ended:
            await _close(chunks)
    if turn.half:
        _emit_text(clean_text(turn.half), deps, turn)
    if turn.finish_reason is None:
        raise LLMProviderError(
            "The model's stream ended before it was finished; nothing of it was acted on.",
            provider=provider_name(deps.provider),
            status_code=502,
        )


def _take_chunk(chunk: ModelChunk, deps: RunDeps, turn: ModelTurn) -> None:
    if isinstance(chunk, TextDelta):
        text = chunk.text
        if type(text) is not str or turn.half or not text.isascii():
            text = _joined(checked_text(text, deps.provider, whole=False), turn)
        if text:
            _emit_text(text, deps, turn)
    elif isinstance(chunk, ReasoningDelta):
        _add_reasoning(turn, checked_text(chunk.text, deps.provider), deps)
    elif isinstance(chunk, ReasoningEnd):
        _end_reasoning(turn, checked_reasoning(chunk.block, deps.provider), deps.emitter)
    elif isinstance(chunk, ToolCallChunk):
        _add_call(chunk.tool_call, deps, turn)
    elif isinstance(chunk, Finish):
        turn.finish(chunk.finish_reason, chunk.usage, chunk.served_by)
    elif isinstance(chunk, Failure) and isinstance(chunk.error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise chunk.error
    else:
        raise not_a_chunk(chunk, deps.provider)


def _add_call(given: ToolCall, deps: RunDeps, turn: ModelTurn) -> None:
    call = checked_call(given, deps.provider)
    if not turn.spoken:
        _speak(turn, deps)
    turn.room -= len(call.arguments) + _CALL_CHARS
    if turn.room < 0:
        raise _too_long(deps)
    turn.tool_calls.append(call)


def _joined(text: str, turn: ModelTurn) -> str:
    """Return `text` with what waited for it; half a surrogate pair at its end waits for the next piece."""
    text = turn.half + text
    turn.half = ""
    if "\ud800" <= text[-1:] <= "\udbff":
        text, turn.half = text[:-1], text[-1]
    return clean_text(text)


def _emit_text(text: str, deps: RunDeps, turn: ModelTurn) -> None:
    if turn.reasoning_open or turn.reasoning_parts:
        _close_reasoning(turn, deps.emitter)
    if not turn.spoken:
        _speak(turn, deps)
    turn.room -= len(text)
    if turn.room < 0:
        raise _too_long(deps)
    turn.text_buffer.write(text)
    deps.emitter.emit(TextDeltaEvent(text=text))


def _speak(turn: ModelTurn, deps: RunDeps) -> None:
    """Note that the turn has something to show: from now on new input waits for its end."""
    if deps.inbox is not None:
        deps.inbox.speak()
    turn.spoken = True


def _too_long(deps: RunDeps) -> LLMProviderError:
    return LLMProviderError(
        f"The model's turn is longer than {MOST_TURN_CHARS:,} characters; nothing of it was acted on.",
        provider=provider_name(deps.provider),
    )


async def _close(chunks: AsyncIterator[ModelChunk]) -> None:
    """Close an abandoned stream now rather than when it is collected."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


def _add_reasoning(turn: ModelTurn, text: str, deps: RunDeps) -> None:
    """Take a piece of reasoning. Once the step has text it is only kept: in the stream reasoning comes first."""
    emitter = deps.emitter
    turn.room -= len(text)
    if turn.room < 0:
        raise _too_long(deps)
    if text:
        turn.reasoning_parts.append(text)
    if turn.silent_reasoning:
        return
    if not turn.reasoning_open:
        turn.reasoning_open = True
        emitter.emit(ReasoningStartEvent())
    if text:
        emitter.emit(ReasoningDeltaEvent(text=text))


def _end_reasoning(turn: ModelTurn, block: ReasoningBlock, emitter: Emitter) -> None:
    if not turn.reasoning_open and not turn.silent_reasoning:
        turn.reasoning_open = True
        emitter.emit(ReasoningStartEvent())
    turn.reasoning.append(block)
    _close_reasoning(turn, emitter, keep=False)


def _close_reasoning(turn: ModelTurn, emitter: Emitter, *, keep: bool = True) -> None:
    if not turn.reasoning_open and not turn.reasoning_parts:
        return
    text = "".join(turn.reasoning_parts)
    turn.reasoning_parts.clear()
    if keep and text:
        turn.reasoning.append(ReasoningBlock(text))
    if turn.reasoning_open:
        turn.reasoning_open = False
        emitter.emit(ReasoningDoneEvent(text=text))


def usage_of(turn: ModelTurn, request: ModelRequest) -> StepUsage:
    """Return what the call used: the provider's counts, or an estimate over the request and the answer."""
    if turn.usage is not None:
        return StepUsage.of_call(turn.usage, estimated_input=0, estimated_output=0)
    output = estimate_text_tokens(turn.text) + sum(
        estimate_text_tokens(call.name) + estimate_text_tokens(call.arguments) for call in turn.tool_calls
    )
    return StepUsage.of_call(None, estimated_input=estimate_tokens(request.messages), estimated_output=output)
