"""What a JSON value is, and how any Python value becomes one without ever failing a run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

_DEEPEST = 64
_SAFE_INTEGER = 2**63


def to_json_value(value: object, *, depth: int = 0, parents: frozenset[int] = frozenset()) -> Json:
    """Return `value` as a JSON value: dates become ISO strings, sets lists, models and dataclasses objects.

    What JSON cannot hold degrades instead of failing: bytes become `{"$bytes": "<base64>"}`, NaN and infinities
    `null`, integers beyond 64 bits and unknown objects their text, lone surrogates `\\ufffd`; a cycle or a nesting
    deeper than 64 levels becomes a short note. Source: tools page, hazards page.
    """
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return _clean(value)  # pyright: ignore[reportArgumentType]
    if kind is int:
        return value if -_SAFE_INTEGER <= value < _SAFE_INTEGER else str(value)  # type: ignore[operator]
    if kind is float:
        return value if math.isfinite(value) else None  # type: ignore[arg-type]
    if depth >= _DEEPEST:
        return "[nested too deeply]"
    if id(value) in parents:
        return "[circular]"
    inner = parents | {id(value)}
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_key(k): to_json_value(v, depth=depth + 1, parents=inner) for k, v in pairs}
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        return [to_json_value(item, depth=depth + 1, parents=inner) for item in items]
    return _other_value(value, depth, inner)


def _other_value(value: object, depth: int, parents: frozenset[int]) -> Json:
    import base64
    import dataclasses
    import datetime
    import enum

    other: Any = value
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(other)).decode("ascii")}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return to_json_value(value.value, depth=depth, parents=parents)
    if isinstance(value, (set, frozenset)):
        members: set[object] = other
        items = [to_json_value(item, depth=depth + 1, parents=parents) for item in members]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, (bool, int, float, str)):
        return to_json_value(_plain(other), depth=depth, parents=parents)
    to_dict = getattr(other, "to_dict", None) or getattr(other, "model_dump", None)
    try:
        if callable(to_dict) and not isinstance(other, type):
            return to_json_value(to_dict(), depth=depth + 1, parents=parents)
        if dataclasses.is_dataclass(other) and not isinstance(other, type):
            fields = {f.name: getattr(other, f.name) for f in dataclasses.fields(other)}
            return to_json_value(fields, depth=depth + 1, parents=parents)
        return _clean(f"{other}")
    except Exception:  # noqa: BLE001 - a hostile __str__ must not fail the run that only wanted to show the value
        return f"[{kind}]"


def _plain(value: bool | int | float | str) -> bool | int | float | str:
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return _clean(key)
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    return _clean(str(key))


def _clean(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def dump_json(value: object) -> str:
    """Return `value` as compact JSON text (no spaces, non-ASCII kept)."""
    return json.dumps(to_json_value(value), ensure_ascii=False, separators=(",", ":"))
