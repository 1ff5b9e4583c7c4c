"""One model call: the request, the answer as it streams in, and what is kept when it is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from io import StringIO

from lousho.core.errors import LLMProviderError, never_wrap
from lousho.core.events import ReasoningDeltaEvent, ReasoningDoneEvent, ReasoningStartEvent, TextDeltaEvent
from lousho.core.messages import Message, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage, StepUsage, estimate_text_tokens, estimate_tokens
from lousho.models.errors import compact_provider_error
from lousho.models.provider import (
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
from lousho.runtime.racing import Aborted, unless_aborted
from lousho.runtime.state import RunState

_BACKLOG = 256


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

    @property
    def text(self) -> str:
        """The text so far."""
        return self.text_buffer.getvalue()


def request_for(state: RunState, deps: RunDeps) -> ModelRequest:
    """Return the request of the next model call: the system prompt, unless the transcript brings one, and all of it."""
    messages = state.messages
    if deps.instructions and not (messages and messages[0].role == "system"):
        messages = [Message("system", deps.instructions), *messages]
    else:
        messages = list(messages)
    settings = dict(deps.settings)
    if not deps.definitions:
        settings.pop("tool_choice", None)
    return ModelRequest(messages=messages, tools=deps.definitions, model=deps.model, signal=deps.signal, **settings)


async def take_turn(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    """Call the model and fill `turn`; deltas are emitted as they come.

    Raises `Aborted` when the run's signal fires (what had arrived stays in `turn`), else a coded provider error.
    """
    provider = deps.provider
    streams = deps.stream_model_calls and provider.supports_streaming(request.model)
    call = _stream(request, deps, turn) if streams else _generate(request, deps, turn)
    try:
        await unless_aborted(call, deps.signal)
    except (Aborted, asyncio.CancelledError):
        turn.closed = True
        raise
    except Exception as error:
        turn.closed = True
        if deps.signal.aborted:
            raise Aborted(deps.signal.reason) from error
        if never_wrap(error):
            raise
        raise compact_provider_error(error, provider=provider.name) from error
    finally:
        _close_reasoning(turn, deps.emitter)


async def _generate(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    response: ModelResponse = await deps.provider.generate(request)
    if turn.closed:
        return
    for block in response.reasoning:
        _add_reasoning(turn, block.text, deps.emitter)
        _end_reasoning(turn, block, deps.emitter)
    if response.text:
        turn.text_buffer.write(response.text)
        deps.emitter.emit(TextDeltaEvent(text=response.text))
    turn.tool_calls.extend(response.tool_calls)
    turn.finish_reason = finish_reason_of(response.finish_reason)
    turn.usage = response.usage
    turn.served_by = response.served_by


async def _stream(request: ModelRequest, deps: RunDeps, turn: ModelTurn) -> None:
    emitter = deps.emitter
    backlog = emitter.backlog
    chunks = deps.provider.stream(request)
    async for chunk in chunks:
        if turn.closed:
            await _close(chunks)
            return
        if isinstance(chunk, TextDelta):
            if chunk.text:
                _close_reasoning(turn, emitter)
                turn.text_buffer.write(chunk.text)
                emitter.emit(TextDeltaEvent(text=chunk.text))
                if backlog is not None and backlog() > _BACKLOG:
                    await asyncio.sleep(0)  # let the reader catch up; never waits for it
        elif isinstance(chunk, ReasoningDelta):
            _add_reasoning(turn, chunk.text, emitter)
        elif isinstance(chunk, ReasoningEnd):
            _end_reasoning(turn, chunk.block, emitter)
        elif isinstance(chunk, ToolCallChunk):
            turn.tool_calls.append(chunk.tool_call)
        elif isinstance(chunk, Finish):
            turn.finish_reason = finish_reason_of(chunk.finish_reason)
            turn.usage = chunk.usage
            turn.served_by = chunk.served_by
        else:
            raise chunk.error
    if turn.finish_reason is None:
        raise LLMProviderError(
            "The model's stream ended before it was finished; nothing of it was acted on.",
            provider=deps.provider.name,
            status_code=502,
        )


async def _close(chunks: AsyncIterator[ModelChunk]) -> None:
    """Close an abandoned stream now rather than when it is collected."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


def _add_reasoning(turn: ModelTurn, text: str, emitter: Emitter) -> None:
    if not turn.reasoning_open:
        turn.reasoning_open = True
        emitter.emit(ReasoningStartEvent())
    if text:
        turn.reasoning_parts.append(text)
        emitter.emit(ReasoningDeltaEvent(text=text))


def _end_reasoning(turn: ModelTurn, block: ReasoningBlock, emitter: Emitter) -> None:
    if not turn.reasoning_open:
        turn.reasoning_open = True
        emitter.emit(ReasoningStartEvent())
    turn.reasoning.append(block)
    _close_reasoning(turn, emitter, keep=False)


def _close_reasoning(turn: ModelTurn, emitter: Emitter, *, keep: bool = True) -> None:
    if not turn.reasoning_open:
        return
    turn.reasoning_open = False
    text = "".join(turn.reasoning_parts)
    turn.reasoning_parts.clear()
    if keep and text:
        turn.reasoning.append(ReasoningBlock(text))
    emitter.emit(ReasoningDoneEvent(text=text))


def usage_of(turn: ModelTurn, request: ModelRequest) -> StepUsage:
    """Return what the call used: the provider's counts, or an estimate over the request and the answer."""
    if turn.usage is not None:
        return StepUsage.of_call(turn.usage, estimated_input=0, estimated_output=0)
    output = estimate_text_tokens(turn.text) + sum(
        estimate_text_tokens(call.name) + estimate_text_tokens(call.arguments) for call in turn.tool_calls
    )
    return StepUsage.of_call(None, estimated_input=estimate_tokens(request.messages), estimated_output=output)
