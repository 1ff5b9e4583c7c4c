"""What a provider hands in, checked where it enters: a provider may be anybody's code.

What can be read in one way only is put right (an id that is a number, arguments that are a mapping, half a surrogate
pair). Anything else is a coded provider error that names the mistake, before the run acts on it.
Source: providers page ("Custom providers").
"""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from lousho.core.errors import LLMProviderError
from lousho.core.json_values import clean_text, dump_json
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.provider import LLMProvider, ModelChunk, ModelRequest, ModelResponse, ServedBy

_MOST_TOKENS = 10**15


def provider_name(provider: LLMProvider) -> str:
    """Return the provider's name, its class name when it has none."""
    name: object = getattr(provider, "name", None)
    return name if isinstance(name, str) and name else type(provider).__name__


def default_model(provider: LLMProvider) -> str | None:
    """Return the provider's default model; the attribute is optional."""
    model: object = getattr(provider, "default_model", None)
    return model if isinstance(model, str) else None


def can_stream(provider: LLMProvider, model: str | None) -> bool:
    """Return whether `stream()` may be used: it exists, and `supports_streaming()`, if there is one, does not deny."""
    if not callable(getattr(provider, "stream", None)):
        return False
    supports: Any = getattr(provider, "supports_streaming", None)
    if supports is None:
        return True
    try:
        return bool(supports(model))
    except TypeError:  # written without the parameter
        return bool(supports())


async def open_stream(provider: LLMProvider, request: ModelRequest) -> AsyncIterator[ModelChunk]:
    """Return the provider's stream; an `async def stream()` that returns one instead of being one will do."""
    stream: Any = provider.stream(request)
    if inspect.isawaitable(stream):
        stream = await stream
    if not hasattr(stream, "__aiter__"):
        raise _wrong(provider, f"stream() must return an async iterator of chunks; got {_kind(stream)}")
    return cast("AsyncIterator[ModelChunk]", stream)


def checked_response(response: object, provider: LLMProvider) -> ModelResponse:
    """Return what `generate()` returned if it is a `ModelResponse`."""
    if not isinstance(response, ModelResponse):
        raise _wrong(provider, f"generate() must return a ModelResponse; got {_kind(response)}")
    return response


def checked_text(text: object, provider: LLMProvider, *, whole: bool = True) -> str:
    """Return a text, without half surrogate pairs unless it is not `whole`; `None` counts as empty."""
    if isinstance(text, str):
        return text if text.isascii() or not whole else clean_text(text)
    if text is None:
        return ""
    raise _wrong(provider, f"text must be a str; got {_kind(text)}")


def checked_call(call: object, provider: LLMProvider) -> ToolCall:
    """Return a tool call whose id, name and arguments are text."""
    function: object = getattr(call, "function", None)
    if not isinstance(call, ToolCall) or not isinstance(function, FunctionCall):
        raise _wrong(provider, f"a tool call must be a ToolCall with a FunctionCall; got {_kind(call)}")
    call_id, name, arguments = cast("tuple[Any, Any, Any]", (call.id, function.name, function.arguments))
    if isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, str):
        if call_id.isascii() and name.isascii() and arguments.isascii():
            return call
        return ToolCall(clean_text(call_id), FunctionCall(clean_text(name), clean_text(arguments)))
    if not isinstance(name, str):
        raise _wrong(provider, f"the name of a tool call must be a str; got {_kind(name)}")
    if not isinstance(arguments, (str, Mapping)) and arguments is not None:
        raise _wrong(provider, f"the arguments of a tool call must be JSON text; got {_kind(arguments)}")
    given = arguments if isinstance(arguments, str) else dump_json(cast("object", arguments or {}))
    return ToolCall(clean_text(_id_text(call_id)), FunctionCall(clean_text(name), clean_text(given)))


def checked_reasoning(block: object, provider: LLMProvider) -> ReasoningBlock:
    """Return a reasoning block."""
    if not isinstance(block, ReasoningBlock):
        raise _wrong(provider, f"reasoning must be a ReasoningBlock; got {_kind(block)}")
    text = checked_text(block.text, provider)
    return block if text is block.text else ReasoningBlock(text, block.signature, block.redacted_data)


def checked_usage(usage: object) -> ModelUsage | None:
    """Return the reported usage, or `None`, which means an estimate, when its counts make no sense."""
    if not isinstance(usage, ModelUsage):
        return None
    counts = (usage.total_tokens, usage.cached_input_tokens, usage.reasoning_tokens)
    whole = _is_count(usage.input_tokens) and _is_count(usage.output_tokens)
    if not whole or not all(count is None or _is_count(count) for count in counts):
        return None
    cost = cast("Any", usage.cost_usd)
    if cost is not None and not (isinstance(cost, (int, float)) and math.isfinite(cost)):
        return None
    return usage


def checked_server(served_by: object) -> ServedBy | None:
    """Return who answered, if that was said in the one form there is."""
    return served_by if isinstance(served_by, ServedBy) else None


def not_a_chunk(chunk: object, provider: LLMProvider) -> LLMProviderError:
    """Return the error for something in a stream that is no chunk."""
    return _wrong(
        provider,
        f"stream() must yield TextDelta, ReasoningDelta, ReasoningEnd, ToolCallChunk, Finish; got {_kind(chunk)}",
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST_TOKENS


def _id_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else ""


def _kind(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _wrong(provider: LLMProvider, problem: str) -> LLMProviderError:
    name = provider_name(provider)
    return LLMProviderError(f"The provider {name!r} broke its contract: {problem}.", provider=name)
