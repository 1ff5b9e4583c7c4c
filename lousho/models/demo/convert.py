"""Turning a stretch of a message into a value of a field's type, or saying that it is none."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final, cast

from lousho.models.demo.dates import DAYS, seconds_in
from lousho.models.demo.reading import Reading, Unit
from lousho.models.demo.schema import Field
from lousho.models.demo.words import NEGATIONS, content_stems, fold, likeness, split_identifier, stem, words_in


class Missing:
    """The type of `MISSING`."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()
"""What a conversion returns when there is no such value; `None`, `False` and 0 are values."""

YES = frozenset("yes yeah yep true on enabled enable always definitely correct right y sure ok okay".split())
NO = frozenset("no nope false off disabled disable never n none negative".split()) | NEGATIONS
COUNTING = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000, "dozen": 12, "couple": 2, "both": 2}

_LONGEST_MATCHED = 200
_PLACES = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
PLACES = {word: number for number, word in enumerate(_PLACES, 1)} | {"last": -1, "latest": -1}
"""Words for a place in a list; the last one is -1."""
_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.lt),
    ("maximum", "at most", operator.gt),
    ("exclusiveMinimum", "more than", operator.le),
    ("exclusiveMaximum", "less than", operator.ge),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A value and the units it was read from."""

    value: Any
    lo: int
    hi: int
    score: float = 1.0


def first_number(made: Field, reading: Reading, lo: int, hi: int) -> Found | None:
    """Return the first number of the range, digits or word, in the unit the field counts in."""
    for index in range(lo, hi):
        unit = reading.units[index]
        value: Any = unit.value if unit.kind == "number" else COUNTING.get(unit.low) if unit.kind == "word" else None
        ahead = re.fullmatch(r"in\s+(\d+)\s+(\w+)", unit.raw) if unit.kind == "moment" else None
        if ahead:
            fitted = fit_number(made, int(ahead[1]), ahead[2])
            return None if fitted is MISSING else Found(fitted, index, index + 1)
        if unit.kind == "proper" and unit.low in COUNTING:
            value = COUNTING[unit.low]
        if value is None:
            continue
        fitted = fit_number(made, value, _measure(reading, index, hi))
        if fitted is not MISSING:
            return Found(fitted, index, index + 1)
    return None


def _measure(reading: Reading, index: int, hi: int) -> str:
    unit = reading.units[index]
    if unit.measure:
        return unit.measure
    return reading.units[index + 1].low if index + 1 < hi and reading.units[index + 1].kind == "word" else ""


def fit_number(made: Field, value: Any, measure: str = "") -> Any:
    """Return a number as the field wants it: percent as a share, minutes in seconds, whole where it must be."""
    top = made.schema.get("maximum")
    if measure.startswith("%") and isinstance(top, (int, float)) and top <= 1:
        value = value / 100
    given = seconds_in(measure) if measure else None
    if given is not None:
        wanted = next(
            (
                seconds_in(word)
                for word in (*split_identifier(made.path[-1]), *words_in(made.description))
                if _is_period(word)
            ),
            None,
        )
        if wanted is not None and wanted != given:
            value = value * given / wanted
    whole = float(value).is_integer()
    if made.kind == "integer":
        return int(value) if whole else MISSING
    return int(value) if whole and abs(value) < 1e15 else value


def _is_period(word: str) -> bool:
    return len(word) >= 2 and seconds_in(word) is not None


def choice_matches(made: Field, reading: Reading, lo: int, hi: int, taken: set[int]) -> Iterator[Found]:
    """Return the allowed values that the range names, with how surely."""
    units = reading.units
    for index in range(lo, hi):
        if index in taken or units[index].kind == "mark":
            continue
        best: Found | None = None
        for choice in made.choices:
            for length in range(min(4, hi - index), 0, -1):
                if any(i in taken for i in range(index, index + length)):
                    continue
                score = _choice_score(choice, units[index : index + length], made)
                if score > (best.score if best else 0.0):
                    best = Found(choice, index, index + length, score)
        if best is not None:
            yield best


def _choice_score(choice: Any, units: Sequence[Unit], made: Field) -> float:
    if isinstance(choice, bool):
        return 0.9 if len(units) == 1 and units[0].low in (YES if choice else NO) else 0.0
    if isinstance(choice, (int, float)):
        return 1.0 if len(units) == 1 and units[0].kind == "number" and units[0].value == choice else 0.0
    wanted = "".join(fold(word) for word in split_identifier(str(choice))) or str(choice)
    if len(units) == 1 and units[0].kind == "number":
        return 0.9 if str(choice) == units[0].measure or str(choice) == str(units[0].value) else 0.0
    if any(unit.kind == "mark" for unit in units):
        return 1.0 if str(choice) == "".join(unit.raw for unit in units) else 0.0
    if len(units) == 1 and isinstance(units[0].value, date) and str(choice).lower() in DAYS:
        return 0.9 if DAYS[units[0].value.weekday()] == str(choice).lower() else 0.0
    said = "".join(
        fold(word)
        for unit in units
        for word in split_identifier(unit.value if isinstance(unit.value, str) else unit.raw)
    )
    if len(wanted) <= 2:
        exact = len(units) == 1 and (units[0].raw == choice or (len(wanted) == 2 and said == wanted))
        return 1.0 if exact and not units[0].is_stop else 0.0
    if said == wanted and said in {"all", "any", "none", "every", "both", "each"}:
        return 0.87  # these words stand in many sentences beside the choice that is meant
    if said == wanted:
        return 1.0 if not units[0].is_stop or len(units) > 1 else 0.6
    if len(units) > 1 or units[0].is_stop:
        return 0.0
    alone = stem(said)
    words = content_stems(" ".join(split_identifier(str(choice))))
    if words == [alone]:
        return 0.95
    close = likeness(alone, stem(wanted))
    if len(words) > 1 and alone in words and sum(alone in content_stems(str(other)) for other in made.choices) == 1:
        return 0.7
    return close * 0.9 if close and len(alone) >= 3 else 0.0


def string_of(made: Field, reading: Reading, lo: int, hi: int) -> Any:
    """Return the range as a string the field accepts."""
    raw = reading.slice(lo, hi)
    if (
        hi - lo == 1
        and reading.units[lo].kind in {"number", "mixed"}
        and not any("#" in example for example in made.shown)
    ):
        raw = raw.lstrip("#")
    return fit_string(made, raw)


def fit_string(made: Field, raw: str) -> Any:
    """Return a text so that it matches the field's pattern and lengths, `MISSING` when no spelling of it does."""
    raw = raw.strip().strip(",;")
    pattern = made.schema.get("pattern")
    if not raw:
        return MISSING
    if isinstance(pattern, str):
        return next((text for text in spellings(raw) if matches(pattern, text)), MISSING)
    longest = made.schema.get("maxLength")
    if isinstance(longest, int) and len(raw) > longest:
        return MISSING
    return raw


def spellings(raw: str) -> Iterator[str]:
    """Return the ways to write `raw` that mean the same: case, `#`, spaces, dashes."""
    for text in (raw, raw.lstrip("#@"), raw.replace(" ", ""), raw.replace(" ", "-"), raw.replace("-", "")):
        yield from (text, text.upper(), text.lower(), text.capitalize())


def matches(pattern: str, text: str) -> bool:
    """Whether a JSON Schema pattern is found in `text`; a broken pattern forbids nothing."""
    try:
        return re.search(pattern, text[:_LONGEST_MATCHED]) is not None
    except re.error:
        return True


def formatted(made: Field, unit: Unit) -> Any:
    """Return one unit as the value of a string with a format, if it is of that kind."""
    if made.form in {"email", "uri", "uuid"}:
        return unit.value if unit.kind == made.form or (made.form == "uri" and _is_host(unit)) else MISSING
    if made.form == "date":
        if isinstance(unit.value, datetime):
            return unit.value.date().isoformat()
        return unit.value.isoformat() if isinstance(unit.value, date) else MISSING
    if made.form == "time":
        if isinstance(unit.value, datetime):
            return clock(unit.value.time())
        return clock(unit.value) if isinstance(unit.value, time) else MISSING
    if made.form == "ipv4":
        return unit.value if re.fullmatch(r"\d+(\.\d+){3}", unit.raw) else MISSING
    return MISSING


def _is_host(unit: Unit) -> bool:
    return unit.kind == "mixed" and re.fullmatch(r"[\w-]+(\.[\w-]+)*\.[a-z]{2,6}(/\S*)?", unit.raw) is not None


def clock(value: time) -> str:
    """Return a time of day as `HH:MM`, with seconds only where they were said."""
    return value.isoformat("seconds" if value.second else "minutes")


def moment_of(day: date | None, at: time | None, now: datetime) -> str:
    """Return a point in time as ISO 8601; without a day it is the next time the clock shows it."""
    if day is None:
        assert at is not None
        day = now.date() if at > now.time() else now.date() + timedelta(days=1)
    return datetime.combine(day, at or time(0)).isoformat(timespec="seconds")


def duration_of(reading: Reading, lo: int, hi: int) -> Found | None:
    """Return an ISO 8601 duration for `30 minutes` or `2h`."""
    for index in range(lo, hi):
        unit = reading.units[index]
        value = unit.value if unit.kind == "number" else COUNTING.get(unit.low) if unit.kind == "word" else None
        seconds = seconds_in(_measure(reading, index, hi)) if value is not None else None
        if seconds is None or not isinstance(value, (int, float)):
            continue
        total = int(seconds * value)
        days, rest = divmod(total, 86400)
        hours, rest = divmod(rest, 3600)
        minutes, left = divmod(rest, 60)
        clock_part = "".join(f"{n}{letter}" for n, letter in ((hours, "H"), (minutes, "M"), (left, "S")) if n)
        text = "P" + (f"{days}D" if days else "") + (f"T{clock_part}" if clock_part else "")
        return Found(text if text != "P" else "PT0S", index, index + (1 if unit.measure else 2))
    return None


def yes_or_no(reading: Reading, lo: int, hi: int) -> bool | None:
    """Return what a short answer says, `None` when it is neither."""
    for unit in reading.units[lo:hi]:
        if unit.low in NO:
            return False
        if unit.low in YES:
            return True
    return None


def fit_json(leaf: Field, value: Any) -> Any:
    """Return a JSON value as the field's type, `MISSING` when it is of another."""
    if leaf.kind == "string" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return fit_string(leaf, str(value))
    if leaf.kind in {"number", "integer"} and isinstance(value, (int, float)) and not isinstance(value, bool):
        return fit_number(leaf, value)
    if leaf.kind in {"number", "integer"} and isinstance(value, str):
        try:
            return fit_number(leaf, float(value))
        except ValueError:
            return MISSING
    if leaf.kind == "choice":
        return next((choice for choice in leaf.choices if fold(str(choice)) == fold(str(value))), MISSING)
    if leaf.kind == "list" and leaf.item is not None and isinstance(value, list):
        items = [fit_json(leaf.item, item) for item in cast("list[Any]", value)]
        return MISSING if MISSING in items else items
    kinds = {"boolean": bool, "list": list, "record": dict, "table": dict}
    if leaf.kind == "any" or (leaf.kind in kinds and isinstance(value, kinds[leaf.kind])):
        return cast("Any", value)
    return MISSING


def complaint(made: Field, value: Any) -> str | None:
    """Return what is wrong with a value that has the right type, as the end of a sentence; `None` when nothing is."""
    schema = made.schema
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for key, words, wrong in _BOUNDS:
            limit = schema.get(key)
            if isinstance(limit, (int, float)) and not isinstance(limit, bool) and wrong(value, limit):
                return f"must be {words} {limit:g}"
    if isinstance(value, str):
        shortest, longest = schema.get("minLength"), schema.get("maxLength")
        if isinstance(shortest, int) and len(value) < shortest:
            return f"must have at least {shortest} characters"
        if isinstance(longest, int) and len(value) > longest:
            return f"must have at most {longest} characters"
    if isinstance(value, list):
        length = len(cast("list[Any]", value))
        fewest, most = schema.get("minItems"), schema.get("maxItems")
        if isinstance(fewest, int) and length < fewest:
            return f"must have at least {fewest} entries"
        if isinstance(most, int) and length > most:
            return f"must have at most {most} entries"
    return None
