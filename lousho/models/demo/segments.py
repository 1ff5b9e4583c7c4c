"""The parts of a clause that may become free-form strings: what a verb acts on, and what each preposition brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lousho.models.demo.reading import Reading, Unit
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import (
    ARTICLES,
    ASKING,
    AUXILIARIES,
    GREETINGS,
    JOINERS,
    POLITE,
    PRONOUNS,
    RESULT_WORDS,
    best_likeness,
    is_generic,
)

_REST_OPENERS = frozenset("saying says say that reading".split())
_TITLES = frozenset("called titled labelled labeled named".split())
_BREAKS = frozenset("()[]{}<>;|\n") | {"->"}
_ENDS = frozenset(".?!")
_PLACES = frozenset("first second third last latest next previous other same ones newest oldest".split())
_EMPTY = ARTICLES | PRONOUNS | POLITE | AUXILIARIES | JOINERS


@dataclass(slots=True)
class Segment:
    """A trimmed range of units, how it was introduced, and what it looks like."""

    lo: int
    hi: int
    origin: Literal["direct", "loose", "chunk", "rest"]
    lead: str = ""
    """The preposition before it, or ''."""
    joined: bool = False
    """Whether it goes on from the segment before it: `in Paris and in Rome`."""
    question: bool = False
    compound: bool = False
    """Whether it only qualifies the tool's own noun: `weather situation`."""

    @property
    def is_title(self) -> bool:
        """Whether it gives something its name."""
        return self.lead in _TITLES


def segments_of(reading: Reading, lo: int, hi: int, taken: set[int], tool: ToolView) -> list[Segment]:
    """Return the segments of the range outside `taken`, trimmed of words that only name the tool or are polite."""
    found: list[Segment] = []
    for segment in _raw_segments(reading, lo, hi, taken, tool):
        _trim(segment, reading, tool)
        if segment.lo < segment.hi and not _only_names_tool(segment, reading, tool):
            found.append(segment)
    return found


def _raw_segments(reading: Reading, lo: int, hi: int, taken: set[int], tool: ToolView) -> Iterator[Segment]:
    units = reading.units
    start, lead, joined = lo, "", False
    origin: Literal["direct", "loose", "chunk", "rest"] = "direct"
    question = _asks(reading, lo, hi)
    index = lo

    def part(stop: int) -> Segment:
        return Segment(start, stop, origin, lead, joined, question)

    while index < hi:
        unit = units[index]
        nxt = units[index + 1] if index + 1 < hi else None
        if unit.low == ":" and unit.kind == "mark" and nxt is not None and _is_heading(reading, lo, index, tool):
            yield part(index)
            yield from _rest(reading, index + 1, hi, taken)
            return
        if unit.low in _REST_OPENERS and unit.kind == "word" and _opens_rest(reading, index, lo, hi):
            yield part(index)
            yield from _rest(reading, index + 1, hi, taken)
            return
        aside = _is_aside(reading, index, hi)
        if aside:
            index += aside
            continue
        if index in taken or _breaks(unit, nxt, index + 1 in taken) or unit.raw == ":":
            yield part(index)
            ends = unit.kind == "mark" and (unit.low in _ENDS or unit.low == ":") and index not in taken
            start, lead, joined, origin = index + 1, "", False, ("direct" if ends else "loose")
            question = _asks(reading, index + 1, hi) if ends else question
        elif unit.low in JOINERS and nxt is not None and nxt.is_preposition:
            yield part(index)
            start, lead, joined, origin = index + 2, nxt.low, True, "chunk"
            index += 1
        elif unit.is_preposition:
            yield part(index)
            wish = unit.low == "to" and all(units[i].is_stop or units[i].kind == "mark" for i in range(lo, index))
            start, lead, origin = index + 1, ("" if wish else unit.low), ("direct" if wish else "chunk")
            joined = False
        index += 1
    yield part(hi)


def _rest(reading: Reading, lo: int, hi: int, taken: set[int]) -> Iterator[Segment]:
    """Return everything behind an opener as one segment; what was taken at its end is left out."""
    cut = hi
    while cut > lo and cut - 1 in taken:
        cut -= 1
    while lo < cut < hi and (reading.units[cut - 1].is_preposition or reading.units[cut - 1].low in AUXILIARIES):
        cut -= 1
    hi = cut
    while lo < hi and lo in taken:
        lo += 1
    if lo < hi:
        yield Segment(lo, hi, "rest")


def _opens_rest(reading: Reading, index: int, lo: int, hi: int) -> bool:
    unit = reading.units[index]
    if index + 1 >= hi:
        return False
    if unit.low == "that":
        before = reading.units[index - 1] if index > lo else None
        return before is not None and before.kind != "mark" and not before.is_preposition and before.low not in JOINERS
    return index > lo


def _asks(reading: Reading, lo: int, hi: int) -> bool:
    for index in range(lo, min(hi, lo + 3)):
        unit = reading.units[index]
        if unit.low in ASKING or (index == lo and unit.low in {"is", "are", "does", "did", "was", "were", "has"}):
            return True
    return False


def _breaks(unit: Unit, nxt: Unit | None, next_taken: bool) -> bool:
    if unit.kind != "mark":
        return False
    if unit.low in _BREAKS or unit.low in _ENDS:
        return True
    if unit.low != ",":
        return False
    return nxt is None or next_taken or nxt.is_preposition or (nxt.low in POLITE | PRONOUNS | ARTICLES)


def _is_heading(reading: Reading, lo: int, index: int, tool: ToolView) -> bool:
    """Whether what stands before a colon is about the tool, so that what follows is its content."""
    return any(_names(unit, tool) or is_generic(unit.stem) for unit in reading.units[lo:index] if unit.is_word) or any(
        unit.kind not in {"word", "mark"} for unit in reading.units[lo:index]
    )


def _is_aside(reading: Reading, index: int, hi: int) -> int:
    """Return the length of an address or a code in brackets, which belongs to what it follows: `Ann (ann@x.org)`."""
    units = reading.units
    if units[index].raw in {"(", "<"} and index + 2 < hi and units[index + 2].raw in {")", ">"}:
        return 3 if units[index + 1].kind in {"email", "uri", "mixed", "number"} else 0
    return 0


def _trim(segment: Segment, reading: Reading, tool: ToolView) -> None:
    units = reading.units
    if segment.origin != "rest":
        _trim_left(segment, reading, tool)
    while (
        segment.hi > segment.lo
        and not _is_greeting(units, segment)
        and _ends_empty(units[segment.hi - 1], segment, tool)
    ):
        segment.hi -= 1
    while segment.lo < segment.hi and units[segment.lo].kind == "mark":
        segment.lo += 1


def _is_greeting(units: Sequence[Unit], segment: Segment) -> bool:
    """Whether only a greeting is left that a verb acts on: `translate hello`."""
    return segment.hi == segment.lo + 1 and segment.lo > 0 and units[segment.lo].low in GREETINGS


def _trim_left(segment: Segment, reading: Reading, tool: ToolView) -> None:
    units = reading.units
    verb_seen = segment.origin != "direct"
    after_article = False
    last_noun = -1
    while segment.lo < segment.hi:
        unit = units[segment.lo]
        known = _names(unit, tool)
        acted_on = verb_seen and segment.origin == "direct" and unit.low in GREETINGS
        if unit.kind == "mark" or (unit.kind == "word" and unit.low in _EMPTY | ASKING and not acted_on):
            after_article = unit.low in ARTICLES
        elif unit.kind == "word" and not verb_seen and (known or is_generic(unit.stem)):
            verb_seen = True
            # Right at the start a word is the verb; behind an article it is a noun.
            last_noun = segment.lo if after_article else -1
        elif unit.kind == "word" and known and (segment.origin in {"direct", "loose"} or segment.hi - segment.lo > 1):
            last_noun = segment.lo
        elif not verb_seen and _is_unknown_verb(reading, segment):
            verb_seen = True
        else:
            verb_seen = True
            break
        segment.lo += 1
    segment.compound = last_noun >= 0 and last_noun == segment.lo - 1 and segment.origin == "direct"


def _is_unknown_verb(reading: Reading, segment: Segment) -> bool:
    """Whether a first word that nothing knows is a verb, because an article follows: `dim the lamp`."""
    units = reading.units
    unit, behind = units[segment.lo], segment.lo + 1
    return unit.kind == "word" and behind < segment.hi and units[behind].low in {"the", "my", "our", "your", "all"}


def _names(unit: Unit, tool: ToolView) -> bool:
    """Whether a word is one the tool is known by, and not just any verb."""
    if (
        unit.stem in tool.name_stems
        or best_likeness(unit.stem, tool.nouns) >= 0.7
        or any(unit.stem in made.words for made in tool.leaves)
    ):
        return True
    weight = max((tool.vocabulary.get(part, 0.0) for part in unit.parts), default=0.0)
    return weight >= 0.8 and not is_generic(unit.stem)


def _ends_empty(unit: Unit, segment: Segment, tool: ToolView) -> bool:
    if unit.kind == "mark":
        return unit.raw not in {"%", "°"} and (segment.origin != "rest" or unit.raw in {",", ";", ".", "\n"})
    if unit.kind != "word":
        return False
    if unit.low in _EMPTY | ASKING or unit.is_preposition:
        return segment.origin != "rest" or unit.low in {"please", "thanks"}
    return segment.origin != "rest" and segment.hi - segment.lo > 1 and unit.stem in tool.nouns


def _only_names_tool(segment: Segment, reading: Reading, tool: ToolView) -> bool:
    """Whether nothing is left but words the tool is known by: `to my list`."""
    if segment.origin == "rest":
        return False
    inside = reading.units[segment.lo : segment.hi]
    if segment.origin == "direct" and all(unit.stem in RESULT_WORDS for unit in inside):
        return True  # `email the result` speaks of what was found before
    if all(
        unit.low in _PLACES or (unit.is_stop and unit.low not in GREETINGS) or unit.kind == "mark"
        for unit in reading.units[segment.lo : segment.hi]
    ):
        return True
    for unit in reading.units[segment.lo : segment.hi]:
        if unit.kind == "mark" or (unit.is_stop and unit.low not in GREETINGS):
            continue
        if unit.kind != "word" or not (_names(unit, tool) or tool.vocabulary.get(unit.stem, 0.0) >= 0.8):
            return False
    return True
