"""The turns of a scripted model: what a person may write, read into one shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lousho.core.errors import ConfigurationError, LLMProviderError
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage
from lousho.models.provider import FINISH_REASONS, FinishReason, ModelResponse

_TURN_KEYS = ("text", "tool_calls", "error", "usage", "finish_reason", "delay_ms", "reasoning")
_CALL_KEYS = ("name", "args", "arguments", "id")
_USAGE_KEYS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "reasoning_tokens",
    "cost_usd",
)


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a turn; `id` unset: the model numbers it."""

    name: str
    arguments: str
    id: str | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a script, checked."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    error: BaseException | None = None
    usage: ModelUsage | None = None
    finish_reason: FinishReason = "stop"
    delay_ms: float = 0
    reasoning: tuple[ReasoningBlock, ...] = ()


def parse_turn(value: Any, where: str) -> Turn:
    """Return the turn that `value` describes. Raises `LOUSHO_CONFIG_INVALID`, naming `where`."""
    if isinstance(value, str):
        return Turn(text=value)
    if not isinstance(value, Mapping):
        raise _wrong(where, f"a turn is a text, a mapping or a function; got {type(value).__name__}")
    keys = _known(cast("Mapping[str, Any]", value), _TURN_KEYS, where, "key of a turn")
    calls = tuple(
        _call(item, f"{where}.tool_calls[{index}]") for index, item in enumerate(_items(keys, "tool_calls", where))
    )
    finish_reason = keys.get("finish_reason") or ("tool_calls" if calls else "stop")
    if finish_reason not in FINISH_REASONS:
        raise _wrong(where, f"finish_reason must be one of {', '.join(FINISH_REASONS)}; got {finish_reason!r}")
    text = keys.get("text")
    if text is not None and not isinstance(text, str):
        raise _wrong(where, f"text must be a string; got {type(text).__name__}")
    return Turn(
        text=text or "",
        calls=calls,
        error=_error(keys.get("error"), where),
        usage=_usage(keys.get("usage"), where),
        finish_reason=finish_reason,
        delay_ms=_number(keys.get("delay_ms") or 0, "delay_ms", where),
        reasoning=_reasoning(keys.get("reasoning"), where),
    )


def turn_response(turn: Turn, next_id: Callable[[], str]) -> ModelResponse:
    """Return what the model answers on `turn`; `next_id` names the calls that have no id of their own."""
    calls: tuple[ToolCall, ...] = ()
    if turn.calls:
        taken = {call.id for call in turn.calls}
        calls = tuple([_tool_call(call, taken, next_id) for call in turn.calls])
    return ModelResponse(
        text=turn.text,
        tool_calls=calls,
        finish_reason=turn.finish_reason,
        usage=turn.usage,
        reasoning=turn.reasoning,
    )


def _tool_call(call: ScriptedCall, taken: set[str | None], next_id: Callable[[], str]) -> ToolCall:
    call_id = call.id
    if call_id is None:
        call_id = next_id()
        while call_id in taken:
            call_id = next_id()
    return ToolCall(call_id, FunctionCall(call.name, call.arguments))


def _known(value: Mapping[str, Any], known: tuple[str, ...], where: str, noun: str) -> dict[str, Any]:
    """Return `value` with snake_case keys, refusing keys that mean nothing here."""
    out: dict[str, Any] = {}
    for key, item in value.items():
        snake = key if key in known else _snake(key)
        if snake not in known:
            from lousho.core.suggest import unknown_key_message

            raise _wrong(where, unknown_key_message(str(key), known, noun=noun))
        out[snake] = item
    return out


def _snake(key: object) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in str(key))


def _items(keys: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    value = keys.get(key)
    if value is None:
        return ()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise _wrong(where, f"{key} must be a list")
    return cast("Sequence[Any]", value)


def _call(value: Any, where: str) -> ScriptedCall:
    if isinstance(value, ToolCall):
        return ScriptedCall(value.name, value.arguments, value.id)
    if not isinstance(value, Mapping):
        raise _wrong(where, "a tool call is a mapping with a 'name'")
    keys = _known(cast("Mapping[str, Any]", value), _CALL_KEYS, where, "key of a tool call")
    name = keys.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong(where, "a tool call needs a 'name'")
    raw = keys.get("arguments")
    if raw is not None and not isinstance(raw, str):
        raise _wrong(where, "'arguments' is the JSON text as a model sends it; pass values as 'args'")
    call_id = keys.get("id")
    return ScriptedCall(name, _encoded(keys.get("args"), where) if raw is None else raw, call_id and str(call_id))


def _encoded(args: Any, where: str) -> str:
    if args is None:
        return "{}"
    try:
        return json.dumps(args, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise _wrong(where, f"args must be JSON values: {error}") from None


def _error(value: Any, where: str) -> BaseException | None:
    if value is None or isinstance(value, BaseException):
        return value
    if isinstance(value, type) and issubclass(value, BaseException):
        return value()  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        return LLMProviderError(value, provider="mock")
    raise _wrong(where, f"error must be an exception; got {type(cast('object', value)).__name__}")


def _usage(value: Any, where: str) -> ModelUsage | None:
    if value is None or isinstance(value, ModelUsage):
        return value
    if not isinstance(value, Mapping):
        raise _wrong(where, "usage is a mapping with input_tokens and output_tokens")
    keys = _known(cast("Mapping[str, Any]", value), _USAGE_KEYS, f"{where}.usage", "key of usage")
    for key, number in keys.items():
        if number is not None:
            _number(number, f"usage.{key}", where)
    counts = {"input_tokens": 0, "output_tokens": 0, **{key: item for key, item in keys.items() if item is not None}}
    return ModelUsage(**counts)


def _number(value: Any, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise _wrong(where, f"{key} must be a number that is not negative; got {value!r}")
    return value


def _reasoning(value: Any, where: str) -> tuple[ReasoningBlock, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, ReasoningBlock, Mapping)):
        value = [value]
    blocks: list[ReasoningBlock] = []
    for item in value:
        if isinstance(item, str):
            blocks.append(ReasoningBlock(item))
        elif isinstance(item, ReasoningBlock):
            blocks.append(item)
        elif isinstance(item, Mapping):
            keys = _known(
                cast("Mapping[str, Any]", item), ("text", "signature", "redacted_data"), where, "key of reasoning"
            )
            blocks.append(ReasoningBlock(keys.get("text") or "", keys.get("signature"), keys.get("redacted_data")))
        else:
            raise _wrong(where, f"reasoning is a text or a list of blocks; got {type(item).__name__}")
    return tuple(blocks)


def _wrong(where: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"mock_model: {where}: {problem}.", field="script")
