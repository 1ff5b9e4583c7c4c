"""Reading a model's tool arguments: JSON, almost-JSON that can be repaired, or a complaint the model can act on.

Source: errors page (`LOUSHO_TOOL_ARGS_INVALID`).
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

from lousho.core.errors import ROOT_PATH, Issue, ToolArgumentsValidationError

MOST_ARGUMENT_CHARS = 5_000_000
_SHOWN_CHARS = 200
_FENCE = re.compile(r"\A\s*```[a-zA-Z0-9]*\s*\n?(.*?)\n?\s*```\s*\Z", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


class ReadArguments(NamedTuple):
    """The arguments as an object (or `None`), the raw text when it was repaired or unreadable, and the complaint."""

    args: dict[str, Any] | None
    raw: str | None = None
    problem: str | None = None


def read_arguments(text: str) -> ReadArguments:
    """Return the arguments in `text`. Empty text means no arguments.

    A surrounding code fence, trailing commas and JSON inside a JSON string are repaired when that gives an object.
    """
    if not text.strip():
        return ReadArguments({})
    if len(text) > MOST_ARGUMENT_CHARS:
        return ReadArguments(None, text[:_SHOWN_CHARS], f"arguments are longer than {MOST_ARGUMENT_CHARS:,} characters")
    try:
        value = _loads(text)
    except ValueError as error:
        repaired = _repaired(text)
        if repaired is not None:
            return ReadArguments(repaired, text)
        return ReadArguments(None, text, f"arguments are not valid JSON: {error}; received: {_shown(text)}")
    if isinstance(value, dict):
        return ReadArguments(cast("dict[str, Any]", value))
    if isinstance(value, str):
        inner = _repaired(value)
        if inner is not None:
            return ReadArguments(inner, text)
    return ReadArguments(None, text, f"arguments are not a JSON object; received: {_shown(text)}")


def arguments_error(tool_name: str, problem: str) -> ToolArgumentsValidationError:
    """Return the error for arguments that could not be read."""
    return ToolArgumentsValidationError(tool_name, [Issue(ROOT_PATH, problem)])


def _repaired(text: str) -> dict[str, Any] | None:
    candidate = text
    fenced = _FENCE.match(candidate)
    if fenced:
        candidate = fenced.group(1)
    for attempt in (candidate, _without_trailing_commas(candidate)):
        try:
            value = _loads(attempt)
        except ValueError:
            continue
        if isinstance(value, str) and value != text:
            return _repaired(value)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return None


def _without_trailing_commas(text: str) -> str:
    """Drop commas before a closing bracket, but never inside a string."""
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(piece if index % 2 else _TRAILING_COMMA.sub(r"\1", piece) for index, piece in enumerate(pieces))


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None  # plain: caught right here, turned into an issue


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")  # plain: caught by the reader, turned into an issue


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
