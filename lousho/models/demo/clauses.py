"""Cutting a message into clauses, each of which asks for one tool."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lousho.models.demo.choose import Evidence, Match
from lousho.models.demo.reading import Reading
from lousho.models.demo.words import ARTICLES, ASKING, NEGATIONS, PRONOUNS

_SENTENCE_ENDS = frozenset(".?!;\n")
_SEQUENCE = frozenset("then afterwards afterward dann danach puis luego".split())
_SOFT = frozenset(", and also plus & but und et".split())
MOST_CLAUSES = 30
_MOST_ATOMS = 60
_OPENING = 60
"""Units at the beginning of a clause that say what it is about."""


@dataclass(slots=True)
class Clause:
    """A range of units, and whether it is to be done after the one before it."""

    lo: int
    hi: int
    after: bool = False
    matches: list[Match] | None = None


@dataclass(slots=True)
class _Atom:
    lo: int
    hi: int
    hard: bool
    after: bool


def clauses_of(evidence: Evidence) -> list[Clause]:
    """Return the clauses of a message in order; those without `matches` only give context."""
    clauses: list[Clause] = []
    for number, atom in enumerate(_atoms(evidence.reading)):
        current = clauses[-1] if clauses else None
        if current is not None and number >= _MOST_ATOMS:
            current.hi = atom.hi
            continue
        if current is not None and not _stands_alone(atom, current, evidence):
            current.hi = atom.hi
            continue
        clauses.append(Clause(atom.lo, atom.hi, after=atom.after and bool(clauses)))
    for clause in clauses:
        clause.matches = evidence.rank(clause.lo, clause.hi)
    return clauses[:MOST_CLAUSES]


def _atoms(reading: Reading) -> Iterator[_Atom]:
    """Return the pieces between everything that may separate two requests."""
    units = reading.units
    lo, hard, after = 0, True, False
    index = 0
    while index < len(units):
        low = units[index].low
        ends = low in _SENTENCE_ENDS and units[index].kind == "mark"
        if ends or low in _SOFT or low in _SEQUENCE:
            stop = index
            next_hard, next_after = ends, False
            while index < len(units) and (
                units[index].low in _SOFT or units[index].low in _SEQUENCE or units[index].low in _SENTENCE_ENDS
            ):
                next_hard = next_hard or units[index].low in _SENTENCE_ENDS
                next_after = next_after or units[index].low in _SEQUENCE
                index += 1
            if stop > lo:
                yield _Atom(lo, stop + (units[stop].low in _SENTENCE_ENDS), hard, after)
                after = False
            lo, hard, after = index, next_hard or (hard and stop == 0), next_after or after
            continue
        if _after_that(reading, index):
            if index > lo:
                yield _Atom(lo, index, hard, after)
            index += 2
            lo, hard, after = index, True, True
            continue
        index += 1
    if lo < len(units):
        yield _Atom(lo, len(units), hard, after)


def _after_that(reading: Reading, index: int) -> bool:
    units = reading.units
    return (
        units[index].low in {"after", "once"}
        and index + 1 < len(units)
        and units[index + 1].low in {"that", "this", "done"}
    )


def _stands_alone(atom: _Atom, current: Clause, evidence: Evidence) -> bool:
    """Whether the atom is a request of its own rather than more about the clause before it."""
    mine = evidence.rank(atom.lo, atom.hi)
    theirs = evidence.rank(current.lo, min(current.hi, current.lo + _OPENING))
    best = mine[0] if mine else None
    if best is None or not (best.strong or best.plausible) or not _is_sure(atom, best, theirs, evidence):
        # A first sentence that asks for nothing must not swallow what follows it.
        return atom.hard and not theirs and not _is_fragment(atom, evidence)
    if not theirs:
        return atom.hard or atom.after or best.strong
    if _names_field(atom, theirs[0], evidence):
        return False
    if atom.after:
        return True
    leads = _leads(atom, best, evidence)
    if best.tool is theirs[0].tool:
        return leads and (atom.hard or _has_verb(atom, best, evidence))
    return leads or (atom.hard and best.strong)


def _is_sure(atom: _Atom, best: Match, theirs: list[Match], evidence: Evidence) -> bool:
    """Whether the evidence is enough for a new request at this kind of border."""
    if best.strong or atom.hard:
        return True
    leading = evidence.leading(atom.lo, atom.hi)
    other = not theirs or best.tool is not theirs[0].tool
    return leading is not None and other and evidence.of_unit(leading, best.tool) >= 1.0


def _is_fragment(atom: _Atom, evidence: Evidence) -> bool:
    return evidence.leading(atom.lo, atom.hi) is None


def _leads(atom: _Atom, match: Match, evidence: Evidence) -> bool:
    """Whether the atom begins with what speaks for the tool, or with a question."""
    units = evidence.reading.units
    first = atom.lo
    while first < atom.hi and (units[first].low in ARTICLES or units[first].low in PRONOUNS):
        first += 1
    if first < atom.hi and units[first].low in ASKING and match.strong:
        return True
    leading = evidence.leading(atom.lo, atom.hi)
    if leading is None or units[leading].kind not in {"word", "proper"}:
        return False
    if leading > atom.lo and units[leading - 1].is_preposition:
        return False
    return evidence.of_unit(leading, match.tool) >= 0.5 and not any(
        units[i].low in NEGATIONS for i in range(atom.lo, leading)
    )


def _has_verb(atom: _Atom, match: Match, evidence: Evidence) -> bool:
    """Whether the atom repeats the verb or noun the tool is named by, so that it asks for the tool once more."""
    leading = evidence.leading(atom.lo, atom.hi)
    if leading is None:
        return False
    return evidence.of_unit(leading, match.tool) >= 1.4 and leading + 1 < atom.hi


def _names_field(atom: _Atom, match: Match, evidence: Evidence) -> bool:
    """Whether the atom begins with a parameter of the tool before it: `…, priority high`."""
    units = evidence.reading.units
    leading = evidence.leading(atom.lo, atom.hi)
    if leading is None:
        return False
    for made in match.tool.leaves:
        for words in (tuple(w for part in made.path for w in _stems(part)), made.words):
            if not words:
                continue
            seen = [part for unit in units[leading : min(atom.hi, leading + len(words))] for part in unit.parts]
            if tuple(seen[: len(words)]) == words and evidence.of_unit(leading, match.tool) < 3.0:
                return True
            if tuple(seen[: len(words)]) == words and leading + len(words) < atom.hi:
                return units[leading + len(words)].low in {":", "=", "is", "are"}
    return False


def _stems(part: str) -> list[str]:
    from lousho.models.demo.words import split_identifier, stem

    return [stem(word) for word in split_identifier(part)]
