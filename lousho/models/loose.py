"""Reading a vendor's JSON, in which any field may be missing or of another type than documented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def mappings_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list; anything else in it is left out."""
    if not isinstance(value, list):
        return []
    return [cast("Mapping[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, Mapping)]


def count_of(value: Any) -> int | None:
    """Return a token count, or `None` for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return None
    return int(value)
