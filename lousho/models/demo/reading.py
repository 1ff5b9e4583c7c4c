"""A request as units: words, marks, and the spans that carry a value of their own (numbers, dates, quoted parts …).

One reading is made of each message; choosing a tool and filling its arguments both work on its units and never look at
the letters again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Literal, TypeAlias

from lousho.models.demo import dates
from lousho.models.demo.words import (
    ARTICLES,
    POLITE,
    PREPOSITIONS,
    PRONOUNS,
    STOP,
    fold,
    is_generic,
    split_identifier,
    stem,
)

LONGEST_READ = 4_000
"""Characters of a message that are read word by word; a text that begins there is still taken to its end."""
LONGEST_KEPT = 200_000
"""Characters of a message that are kept at all."""

Kind: TypeAlias = Literal[
    "word", "mark", "proper", "quoted", "email", "uri", "uuid", "date", "time", "moment", "number", "mixed"
]
Value: TypeAlias = "str | int | float | date | time | datetime | None"

_NUMBER = (
    r"#?(?<![\w.])(?:[-+](?=[\d.$€£]))?(?:[$€£¥]\s?)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?°\s?[CFK]?|\s?[%€£¥]"
    r"|[a-zA-Zµ]{1,5}(?![\w]))?(?![\w])"
)
_MIXED = (
    r"\+\d[\d ()/-]{6,18}\d"
    r"|(?:[#@~]|\.{0,2}/|~/)?[^\W_][\w]*(?:[-./\\@+&_'’][^\W_][\w]*)*(?:\.[\w]+|/)*"
)
_SCAN = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in (
            (
                "quoted",
                r"\"[^\"\n]+\"|“[^”]+”|«[^»]+»|„[^“”]+[“”]|`[^`\n]+`|(?<!\w)['‘](?:[^'’\n]|['’](?=\w)){1,400}['’](?!\w)",
            ),
            ("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"),
            ("uri", r"(?:[a-z][a-z0-9+.]{1,9}://|www\.)[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]]"),
            ("uuid", r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
            ("moment", dates.MOMENT_PATTERN),
            ("date", rf"(?<![\w-])(?:{dates.DATE_PATTERN})"),
            ("time", rf"(?<![\w.])(?:{dates.TIME_PATTERN})"),
            ("mixed_", r"(?<![\w.])\d+(?:-\d+){2,}|(?<![\w.])\d{3,}-\d+(?![\w-])"),
            ("number", _NUMBER),
            ("mixed", _MIXED),
            ("mark", r"->|\n|[^\w\s]"),
            ("word", r"[^\W_]+|_"),
        )
    ),
    re.IGNORECASE,
)
_BETWEEN_NAMES = frozenset("de la of van von der da di del al el bin y e".split())


@dataclass(slots=True)
class Unit:
    """One unit of a message and where it stands in it."""

    kind: Kind
    start: int
    end: int
    raw: str
    value: Value = None
    """What it means: a number, a date, the quoted part without its quotes; for a word the word itself."""
    measure: str = ""
    """What stands right behind a number, `km` in `5km`."""
    low: str = ""
    stem: str = ""
    parts: tuple[str, ...] = ()
    """The stems of the words in it: several in `dueDate`."""

    @property
    def is_word(self) -> bool:
        """Whether this is plain language rather than punctuation or a value of its own."""
        return self.kind in {"word", "proper"}

    @property
    def is_stop(self) -> bool:
        """Whether this is a word of the closed classes."""
        return self.kind == "word" and self.low in STOP

    @property
    def is_preposition(self) -> bool:
        """Whether this word links what follows to what went before."""
        return self.kind == "word" and self.low in PREPOSITIONS


@dataclass(slots=True)
class Reading:
    """A message as units. Ranges of units are `lo, hi`, the last one excluded."""

    source: str
    units: list[Unit] = field(default_factory=lambda: [])
    truncated: bool = False

    def slice(self, lo: int, hi: int) -> str:
        """Return the message's own letters from unit `lo` up to unit `hi`; a single quoted part without its quotes."""
        if lo >= hi:
            return ""
        if hi == len(self.units) and self.truncated:
            return self.source[self.units[lo].start :].strip()
        if hi - lo == 1 and self.units[lo].kind == "quoted":
            return str(self.units[lo].value)
        return self.source[self.units[lo].start : self.units[hi - 1].end].strip()

    def begins_sentence(self, index: int) -> bool:
        """Whether unit `index` is the first of a sentence."""
        return index == 0 or self.units[index - 1].raw in {".", "?", "!", ":", "\n", ";"}


def read(source: str, *, now: datetime, known: Collection[str] = ()) -> Reading:
    """Return `source` as units. `known` are the stems of the tools' vocabulary: a capital makes no name of them."""
    reading = Reading(source[:LONGEST_KEPT], truncated=len(source) > LONGEST_READ)
    for found in _SCAN.finditer(reading.source[:LONGEST_READ]):
        reading.units.extend(_units_of(found, now))
    _join_number_signs(reading)
    if any(letter.islower() for letter in reading.source):
        _mark_names(reading, known)
    return reading


def _join_number_signs(reading: Reading) -> None:
    """Make one word of `no.` before a number, where it neither denies nor ends a sentence."""
    units = reading.units
    for index in range(len(units) - 3, -1, -1):
        word, dot, number = units[index : index + 3]
        if word.low in {"no", "nr"} and dot.raw == "." and number.kind == "number":
            units[index : index + 2] = [_word("number", word.start)]
            units[index].end, units[index].raw = dot.end, f"{word.raw}."


def _units_of(found: re.Match[str], now: datetime) -> Iterator[Unit]:
    kind, raw, start, end = found.lastgroup, found.group(), found.start(), found.end()
    if kind in {"word", "mixed", "mixed_"}:
        yield from _words(raw, start)
        return
    unit = Unit("mark", start, end, raw, raw, low=raw)
    if kind == "quoted":
        unit.kind, unit.value = "quoted", raw[1:-1].strip()
    elif kind == "email":
        unit.kind, unit.value = "email", raw
    elif kind == "uri":
        unit.kind, unit.value = "uri", raw
    elif kind == "uuid":
        unit.kind, unit.value = "uuid", raw
    elif kind in {"moment", "date", "time"}:
        if kind == "moment":
            value = dates.read_moment(raw, now)
        else:
            value = dates.read_time(raw) if kind == "time" else dates.read_date(raw, now.date())
        if value is None:
            yield from _plain(raw, start)
            return
        unit.kind, unit.value = ("moment" if kind == "moment" else "date" if kind == "date" else "time"), value
    elif kind == "number":
        unit.kind = "number"
        unit.value, unit.measure = _number(raw)
    yield unit


def _plain(raw: str, start: int) -> Iterator[Unit]:
    """Return what only looked like a date as its parts."""
    for part in re.finditer(r"\d+|[^\W\d_]+|[^\w\s]", raw):
        if part.group().isdigit():
            yield Unit("number", start + part.start(), start + part.end(), part.group(), int(part.group()))
        else:
            yield from _words(part.group(), start + part.start())


def _number(raw: str) -> tuple[int | float, str]:
    found = re.search(r"([-+]?)\D*?([\d,]+(?:\.\d+)?)(.*)", raw)
    assert found is not None
    digits = found[2].replace(",", "")
    number = float(digits) if "." in digits else int(digits[:300])
    return (-number if found[1] == "-" else number), found[3].strip()


def _words(raw: str, start: int) -> Iterator[Unit]:
    """Return one or more units for a run without spaces: a word, an identifier's words, or one opaque value."""
    letters_only = not any(letter.isdigit() for letter in raw)
    if letters_only and re.fullmatch(r"[^\W_]+(?:[-'’][^\W_]+)*", raw):
        yield _word(raw, start)
    elif letters_only and re.fullmatch(r"\w+", raw):  # snake_case: a name from a schema, word by word
        for part in re.finditer(r"[^\W_]+", raw):
            yield _word(part.group(), start + part.start())
    elif letters_only and "." in raw and all(len(part) <= 1 for part in raw.split(".")):
        yield _word(raw, start)
    elif letters_only and re.fullmatch(r"[^\W_]+[.+]", raw):
        yield _word(raw[:-1], start)
        yield Unit("mark", start + len(raw) - 1, start + len(raw), raw[-1], raw[-1], low=raw[-1])
    else:
        parts = tuple(stem(part) for part in split_identifier(raw)) if letters_only and "." in raw else ()
        yield Unit("mixed", start, start + len(raw), raw, raw.lstrip("#"), low=fold(raw), stem=fold(raw), parts=parts)


def _word(raw: str, start: int) -> Unit:
    inner_capital = any(letter.isupper() for letter in raw[1:]) and not raw.isupper()
    parts = tuple(stem(part) for part in split_identifier(raw)) if inner_capital else (stem(raw),)
    return Unit("word", start, start + len(raw), raw, raw, low=fold(raw), stem=stem(raw), parts=parts)


def _mark_names(reading: Reading, known: Collection[str]) -> None:
    """Turn runs of capitalised words into one unit each: they name something."""
    units, merged = reading.units, list[Unit]()
    index = 0
    while index < len(units):
        stop = _name_ends(reading, index, known)
        if stop == index:
            merged.append(units[index])
            index += 1
            continue
        first, last = units[index], units[stop - 1]
        raw = reading.source[first.start : last.end]
        merged.append(Unit("proper", first.start, last.end, raw, raw, low=fold(raw), stem=stem(raw)))
        merged[-1].parts = tuple(unit.stem for unit in units[index:stop])
        index = stop
    reading.units = merged


def _name_ends(reading: Reading, index: int, known: Collection[str]) -> int:
    units = reading.units
    if not _is_name(reading, index, known):
        return index
    stop = index + 1
    while stop < len(units):
        touching = units[stop].start - units[stop - 1].end <= 1
        if touching and _is_name(reading, stop, () if units[stop].raw.istitle() else known):
            stop += 1
        elif (
            touching
            and stop + 1 < len(units)
            and units[stop].low in _BETWEEN_NAMES
            and _is_name(reading, stop + 1, known)
        ):
            stop += 2
        else:
            break
    return stop


def _is_name(reading: Reading, index: int, known: Collection[str]) -> bool:
    unit = reading.units[index]
    if unit.kind != "word" or not unit.raw[0].isupper() or unit.low == "i" or unit.stem in known:
        return False
    if unit.low in STOP and (unit.low in POLITE or not unit.raw.isupper()):
        return False
    if not reading.begins_sentence(index):
        return True
    # What begins a sentence may be its verb: one that is known, or that an article or a number follows.
    behind = reading.units[index + 1] if index + 1 < len(reading.units) else None
    acts = behind is not None and (behind.low in ARTICLES | PRONOUNS or behind.kind == "number")
    return not is_generic(unit.stem) and not acts
