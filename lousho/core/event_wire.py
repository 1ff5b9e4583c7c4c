"""Events that come in over the wire: checking them, telling families apart, turning them back into classes."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Literal, TypeGuard, cast

from lousho.core.errors import ConfigurationError
from lousho.core.events import (
    EVENT_CLASSES,
    AgentEvent,
    BaseEvent,
    ErrorInfo,
    JsonMap,
    StepEvent,
    TextEvent,
    ToolEvent,
)
from lousho.core.usage import ModelSpend, RunUsage, StepUsage

_TYPING_UNION = typing.get_origin(Literal["a"] | None)
_TOOL_TYPES = frozenset({"tool.start", "tool.resume", "tool.partial", "tool.done", "tool.error"})
_TEXT_TYPES = frozenset({"text.delta", "text.done"})
_STEP_TYPES = frozenset({"step.start", "step.done"})


@dataclass(slots=True, kw_only=True)
class UnknownEvent(BaseEvent):
    """An event of a type this version does not know; `data` is all of it. Consumers pass it by."""

    data: JsonMap

    def to_dict(self) -> JsonMap:
        """Return the event as it came."""
        return dict(self.data)


def _type_of(value: object) -> str | None:
    if isinstance(value, BaseEvent):
        return value.type
    name = cast("Mapping[str, object]", value).get("type") if isinstance(value, Mapping) else None
    return name if isinstance(name, str) else None


def is_tool_event(value: object) -> TypeGuard[ToolEvent]:
    """Whether `value` is a tool event: start, resume, partial, done or error."""
    return _type_of(value) in _TOOL_TYPES


def is_text_event(value: object) -> TypeGuard[TextEvent]:
    """Whether `value` is `text.delta` or `text.done`."""
    return _type_of(value) in _TEXT_TYPES


def is_step_event(value: object) -> TypeGuard[StepEvent]:
    """Whether `value` is `step.start` or `step.done`."""
    return _type_of(value) in _STEP_TYPES


def is_agent_event(value: object) -> TypeGuard[AgentEvent]:
    """Whether `value` (an event, or its wire form) is an event of schema version 1 with every required field.

    Unknown extra fields are fine; an unknown type, a wrong version or a field of the wrong type is not.
    """
    if isinstance(value, BaseEvent):
        return value.type in EVENT_CLASSES
    return isinstance(value, Mapping) and not _problems(cast("Mapping[str, Any]", value))


def event_from_dict(data: Mapping[str, Any]) -> AgentEvent | UnknownEvent:
    """Return the event of a wire form.

    Unknown fields are dropped and an unknown type gives an `UnknownEvent`, so a newer writer never breaks an older
    reader. Raises `LOUSHO_CONFIG_INVALID` when a known event lacks a field or has one of the wrong type.
    """
    if isinstance(data.get("type"), str) and data["type"] not in EVENT_CLASSES:
        return UnknownEvent(
            run_id=str(data.get("runId", "")),
            seq=int(data.get("seq", -1)),
            timestamp=str(data.get("timestamp", "")),
            v=int(data.get("v", 1)),
            data=dict(data),
        )
    problems = _problems(data)
    if problems:
        raise ConfigurationError(f"Not an agent event: {'; '.join(problems)}.", field="event")
    cls = EVENT_CLASSES[data["type"]]
    values: dict[str, Any] = {
        "run_id": data["runId"],
        "seq": data["seq"],
        "timestamp": data["timestamp"],
        "v": data["v"],
    }
    hints = _hints(cls)
    for attribute, wire, _ in cls.wire_fields:
        if wire in data:
            values[attribute] = _revived(data[wire], hints[attribute])
    return cast("AgentEvent", cls(**values))


def _revived(value: Any, hint: Any) -> Any:
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    if not isinstance(value, Mapping):
        return value
    record = cast("Mapping[str, Any]", value)
    if ErrorInfo in options:
        return ErrorInfo(name=record.get("name"), message=str(record["message"]), category=record.get("category"))
    if RunUsage in options:
        by_model = {name: _spend(spend) for name, spend in dict(record.get("byModel", {})).items()}
        return RunUsage(
            **_step_counts(record),
            model_calls=int(record.get("modelCalls", 0)),
            by_model=by_model,
            hosted_tool_calls=dict(record.get("hostedToolCalls", {})),
        )
    return StepUsage(**_step_counts(record)) if StepUsage in options else dict(record)


def _step_counts(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input_tokens": record.get("inputTokens", record.get("promptTokens", 0)),
        "output_tokens": record.get("outputTokens", record.get("completionTokens", 0)),
        "total_tokens": record.get("totalTokens", 0),
        "estimated": record.get("estimated", False),
        "cached_input_tokens": record.get("cachedInputTokens"),
        "reasoning_tokens": record.get("reasoningTokens"),
        "cost_usd": record.get("costUsd"),
        "cost_partial": record.get("costPartial", False),
    }


def _spend(record: Mapping[str, Any]) -> ModelSpend:
    return ModelSpend(
        model_calls=record.get("modelCalls", 0),
        input_tokens=record.get("inputTokens", 0),
        output_tokens=record.get("outputTokens", 0),
        total_tokens=record.get("totalTokens", 0),
        cost_usd=record.get("costUsd"),
    )


def _problems(data: Mapping[str, Any]) -> list[str]:
    name = data.get("type")
    cls = EVENT_CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        return [f"unknown type {name!r}"]
    problems = [
        f"'{wire}' must be {kind.__name__}"
        for wire, kind in (("runId", str), ("seq", int), ("timestamp", str), ("v", int))
        if not isinstance(data.get(wire), kind) or isinstance(data.get(wire), bool)
    ]
    if not problems and data["v"] != 1:
        problems.append(f"schema version {data['v']} is not 1")
    hints = _hints(cls)
    for attribute, wire, required in cls.wire_fields:
        if wire not in data:
            if required:
                problems.append(f"'{wire}' is missing")
        elif not _fits(data[wire], hints[attribute]):
            problems.append(f"'{wire}' has the wrong type")
    return problems


@cache
def _hints(cls: type[BaseEvent]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.default is not MISSING or f.name in hints}


def _is_union(hint: Any) -> bool:
    # `Literal["a"] | None` is a typing union, `str | None` a types one.
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is _TYPING_UNION


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if _is_union(hint):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin is Literal:
        return value in typing.get_args(hint)
    if origin in (dict, list):
        return isinstance(value, origin)
    if hint is ErrorInfo:
        return isinstance(value, Mapping) and isinstance(cast("Mapping[str, Any]", value).get("message"), str)
    if hint in (StepUsage, RunUsage):
        return isinstance(value, Mapping)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
