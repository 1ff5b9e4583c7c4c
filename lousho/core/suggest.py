"""Did you mean: the closest known name to one that is not known.

Used for options, spec fields, commands, flags, tools and models. Which names other systems use for the same thing is
knowledge of the owner of the names: it comes in as `aliases`. No import beyond the standard library, so that a usage
error stays as fast as a good start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MAX_NAME_CHARS = 80
"""A longer name is not a typo, and the comparison is quadratic."""

MOST_NAMES = 3
"""Names that one suggestion lists."""

MOST_TYPOS = 4
"""Wrong letters that are forgiven where a name may be compared with thousands of others."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate a person who wrote `name` most likely meant, or None.

    Case, `-` and `_` do not count, so `maxSteps` finds `max_steps`. Otherwise one wrong, missing, extra or swapped
    letter in three is forgiven, and a beginning of three letters or more that fits one candidate only is taken.
    """
    wanted = _plain(name)
    if not wanted or len(wanted) > MAX_NAME_CHARS:
        return None
    allowed = max(1, len(wanted) // 3) if len(wanted) > 2 else 0
    best: tuple[int, str] | None = None
    beginnings: list[str] = []
    for candidate in candidates:
        other = _plain(candidate)
        if len(wanted) >= 3 and other.startswith(wanted):
            beginnings.append(candidate)
        if abs(len(other) - len(wanted)) > allowed or len(other) > MAX_NAME_CHARS:
            continue
        distance = _distance(wanted, other, allowed)
        if distance <= allowed and distance < len(other) and (best is None or distance < best[0]):
            best = (distance, candidate)
    if best is not None:
        return best[1]
    return beginnings[0] if len(beginnings) == 1 else None


def nearest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates, three at most, that whoever made up `name` may have meant; the nearest kind of them only.

    In this order: the same name but for case, `-` and `_` (`readFile`, `read_file`); one with a typo; the same words in
    another order; one whose words are all in `name`, or that has all the words of it (`read`: `read_file`, `read_dir`).
    """
    wanted = _plain(name)
    if not wanted or len(wanted) > MAX_NAME_CHARS:
        return []
    words = _words(name)
    allowed = min(max(1, len(wanted) // 3), MOST_TYPOS) if len(wanted) > 2 else 0
    ranked: list[tuple[int, int, str]] = []
    for candidate in candidates:
        rank = _rank(wanted, words, candidate, allowed)
        if rank is not None:
            ranked.append((*rank, candidate))
    if not ranked:
        return []
    ranked.sort(key=lambda found: found[:2])
    best = ranked[0]
    # Of several typos only the smallest; of names that share words any.
    same = [found for found in ranked if found[0] == best[0] and (found[0] > 1 or found[1] == best[1])]
    return [found[2] for found in same[:MOST_NAMES]]


def _rank(wanted: str, words: frozenset[str], candidate: str, allowed: int) -> tuple[int, int] | None:
    """Return how far `candidate` is from what was wanted, the kind of likeness first; `None`: it is not like it."""
    other = _plain(candidate)
    if other == wanted:
        return 0, 0
    if len(other) > MAX_NAME_CHARS:
        return None
    if abs(len(other) - len(wanted)) <= allowed:
        distance = _distance(wanted, other, allowed)
        if distance <= allowed and distance < len(other):
            return 1, distance
    if not words:
        return None
    others = _words(candidate)
    if others == words:
        return 2, 0
    if others and (others <= words or words <= others):
        return 3, len(others ^ words)
    return None


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


def suggestion(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """Return what to write instead of `name`: the name an alias stands for, else the nearest known name or alias.

    `aliases` maps names of other systems to what is written here, e.g. `{'system': 'instructions'}`; its targets need
    not be in `known`.
    """
    table = aliases or {}
    exact = {_plain(alias): target for alias, target in table.items()}.get(_plain(name))
    if exact is not None:
        return exact
    found = nearest(name, [*known, *table])
    return None if found is None else table.get(found, found)


def did_you_mean_one_of(names: Iterable[str]) -> str:
    """Return ` (did you mean 'a', 'b' or 'c'?)` for names from `nearest_names()`, or an empty text for none."""
    shown = [f"'{name}'" for name in names]
    if not shown:
        return ""
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
    return f" (did you mean {listed}?)"


def did_you_mean(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """Return ` (did you mean 'x'?)`, or an empty text when nothing is close."""
    found = suggestion(name, known, aliases)
    return "" if found is None else f" (did you mean '{found}'?)"


def unknown_key_message(
    key: object, known: Iterable[str], aliases: Mapping[str, str] | None = None, *, noun: str = "option"
) -> str:
    """Return `'modle' is not a known option (did you mean 'model'?)`; a key of a mapping may be no text at all.

    Source: agents page, tools page.
    """
    name = str(key)
    shown = name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}..."
    return f"'{shown}' is not a known {noun}{did_you_mean(name, known, aliases)}"


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _distance(left: str, right: str, most: int) -> int:
    """Return the number of wrong, missing, extra or swapped letters (optimal string alignment).

    Once it is sure to be above `most` the count ends early, with any number above `most`.
    """
    far = most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    least_before = 0
    for i, a in enumerate(left, start=1):
        current = [far] * len(row)
        current[0] = i
        # What is more than `most` places off the diagonal costs more than `most`.
        for j in range(max(1, i - most), min(len(right), i + most) + 1):
            b = right[j - 1]
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current[j] = cost
        before, row = row, current
        least = min(row)
        if least > most and least_before > most:  # a swap may still reach back over one row
            return far
        least_before = least
    return row[-1]
