"""Several values in the place of one: `in Paris and in Rome`, `A-1, A-2 and A-3`, `Paris? And Rome?`."""

from __future__ import annotations

from typing import Any

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING
from lousho.models.demo.filling import Filling, split_list, value_in
from lousho.models.demo.reading import Reading
from lousho.models.demo.schema import Field
from lousho.models.demo.words import ARTICLES, JOINERS

JOINING = JOINERS | {",", "&"}
"""What stands between two of several values, or between two requests."""


def alternatives(leaf: Field, filling: Filling, lo: int, hi: int) -> list[Any]:
    """Return the values that are listed where a field found its one value, units `lo` to `hi`."""
    reading = filling.reading
    inside = split_list(reading, lo, hi)
    if len(inside) > 1:
        if leaf.kind != "string" or not all(_is_one_thing(filling, lo, *part) for part in inside):
            return []
        values = [convert.string_of(leaf, reading, *_without_article(reading, *part)) for part in inside]
        return [] if MISSING in values else values
    values = [filling.values[leaf.path]]
    index = hi
    while index < filling.hi:
        start = _after_joiner(filling, index, lo)
        if start < 0:
            break
        stop = _same_kind(filling, leaf, lo, start)
        value = MISSING
        if stop > start:
            found = value_in(leaf, filling, start, stop)
            value = found.value if found is not None else MISSING
        if value is MISSING:
            break
        values.append(value)
        index = stop
    return values


def _without_article(reading: Reading, lo: int, hi: int) -> tuple[int, int]:
    while lo < hi - 1 and reading.units[lo].low in ARTICLES:
        lo += 1
    return lo, hi


def _after_joiner(filling: Filling, index: int, first: int) -> int:
    """Return where the next value would begin behind `and`, `,` or `? And in`; -1 when nothing joins it."""
    units = filling.reading.units
    joined = False
    lead = filling.before(first)
    while index < filling.hi and index not in filling.taken:
        low = units[index].low
        if low in JOINING or low in {"?", ".", "also", "what", "how"}:
            joined = joined or low in JOINING or low == "also"
        elif low in ARTICLES or (units[index].is_preposition and (low == lead or low in {"about", "in", "for", "of"})):
            pass
        else:
            return index if joined else -1
        index += 1
    return -1


def _same_kind(filling: Filling, leaf: Field, first: int, start: int) -> int:
    """Return where a value of the kind of the first one ends, `start` when there is none."""
    units = filling.reading.units
    if start >= filling.hi or start in filling.taken:
        return start
    if units[first].kind == "word" and leaf.kind != "choice":
        alone = start + 1 >= filling.hi or not units[start + 1].is_word or units[start + 1].is_stop
        return start + 1 if units[start].is_word and not units[start].is_stop and alone else start
    if leaf.kind == "choice" or units[start].kind == units[first].kind:
        return start + 1
    return start


def _is_one_thing(filling: Filling, first: int, lo: int, hi: int) -> bool:
    """Whether a part of a list is a name, a code or a single word rather than a piece of a sentence."""
    units = filling.reading.units[slice(*_without_article(filling.reading, lo, hi))]
    if all(unit.kind in {"proper", "mixed", "quoted", "number", "email", "uri"} for unit in units):
        return True
    lead = filling.before(first)
    return len(units) == 1 and lead in {"in", "for", "of", "from", "at", "on"}
