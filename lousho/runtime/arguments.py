"""Reading a model's tool arguments: JSON, almost-JSON that can be repaired, or a complaint the model can act on.

A model's text is outside data: whatever it sends is read in linear time, and what the run could not store or show later
(nesting without end, numbers beyond a float) is refused here. Source: errors page (`LOUSHO_TOOL_ARGS_INVALID`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, TypeVar, cast

from lousho.core.errors import ROOT_PATH, Issue, ToolArgumentsValidationError
from lousho.core.json_values import clean_text

T = TypeVar("T")
MOST_ARGUMENT_CHARS = 5_000_000
MOST_REPAIRED_CHARS = 1_000_000
DEEPEST_ARGUMENTS = 64
"""Levels of objects and lists; the state of a run, and every JSON reader it may meet, holds more than that."""
_SHOWN_CHARS = 200
_FENCE = "```"
_LANGUAGE = re.compile(r"[a-zA-Z0-9]*")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*+[}\]])")


class _NotHoldable(ValueError):
    """Valid JSON that could not be stored or shown; the reader makes it an issue."""


class ReadArguments(NamedTuple):
    """The arguments as an object (or `None`), the raw text when it was repaired or unreadable, and the complaint."""

    args: dict[str, Any] | None
    raw: str | None = None
    problem: str | None = None


def read_arguments(text: str) -> ReadArguments:
    """Return the arguments in `text`. Empty text means no arguments.

    A surrounding code fence, trailing commas and JSON inside a JSON string are repaired when that gives an object.
    Refused are more than 5,000,000 characters, more than 64 levels and numbers that no float can hold.
    """
    if not text or text.isspace():
        return ReadArguments({})
    if len(text) > MOST_ARGUMENT_CHARS:
        return ReadArguments(None, text[:_SHOWN_CHARS], f"arguments are longer than {MOST_ARGUMENT_CHARS:,} characters")
    try:
        value = _loads(text)
        if isinstance(value, dict):
            return ReadArguments(_holdable_object(cast("dict[str, Any]", value)))
        inner = _repaired(value) if isinstance(value, str) else None
        problem = f"arguments are not a JSON object; received: {_shown(text)}"
    except ValueError as error:
        inner = _repaired(text)
        problem = f"arguments are not valid JSON: {error}; received: {_shown(text)}"
    return ReadArguments(None, text, problem) if inner is None else ReadArguments(inner, text)


def arguments_error(tool_name: str, problem: str) -> ToolArgumentsValidationError:
    """Return the error for arguments that could not be read."""
    return ToolArgumentsValidationError(tool_name, [Issue(ROOT_PATH, problem)])


def copied(value: T) -> T:
    """Return a JSON value that shares no list or object with `value`.

    What leaves the run is a copy, so that a listener or a tool that changes it changes nothing of the call.
    """
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return cast("T", {key: copied(item) for key, item in pairs})
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return cast("T", [copied(item) for item in items])
    return value


def _repaired(text: str) -> dict[str, Any] | None:
    if len(text) > MOST_REPAIRED_CHARS:
        return None
    candidate = _unfenced(text)
    for attempt in (candidate, _without_trailing_commas(candidate)):
        try:
            value = _loads(attempt)
            if isinstance(value, dict):
                return _holdable_object(cast("dict[str, Any]", value))
        except ValueError:
            continue
        if isinstance(value, str) and len(value) < len(text):
            return _repaired(value)
        return None
    return None


def _unfenced(text: str) -> str:
    """Return what stands inside a Markdown code fence that surrounds all of `text`, else `text`."""
    stripped = text.strip()
    if len(stripped) < 2 * len(_FENCE) or not (stripped.startswith(_FENCE) and stripped.endswith(_FENCE)):
        return text
    inner = stripped[len(_FENCE) : -len(_FENCE)]
    language = _LANGUAGE.match(inner)
    return inner[language.end() :] if language is not None else inner


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, but never inside a string."""
    pieces = _STRING.split(text)
    return "".join(piece if index % 2 else _TRAILING_COMMA.sub(r"\1", piece) for index, piece in enumerate(pieces))


def _loads(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None  # plain: caught right here, turned into an issue


def _holdable_object(value: dict[str, Any]) -> dict[str, Any]:
    """Return parsed arguments with clean text. Raises `_NotHoldable`."""
    for key, item in value.items():
        plain = item.isascii() if isinstance(item, str) else isinstance(item, int) or item is None
        if not plain or not key.isascii():
            return cast("dict[str, Any]", _holdable(value, DEEPEST_ARGUMENTS))
    return value


def _holdable(value: object, levels: int) -> object:
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, dict):
        if not levels:
            raise _NotHoldable(f"nested deeper than {DEEPEST_ARGUMENTS} levels")
        pairs = cast("dict[str, object]", value).items()
        return {key if key.isascii() else clean_text(key): _holdable(item, levels - 1) for key, item in pairs}
    if isinstance(value, list):
        if not levels:
            raise _NotHoldable(f"nested deeper than {DEEPEST_ARGUMENTS} levels")
        return [_holdable(item, levels - 1) for item in cast("list[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise _NotHoldable("a number is too large")
    return value


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")  # plain: caught by the reader, turned into an issue


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
