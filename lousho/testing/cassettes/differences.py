"""Finds and shows the first place where two JSON values differ.

What a failed replay tells is the whole debugging experience of a cassette, so the place is a path a person can follow
and a long text is cut around the letters that differ. Source: testing page ("What replay checks").
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

Ignore: TypeAlias = "Callable[[Mapping[str, Any], Mapping[str, Any]], frozenset[str]]"

SHOWN_CHARS = 300
"""Characters of a value that are shown; of a longer text, the part around the first difference."""

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


class _Absent:
    """A value that is not there on one side."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


class Difference(NamedTuple):
    """Where two values differ, and what is there on either side (`ABSENT` where nothing is)."""

    path: str
    recorded: Any
    actual: Any

    def describe(self) -> str:
        """Return the three lines of an error message: the path, the recorded and the actual value."""
        recorded, actual = _shown_pair(self.recorded, self.actual)
        return f"First difference at {self.path}:\n  recorded: {recorded}\n  actual:   {actual}"


def first_difference(recorded: Any, actual: Any, path: str, ignore: Ignore | None = None) -> Difference | None:
    """Return the first difference in reading order, or None when the values are equal.

    `ignore` names, for two objects at the same place, the keys that may differ.
    """
    if recorded is actual:
        return None
    if isinstance(recorded, dict) and isinstance(actual, dict):
        return _object_difference(cast("dict[str, Any]", recorded), cast("dict[str, Any]", actual), path, ignore)
    if isinstance(recorded, list) and isinstance(actual, list):
        left, right = cast("list[Any]", recorded), cast("list[Any]", actual)
        for index in range(max(len(left), len(right))):
            one = left[index] if index < len(left) else ABSENT
            other = right[index] if index < len(right) else ABSENT
            found = first_difference(one, other, f"{path}[{index}]", ignore)
            if found is not None:
                return found
        return None
    return None if _same(recorded, actual) else Difference(path, recorded, actual)


def _object_difference(
    recorded: dict[str, Any], actual: dict[str, Any], path: str, ignore: Ignore | None
) -> Difference | None:
    skipped = ignore(recorded, actual) if ignore is not None else frozenset[str]()
    for key in [*recorded, *(key for key in actual if key not in recorded)]:
        if key in skipped:
            continue
        step = f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
        found = first_difference(recorded.get(key, ABSENT), actual.get(key, ABSENT), path + step, ignore)
        if found is not None:
            return found
    return None


def _same(recorded: Any, actual: Any) -> bool:
    # In Python True equals 1, in JSON it does not.
    return isinstance(recorded, bool) == isinstance(actual, bool) and bool(recorded == actual)


def _shown_pair(recorded: Any, actual: Any) -> tuple[str, str]:
    start = 0
    if isinstance(recorded, str) and isinstance(actual, str):
        limit = min(len(recorded), len(actual))
        same = next((index for index in range(limit) if recorded[index] != actual[index]), limit)
        longest = max(len(recorded), len(actual))
        if longest > SHOWN_CHARS:
            start = max(0, min(same - SHOWN_CHARS // 3, longest - SHOWN_CHARS))
    return _shown(recorded, start), _shown(actual, start)


def _shown(value: Any, start: int) -> str:
    if value is ABSENT:
        return repr(value)
    if isinstance(value, str):
        before = "..." if start else ""
        after = "..." if len(value) > start + SHOWN_CHARS else ""
        return json.dumps(f"{before}{value[start : start + SHOWN_CHARS]}{after}", ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
