"""Which tool does a request mean? Words of the request held against the words of each tool.

The evidence is worked out once for a message, unit by unit and tool by tool, so that any part of the message can be
ranked by adding up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lousho.models.demo.reading import Reading, Unit
from lousho.models.demo.schema import Field, as_mapping, fields_of, leaves, looks_like_example
from lousho.models.demo.words import (
    ASKING,
    content_stems,
    families_of,
    fold,
    is_generic,
    is_light,
    likeness,
    split_identifier,
    stem,
    words_in,
)

ENOUGH = 1.5
"""The evidence below which no tool is meant."""
_OPENING_WORDS = 4
_LEADING = 1.5
_CLOSE = 0.88
_ENDING = frozenset({2, 8})
"""The verb families of taking away and stopping."""


@dataclass(slots=True, eq=False)
class ToolView:
    """A tool as the demo model sees it."""

    name: str
    description: str
    fields: tuple[Field, ...]
    leaves: tuple[Field, ...]
    name_stems: tuple[str, ...]
    vocabulary: dict[str, float] = field(default_factory=lambda: {})
    """Each stem the tool is known by, with its weight."""

    @property
    def nouns(self) -> frozenset[str]:
        """The words of the name that are more than a verb any tool may begin with."""
        return frozenset(word for word in self.name_stems if not is_generic(word))

    @property
    def only_verbs(self) -> bool:
        """Whether the name has nothing but such verbs."""
        return not self.nouns


def view_of(name: str, description: str, parameters: object) -> ToolView:
    """Return the view of a tool."""
    made = fields_of(as_mapping(parameters))
    name_stems = tuple(stem(word) for word in split_identifier(name))
    view = ToolView(name, description, made, tuple(leaves(made)), name_stems)
    for word, weight in _weights(view):
        view.vocabulary[word] = max(weight, view.vocabulary.get(word, 0.0))
    return view


def _weights(view: ToolView) -> list[tuple[str, float]]:
    found = [(word, 3.0 if view.only_verbs or not is_generic(word) else 1.5) for word in view.name_stems]
    if len(view.name_stems) > 1:
        found.append(("".join(view.name_stems), 3.0))
    for index, word in enumerate(content_stems(view.description)[:60]):
        opening = index < _OPENING_WORDS
        found.append((word, (1.0 if opening else 0.3) if is_generic(word) else (1.6 if opening else 0.8)))
    for made in view.leaves:
        found.extend((word, 0.3 if is_generic(word) else 0.9) for part in made.path for word in content_stems(part))
        found.extend((word, 0.9) for word in made.words if not is_generic(word))
        found.extend((word, 0.4) for word in made.about if not is_generic(word))
        found.extend(
            (word, 1.2) for choice in _choices(made) for word in content_stems(" ".join(split_identifier(choice)))
        )
    return found


def _choices(made: Field) -> list[str]:
    choices = made.choices or (made.item.choices if made.item is not None else ())
    return [choice for choice in choices if isinstance(choice, str)][:40]


@dataclass(frozen=True, slots=True)
class Match:
    """How well a tool fits a part of a message."""

    tool: ToolView
    score: float
    """For comparing tools: words that many tools share count less."""
    strong: bool
    """Whether the words alone say that this tool is meant."""
    plausible: bool
    """Whether it may be meant if the part also fills its arguments."""
    light: bool = False
    """Whether all that speaks for it is a verb that goes with anything."""


class Evidence:
    """What each unit of a reading says for each tool."""

    def __init__(self, reading: Reading, tools: Sequence[ToolView]) -> None:
        self.reading = reading
        self.tools = tools
        self._rarity = _rarity(tools)
        self._stems = [_stems_of(unit) for unit in reading.units]
        self._found = [[_evidence(stems, tool) for stems in self._stems] for tool in tools]
        self._joined = [_joined(reading, index) for index in range(len(reading.units))]

    def leading(self, lo: int, hi: int) -> int | None:
        """Return the first unit in the range that says something."""
        units = self.reading.units
        return next((i for i in range(lo, hi) if units[i].kind != "mark" and not units[i].is_stop), None)

    def _verb_and_value(self, number: int, tool: ToolView, leading: int | None, lo: int, hi: int) -> bool:
        """Whether a verb of the tool's kind comes with a value of a format the tool takes."""
        if leading is None or self._found[number][leading] < 0.5:
            return False
        kinds = {unit.kind for unit in self.reading.units[lo:hi]}
        formats = {(leaf.item or leaf).form for leaf in tool.leaves}
        if "email" in kinds and "email" in formats:
            return True
        dated = bool(kinds & {"date", "moment"} and formats & {"date", "date-time"})
        return dated and not is_light(self.reading.units[leading].low)

    def of_unit(self, index: int, tool: ToolView) -> float:
        """Return how much one unit says for a tool."""
        return self._found[self.tools.index(tool)][index]

    def rank(self, lo: int, hi: int) -> list[Match]:
        """Return the tools that the range may mean, best first."""
        matches = [self._match(number, tool, lo, hi) for number, tool in enumerate(self.tools)]
        found = [match for match in matches if match.strong or match.plausible]
        return sorted(found, key=lambda match: -match.score)

    def closest(self, lo: int, hi: int) -> ToolView | None:
        """Return the tool with the most evidence however little there is, the first one when there is none."""
        matches = [self._match(number, tool, lo, hi) for number, tool in enumerate(self.tools)]
        return max(matches, key=lambda match: match.score).tool if matches else None

    def _match(self, number: int, tool: ToolView, lo: int, hi: int) -> Match:
        leading = self.leading(lo, hi)
        raw = score = 0.0
        strong_words = words = 0
        quiet = False
        seen: set[str] = set()
        for index in range(lo, hi):
            unit = self.reading.units[index]
            quiet = quiet or (raw > 0 and unit.low in {"saying", ":"})
            found = max(
                self._found[number][index], _joined_evidence(self._joined[index], tool) if index + 1 < hi else 0
            )
            if found <= 0 or unit.stem in seen:
                continue
            seen.add(unit.stem)
            generic = all(is_generic(word) for word in self._stems[index]) and not tool.only_verbs
            words += not generic and found >= 0.4
            strong_words += not generic and found >= 1.2
            weighed = found * (_LEADING if index == leading else 1.0) * (0.3 if quiet else 1.0)
            raw += weighed
            score += weighed * min((self._rarity.get(word, 1.0) for word in self._stems[index]), default=1.0)
        if len(tool.name_stems) > 1 and set(tool.name_stems) <= {
            part for i in range(lo, hi) for part in self._stems[i]
        }:
            score += 1.5
        typed, shaped = _typed_evidence(tool, self.reading.units[lo:hi])
        by_verb = leading is not None and self._found[number][leading] >= 1.0
        light = not shaped and words == 0 and (leading is None or is_light(self.reading.units[leading].low))
        strong = raw >= ENOUGH and (strong_words > 0 or words > 1)
        plausible = by_verb or shaped > 0 or raw >= ENOUGH or self._verb_and_value(number, tool, leading, lo, hi)
        if leading is not None and _contradicts(self.reading.units[leading], tool):
            return Match(tool, score * 0.3, strong=False, plausible=False)
        return Match(tool, score + typed + shaped, strong, plausible, light)


def _contradicts(verb: Unit, tool: ToolView) -> bool:
    """Whether the request takes something away and the tool does not, or the other way round."""
    asked = families_of(verb.stem) if verb.is_word else frozenset[int]()
    opening = content_stems(tool.description)[:1]
    offered = frozenset(number for word in (*tool.name_stems, *opening) for number in families_of(word))
    if not asked or not offered or tool.vocabulary.get(verb.stem, 0.0) >= 1.0:
        return False
    return bool(asked & _ENDING) != bool(offered & _ENDING)


def close_matches(matches: Sequence[Match]) -> list[Match]:
    """Return the matches that the words alone cannot tell from the best one."""
    if not matches:
        return []
    best = matches[0]
    return [match for match in matches if match.score >= best.score * _CLOSE and match.strong == best.strong]


def _rarity(tools: Sequence[ToolView]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for tool in tools:
        for word, weight in tool.vocabulary.items():
            if weight >= 0.9:
                counts[word] = counts.get(word, 0) + 1
    return {word: 1.0 / math.sqrt(count) for word, count in counts.items()}


def _stems_of(unit: Unit) -> list[str]:
    if unit.kind == "word":
        if unit.low in ASKING:
            return [unit.low]
        return [] if unit.is_stop else list(unit.parts)
    if unit.kind == "proper":
        return [part for part in unit.parts if part]
    if unit.kind in {"mixed", "date"}:
        return [stem(word) for word in words_in(unit.raw) if not word.isdigit()][:6]
    return []


def _joined(reading: Reading, index: int) -> str:
    """Return a unit written together with the next one: `note` and `book` make `notebook`."""
    units = reading.units
    if index + 1 >= len(units) or not (units[index].is_word and units[index + 1].is_word):
        return ""
    return stem(units[index].low + units[index + 1].low)


def _joined_evidence(joined: str, tool: ToolView) -> float:
    return tool.vocabulary.get(joined, 0.0) if len(joined) >= 4 else 0.0


def _evidence(stems: Sequence[str], tool: ToolView) -> float:
    best = 0.0
    for word in stems:
        best = max(best, tool.vocabulary.get(word, 0.0))
        if best >= 1.2:
            continue
        families = families_of(word)
        for known, weight in tool.vocabulary.items():
            if weight > best:
                best = max(best, weight * likeness(word, known) if len(word) > 2 else 0.0)
            if families and weight >= 0.9 and families & families_of(known):
                best = max(best, 0.8 if known in tool.name_stems else 0.5)
    return best


def _typed_evidence(tool: ToolView, units: Sequence[Unit]) -> tuple[float, float]:
    """Return what the kinds of values say: a little for fitting types, much for the outline of an example."""
    kinds = {unit.kind for unit in units}
    typed = 0.0
    for made in tool.leaves:
        inner = made.item or made
        fits = (
            (inner.kind in {"number", "integer"} and "number" in kinds)
            or (inner.form == "email" and "email" in kinds)
            or (inner.form == "uri" and "uri" in kinds)
            or (inner.form in {"date", "date-time"} and kinds & {"date", "moment"})
        )
        typed += 0.4 if fits and made.required else 0.2 if fits else 0.0
    shaped = any(
        looks_like_example(unit.raw, made)
        for unit in units
        if unit.kind in {"mixed", "number", "quoted"}
        for made in tool.leaves
    )
    return min(typed, 1.0), 1.6 if shaped else 0.0


def names_tool(reading: Reading, tool: ToolView) -> bool:
    """Whether the message spells the tool's name."""
    return fold(tool.name).replace("_", "") in fold(reading.source).replace("_", "").replace(" ", "")


def views_of(definitions: Sequence[Any]) -> list[ToolView]:
    """Return the views of a request's tools; of two with one name the first."""
    views: dict[str, ToolView] = {}
    for definition in definitions:
        function = definition.function
        parameters: Mapping[str, Any] = function.parameters
        views.setdefault(function.name, view_of(function.name, function.description or "", parameters))
    return list(views.values())
