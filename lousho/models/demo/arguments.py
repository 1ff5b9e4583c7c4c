"""A clause and a tool become arguments: the values, what is missing, what is out of bounds, and how many calls it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING, PLACES
from lousho.models.demo.filling import Filling, record_in, value_in
from lousho.models.demo.linking import preposition_affinity
from lousho.models.demo.reading import Reading
from lousho.models.demo.schema import Field, Path, assemble, leaves, unmet
from lousho.models.demo.segments import segments_of
from lousho.models.demo.strings import fill_strings
from lousho.models.demo.typed import fill_typed
from lousho.models.demo.variants import JOINING, alternatives
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import ARTICLES, best_likeness, content_stems, is_generic

MOST_VARIANTS = 20
_LONGEST_SPLIT = 80


@dataclass(slots=True)
class Arguments:
    """What a clause says about one call of a tool."""

    tool: ToolView
    values: dict[Path, Any] = field(default_factory=lambda: {})
    partial: dict[Path, date] = field(default_factory=lambda: {})
    complaints: dict[Path, str] = field(default_factory=lambda: {})
    """What is wrong with a value that was given; it is not used."""
    fields: tuple[Field, ...] = ()
    unexplained: float = 0.0
    """How many words of the clause have no part in the call."""

    @property
    def missing(self) -> list[Field]:
        """The required fields without a value, in the schema's order."""
        return unmet(self.fields, self.values)

    def call(self) -> dict[str, Any]:
        """Return the arguments as the tool takes them."""
        order = [leaf.path for leaf in leaves(self.fields)]
        known = {path: self.values[path] for path in order if path in self.values}
        return assemble(known | self.values, self.fields)

    def copy(self) -> Arguments:
        """Return arguments that can be changed without changing these."""
        return replace(self, values=dict(self.values), partial=dict(self.partial), complaints=dict(self.complaints))


def arguments_for(
    tool: ToolView, reading: Reading, lo: int, hi: int, now: datetime, context: Sequence[tuple[int, int]] = ()
) -> list[Arguments]:
    """Return the calls that units `lo` to `hi` ask for: one, or one for each of several values that were listed.

    `context` are ranges that ask for nothing themselves; what is still missing is looked for there.
    """
    borders = [index for index in range(lo + 1, hi - 1) if reading.units[index].low in JOINING]
    for index in borders if hi - lo <= _LONGEST_SPLIT else ():
        both = [_fill(tool, reading, *part, now)[0] for part in ((lo, index), (index + 1, hi))]
        needed = len([made for made in leaves(both[0].fields) if made.required])
        if needed > 1 and not both[0].missing and not both[1].missing and not both[0].complaints:
            return [both[0], *arguments_for(tool, reading, index + 1, hi, now)]
    made, filling = _fill(tool, reading, lo, hi, now)
    for start, stop in context:
        if made.missing:
            _add_context(made, reading, start, stop, now)
    return _variants(made, filling)


def _fill(tool: ToolView, reading: Reading, lo: int, hi: int, now: datetime) -> tuple[Arguments, Filling]:
    fields = _settled(tool, reading, lo, hi)
    parents = tuple(_records(fields))
    filling = Filling(reading, lo, hi, tuple(leaves(fields)), tool, now, fill_whole, parents)
    fill_typed(filling)
    _fill_record_lists(filling)
    fill_strings(filling)
    made = Arguments(tool, fields=fields, partial=dict(filling.partial))
    for leaf in filling.fields:
        if leaf.path in filling.values:
            store(made, leaf, filling.values[leaf.path])
    _drop_unfounded(made, filling)
    made.unexplained = _unexplained(filling)
    return made, filling


def _unexplained(filling: Filling) -> float:
    """Return the number of words that are neither used nor known to the tool; after a colon they weigh more."""
    total, weight = 0.0, 1.0
    for index in range(filling.lo, filling.hi):
        unit = filling.reading.units[index]
        weight = 2.5 if unit.raw == ":" else weight
        if index in filling.taken or unit.kind == "mark" or unit.is_stop or unit.low in PLACES:
            continue
        if unit.value == filling.now.date():
            continue  # "today" is said to tools that know no other day
        if not (is_generic(unit.stem) or any(best_likeness(part, filling.tool.vocabulary) > 0 for part in unit.parts)):
            total += weight * (1.0 if unit.is_word else 2.0)
    return min(total, 4.0)


def fill_whole(filling: Filling) -> None:
    """Fill from a range that holds nothing but values."""
    fill_typed(filling)
    fill_strings(filling, whole=True)


def store(made: Arguments, leaf: Field, value: Any) -> None:
    """Keep a value, or what is wrong with it."""
    wrong = convert.complaint(leaf, value)
    if wrong is None:
        made.values[leaf.path] = value
        made.complaints.pop(leaf.path, None)
    else:
        made.complaints[leaf.path] = wrong


def _records(fields: Sequence[Field]) -> Iterator[Field]:
    for made in fields:
        if made.kind == "record":
            yield made
            yield from _records(made.parts)


def _settled(tool: ToolView, reading: Reading, lo: int, hi: int) -> tuple[Field, ...]:
    """Return the tool's fields with one branch chosen wherever the schema allows several."""
    said = {part for unit in reading.units[lo:hi] for part in unit.parts}

    def settle(made: Field) -> Field:
        if made.kind == "either":
            best = max(made.parts, key=lambda branch: _branch_score(branch, said))
            return replace(settle(best), required=made.required, path=made.path)
        if made.kind == "record":
            return replace(made, parts=tuple(settle(part) for part in made.parts))
        return made

    return tuple(settle(made) for made in tool.fields)


def _branch_score(branch: Field, said: set[str]) -> float:
    if branch.kind != "record":
        return 0.5 if branch.kind in {"string", "choice"} else 0.4
    words = {word for part in branch.parts for word in part.words}
    words |= {word for part in branch.parts for choice in part.choices for word in content_stems(str(choice))}
    return float(len(words & said))


def _fill_record_lists(filling: Filling) -> None:
    """Lists of objects that were not named: `3 apples and 2 pears`."""
    for made in filling.open("list"):
        if made.item is None or made.item.kind != "record":
            continue
        for segment in segments_of(filling.reading, filling.lo, filling.hi, filling.taken, filling.tool):
            if not made.required and preposition_affinity(made, segment.lead) <= 0:
                continue
            found = value_in(made, filling, segment.lo, segment.hi)
            if found is not None:
                filling.put(made, found.value, found.lo, found.hi)
                break


def _drop_unfounded(made: Arguments, filling: Filling) -> None:
    """Take an optional record back when it was only begun by accident and cannot be completed."""
    named = {mention.made.path for mention in filling.mentions}
    for record in _records(made.fields):
        inside = [path for path in made.values if path[: len(record.path)] == record.path]
        if record.required or not inside or not unmet((record,), made.values):
            continue
        if not any(path in named for path in inside):
            for path in inside:
                del made.values[path]


def _add_context(made: Arguments, reading: Reading, lo: int, hi: int, now: datetime) -> None:
    """Look for what is missing in a sentence that only gives context: `My order is A-17.`"""
    missing = made.missing
    filling = Filling(reading, lo, hi, tuple(missing), made.tool, now, fill_whole)
    fill_typed(filling)
    fill_strings(filling)
    for leaf in missing:
        span = filling.spans.get(leaf.path)
        if span is None:
            continue
        named = any(mention.made.path == leaf.path for mention in filling.mentions)
        telling = any(unit.kind not in {"word", "mark"} for unit in reading.units[span[0] : span[1]])
        if named or telling or leaf.kind in {"choice", "number", "integer", "boolean"}:
            store(made, leaf, filling.values[leaf.path])


def answer_into(made: Arguments, asked: Sequence[Field], reading: Reading, now: datetime) -> bool:
    """Fill what was asked for from the user's reply. Returns whether the reply gave anything."""
    hi = len(reading.units)
    filling = Filling(reading, 0, hi, tuple(asked), made.tool, now, fill_whole)
    fill_typed(filling)
    _merge_partial(made, asked, reading, filling)
    if len(asked) > 1:
        _fill_record_lists(filling)
        fill_strings(filling, whole=True)
    got = False
    for leaf in asked:
        if leaf.path in filling.values:
            store(made, leaf, filling.values[leaf.path])
            got = True
    if not got and len(asked) == 1:
        value = _whole_reply(asked[0], filling)
        if value is not MISSING:
            store(made, asked[0], value)
            got = True
    made.partial.update(filling.partial)
    return _take_named(made, reading, now) or got


def _take_named(made: Arguments, reading: Reading, now: datetime) -> bool:
    """Change what the reply names beside what was asked for: `at 3pm, and make the duration 60`."""
    fields = tuple(leaves(made.fields))
    filling = Filling(reading, 0, len(reading.units), fields, made.tool, now, fill_whole, tuple(_records(made.fields)))
    fill_typed(filling)
    for leaf in fields:
        if leaf.path in filling.named:
            store(made, leaf, filling.values[leaf.path])
    return bool(filling.named)


def _merge_partial(made: Arguments, asked: Sequence[Field], reading: Reading, filling: Filling) -> None:
    """Join a time of day with the day that was said before."""
    for leaf in asked:
        day = made.partial.get(leaf.path)
        value = filling.values.get(leaf.path)
        if day is None or not isinstance(value, str) or any(unit.kind in {"date", "moment"} for unit in reading.units):
            continue
        filling.values[leaf.path] = day.isoformat() + value[10:]


def _whole_reply(leaf: Field, filling: Filling) -> Any:
    """Return a whole reply as the one value that was asked for, without a lead-in such as `it is`."""
    reading, hi = filling.reading, filling.hi
    lo = 0
    while lo < hi - 1 and _is_lead_in(reading, lo, leaf):
        lo += 1
    while hi > lo + 1 and (
        reading.units[hi - 1].raw in {".", "!", ","} or reading.units[hi - 1].low in {"please", "thanks"}
    ):
        hi -= 1
    quoted = [index for index in range(lo, hi) if reading.units[index].kind == "quoted"]
    if len(quoted) == 1 and leaf.kind == "string":
        lo, hi = quoted[0], quoted[0] + 1
    if leaf.kind == "record":
        found = record_in(leaf, filling, lo, hi)
    elif leaf.kind in {"string", "any"} and not leaf.strict_form and leaf.form != "email":
        value = convert.string_of(leaf, reading, lo, hi)
        return value if value is not MISSING or hi - lo < 2 else _last_word(leaf, reading, lo, hi)
    else:
        found = value_in(leaf, filling, lo, hi)
    return MISSING if found is None else found.value


def _last_word(leaf: Field, reading: Reading, lo: int, hi: int) -> Any:
    values = (convert.string_of(leaf, reading, index, index + 1) for index in range(hi - 1, lo - 1, -1))
    return next((value for value in values if value is not MISSING), MISSING)


def _is_lead_in(reading: Reading, index: int, leaf: Field) -> bool:
    unit = reading.units[index]
    if unit.kind == "mark":
        return unit.raw in {",", ":", "-", "'"}
    leads = {
        "it",
        "its",
        "is",
        "to",
        "in",
        "for",
        "at",
        "on",
        "with",
        "from",
        "make",
        "use",
        "please",
        "id",
        "say",
        "i",
        "want",
        "about",
    }
    named = any(word in unit.parts for word in leaf.words)
    return unit.kind == "word" and (
        unit.low in leads | ARTICLES | {"ok", "okay", "well", "yes", "sure", "should", "be"} or named
    )


def _variants(made: Arguments, filling: Filling) -> list[Arguments]:
    """Return one call for each of several values that stand in one place: `in Paris and in Rome`."""
    for leaf in filling.fields if not made.missing else ():
        if len(leaf.path) > 1:
            continue
        span = filling.spans.get(leaf.path)
        if span is None or leaf.kind in {"list", "record", "table", "boolean"} or leaf.path not in made.values:
            continue
        values = alternatives(leaf, filling, *span)
        if len(values) < 2:
            continue
        calls: list[Arguments] = []
        for value in values[:MOST_VARIANTS]:
            call = made.copy()
            store(call, leaf, value)
            calls.append(call)
        return calls
    return [made]
