"""Turning a whole model turn into the chunks of a stream.

Fakes, replays and vendors that answer a streaming request with one whole reply all need the same order: reasoning,
text, tool calls, the finish. Source: testing page, agents page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import (
    Finish,
    FinishReason,
    ModelChunk,
    ModelResponse,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallChunk,
)

_CUT_OFF = ("length", "content_filter")
_WORD = re.compile(r"\S+\s*|\s+")


def words_of(text: str) -> list[str]:
    """Return `text` split after each word and its trailing space; joined they are `text` again."""
    return _WORD.findall(text)


def chunks_of(response: ModelResponse, *, by_words: bool = False) -> Iterator[ModelChunk]:
    """Return `response` as a stream would have sent it; `by_words` splits the text on word boundaries."""
    for block in response.reasoning:
        if block.text:
            yield ReasoningDelta(block.text)
        yield ReasoningEnd(block)
    if response.text:
        for piece in words_of(response.text) if by_words else (response.text,):
            yield TextDelta(piece)
    for call in response.tool_calls:
        yield ToolCallChunk(call)
    yield Finish(response.finish_reason, response.usage, response.served_by)


def runnable_calls(calls: Sequence[ToolCall], reason: FinishReason) -> tuple[ToolCall, ...]:
    """Return the calls of a turn that may run.

    In a turn that was cut off, by a limit or a filter, those are the ones whose arguments arrived whole: half a call
    must not run with the defaults of what is missing. Otherwise a call without arguments gets `{}`, which models send as
    an empty text, and broken arguments stay as they are, for the model to be told.
    """
    if reason in _CUT_OFF:
        return tuple(call for call in calls if _is_object(call.arguments))
    return tuple(call if call.arguments.strip() else ToolCall(call.id, FunctionCall(call.name, "{}")) for call in calls)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
