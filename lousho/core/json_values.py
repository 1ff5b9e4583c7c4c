"""What a JSON value is, and how any Python value becomes one without ever failing a run."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

_DEEPEST = 64
_SAFE_INTEGER = 2**63
_CUT = "[too large]"
MOST_VALUES = 1_000_000
"""Values one conversion writes out: objects that point at each other would otherwise unfold without end."""


def to_json_value(value: object, *, depth: int = 0) -> Json:
    """Return `value` as a JSON value: dates become ISO strings, sets lists, models and dataclasses objects.

    What JSON cannot hold degrades instead of failing: bytes become `{"$bytes": "<base64>"}`, NaN and infinities
    `null`, integers beyond 64 bits and unknown objects their text, lone surrogates `\\ufffd`; a cycle, a nesting
    deeper than 64 levels (counted from `depth`), what comes after a million values and an object that raises become a
    short note. Source: tools page, hazards page.
    """
    return _convert(value, depth, frozenset(), [MOST_VALUES])


def _convert(value: object, depth: int, parents: frozenset[int], room: list[int]) -> Json:
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return clean_text(value)  # pyright: ignore[reportArgumentType]
    if kind is int:
        return value if -_SAFE_INTEGER <= value < _SAFE_INTEGER else _digits(value)  # type: ignore[operator]
    if kind is float:
        return value if math.isfinite(value) else None  # type: ignore[arg-type]
    if depth >= _DEEPEST:
        return "[nested too deeply]"
    if id(value) in parents:
        return "[circular]"
    try:
        return _container(value, depth, parents | {id(value)}, room)
    except Exception:  # noqa: BLE001 - a hostile object must not fail the run that only wanted to show the value
        return f"[{kind.__name__}]"


def _container(value: object, depth: int, parents: frozenset[int], room: list[int]) -> Json:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        fits = _room_for(len(pairs), room)
        shown = pairs.items() if fits == len(pairs) else itertools.islice(pairs.items(), fits)
        found = {_key(k): _convert(v, depth + 1, parents, room) for k, v in shown}
        return found if fits == len(pairs) else found | {_CUT: None}
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        fits = _room_for(len(items), room)
        if fits == len(items):
            return [_convert(item, depth + 1, parents, room) for item in items]
        return [*(_convert(item, depth + 1, parents, room) for item in items[:fits]), _CUT]
    return _other_value(value, depth, parents, room)


def _room_for(count: int, room: list[int]) -> int:
    """Take the room for `count` values, and one more for what holds them; returns how many of them fit."""
    fits = max(min(count, room[0]), 0)
    room[0] -= count + 1
    return fits


def _other_value(value: object, depth: int, parents: frozenset[int], room: list[int]) -> Json:
    import base64
    import dataclasses
    import datetime
    import enum

    other: Any = value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(other)).decode("ascii")}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return _convert(value.value, depth, parents, room)
    if isinstance(value, (set, frozenset)):
        members: set[object] = other
        if _room_for(len(members), room) < len(members):
            return _CUT
        items = [_convert(item, depth + 1, parents, room) for item in members]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, (bool, int, float, str)):
        return _convert(_plain(other), depth, parents, room)
    to_dict = getattr(other, "to_dict", None) or getattr(other, "model_dump", None)
    if callable(to_dict) and not isinstance(other, type):
        return _convert(to_dict(), depth + 1, parents, room)
    if dataclasses.is_dataclass(other) and not isinstance(other, type):
        fields = {f.name: getattr(other, f.name) for f in dataclasses.fields(other)}
        return _convert(fields, depth + 1, parents, room)
    return clean_text(f"{other}")


def _plain(value: bool | int | float | str) -> bool | int | float | str:
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to write out more than some thousand digits
        return f"[integer of {value.bit_length()} bits]"


def _key(key: object) -> str:
    if isinstance(key, str):
        return clean_text(str.__str__(key))
    if key is None or isinstance(key, (bool, float)):
        return json.dumps(key)
    if type(key) is int:
        return _digits(key)
    try:
        return clean_text(f"{key}")
    except Exception:  # noqa: BLE001 - as for values
        return f"[{type(key).__name__}]"


def clean_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and every half of one replaced by `\\ufffd`.

    Such a half can be neither stored nor sent; it comes from escapes in a model's JSON and from broken file names.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def dump_json(value: object) -> str:
    """Return `value` as compact JSON text (no spaces, non-ASCII kept)."""
    return write_json(to_json_value(value))


def write_json(value: Json) -> str:
    """Return a JSON value as compact JSON text (no spaces, non-ASCII kept)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
