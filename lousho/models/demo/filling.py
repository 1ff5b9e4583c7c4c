"""Fields being filled from a stretch of a message, and how a value of each kind is read from a range of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import Any

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING, Found
from lousho.models.demo.mentions import Mention
from lousho.models.demo.reading import Reading, Unit
from lousho.models.demo.schema import Field, Path, assemble, leaves, unmet
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import JOINERS, PREPOSITIONS

_SPLITS = JOINERS | {",", ";", "&", "\n", "|"}


@dataclass(slots=True)
class Filling:
    """Fields being filled from units `lo` to `hi` of a reading."""

    reading: Reading
    lo: int
    hi: int
    fields: Sequence[Field]
    tool: ToolView
    now: datetime
    fill_record: Callable[[Filling], None]
    """Fills the parts of one object inside the range."""
    parents: Sequence[Field] = ()
    taken: set[int] = field(default_factory=set[int])
    values: dict[Path, Any] = field(default_factory=lambda: {})
    spans: dict[Path, tuple[int, int]] = field(default_factory=lambda: {})
    partial: dict[Path, date] = field(default_factory=lambda: {})
    """Days whose time of day was not said."""
    named: set[Path] = field(default_factory=set[Path])
    """The fields whose value came right after their name."""
    mentions: list[Mention] = field(default_factory=lambda: [])

    def put(self, made: Field, value: Any, lo: int, hi: int, *extra: int) -> None:
        """Give a field its value and take the units it came from."""
        self.values[made.path] = value
        self.spans[made.path] = (lo, hi)
        self.taken.update(range(lo, hi), extra)

    def open(self, *kinds: str) -> list[Field]:
        """Return the fields of these kinds that have no value yet, the required ones first."""
        waiting = [made for made in self.fields if made.path not in self.values and made.kind in kinds]
        return sorted(waiting, key=lambda made: not made.required)

    def free(self, *kinds: str) -> Iterator[tuple[int, Unit]]:
        """Return the units of these kinds that nothing took."""
        for index in range(self.lo, self.hi):
            if index not in self.taken and self.reading.units[index].kind in kinds:
                yield index, self.reading.units[index]

    def before(self, index: int) -> str:
        """Return the preposition right before a unit, past articles, or ''."""
        units = self.reading.units
        index -= 1
        while index >= self.lo and units[index].low in {"the", "a", "an", "my", "about"} and index > self.lo:
            index -= 1
        return units[index].low if index >= self.lo and units[index].is_preposition else ""


def value_in(
    made: Field, filling: Filling, lo: int, hi: int, *, exact: bool = False, whole: bool = True
) -> Found | None:
    """Return the field's value somewhere in the range. `exact`: the range is known to hold it and nothing else."""
    reading = filling.reading
    while lo < hi and reading.units[lo].kind == "mark" and reading.units[lo].raw not in {"-", "+"}:
        lo += 1
    kept = "%?!)" if made.kind == "string" and made.form is None else "%"
    while hi > lo and reading.units[hi - 1].kind == "mark" and reading.units[hi - 1].raw not in kept:
        hi -= 1
    if lo >= hi:
        return None
    if made.kind in {"number", "integer"}:
        return convert.first_number(made, reading, lo, min(hi, lo + 4) if exact else hi)
    if made.kind == "choice":
        matches = list(convert.choice_matches(made, reading, lo, min(hi, lo + 5) if exact else hi, filling.taken))
        return max(matches, key=lambda match: match.score) if matches else None
    if made.kind == "boolean":
        said = convert.yes_or_no(reading, lo, min(hi, lo + 2))
        return None if said is None else Found(said, lo, lo + 1)
    if made.kind == "list":
        return _list_in(made, filling, lo, hi)
    if made.kind == "record":
        return record_in(made, filling, lo, hi)
    if made.kind == "table":
        return table_in(made, filling, lo, hi)
    if made.form is not None:
        found = _formatted_in(made, filling, lo, hi)
        if found is not None or made.strict_form or made.form == "email":
            return found
    return _string_in(made, filling, lo, hi, whole)


def _string_in(made: Field, filling: Filling, lo: int, hi: int, whole: bool) -> Found | None:
    reading = filling.reading
    first = reading.units[lo]
    if first.kind in {"quoted", "email", "uri", "uuid"} or (
        first.kind in {"mixed", "number"} and (made.is_identifier or not whole or made.shown)
    ):
        hi = lo + 1
    elif not whole and first.kind == "word":
        return None
    if made.kind == "any" and hi == lo + 1 and first.kind == "number":
        return Found(first.value, lo, hi)
    value = convert.string_of(made, reading, lo, hi)
    if value is MISSING and hi > lo + 1:
        hi = lo + 1
        value = convert.string_of(made, reading, lo, hi)
    return None if value is MISSING else Found(value, lo, hi)


def _formatted_in(made: Field, filling: Filling, lo: int, hi: int) -> Found | None:
    reading = filling.reading
    if made.form == "date-time":
        return moment_in(made, filling, range(lo, hi))
    if made.form == "duration":
        return convert.duration_of(reading, lo, hi)
    for index in range(lo, hi):
        value = convert.formatted(made, reading.units[index])
        if value is not MISSING:
            return Found(value, index, index + 1)
    hour = reading.units[lo].value
    if made.form == "time" and hi == lo + 1 and isinstance(hour, int) and 0 <= hour < 24:
        return Found(convert.clock(time(hour)), lo, hi)
    return None


def moment_in(made: Field, filling: Filling, indices: Sequence[int]) -> Found | None:
    """Return the point in time made of the first day and the first time of day among the units."""
    units = filling.reading.units
    day: tuple[int, date] | None = None
    at: tuple[int, time] | None = None
    for index in indices:
        value = units[index].value
        if isinstance(value, datetime):
            return Found(value.isoformat(timespec="seconds"), index, index + 1)
        if isinstance(value, date) and day is None:
            day = (index, value)
        elif isinstance(value, time) and at is None:
            at = (index, value)
        elif units[index].low == "at" and at is None and index + 1 in indices:
            hour = units[index + 1].value
            if isinstance(hour, int) and 0 < hour < 24 and not units[index + 1].measure:
                at = (index + 1, time(hour))
    if at is None:
        if day is not None:
            filling.partial[made.path] = day[1]
            filling.taken.add(day[0])
        return None
    used = [at[0], *([day[0]] if day else [])]
    filling.taken.update(used)
    filling.partial.pop(made.path, None)
    return Found(convert.moment_of(day[1] if day else None, at[1], filling.now), min(used), min(used) + 1)


def split_list(reading: Reading, lo: int, hi: int) -> list[tuple[int, int]]:
    """Return the ranges between commas and joining words."""
    parts: list[tuple[int, int]] = []
    start = lo
    for index in range(lo, hi + 1):
        if index == hi or reading.units[index].low in _SPLITS:
            if index > start:
                parts.append((start, index))
            start = index + 1
    return parts


def _list_in(made: Field, filling: Filling, lo: int, hi: int) -> Found | None:
    item = made.item
    if item is None:
        return None
    if lo + 1 < hi and filling.reading.units[lo].raw == "[":
        lo += 1
    values: list[Any] = []
    end = lo
    for start, stop in split_list(filling.reading, lo, hi):
        found = value_in(item, filling, start, stop)
        if found is None:
            if item.kind == "record" and values:
                continue
            if values or item.kind != "string":
                break
            return None
        values.append(found.value)
        end = stop
    return Found(values, lo, end) if values else None


def record_in(made: Field, filling: Filling, lo: int, hi: int) -> Found | None:
    """Return an object read from the range when everything it needs is there."""
    base = len(made.path)
    inner = Filling(
        filling.reading,
        lo,
        hi,
        tuple(_relative(part, base) for part in leaves(made.parts)),
        filling.tool,
        filling.now,
        filling.fill_record,
    )
    filling.fill_record(inner)
    if not inner.values or unmet(tuple(_relative(part, base) for part in made.parts), inner.values):
        return None
    return Found(assemble(inner.values), lo, hi)


def _relative(made: Field, base: int) -> Field:
    return replace(made, path=made.path[base:], parts=tuple(_relative(part, base) for part in made.parts))


def table_in(made: Field, filling: Filling, lo: int, hi: int) -> Found | None:
    """Return `a=1, b: 2` as an object."""
    units, item = filling.reading.units, made.item
    pairs: dict[str, Any] = {}
    first, last = -1, -1
    for index in range(lo + 1, hi - 1):
        key = units[index - 1]
        if units[index].kind != "mark" or units[index].low not in {":", "="} or key.kind == "mark":
            continue
        if {index - 1, index + 1} & filling.taken or key.low in PREPOSITIONS:
            continue
        found = value_in(item, filling, index + 1, index + 2) if item is not None else None
        if found is None:
            continue
        pairs[str(key.value)] = found.value
        first, last = (index - 1 if first < 0 else first), index + 2
    return Found(pairs, first, last) if pairs else None
