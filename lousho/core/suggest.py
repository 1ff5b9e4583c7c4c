"""Did you mean: the closest known name to one that is not known.

Used for options, spec fields, commands, flags, tools and models. Which names other systems use for the same thing is
knowledge of the owner of the names: it comes in as `aliases`. No import beyond the standard library, so that a usage
error stays as fast as a good start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_NAME_CHARS = 80
"""A longer name is not a typo, and the comparison is quadratic."""


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
        distance = _distance(wanted, other)
        if distance <= allowed and distance < len(other) and (best is None or distance < best[0]):
            best = (distance, candidate)
    if best is not None:
        return best[1]
    return beginnings[0] if len(beginnings) == 1 else None


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


def did_you_mean(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """Return ` (did you mean 'x'?)`, or an empty text when nothing is close."""
    found = suggestion(name, known, aliases)
    return "" if found is None else f" (did you mean '{found}'?)"


def unknown_key_message(
    key: str, known: Iterable[str], aliases: Mapping[str, str] | None = None, *, noun: str = "option"
) -> str:
    """Return `'modle' is not a known option (did you mean 'model'?)`. Source: agents page, tools page."""
    shown = key if len(key) <= MAX_NAME_CHARS else f"{key[:MAX_NAME_CHARS]}..."
    return f"'{shown}' is not a known {noun}{did_you_mean(key, known, aliases)}"


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _distance(left: str, right: str) -> int:
    """Return the number of wrong, missing, extra or swapped letters (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, row = row, current
    return row[-1]
