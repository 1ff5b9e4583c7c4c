"""Reading a model's tool arguments: JSON, almost-JSON that can be repaired, or a complaint the model can act on.

A model's text is outside data: whatever it sends is read in linear time, and what the run could not store or show later
(nesting without end, numbers beyond a float) is refused here. Source: errors page (`LOUSHO_TOOL_ARGS_INVALID`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from lousho.core.errors import ROOT_PATH, Issue, ToolArgumentsValidationError
from lousho.core.json_values import clean_text
from lousho.runtime.almost_json import MOST_ALMOST_CHARS, CutOff, NotReadable, read_almost_json, read_object_in

T = TypeVar("T")
MOST_ARGUMENT_CHARS = 5_000_000
DEEPEST_ARGUMENTS = 64
"""Levels of objects and lists; the state of a run, and every JSON reader it may meet, holds more than that."""
_MOST_WRAPPERS = 3
"""How often JSON may be the text of a JSON text."""
_SHOWN_CHARS = 200
_FENCE = "```"
_LANGUAGE = re.compile(r"[a-zA-Z0-9]*")


class _NotHoldable(ValueError):
    """Valid JSON that could not be stored or shown; the reader makes it an issue."""


Ending: TypeAlias = Literal["own", "unknown", "cut"]
"""How the text of the arguments ended: by the model, by something that cut it off, or nobody can say."""


class ReadArguments(NamedTuple):
    """The arguments as an object (or `None`), the raw text when it was repaired or unreadable, and the complaint."""

    args: dict[str, Any] | None
    raw: str | None = None
    problem: str | None = None


def read_arguments(text: str, *, repair: bool = True, ending: Ending = "own") -> ReadArguments:
    """Return the arguments in `text`. Empty text means no arguments.

    With `repair`, what is almost JSON is read too: see `lousho.runtime.almost_json`, and a code fence, prose around the
    one object, or JSON inside a JSON string. Missing brackets are closed only where the `ending` is the model's own.
    Where it was cut off, empty text is a complaint: half a call must not run with the defaults of the rest. Refused are
    more than 5,000,000 characters, more than 64 levels and numbers that no float can hold.
    """
    cut = ending == "cut"
    if not text or text.isspace():
        if not cut:
            return ReadArguments({})
        return ReadArguments(None, text, f"the reply was cut off before the arguments came; {_SHORTER}")
    if len(text) > MOST_ARGUMENT_CHARS:
        return ReadArguments(None, text[:_SHOWN_CHARS], f"arguments are longer than {MOST_ARGUMENT_CHARS:,} characters")
    try:
        value = _loads(text)
        if isinstance(value, dict):
            return ReadArguments(holdable_object(cast("dict[str, Any]", value)))
        problem = "arguments are not a JSON object"
    except ValueError as error:
        problem = f"arguments are not valid JSON: {error}"
    if not repair:
        return ReadArguments(None, text, f"{problem}; received: {_shown(text)}")
    try:
        return ReadArguments(holdable_object(_repaired(text, close=ending == "own")), text)
    except CutOff as error:
        problem = f"the reply was cut off, {error}; {_SHORTER}" if cut else f"arguments are not valid JSON: {error}"
    except NotReadable as error:
        problem = f"{problem}; {error}"
    except ValueError:  # a number of too many digits, or what cannot be held
        pass
    return ReadArguments(None, text, f"{problem}; received: {_shown(text)}")


_SHORTER = "send the call again, in a shorter reply"


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


def _repaired(text: str, *, close: bool, wrappers: int = _MOST_WRAPPERS) -> dict[str, Any]:
    """Return the object that `text` almost is. Raises `NotReadable`."""
    if len(text) > MOST_ALMOST_CHARS:
        raise NotReadable(f"and longer than the {MOST_ALMOST_CHARS:,} characters up to which it is repaired")
    candidate = _unfenced(text.strip().lstrip("\ufeff"))
    if candidate[:1] not in ('"', "'") or not wrappers:
        return read_object_in(candidate, close=close)
    inner = read_almost_json(candidate)
    try:
        value = _loads(inner)
    except ValueError:
        return _repaired(inner, close=close, wrappers=wrappers - 1)
    if isinstance(value, str):
        return _repaired(inner, close=close, wrappers=wrappers - 1)
    if not isinstance(value, dict):
        raise NotReadable("the text in it holds no object")
    return cast("dict[str, Any]", value)


def _unfenced(text: str) -> str:
    """Return what stands inside a Markdown code fence that surrounds all of `text`, else `text`."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inner = text[len(_FENCE) : -len(_FENCE)]
    language = _LANGUAGE.match(inner)
    return (inner[language.end() :] if language is not None else inner).strip()


def _loads(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None  # plain: caught right here, turned into an issue


def holdable_object(value: dict[str, Any]) -> dict[str, Any]:
    """Return parsed arguments with clean text. Raises `_NotHoldable`."""
    for key, item in value.items():
        plain = item.isascii() if isinstance(item, str) else isinstance(item, int) or item is None
        if not plain or not key.isascii():
            return cast("dict[str, Any]", holdable(value, DEEPEST_ARGUMENTS))
    return value


def holdable(value: object, levels: int) -> object:
    """Return a JSON value with clean text. Raises a `ValueError` when it has more levels, or a number beyond a float."""
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, dict):
        if not levels:
            raise _NotHoldable(f"nested deeper than {DEEPEST_ARGUMENTS} levels")
        pairs = cast("dict[str, object]", value).items()
        return {key if key.isascii() else clean_text(key): holdable(item, levels - 1) for key, item in pairs}
    if isinstance(value, list):
        if not levels:
            raise _NotHoldable(f"nested deeper than {DEEPEST_ARGUMENTS} levels")
        return [holdable(item, levels - 1) for item in cast("list[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise _NotHoldable("a number is too large")
    return value


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")  # plain: caught by the reader, turned into an issue


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
