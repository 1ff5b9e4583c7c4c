"""A Messages API reply, read into a model turn. Source: providers page, reasoning page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.loose import count_of, mapping_of, mappings_of
from lousho.models.provider import FinishReason, ModelResponse

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read_message(data: Mapping[str, Any]) -> ModelResponse | None:
    """Return the turn of a whole reply, or `None` when it has no content."""
    content: Any = data.get("content")
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    calls: list[ToolCall] = []
    reasoning: list[ReasoningBlock] = []
    for entry in mappings_of(cast("Any", content)):
        kind = entry.get("type")
        if kind == "text":
            texts.append(str(entry.get("text") or ""))
        elif kind == "tool_use":
            calls.append(tool_call(entry, json.dumps(entry.get("input") or {}, ensure_ascii=False)))
        elif kind == "thinking":
            reasoning.append(ReasoningBlock(str(entry.get("thinking") or ""), entry.get("signature") or None))
        elif kind == "redacted_thinking":
            reasoning.append(ReasoningBlock("", redacted_data=str(entry.get("data") or "")))
    reason = finish_reason_of(data.get("stop_reason"))
    if reason == "length" and calls and mappings_of(content)[-1].get("type") == "tool_use":
        # The limit fell into this call: what there is of its input looks whole and is not.
        calls.pop()
    return ModelResponse(
        text="".join(texts),
        tool_calls=tuple(calls),
        finish_reason=reason,
        usage=usage_of(counts_of(data.get("usage"))),
        reasoning=tuple(reasoning),
        raw_response=data,
    )


def finish_reason_of(reason: object) -> FinishReason:
    """Return our word for why the model stopped."""
    return _REASONS.get(str(reason), "other")


def tool_call(block: Mapping[str, Any], arguments: str) -> ToolCall:
    """Return the call of a `tool_use` block."""
    return ToolCall(str(block.get("id") or ""), FunctionCall(str(block.get("name") or ""), arguments))


def counts_of(usage: Any) -> dict[str, int]:
    """Return the token counts that a `usage` object reports."""
    found = {key: count_of(mapping_of(usage).get(key)) for key in _COUNTS}
    return {key: value for key, value in found.items() if value is not None}


def usage_of(counts: Mapping[str, int]) -> ModelUsage | None:
    """Return the usage of a call; input counts what was read from and written to the cache. All zeros: none reported."""
    cached = counts.get("cache_read_input_tokens")
    given = counts.get("input_tokens", 0) + (cached or 0) + counts.get("cache_creation_input_tokens", 0)
    written = counts.get("output_tokens", 0)
    if not given and not written:
        return None
    return ModelUsage(input_tokens=given, output_tokens=written, cached_input_tokens=cached)
