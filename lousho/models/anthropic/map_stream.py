"""A Messages API stream, read into chunks.

Content arrives as numbered blocks that start, grow and stop. A tool call counts only when its block has stopped and the
message said why it ended. Source: providers page; https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lousho.core.messages import ReasoningBlock, ToolCall
from lousho.models.anthropic.map_reply import counts_of, finish_reason_of, tool_call, usage_of
from lousho.models.chunks import runnable_calls
from lousho.models.loose import mapping_of
from lousho.models.provider import (
    Finish,
    FinishReason,
    ModelChunk,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallChunk,
)


@dataclass(slots=True)
class _Block:
    """A content block that is still arriving."""

    start: Mapping[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""


class MessageStreamReader:
    """Reads the events of one Messages API stream."""

    def __init__(self) -> None:
        self.answered = False
        self.done = False
        self._blocks: dict[object, _Block] = {}
        self._calls: list[ToolCall] = []
        self._counts: dict[str, int] = {}
        self._reason: FinishReason = "other"

    def feed(self, data: Mapping[str, Any]) -> list[ModelChunk]:
        """Return the chunks of one event."""
        kind = data.get("type")
        if kind == "content_block_delta":
            return self._grow(data.get("index"), mapping_of(data.get("delta")))
        if kind == "content_block_start":
            return self._start(data.get("index"), mapping_of(data.get("content_block")))
        if kind == "content_block_stop":
            return self._stop(data.get("index"))
        if kind == "message_start":
            self._counts.update(counts_of(mapping_of(data.get("message")).get("usage")))
        elif kind == "message_delta":
            self._counts.update(counts_of(data.get("usage")))
            reason = mapping_of(data.get("delta")).get("stop_reason")
            if reason:
                self._reason = finish_reason_of(reason)
                self.answered = True
        elif kind == "message_stop":
            self.done = True
        return []

    def end(self) -> list[ModelChunk]:
        """Return the tool calls and the finish."""
        calls = runnable_calls(self._calls, self._reason)
        chunks: list[ModelChunk] = [ToolCallChunk(call) for call in calls]
        chunks.append(Finish(self._reason, usage_of(self._counts)))
        return chunks

    def _start(self, index: object, start: Mapping[str, Any]) -> list[ModelChunk]:
        block = self._blocks[index] = _Block(start)
        if start.get("type") == "text":
            return _delta(TextDelta, start.get("text"))
        if start.get("type") == "thinking":
            text = str(start.get("thinking") or "")
            block.signature = str(start.get("signature") or "")
            if text:
                block.pieces.append(text)
            return _delta(ReasoningDelta, text)
        return []

    def _grow(self, index: object, delta: Mapping[str, Any]) -> list[ModelChunk]:
        block = self._blocks.get(index)
        kind = delta.get("type")
        if kind == "text_delta":
            return _delta(TextDelta, delta.get("text"))
        if block is None:
            return []
        if kind == "input_json_delta":
            block.pieces.append(str(delta.get("partial_json") or ""))
        elif kind == "thinking_delta":
            text = str(delta.get("thinking") or "")
            block.pieces.append(text)
            return _delta(ReasoningDelta, text)
        elif kind == "signature_delta":
            block.signature += str(delta.get("signature") or "")
        return []

    def _stop(self, index: object) -> list[ModelChunk]:
        block = self._blocks.pop(index, None)
        if block is None:
            return []
        kind, text = block.start.get("type"), "".join(block.pieces)
        if kind == "thinking":
            return [ReasoningEnd(ReasoningBlock(text, block.signature or None))]
        if kind == "redacted_thinking":
            return [ReasoningEnd(ReasoningBlock("", redacted_data=str(block.start.get("data") or "")))]
        if kind == "tool_use":
            given = block.start.get("input")
            whole = text if text.strip() or not given else json.dumps(given, ensure_ascii=False)
            self._calls.append(tool_call(block.start, whole))
        return []


def _delta(make: type[TextDelta] | type[ReasoningDelta], text: object) -> list[ModelChunk]:
    return [make(text)] if isinstance(text, str) and text else []
