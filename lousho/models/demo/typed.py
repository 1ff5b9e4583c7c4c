"""Passes over a stretch of a message that fill what a name, a type or a format decides.

Each pass takes the units it used, so that a later and vaguer pass finds only what is left. Free-form strings come last;
they are in `strings`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lousho.models.demo import convert
from lousho.models.demo.convert import MISSING, Found
from lousho.models.demo.filling import Filling, table_in, value_in
from lousho.models.demo.inline_json import fill_json
from lousho.models.demo.linking import preposition_affinity
from lousho.models.demo.mentions import Mention, find_mentions, value_end
from lousho.models.demo.moments import fill_dates
from lousho.models.demo.reading import Unit
from lousho.models.demo.schema import Field, looks_like_example
from lousho.models.demo.words import GREETINGS, JOINERS, NEGATIONS, best_likeness, is_generic, likeness

_INTRODUCING = frozenset("with and , the using ( a an set use its of for in from on by to".split())
_AMOUNTS = frozenset("max limi coun numb top size amou quan maxi".split())
_OPERATORS = frozenset("+-*/^%()×÷")
_VERBS = frozenset("is are was were has have can will should".split())


def fill_typed(filling: Filling) -> None:
    """Fill everything whose type, format or name decides: all but free-form strings."""
    fill_json(filling)
    filling.mentions = find_mentions(filling.reading, filling.lo, filling.hi, filling.fields, filling.parents)
    for explicit in (True, False):
        for mention in filling.mentions:
            if mention.explicit is explicit and mention.made.path not in filling.values:
                _fill_mentioned(filling, mention)
    _fill_counted(filling)
    _fill_choices(filling)
    _fill_formats(filling)
    fill_dates(filling)
    _fill_lists(filling)
    _fill_formulas(filling)
    _fill_numbers(filling)
    _fill_booleans(filling)
    _fill_tables(filling)
    for made in filling.open("choice"):
        if len(made.choices) == 1 and made.required:
            filling.values[made.path] = made.choices[0]


def _fill_mentioned(filling: Filling, mention: Mention) -> None:
    reading, made = filling.reading, mention.made
    if mention.lo in filling.taken or mention.value_lo >= filling.hi:
        return
    days = {i for i, unit in enumerate(reading.units) if unit.kind in {"date", "time", "moment"}}
    has_calendar = any((other.form or "").startswith(("date", "time")) for other in filling.fields)
    end = value_end(mention, reading, filling.hi, filling.mentions, days if has_calendar else set())
    if not (mention.explicit or mention.linked) and not _follows_directly(filling, mention):
        return
    found = value_in(made, filling, mention.value_lo, end, exact=True, whole=mention.whole)
    if found is not None:
        filling.put(made, found.value, found.lo, found.hi, *mention.glue)
        filling.named.add(made.path)


def _follows_directly(filling: Filling, mention: Mention) -> bool:
    """Whether the unit behind a name is a value of it, with nothing but the order to say so."""
    unit = filling.reading.units[mention.value_lo]
    made = mention.made.item or mention.made
    if not looks_like_example(unit.raw, made) and any(looks_like_example(unit.raw, other) for other in filling.fields):
        return False
    if unit.kind not in {"word", "mark"}:
        return True
    if unit.kind == "mark":
        return False
    if made.kind == "choice":
        return any(
            True for _ in convert.choice_matches(made, filling.reading, mention.value_lo, mention.value_lo + 1, set())
        )
    if made.kind in {"number", "integer"}:
        return unit.low in convert.COUNTING
    if made.kind == "boolean":
        return unit.low in convert.YES | convert.NO
    if made.kind in {"record", "list"} and mention.made.kind == "list":
        return not unit.is_stop or unit.low in convert.COUNTING
    if (
        not mention.whole
        or made.form
        or made.is_identifier
        or unit.is_preposition
        or (unit.low in JOINERS | _VERBS and unit.raw.islower())
    ):
        return False
    before = filling.reading.units[mention.lo - 1].low if mention.lo > filling.lo else ","
    if unit.is_stop and not unit.raw[0].isupper() and not (before == "with" and unit.low in GREETINGS):
        return False
    if mention.lo - 1 in filling.taken:
        return not _is_tool_noun(filling, mention)
    return before in _INTRODUCING and not _is_tool_noun(filling, mention)


def _is_tool_noun(filling: Filling, mention: Mention) -> bool:
    units = filling.reading.units
    return all(unit.stem in filling.tool.nouns for unit in units[mention.lo : mention.hi])


def _fill_counted(filling: Filling) -> None:
    """Numbers that stand before the word they count: `4 guests`, `a 20-sided die`."""
    units = filling.reading.units
    for wanted in ("words", "about"):
        for made in filling.open("number", "integer"):
            for index in range(filling.lo, filling.hi):
                counted = units[index].kind == "number" or (
                    units[index].kind == "word" and units[index].low in convert.COUNTING
                )
                if not counted or index in filling.taken:
                    continue
                noun = _counted_noun(filling, index)
                words = made.words if wanted == "words" else made.about
                if noun < 0 or not any(likeness(units[noun].stem, word) >= 0.7 for word in words if len(word) > 2):
                    continue
                found = convert.first_number(made, filling.reading, index, min(index + 2, filling.hi))
                if found is not None:
                    own = likeness(units[noun].stem, words[-1]) >= 0.7 and wanted == "words"
                    filling.put(made, found.value, index, noun + 1 if own else index + 1)
                    break


def _counted_noun(filling: Filling, index: int) -> int:
    """Return the unit a number counts, past a dash and one adjective; -1 when none follows."""
    units = filling.reading.units
    index += 1
    if index < filling.hi and units[index].raw == "-":
        index += 1
    return index if index < filling.hi and units[index].is_word and not units[index].is_stop else -1


def _fill_choices(filling: Filling) -> None:
    """Allowed values that occur in the text; two fields with the same values go by preposition, then by order."""
    options: list[tuple[float, Field, Found]] = []
    leading = next((i for i in range(filling.lo, filling.hi) if filling.reading.units[i].is_word), filling.lo)
    for order, made in enumerate(filling.open("choice")):
        for number, match in enumerate(
            convert.choice_matches(made, filling.reading, filling.lo, filling.hi, filling.taken)
        ):
            unit = filling.reading.units[match.lo]
            verb = match.lo == leading and unit.stem in filling.tool.name_stems
            if match.score < (0.6 if made.required else 0.85) or verb:
                continue
            affinity = preposition_affinity(made, _lead_of_choice(filling, match))
            options.append((match.score + affinity - 0.01 * order - 0.012 * number, made, match))
    for _, made, match in sorted(options, key=lambda option: -option[0]):
        if made.path in filling.values or any(i in filling.taken for i in range(match.lo, match.hi)):
            continue
        number = filling.reading.units[match.lo].kind == "number"
        if number:  # the measure of a number: the number itself stays free
            filling.values[made.path], filling.spans[made.path] = match.value, (match.lo, match.hi)
        else:
            filling.put(made, match.value, match.lo, match.hi)


def _lead_of_choice(filling: Filling, match: Found) -> str:
    """Return the preposition before an allowed value; the measure of a number is what the number comes in."""
    units = filling.reading.units
    before = units[match.lo - 1] if match.lo > filling.lo else None
    if units[match.lo].kind == "number" or (before is not None and before.kind == "number"):
        return "from"
    if before is not None and before.low in {"many", "much"}:
        return "to"
    return filling.before(match.lo)


def _fill_formats(filling: Filling) -> None:
    for made in filling.open("string"):
        pattern = made.schema.get("pattern")
        if made.form in {"email", "uri", "uuid", "ipv4"}:
            _first_that(filling, made, lambda unit, made=made: convert.formatted(made, unit))
        elif made.form == "duration":
            found = convert.duration_of(filling.reading, filling.lo, filling.hi)
            if found is not None:
                filling.put(made, found.value, found.lo, found.hi)
        elif isinstance(pattern, str):
            _first_that(filling, made, lambda unit, made=made: _by_pattern(made, unit))


def _by_pattern(made: Field, unit: Unit) -> Any:
    if unit.kind not in {"mixed", "number", "quoted", "proper", "uuid", "word"} or unit.is_stop:
        return MISSING
    value = convert.fit_string(made, str(unit.raw if unit.kind == "number" else unit.value))
    # A pattern that any word satisfies says nothing about this one.
    return MISSING if unit.kind == "word" and convert.matches(str(made.schema["pattern"]), "qzxv") else value


def _first_that(filling: Filling, made: Field, wanted: Callable[[Unit], Any]) -> None:
    best: tuple[float, int, Any] | None = None
    for index in range(filling.lo, filling.hi):
        if index in filling.taken:
            continue
        value = wanted(filling.reading.units[index])
        if value is MISSING:
            continue
        score = preposition_affinity(made, filling.before(index))
        if best is None or score > best[0]:
            best = (score, index, value)
    if best is not None:
        filling.put(made, best[2], best[1], best[1] + 1)


def _fill_lists(filling: Filling) -> None:
    """Lists whose items are recognised by their kind, and lists of records made of numbers and words."""
    for made in filling.open("list"):
        item = made.item
        if item is None:
            continue
        if item.kind == "choice":
            matches = [
                match
                for match in convert.choice_matches(item, filling.reading, filling.lo, filling.hi, filling.taken)
                if match.score >= 0.85
            ]
            _put_all(filling, made, [(match.value, range(match.lo, match.hi)) for match in matches])
        elif item.kind == "string" and item.form in {"email", "uri", "uuid", "date", "ipv4"}:
            found = [
                (value, range(index, index + 1))
                for index in range(filling.lo, filling.hi)
                if index not in filling.taken
                and (value := convert.formatted(item, filling.reading.units[index])) is not MISSING
            ]
            _put_all(filling, made, found)
        elif item.kind in {"number", "integer"} and (made.required or not filling.open("number", "integer")):
            numbers = [
                (value, range(index, index + 1))
                for index, unit in filling.free("number")
                if (value := convert.fit_number(item, unit.value, unit.measure)) is not MISSING
            ]
            _put_all(filling, made, numbers if len(numbers) > 1 or made.required else [])


def _put_all(filling: Filling, made: Field, found: Sequence[tuple[Any, range]]) -> None:
    if not found:
        return
    values: list[Any] = []
    for value, _ in found:
        if value not in values or made.schema.get("uniqueItems") is not True:
            values.append(value)
    filling.put(made, values, found[0][1].start, found[-1][1].stop)


def _fill_formulas(filling: Filling) -> None:
    """A calculation goes whole to a string whose example is one; `3x20` goes to two numbers."""
    units = filling.reading.units
    for made in filling.open("string"):
        if not any(any(sign in example for sign in "+*/") and any(map(str.isdigit, example)) for example in made.shown):
            continue
        marks = [i for i in range(filling.lo, filling.hi) if units[i].kind == "number" or units[i].raw in _OPERATORS]
        best: Sequence[int] = max([[], *_runs(marks)], key=len)
        if sum(units[i].kind == "number" for i in best) > 1 and not filling.taken & set(best):
            lo, hi = best[0], best[-1] + 1
            filling.put(made, filling.reading.slice(lo, hi), lo, hi)
    waiting = filling.open("number", "integer")
    if len(waiting) == 2:
        for index, unit in filling.free("mixed"):
            pair = re.fullmatch(r"(\d+)[a-zA-Z×](\d+)", unit.raw)
            if pair:
                for made, digits in zip(sorted(waiting, key=filling.fields.index), pair.groups(), strict=True):
                    filling.put(made, int(digits), index, index + 1)
                return


def _runs(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    start = 0
    for place in range(1, len(indices) + 1):
        if place == len(indices) or indices[place] != indices[place - 1] + 1:
            yield indices[start:place]
            start = place


def _fill_numbers(filling: Filling) -> None:
    waiting = filling.open("number", "integer")
    required = [made for made in waiting if made.required]
    _take_amounts(filling, waiting)
    # An optional number is taken only where nothing else could be meant.
    waiting = filling.open("number", "integer")
    takers = required or (waiting if len(waiting) == 1 else [])
    left = list(filling.free("number"))
    for made in list(takers):
        best = max(
            ((preposition_affinity(made, filling.before(index)), -index) for index, _ in left),
            default=None,
        )
        if best is None or (best[0] <= 0 and len(takers) > 1):
            continue
        _take_number(filling, made, [(index, unit) for index, unit in left if index == -best[1]])
        left = [(index, unit) for index, unit in left if index not in filling.taken]
    for made in takers:
        if made.path not in filling.values:
            _take_number(filling, made, list(filling.free("number")))
    for made in required:
        if made.path not in filling.values:
            words = [(i, u) for i, u in filling.free("word") if u.low in convert.COUNTING and u.low != "one"]
            _take_number(filling, made, words)
            _take_place(filling, made)


def _take_place(filling: Filling, made: Field) -> None:
    """Read `the second one` as a number where one is needed."""
    if made.kind != "integer" or made.path in filling.values:
        return
    for index, unit in filling.free("word"):
        if convert.PLACES.get(unit.low, 0) > 0:
            filling.put(made, convert.PLACES[unit.low], index, index + 1)
            return


def _take_amounts(filling: Filling, waiting: Sequence[Field]) -> None:
    """Optional numbers that a habit of language places: `3 books` is how many, 2020 is a year."""
    for made in waiting:
        if made.required:
            continue
        counts = any(word[:4] in _AMOUNTS for word in made.words) or made.description.lower().startswith("how many")
        years = any(word.startswith("year") for word in (*made.words, *made.about))
        for index, unit in filling.free("number"):
            noun = _counted_noun(filling, index)
            of_tool = noun >= 0 and best_likeness(filling.reading.units[noun].stem, filling.tool.name_stems) >= 0.9
            is_year = isinstance(unit.value, int) and 1900 <= unit.value <= 2100 and not unit.measure
            if (counts and of_tool) or (years and is_year):
                _take_number(filling, made, [(index, unit)])
                break


def _take_number(filling: Filling, made: Field, units: Sequence[tuple[int, Unit]]) -> None:
    for index, _ in units:
        found = convert.first_number(made, filling.reading, index, min(index + 2, filling.hi))
        if found is not None and found.lo == index:
            filling.put(made, found.value, index, index + 1)
            return


def _fill_booleans(filling: Filling) -> None:
    """A yes-or-no parameter is on when its own words are said, off when they are denied."""
    units = filling.reading.units
    for made in filling.open("boolean"):
        wanted = [word for word in made.words if not is_generic(word) and word not in {"is", "has", "with"}] or list(
            made.words
        )
        spots = [
            next((i for i in range(filling.lo, filling.hi) if i not in filling.taken and word in units[i].parts), -1)
            for word in wanted
        ]
        if not spots or -1 in spots:
            continue
        lo, hi = min(spots), max(spots) + 1
        denials = [i for i in range(max(filling.lo, lo - 3), lo) if units[i].low in NEGATIONS]
        filling.put(made, not denials, lo, hi, *denials)


def _fill_tables(filling: Filling) -> None:
    for made in filling.open("table"):
        found = table_in(made, filling, filling.lo, filling.hi)
        if found is not None:
            filling.put(made, found.value, found.lo, found.hi)
