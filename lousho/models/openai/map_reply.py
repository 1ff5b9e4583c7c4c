"""A Chat Completions reply, read into a model turn.

Compatible servers differ in the details: where reasoning is, whether arguments are text, what a missing id means. All of
that is read here and in `map_stream`, so the rest of the runtime never knows which server it was. Source: providers page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lousho.core.ids import new_id
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.chunks import runnable_calls
from lousho.models.errors import VendorError, vendor_error_of
from lousho.models.loose import count_of, mapping_of, mappings_of
from lousho.models.provider import FinishReason, ModelResponse

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def read_completion(data: Mapping[str, Any]) -> ModelResponse | VendorError | None:
    """Return the turn of a whole reply, the error it reports inside a success, or `None` when it has no choice."""
    choice = first_choice(data)
    if choice is None:
        return None
    failed = choice_error(choice)
    if failed is not None:
        return failed
    message = mapping_of(choice.get("message"))
    calls = [_whole_call(entry) for entry in mappings_of(message.get("tool_calls"))]
    reason = finish_reason_of(choice.get("finish_reason"), has_calls=bool(calls))
    reasoning = reasoning_text(message)
    return ModelResponse(
        text=content_text(message.get("content")) or content_text(message.get("refusal")),
        tool_calls=runnable_calls(calls, reason),
        finish_reason=reason,
        usage=usage_of(data.get("usage")),
        reasoning=(ReasoningBlock(reasoning),) if reasoning else (),
        raw_response=data,
    )


def first_choice(data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first choice of a reply or chunk."""
    choices = mappings_of(data.get("choices"))
    return choices[0] if choices else None


def choice_error(choice: Mapping[str, Any]) -> VendorError | None:
    """Return the failure that a choice reports, by an error of its own or by the finish reason `error`."""
    found = vendor_error_of({"error": choice["error"]}) if choice.get("error") else None
    if found is None and choice.get("finish_reason") == "error":
        found = VendorError("the provider failed while it generated the answer (finish reason 'error')")
    return found


def finish_reason_of(reason: object, *, has_calls: bool) -> FinishReason:
    """Return our word for why the model stopped. Some servers say `stop` after tool calls."""
    known = _REASONS.get(str(reason), "other") if reason else "stop"
    return "tool_calls" if has_calls and known in ("stop", "other") else known


def content_text(content: Any) -> str:
    """Return the text of a content field: a text, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "".join(
        str(part.get("text") or "")
        for part in mappings_of(content)
        if part.get("type") in ("text", "output_text", None)
    )


def reasoning_text(message: Mapping[str, Any]) -> str:
    """Return the reasoning that compatible servers put beside the content, under one of two names."""
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def arguments_text(value: Any) -> str:
    """Return arguments as JSON text; some servers send the object itself."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def usage_of(value: Any) -> ModelUsage | None:
    """Return the token counts, or `None` for a server that counts nothing or reports zeros."""
    usage = mapping_of(value)
    prompt, completion = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    if not prompt and not completion:
        return None
    cost = usage.get("cost")
    return ModelUsage(
        input_tokens=prompt or 0,
        output_tokens=completion or 0,
        total_tokens=count_of(usage.get("total_tokens")) or None,
        cached_input_tokens=count_of(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count_of(mapping_of(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        cost_usd=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0 else None,
    )


def _whole_call(entry: Mapping[str, Any]) -> ToolCall:
    function = mapping_of(entry.get("function"))
    call_id = entry.get("id")
    return ToolCall(
        str(call_id) if call_id else new_id("call"),
        FunctionCall(str(function.get("name") or ""), arguments_text(function.get("arguments"))),
    )
