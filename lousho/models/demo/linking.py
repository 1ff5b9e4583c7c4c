"""Which preposition brings the value of which field.

Three sources say so: the field's own name (`from_x`), a few names that go with a preposition in any subject (a
target with `to`), and the tool's own description: "Turn on the light in a room" links `in` with the room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lousho.models.demo.schema import Field, Path, leaves
from lousho.models.demo.words import ARTICLES, JOINERS, PREPOSITIONS, STOP, fold, stem, words_in

_HINTS: Mapping[str, frozenset[str]] = {
    preposition: frozenset(beginnings.split())
    for preposition, beginnings in {
        "in": "targ dest outp",
        "to": "targ dest reci rece outp next",
        "into": "targ dest outp",
        "onto": "targ dest",
        "from": "sour orig send inpu star",
        "with": "atte part gues memb invi",
        "about": "topi subj them rega",
        "regarding": "topi subj",
        "for": "purp reas bene reci",
        "because": "reas caus expl just reso comm rema",
        "until": "end till",
        "by": "due dead auth",
        "as": "role form stat kind",
        "called": "titl labe",
        "named": "titl labe",
        "titled": "titl",
    }.items()
}
"""The first four letters of field names that a preposition goes with whatever the subject."""
_TELLING = frozenset("about with from until against between because by".split())


def preposition_affinity(made: Field, preposition: str) -> float:
    """Return how well a field goes with the preposition before a value: `from_x` with `from`."""
    if not preposition:
        return 0.0
    if preposition in made.words or (preposition in {"into", "onto", "towards"} and "to" in made.words):
        return 3.0
    if any(word[:4] in _HINTS.get(preposition, ()) for word in made.words):
        return 2.0
    if preposition in made.leads:
        return 1.7
    if preposition == "in" and "to" in made.words:
        return 1.0
    return 0.5 if preposition in _TELLING and preposition in made.description.lower().split() else 0.0


def with_leads(fields: Sequence[Field], description: str) -> tuple[Field, ...]:
    """Return the fields with the prepositions under which the tool's description names them; '' is its object."""
    found: dict[Path, set[str]] = {}
    known = list(leaves(fields))
    lead = ""
    for word in words_in(re.sub(r"\([^)]*\)", "", description.split("\n", maxsplit=1)[0]))[:40]:
        low = fold(word)
        if low in PREPOSITIONS:
            lead = low
        if low in STOP or low in ARTICLES or low in JOINERS:
            continue
        named = [leaf for leaf in known if stem(word) in leaf.words]
        told = [leaf for leaf in known if stem(word) in leaf.about]
        for leaf in named or (told if len(told) == 1 and lead else []):
            found.setdefault(leaf.path, set()).add(lead)
    return _spread(fields, found)


def _spread(fields: Sequence[Field], found: Mapping[Path, set[str]]) -> tuple[Field, ...]:
    return tuple(
        replace(made, leads=tuple(sorted(found.get(made.path, ()))), parts=_spread(made.parts, found))
        for made in fields
    )
