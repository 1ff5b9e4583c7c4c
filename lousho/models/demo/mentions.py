"""Parameters the user names: `priority: high`, `with the subject Hello`, `4 guests`, `orderId=17`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lousho.models.demo.reading import Reading
from lousho.models.demo.schema import Field
from lousho.models.demo.words import ARTICLES, ASKING, AUXILIARIES, STOP, split_identifier, stem

_EXPLICIT = frozenset(":=")
_LINKS = frozenset("is are equals equal being was as of be".split())
_SETTERS = frozenset("set change put make update switch turn raise lower increase decrease".split())
_GLUE = frozenset("with and using plus set use the a an its their where whose , (".split()) | {
    "his",
    "her",
    "my",
    "our",
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A parameter's name in the message, and where its value would begin."""

    made: Field
    lo: int
    hi: int
    value_lo: int
    explicit: bool
    """Whether `:` or `=` follows."""
    linked: bool
    """Whether a word such as `is` follows."""
    whole: bool
    """Whether the whole name was said, not just a word of it."""
    glue: tuple[int, ...] = ()
    """The units of the name and of what links it to its value."""


def find_mentions(
    reading: Reading, lo: int, hi: int, fields: Sequence[Field], parents: Sequence[Field]
) -> list[Mention]:
    """Return the mentions in the range in order, longest names first where they overlap.

    `parents` are the records, which may be named in place of their first string: `customer Ann`.
    """
    stems: list[tuple[str, int]] = [
        (part, index)
        for index in range(lo, hi)
        if reading.units[index].kind in {"word", "mixed"}
        for part in reading.units[index].parts
    ]
    phrases = _phrases(fields, parents)
    found: list[Mention] = []
    position = 0
    while position < len(stems):
        for words, made, whole in phrases:
            piece = stems[position : position + len(words)]
            if tuple(part for part, _ in piece) != words or not _adjacent(reading, piece):
                continue
            if any(reading.units[index].kind == "mixed" and reading.units[index].parts != words for _, index in piece):
                continue  # `notes.txt` names no parameter, `customer.name` does
            mention = _mention(reading, piece[0][1], piece[-1][1] + 1, hi, made, whole)
            if mention.explicit or not STOP.issuperset(words):
                found.append(mention)  # `to` names a parameter of that name only before a colon
            position += len(words) - 1
            break
        position += 1
    return found


def _adjacent(reading: Reading, piece: Sequence[tuple[str, int]]) -> bool:
    """Whether the words follow each other, but for the `'s` of a possessive."""
    return all(
        after - before <= 1 or all(reading.units[i].raw in {"'", "’", "s", "."} for i in range(before + 1, after))
        for (_, before), (_, after) in pairwise(piece)
    )


def _phrases(fields: Sequence[Field], parents: Sequence[Field]) -> list[tuple[tuple[str, ...], Field, bool]]:
    whole: dict[tuple[str, ...], Field | None] = {}
    for made in fields:
        path = tuple(word for part in made.path for word in _stems(part))
        whole[path] = made
        if len(made.path) > 1:  # `name` alone names `customer.name` as long as nothing else is called so
            whole[made.words] = None if made.words in whole else made
    for parent in parents:
        first = next(
            (part for part in fields if part.path[: len(parent.path)] == parent.path and part.kind == "string"), None
        )
        if first is not None:
            whole.setdefault(tuple(word for part in parent.path for word in _stems(part)), first)
    partial: dict[tuple[str, ...], Field | None] = {}
    for made in fields:
        if len(made.words) > 1:
            for word in made.words:
                if len(word) > 1 and word not in STOP:
                    partial[(word,)] = None if (word,) in partial or (word,) in whole else made
    phrases = [(words, made, True) for words, made in whole.items() if made is not None and words]
    phrases += [(words, made, False) for words, made in partial.items() if made is not None]
    return sorted(phrases, key=lambda phrase: (-len(phrase[0]), not phrase[2]))


def _stems(part: str) -> list[str]:
    return [stem(word) for word in split_identifier(part)]


def _mention(reading: Reading, lo: int, hi: int, end: int, made: Field, whole: bool) -> Mention:
    units = reading.units
    start, explicit, linked = hi, False, False
    while start < end:
        low = units[start].low
        if units[start].kind == "mark" and low in _EXPLICIT:
            explicit = True
        elif (low in _LINKS and units[start].raw.islower()) or (low in {"to", "at"} and _is_set(reading, lo)):
            linked = True
        elif (low in ARTICLES and (explicit or linked) and made.kind != "string") or (
            low in {"#", "'", "’"} and units[start].kind == "mark"
        ):
            pass
        else:
            break
        start += 1
    glue = tuple(range(lo, start))
    if linked and units[start - 1].low == "of" and _is_set(reading, lo):
        # `set the colour of lamp 3 to red`: what stands between belongs to other parameters.
        aim = next((i for i in range(start, end) if units[i].low in {"to", ":", "="}), None)
        if aim is not None:
            return Mention(made, lo, hi, aim + 1, explicit, linked, whole, (*glue, aim))
    return Mention(made, lo, hi, start, explicit, linked, whole, glue)


def _is_set(reading: Reading, lo: int) -> bool:
    """Whether the words before the name make `to` introduce its value: `set the priority to high`."""
    return any(reading.units[index].low in _SETTERS for index in range(max(0, lo - 3), lo))


def value_end(mention: Mention, reading: Reading, hi: int, mentions: Sequence[Mention], stops: set[int]) -> int:
    """Return where the value of a mention ends: before the next parameter, or where the phrase does."""
    units = reading.units
    starts = {other.lo: other for other in mentions if other is not mention}
    listed = mention.made.kind in {"list", "table"}
    for index in range(mention.value_lo, hi):
        unit = units[index]
        nxt = _next_content(reading, index, hi)
        if index in starts and _ends_value(starts[index], reading, index, mention):
            return index
        if unit.kind == "mark" and unit.low in {";", "\n"}:
            return index
        if unit.low in _GLUE and (nxt in starts) and starts[nxt].value_lo < hi:
            return index
        if unit.kind == "mark" and unit.low in {",", ".", "?", "!"}:
            last = index + 1 >= hi
            if not (mention.explicit or listed) or last:
                asks = mention.explicit or units[mention.value_lo].low in ASKING | AUXILIARIES
                return index + (unit.low in "?!" and asks)
            if nxt in starts or (unit.low == "," and not listed and mention.made.kind != "string"):
                return index
        if index in stops and not mention.explicit and mention.made.kind == "string":
            return index - 1 if index > mention.value_lo and units[index - 1].is_preposition else index
    return hi


def _next_content(reading: Reading, index: int, hi: int) -> int:
    index += 1
    while index < hi and (reading.units[index].low in _GLUE or reading.units[index].kind == "mark"):
        index += 1
    return index


def _ends_value(other: Mention, reading: Reading, index: int, mention: Mention) -> bool:
    """Whether a name inside a value begins the next parameter rather than being a word of the text."""
    if other.explicit or index == mention.value_lo:
        return other.explicit
    if mention.made.path == other.made.path:
        return False
    before = reading.units[index - 1].low
    typed = other.value_lo < len(reading.units) and reading.units[other.value_lo].kind not in {"word", "mark"}
    follows_value = index == mention.value_lo + 1 and other.value_lo < len(reading.units)
    return other.whole and (typed or before in _GLUE or follows_value) and not mention.explicit
