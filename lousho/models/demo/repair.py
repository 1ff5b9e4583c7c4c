"""A call whose arguments were refused, put right where the issues say how; what they leave open is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lousho.core.json_schema import SchemaMismatch
from lousho.models.demo import convert
from lousho.models.demo.arguments import Arguments
from lousho.models.demo.convert import MISSING
from lousho.models.demo.dates import DATE_PATTERN, TIME_PATTERN, read_date, read_time
from lousho.models.demo.schema import Field, Path, leaves
from lousho.models.demo.words import fold, likeness, stem

_MOST_CHECKS = 4
_OPTION = re.compile(r"['\"‘“`]([^'\"’”`]{1,80})['\"’”`]")
_PATTERN = re.compile(r"pattern\s+['\"](.+)['\"]\s*$|match(?:es)?\s+['\"](.+)['\"]", re.IGNORECASE)


def repair(made: Arguments, issues: Sequence[tuple[str, str]], said: Sequence[str], now: datetime) -> bool:
    """Change `made` as the issues ask. Returns whether every one of them could be answered.

    What could not be answered loses its value and keeps the complaint, so that the user is asked. `said` are the
    request's own words.
    """
    solved = True
    for path, message in issues:
        leaf = _leaf_at(made, path)
        if leaf is None:
            solved = False
            continue
        solved = _mend(made, leaf, message, said, now) and solved
    return solved and bool(issues)


def check(made: Arguments) -> None:
    """Hold complete arguments against the tool's whole schema, and take back what it refuses.

    The rules read most of a schema; what they do not read (a condition, a combination) must not become a bad call.
    """
    for _ in range(_MOST_CHECKS):
        try:
            schema = made.tool.schema()
            if schema is not None:
                schema.parse(made.call())
            return
        except SchemaMismatch as mismatch:
            found = [(leaf, issue.message) for issue in mismatch.issues if (leaf := _leaf_at(made, issue.path))]
            if not found:
                return
            for leaf, message in found:
                value = made.values.pop(leaf.path, MISSING)
                if leaf.required and value is not MISSING:
                    made.complaints[leaf.path] = f"was not accepted ({message.strip().rstrip('.')})"
            if made.missing:
                return


def _leaf_at(made: Arguments, path: str) -> Field | None:
    parts = tuple(part for part in re.split(r"[.\[\]/]+", path) if part and not part.isdigit())
    known = list(leaves(made.fields))
    while parts:
        exact = next((leaf for leaf in known if leaf.path == parts), None)
        if exact is not None:
            return exact
        parts = parts[:-1]
    return None


def _mend(made: Arguments, leaf: Field, message: str, said: Sequence[str], now: datetime) -> bool:
    low = message.lower()
    value = made.values.get(leaf.path, MISSING)
    if "extra" in low or "unexpected" in low or "not permitted" in low or "additional" in low:
        made.values.pop(leaf.path, None)
        return True
    if value is MISSING:
        made.fields = _needing(made.fields, leaf.path)
        return False
    fixed = _fixed(leaf, value, message, said, now)
    if fixed is MISSING or fixed == value:
        del made.values[leaf.path]
        made.fields = _needing(made.fields, leaf.path)
        made.complaints[leaf.path] = f"was not accepted ({message.strip().rstrip('.')})"
        return False
    made.values[leaf.path] = fixed
    return True


def _fixed(leaf: Field, value: Any, message: str, said: Sequence[str], now: datetime) -> Any:
    for attempt in (_as_option, _as_written, _as_type):
        fixed = attempt(leaf, value, message, now)
        if fixed is not MISSING:
            return fixed
    return _said_option(value, message, said)


def _as_option(leaf: Field, value: Any, message: str, now: datetime) -> Any:
    """Return the allowed value that is nearest to the one that was given."""
    if not isinstance(value, str):
        return MISSING
    options = [
        option for option in _OPTION.findall(message) if option != value and not re.search(r"[\\^$*\[\]]", option)
    ]
    for option in options:
        if fold(option) == fold(value):
            return option
    close = [(likeness(stem(option), stem(value)), option) for option in options]
    best = max(close, default=(0.0, ""))
    if best[0] > 0:
        return best[1]
    prefixed = [
        option for option in options if fold(option).startswith(fold(value)) or fold(value).startswith(fold(option))
    ]
    return prefixed[0] if len(prefixed) == 1 else MISSING


def _said_option(value: Any, message: str, said: Sequence[str]) -> Any:
    options = [option for option in _OPTION.findall(message) if option != value]
    found = [option for option in options if fold(option) in {fold(word) for word in said}]
    return found[0] if len(found) == 1 and isinstance(value, str) else MISSING


def _as_written(leaf: Field, value: Any, message: str, now: datetime) -> Any:
    """Return the same value in the spelling the message asks for."""
    if not isinstance(value, str):
        return MISSING
    low = message.lower()
    pattern = _PATTERN.search(message)
    if pattern:
        wanted = pattern[1] or pattern[2]
        return next((text for text in convert.spellings(value) if convert.matches(wanted, text)), MISSING)
    if re.search(r"time ?zone|offset", low) and re.match(r"\d{4}-\d{2}-\d{2}T", value):
        return value + "+00:00"
    if re.search(r"yyyy|iso|\bdate\b|\bdatetime\b", low) and re.fullmatch(DATE_PATTERN, value, re.IGNORECASE):
        day = read_date(value, now.date())
        return MISSING if day is None else day.isoformat() + ("T00:00:00" if "datetime" in low else "")
    if re.search(r"hh:mm|\btime\b", low) and re.fullmatch(TIME_PATTERN, value, re.IGNORECASE):
        at = read_time(value)
        return MISSING if at is None else convert.clock(at)
    for sign, changed in (("lower", value.lower()), ("upper", value.upper()), ("capital", value.capitalize())):
        if sign in low:
            return changed
    return MISSING


def _as_type(leaf: Field, value: Any, message: str, now: datetime) -> Any:
    low = message.lower()
    if re.search(r"\b(integer|number|int|float|decimal)\b", low) and isinstance(value, str):
        found = re.search(r"-?\d+(?:\.\d+)?", value)
        if found is None:
            return MISSING
        number = float(found.group())
        return int(number) if number.is_integer() else number
    if re.search(r"\b(list|array)\b", low) and not isinstance(value, list):
        return [value]
    if re.search(r"\bstrings?\b", low) and isinstance(value, (int, float)):
        return str(value)
    return MISSING


def _needing(fields: Sequence[Field], path: Path) -> tuple[Field, ...]:
    """Return the fields with the one at `path` required."""
    return tuple(
        replace(
            made,
            required=made.required or made.path == path[: len(made.path)],
            parts=_needing(made.parts, path),
        )
        for made in fields
    )
