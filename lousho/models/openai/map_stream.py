"""A Chat Completions stream, read into chunks.

Tool calls arrive in pieces, and servers disagree on how the pieces are told apart: by index, by id, by both, or by
neither. They are put together here and given out at the end. Source: providers page, hazards page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lousho.core.errors import CompactedLLMProviderError
from lousho.core.ids import new_id
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.chunks import runnable_calls
from lousho.models.errors import VendorError
from lousho.models.loose import mapping_of, mappings_of
from lousho.models.openai.map_reply import (
    arguments_text,
    choice_error,
    content_text,
    finish_reason_of,
    first_choice,
    reasoning_text,
    usage_of,
)
from lousho.models.provider import Finish, ModelChunk, ReasoningDelta, ReasoningEnd, TextDelta, ToolCallChunk


@dataclass(slots=True)
class _Call:
    """A tool call that is still arriving."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


class ChatStreamReader:
    """Reads the events of one Chat Completions stream; `failed` makes the error for one that reports a failure."""

    def __init__(self, failed: Callable[[VendorError], CompactedLLMProviderError]) -> None:
        self.answered = False
        self.done = False
        self._failed = failed
        self._reason: object = None
        self._usage: ModelUsage | None = None
        self._calls: list[_Call] = []
        self._reasoning: list[str] = []

    def feed(self, data: Mapping[str, Any]) -> list[ModelChunk]:
        """Return the chunks of one event. Raises when the event says that the call failed."""
        self._usage = usage_of(data.get("usage")) or self._usage
        choice = first_choice(data)
        if choice is None:
            return []
        failure = choice_error(choice)
        if failure is not None:
            raise self._failed(failure)
        # A server that does not stream may send the whole message in one event.
        delta = mapping_of(choice.get("delta")) or mapping_of(choice.get("message"))
        chunks: list[ModelChunk] = []
        thought = reasoning_text(delta)
        if thought:
            self._reasoning.append(thought)
            chunks.append(ReasoningDelta(thought))
        text = content_text(delta.get("content")) or content_text(delta.get("refusal"))
        entries: Any = delta.get("tool_calls")
        if text or entries:
            chunks += self._end_of_reasoning()
        if text:
            chunks.append(TextDelta(text))
        for entry in mappings_of(entries):
            self._add(entry)
        if choice.get("finish_reason"):
            self._reason = choice["finish_reason"]
            self.answered = True
        return chunks

    def end(self) -> list[ModelChunk]:
        """Return the tool calls and the finish."""
        calls = [
            ToolCall(call.id or new_id("call"), FunctionCall(call.name, "".join(call.arguments)))
            for call in self._calls
            if call.name
        ]
        reason = finish_reason_of(self._reason, has_calls=bool(calls))
        chunks = self._end_of_reasoning()
        chunks += [ToolCallChunk(call) for call in runnable_calls(calls, reason)]
        chunks.append(Finish(reason, self._usage))
        return chunks

    def _end_of_reasoning(self) -> list[ModelChunk]:
        if not self._reasoning:
            return []
        block = ReasoningBlock("".join(self._reasoning))
        self._reasoning = []
        return [ReasoningEnd(block)]

    def _add(self, entry: Mapping[str, Any]) -> None:
        function = mapping_of(entry.get("function"))
        call = self._call_of(entry, starts=bool(function.get("name")))
        call.id = call.id or str(entry.get("id") or "")
        name = str(function.get("name") or "")
        if name and name != call.name:
            # A name may come in pieces, or whole in every piece.
            call.name += name
        arguments = arguments_text(function.get("arguments"))
        if arguments:
            call.arguments.append(arguments)

    def _call_of(self, entry: Mapping[str, Any], *, starts: bool) -> _Call:
        """Return the call that a piece belongs to, a new one when it begins one."""
        index, call_id = entry.get("index"), str(entry.get("id") or "")
        if isinstance(index, int):
            same = next((call for call in reversed(self._calls) if call.index == index), None)
            # Servers that give every call the index 0 still give each an id of its own.
            if same is not None and not (call_id and same.id and call_id != same.id and starts):
                return same
        elif call_id:
            same = next((call for call in self._calls if call.id == call_id), None)
            if same is not None:
                return same
        elif self._calls and not (starts and self._calls[-1].arguments):
            return self._calls[-1]
        self._calls.append(_Call(index if isinstance(index, int) else None))
        return self._calls[-1]
