"""Free-form strings: which part of the clause goes to which field, by how it is introduced and what it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING
from lousho.models.demo.filling import Filling, split_list
from lousho.models.demo.linking import preposition_affinity
from lousho.models.demo.reading import Reading
from lousho.models.demo.schema import Field, looks_like_example
from lousho.models.demo.segments import Segment, segments_of
from lousho.models.demo.words import JOINERS, PREPOSITIONS

_FLOWING = frozenset("because for about to that regarding concerning called named titled".split())
_BORDERS = frozenset(".?!;:()[]{}<>\n")
_LEAST = 0.15
_AFFINE = 1.5


@dataclass(frozen=True, slots=True)
class _Source:
    """A range of units that may become a string."""

    segment: Segment
    order: int
    base: float
    kinds: frozenset[str]
    joined: bool
    """Whether it lists several things."""
    part: bool = False
    """Whether it is only the most telling piece of its segment."""


@dataclass(frozen=True, slots=True)
class _Option:
    score: float
    made: Field
    source: _Source
    value: Any


def fill_strings(filling: Filling, *, whole: bool = False) -> None:
    """Give the open string fields their best sources. `whole`: the range holds nothing but values."""
    fields = [made for made in filling.open("string", "any", "list") if _takes_text(made)]
    if not fields:
        return
    segments = segments_of(filling.reading, filling.lo, filling.hi, filling.taken, filling.tool)
    sources = [source for order, segment in enumerate(segments) for source in _sources(filling.reading, segment, order)]
    free_choice = not any(made.required for made in filling.fields)
    options = [
        _Option(score, made, source, value)
        for place, made in enumerate(fields)
        for source in sources
        if (score := _score(filling, made, source, place, fields, whole or (free_choice and place == 0))) > _LEAST
        and (value := _value(filling, made, source)) is not MISSING
    ]
    chosen: list[_Option] = []
    for option in sorted(options, key=lambda option: -option.score):
        units = range(option.source.segment.lo, option.source.segment.hi)
        if option.made.path in filling.values or any(index in filling.taken for index in units):
            continue
        filling.put(option.made, option.value, units.start, units.stop)
        chosen.append(option)
    for option in chosen:
        _extend(filling, option, segments)
    _place_quoted(filling, sources)


def _place_quoted(filling: Filling, sources: Sequence[_Source]) -> None:
    """Give a quoted part that went nowhere to the one optional string that is open: nobody quotes for nothing."""
    left = [s for s in sources if s.kinds == frozenset({"quoted"}) and s.segment.lo not in filling.taken]
    waiting = [made for made in filling.open("string") if _takes_text(made)]
    if len(left) == 1 and len(waiting) == 1:
        value = _value(filling, waiting[0], left[0])
        if value is not MISSING:
            filling.put(waiting[0], value, left[0].segment.lo, left[0].segment.hi)


def _takes_text(made: Field) -> bool:
    if made.kind == "list":
        return made.item is not None and made.item.kind in {"string", "any"} and not made.item.strict_form
    # A format that only the wording suggests gives way to what the user said; an address cannot.
    return not made.strict_form and made.form != "email"


def _sources(reading: Reading, segment: Segment, order: int) -> list[_Source]:
    units = reading.units[segment.lo : segment.hi]
    kinds = frozenset(unit.kind for unit in units if not unit.is_stop and unit.kind != "mark") or frozenset({"word"})
    joined = any(unit.low in JOINERS or unit.raw == "," for unit in units)
    quoted = [segment.lo + i for i, unit in enumerate(units) if unit.kind == "quoted"]
    if quoted and segment.origin != "rest":
        pieces = [replace(segment, lo=index, hi=index + 1) for index in quoted]
        if len(quoted) > 1 and joined:
            pieces = [replace(segment, lo=quoted[0], hi=quoted[-1] + 1)]
        return [_Source(piece, order, 3.0, frozenset({"quoted"}), len(quoted) > 1 and joined) for piece in pieces]
    found = [_Source(segment, order, _base(segment, kinds), kinds, joined)]
    listed = joined and kinds <= {"proper", "mixed", "email", "uri", "number", "quoted"}
    if len(units) > 1 and not listed and segment.origin != "rest":
        for index, unit in enumerate(units, segment.lo):
            if unit.kind in {"proper", "mixed", "email", "uri", "number"} and len(kinds) > 1:
                piece = replace(segment, lo=index, hi=index + 1)
                alone = frozenset({unit.kind})
                found.append(_Source(piece, order, _base(piece, alone) - 0.35, alone, joined=False, part=True))
    return found


def _base(segment: Segment, kinds: frozenset[str]) -> float:
    if kinds <= {"date", "time", "moment"}:
        return 0.2
    if kinds <= {"number"} or kinds <= {"email", "uri"}:
        return 0.4
    if segment.origin == "rest":
        return 2.2
    if segment.is_title:
        return 2.4
    telling = kinds <= {"proper", "mixed", "uuid"}
    if segment.origin == "chunk":
        return (1.4 if telling else 1.0) + {"about": 0.6, "regarding": 0.6, "concerning": 0.6, "for": 0.2}.get(
            segment.lead, 0.0
        )
    if segment.compound and not telling:
        return 0.4
    if segment.origin == "loose":
        return 1.0 if telling else 0.6
    if segment.question:
        return 1.3 if telling else 0.5
    return 1.5


def _score(
    filling: Filling, made: Field, source: _Source, place: int, fields: Sequence[Field], free_choice: bool
) -> float:
    affinity = preposition_affinity(made, _lead_of(filling, source.segment))
    raw = filling.reading.slice(source.segment.lo, source.segment.hi)
    if looks_like_example(raw, made.item or made):
        affinity += 0.6 if raw.isalpha() else 2.5
    if made.leads and source.segment.lead not in made.leads and affinity <= 0:
        affinity -= 0.4
    elif source.segment.origin == "direct" and "" in made.leads:
        affinity += 0.6
    affinity += _kind_affinity(made, source)
    if not made.required and affinity < _AFFINE and not (free_choice and source.base >= 1.0):
        return 0.0
    texts = [other for other in fields if other.required and other.kind == "string"]
    score = source.base + affinity + (0.6 if made.required else -0.4)
    if made.kind == "list":
        score += 0.6 if source.joined else -0.3
    elif source.joined and any(other.kind == "list" and other.required for other in fields):
        score -= 0.5
    if len(texts) > 1:
        if source.segment.origin == "rest" and made is texts[-1]:
            score += 0.4
        if source.segment.origin == "direct" and made is texts[0]:
            score += 0.3
    return score - 0.05 * place - 0.02 * source.order


def _lead_of(filling: Filling, segment: Segment) -> str:
    """Return the preposition before a segment; what stands behind a number is what the number comes in."""
    before = segment.lo - 1
    counted = before >= filling.lo and filling.reading.units[before].kind == "number" and before in filling.taken
    return "from" if counted and not segment.lead else segment.lead


def _kind_affinity(made: Field, source: _Source) -> float:
    """Return how well what a source looks like goes with what a field is for."""
    kinds, inner = source.kinds, made.item or made
    has_digits = bool(kinds & {"mixed", "number", "uuid"})
    affinity = 0.0
    if inner.is_identifier:
        affinity += 1.0 if kinds <= {"mixed", "number", "uuid"} else 0.2 if has_digits else -0.6
        if any(any(map(str.isdigit, example)) for example in inner.shown) and not kinds <= {"mixed", "uuid", "quoted"}:
            affinity -= 1.2
    elif kinds <= {"mixed", "number", "uuid"} and not inner.shown:
        affinity -= 0.4
    if (
        inner.shown
        and all(example[:1].isupper() and example.isprintable() for example in inner.shown)
        and "proper" in kinds
    ):
        affinity += 0.5
    if kinds <= {"date", "time", "moment"}:
        affinity += 1.7 if inner.is_calendar or inner.form in {"date", "time"} else -9.0
    if inner.form == "uri":
        affinity += 1.5 if kinds <= {"uri", "mixed"} else -0.8
    elif inner.form in {"date", "time"} and not kinds & {"date", "time", "moment", "number"}:
        affinity -= 0.7
    return affinity


def _value(filling: Filling, made: Field, source: _Source) -> Any:
    lo, hi = source.segment.lo, source.segment.hi
    if made.kind == "list":
        item = made.item
        assert item is not None
        parts = [
            convert.string_of(item, filling.reading, start, stop) for start, stop in split_list(filling.reading, lo, hi)
        ]
        return MISSING if MISSING in parts or not parts else parts
    if made.kind == "any" and hi == lo + 1 and filling.reading.units[lo].kind == "number":
        return filling.reading.units[lo].value
    return convert.string_of(made, filling.reading, lo, hi)


def _extend(filling: Filling, option: _Option, segments: Sequence[Segment]) -> None:
    """Let a phrase go on over what follows it, when that went nowhere else: `call Ann` `about the trip`."""
    mine = option.source.segment
    flows = mine.origin in {"direct", "rest"} or mine.lead in _FLOWING
    plain = any(unit.is_word for unit in filling.reading.units[mine.lo : mine.hi]) and option.source.kinds != frozenset(
        {"proper"}
    )
    if option.made.kind != "string" or option.source.part or not flows or not plain:
        return
    if option.made.is_identifier or mine.question or option.made.form is not None:
        return
    units = filling.reading.units
    stop = mine.hi
    for following in (segment for segment in segments if segment.lo >= mine.hi):
        between = range(stop, following.lo)
        inside = range(following.lo, following.hi)
        if any(index in filling.taken for index in (*between, *inside)):
            break
        if any(units[index].kind == "mark" and units[index].raw in _BORDERS for index in between):
            break
        if not all(
            units[index].low in PREPOSITIONS or units[index].is_stop or units[index].kind == "mark" for index in between
        ):
            break
        stop = following.hi
    if stop > mine.hi:
        value = convert.string_of(option.made, filling.reading, mine.lo, stop)
        if value is not MISSING:
            filling.put(option.made, value, mine.lo, stop)
