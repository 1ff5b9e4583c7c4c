"""What tools answered: read back from the transcript, looked through for values, and written as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lousho.core.messages import Message, text_of
from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING
from lousho.models.demo.schema import Field, as_list, as_mapping
from lousho.models.demo.words import humanise, split_identifier, stem

_LONGEST_JSON = 400_000
_DEEPEST = 4
_MOST_LINES = 12
_LONGEST_STRING = 700
_SHORT_FIELDS = 4


@dataclass(slots=True)
class Outcome:
    """The result of one call."""

    tool: str
    arguments: Mapping[str, Any]
    value: Any = None
    kind: str | None = None
    """The kind of failure; `None` when the call worked."""
    message: str = ""
    issues: list[tuple[str, str]] = field(default_factory=lambda: [])
    note: str = ""
    """What a reviewer or a rule said."""

    @property
    def failed(self) -> bool:
        """Whether the call failed, as the runtime or as the tool itself reports it."""
        return self.kind is not None


def outcome_of(tool: str, arguments: Mapping[str, Any], message: Message) -> Outcome:
    """Return what a tool message says about its call."""
    text = text_of(message)
    value = parsed(text)
    found = as_mapping(value)
    # Transcripts that went through another program may have lost the flag, the shape of a failure stays.
    if not message.is_error and not {"error", "toolName", "kind"} <= found.keys():
        problem = found.get("error")
        if isinstance(problem, str) and problem and len(found) <= 2:
            return Outcome(tool, arguments, value, "reported", problem)
        return Outcome(tool, arguments, value)
    issues = [
        (str(as_mapping(issue).get("path", "")), str(as_mapping(issue).get("message", "")))
        for issue in as_list(found.get("issues"))
    ]
    said = found.get("message")
    return Outcome(
        tool,
        arguments,
        kind=str(found.get("kind") or "execution"),
        message=said if isinstance(said, str) else text[:_LONGEST_STRING],
        issues=issues,
        note=str(found.get("note") or found.get("reason") or ""),
    )


def as_text_answer(outcome: Outcome) -> str | None:
    """Return what a person replied to a question that a tool put to them, `None` when they declined."""
    if outcome.failed:
        return None
    value = outcome.value
    if isinstance(value, Mapping):
        value = next((part for part in cast("Mapping[str, Any]", value).values() if isinstance(part, str)), None)
    return None if value is None else str(value)


def parsed(text: str) -> Any:
    """Return a JSON text's value, or the text itself when it is none."""
    stripped = text.strip()
    if not stripped or len(stripped) > _LONGEST_JSON or stripped[0] not in '{["-0123456789tfn':
        return text
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return text


def recall(leaf: Field, outcome: Outcome, pick: str = "") -> Any:
    """Return the value for a field that an earlier result holds under the same name, `MISSING` when there is none.

    `pick` is a word such as `first` or `last` when the user chose an entry of a list.
    """
    owners = {stem(word) for word in split_identifier(outcome.tool)}
    best: tuple[float, Any] = (0.0, MISSING)
    for words, value in _entries(outcome.value, pick):
        score = _same_name(leaf, words, owners)
        if score > best[0]:
            fitted = convert.fit_json(leaf, value)
            if fitted is not MISSING:
                best = (score, fitted)
    return best[1]


def recall_argument(leaf: Field, outcome: Outcome) -> Any:
    """Return the value an earlier call was given for a field of the same name."""
    for words, value in _entries(dict(outcome.arguments), ""):
        if _same_name(leaf, words, set()) >= 1.0:
            return convert.fit_json(leaf, value)
    return MISSING


def _entries(
    value: Any, pick: str, depth: int = 0, owner: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, part in cast("Mapping[str, Any]", value).items():
            words = tuple(stem(word) for word in split_identifier(str(key)))
            yield (*owner, *words), part
            if isinstance(part, (Mapping, list)):
                yield from _entries(part, pick, depth + 1, words)
    elif isinstance(value, list) and value:
        items = cast("list[Any]", value)
        place = convert.PLACES.get(pick, 1)
        place = len(items) - 1 if place < 0 else place - 1
        if (len(items) == 1 or pick) and place < len(items):
            yield from _entries(items[place], pick, depth + 1, owner)


def _same_name(leaf: Field, words: tuple[str, ...], owners: set[str]) -> float:
    wanted = leaf.words
    if not wanted or not words:
        return 0.0
    if words == wanted or words[-len(wanted) :] == wanted:
        return 1.0
    if words[-1] == wanted[-1] and set(wanted[:-1]) <= owners | set(words):
        return 0.8
    return 0.0


def shorten(text: str, limit: int = _LONGEST_STRING) -> str:
    """Return a long text's beginning, cut at a word, with its length said."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[:limit].rsplit(None, 1)[0]
    return f"{cut} … ({len(text):,} characters in all)"


def scalar(value: Any) -> str:
    """Return one JSON scalar as a person writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    return shorten(str(value))


def write(value: Any) -> str:
    """Return a result as text: a scalar in a line, small objects and lists as lines, long ones shortened."""
    if isinstance(value, Mapping):
        return _write_object(cast("Mapping[str, Any]", value))
    if isinstance(value, list):
        return _write_list(cast("list[Any]", value))
    return scalar(value)


def _write_object(value: Mapping[str, Any]) -> str:
    if not value:
        return "nothing"
    if len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str) and len(only) > 40:
            return shorten(only)
        if isinstance(only, (Mapping, list)):
            return write(only)
    told = {key: part for key, part in value.items() if part is not None} or value
    lines = [_line(key, part) for key, part in list(told.items())[:_MOST_LINES]]
    if len(told) > _MOST_LINES:
        lines.append(f"… and {len(told) - _MOST_LINES} more")
    return "\n".join(f"- {line}" for line in lines)


def _line(key: str, value: Any) -> str:
    if (
        isinstance(value, list)
        and value
        and any(isinstance(item, (Mapping, list)) for item in cast("list[Any]", value))
    ):
        items = cast("list[Any]", value)
        inner = "\n".join(f"  - {brief(item)}" for item in items[:_MOST_LINES])
        more = f"\n  - … and {len(items) - _MOST_LINES} more" if len(items) > _MOST_LINES else ""
        return f"{humanise(key)}:\n{inner}{more}"
    return f"{humanise(key)}: {brief(value)}"


def _write_list(items: Sequence[Any]) -> str:
    if not items:
        return "nothing"
    plain = [scalar(item) for item in items if not isinstance(item, (Mapping, list))]
    if len(plain) == len(items) <= _MOST_LINES and all(
        len(word) <= 20 and not re.match(r"\d+\.\s", word) for word in plain
    ):
        return _series(plain)
    dash = "" if plain and all(re.match(r"\d+[.)]\s", word) for word in plain) else "- "
    lines = [f"{dash}{brief(item)}" for item in items[:_MOST_LINES]]
    if len(items) > _MOST_LINES:
        lines.append(f"- … and {len(items) - _MOST_LINES} more ({len(items)} in all)")
    return "\n".join(lines)


def _series(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def brief(value: Any) -> str:
    """Return any JSON value on one line."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        told = [(key, part) for key, part in pairs.items() if part is not None]
        shown = [f"{humanise(key)}: {_tiny(part)}" for key, part in told[: _SHORT_FIELDS * 2]]
        return ", ".join(shown) + (", …" if len(told) > _SHORT_FIELDS * 2 else "")
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if not items:
            return "none"
        shown = [_tiny(item) for item in items[:_MOST_LINES]]
        return ", ".join(shown) + (f" … ({len(items)} in all)" if len(items) > _MOST_LINES else "")
    return scalar(value)


def _tiny(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        return (
            "(" + ", ".join(f"{humanise(key)} {_leaf(part)}" for key, part in list(pairs.items())[:_SHORT_FIELDS]) + ")"
        )
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return (
            "["
            + ", ".join(_leaf(item) for item in items[:_SHORT_FIELDS])
            + (", …" if len(items) > _SHORT_FIELDS else "")
            + "]"
        )
    return _clipped(scalar(value), 80)


def _leaf(value: Any) -> str:
    return "…" if isinstance(value, (Mapping, list)) else _clipped(scalar(value), 60)


def _clipped(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit].rsplit(None, 1)[0] + " …"
