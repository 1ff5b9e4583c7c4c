"""Which tool does a request mean? Words of the request held against the words of each tool.

The evidence is worked out once for a message, unit by unit and tool by tool, so that any part of the message can be
ranked by adding up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lousho.models.demo.reading import Reading, Unit
from lousho.models.demo.schema import looks_like_example
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import (
    ARTICLES,
    ASKING,
    content_stems,
    families_of,
    is_generic,
    is_light,
    likeness,
    stem,
    words_in,
)

ENOUGH = 1.5
"""The evidence below which no tool is meant."""
_LEADING = 1.5
_CLOSE = 0.6
_READING = 0
_ENDING = frozenset({2, 8})
"""The verb families of taking away and stopping."""
_VIEWING = frozenset("show list disp view see read".split())
_SEEKING = frozenset("find look sear loca".split())
_FORMULA = re.compile(r"\d\s*(?:\*\*|[-+*/^%×÷])\s*\(*\d")


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
    seeks: bool = False
    """Whether request and tool both look something up, so that a name alone may be what is looked up."""
    by_name: bool = False
    """Whether the request begins with a verb of the tool's own name."""
    unasked: bool = False
    """Whether the tool does something and no word of the request says so."""


@dataclass(slots=True)
class _Tally:
    """What the words of a range add up to."""

    raw: float = 0.0
    score: float = 0.0
    words: int = 0
    strong_words: int = 0


@dataclass(frozen=True, slots=True)
class _Opening:
    """The first unit of a range that says something."""

    index: int | None
    unit: Unit | None
    evidence: float
    imperative: bool
    """Whether it stands where a verb stands: not behind a question word or an article."""


class Evidence:
    """What each unit of a reading says for each tool."""

    def __init__(self, reading: Reading, tools: Sequence[ToolView]) -> None:
        self.reading = reading
        self.tools = tools
        self._rarity = _rarity(tools)
        self._stems = [_stems_of(unit) for unit in reading.units]
        self._found = [_evidence_of_all(self._stems, tool) for tool in tools]
        self._joined = [_joined(reading, index) for index in range(len(reading.units))]
        fetchers = [tool for tool in tools if any(leaf.form == "uri" and leaf.required for leaf in tool.leaves)]
        self._fetcher = fetchers[0] if len(fetchers) == 1 else None

    def leading(self, lo: int, hi: int) -> int | None:
        """Return the first unit in the range that says something."""
        units = self.reading.units
        return next((i for i in range(lo, hi) if units[i].kind != "mark" and not units[i].is_stop), None)

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
        units = self.reading.units[lo:hi]
        opening = self._opening(number, lo, hi)
        verb = opening.unit
        tally = self._tally(number, tool, lo, hi, opening.index)
        typed, shaped = _typed_evidence(tool, units), _shaped_evidence(tool, units, self.reading.slice(lo, hi))
        by_name = verb is not None and verb.stem in tool.name_stems
        score = tally.score + typed + shaped + _particles(tool, units) + (1.0 if by_name else 0.0)
        match = Match(
            tool,
            score,
            strong=tally.raw >= ENOUGH and (tally.strong_words > 0 or tally.words > 1),
            plausible=self._is_plausible(tool, tally, opening, typed, shaped, units),
            light=not shaped and not tally.words and (verb is None or is_light(verb.low)),
            seeks=_both_seek(verb, tool),
            by_name=by_name,
            unasked=_acts_unasked(tool, units),
        )
        if verb is not None and _contradicts(verb, tool):
            return replace(match, score=score * 0.3, strong=False, plausible=False)
        if verb is not None and _only_reads(verb, tool):
            return replace(match, score=score * 0.7, strong=match.strong and verb.low[:4] not in _VIEWING)
        return match

    def _opening(self, number: int, lo: int, hi: int) -> _Opening:
        index = self.leading(lo, hi)
        if index is None:
            return _Opening(None, None, 0.0, imperative=False)
        unit, before = self.reading.units[index], self.reading.units[lo:index]
        asked = any(other.low in ASKING for other in before) or (bool(before) and before[-1].low in ARTICLES)
        return _Opening(index, unit, self._found[number][index], imperative=unit.kind == "word" and not asked)

    def _tally(self, number: int, tool: ToolView, lo: int, hi: int, leading: int | None) -> _Tally:
        tally = _Tally()
        quiet = False
        seen: set[str] = set()
        for index in range(lo, hi):
            unit = self.reading.units[index]
            # What is to be written or said may speak of anything.
            quiet = quiet or (tally.raw > 0 and unit.low in {"saying", ":"})
            found = self._found[number][index]
            if index + 1 < hi and len(self._joined[index]) >= 4:
                found = max(found, tool.vocabulary.get(self._joined[index], 0.0))
            if found <= 0 or unit.stem in seen:
                continue
            seen.add(unit.stem)
            generic = all(is_generic(word) for word in self._stems[index]) and not tool.only_verbs
            tally.words += not generic and found >= 0.4
            tally.strong_words += not generic and found >= 1.2
            found *= _LEADING if index == leading else 0.5 if generic else 1.0
            found *= 0.3 if quiet else 1.0
            tally.raw += found
            tally.score += found * min((self._rarity.get(word, 1.0) for word in self._stems[index]), default=1.0)
        said = {part for index in range(lo, hi) for part in self._stems[index]}
        if len(tool.name_stems) > 1 and set(tool.name_stems) <= said:
            tally.score += 1.5
        return tally

    def _is_plausible(
        self, tool: ToolView, tally: _Tally, opening: _Opening, typed: float, shaped: float, units: Sequence[Unit]
    ) -> bool:
        if tally.raw >= ENOUGH or opening.evidence >= 1.0 or (tally.words > 0 and typed >= 0.7):
            return True
        if tally.strong_words > 0 and tally.raw >= 1.0:
            return True
        if tool is self._fetcher and any(unit.kind == "uri" for unit in units):
            return True
        verb = opening.unit
        if verb is None:
            return shaped > 0
        unknown = opening.imperative and opening.evidence <= 0 and not tally.words and not is_generic(verb.stem)
        if shaped > 0 and not unknown:
            return True
        if _both_seek(verb, tool) and any(unit.kind == "proper" for unit in units):
            return True
        return opening.evidence >= 0.5 and _brings_value(tool, units, verb)


def _both_seek(verb: Unit | None, tool: ToolView) -> bool:
    """Whether request and tool both look something up."""
    return verb is not None and verb.low[:4] in _SEEKING and any(word[:4] in _SEEKING for word in tool.name_stems)


def close_matches(matches: Sequence[Match]) -> list[Match]:
    """Return the matches near enough to the best one for their arguments to decide."""
    if not matches:
        return []
    best = matches[0]
    return [match for match in matches if match.score >= best.score * _CLOSE]


def _brings_value(tool: ToolView, units: Sequence[Unit], verb: Unit) -> bool:
    """Whether a verb of the tool's kind comes with a value of a format the tool takes, or with its parameter's word."""
    kinds = {unit.kind for unit in units}
    formats = {(leaf.item or leaf).form for leaf in tool.leaves}
    if "email" in kinds and "email" in formats:
        return True
    if is_light(verb.low):
        return False
    return bool(kinds & {"date", "moment"} and formats & {"date", "date-time"}) or any(
        verb.stem in leaf.about for leaf in tool.leaves
    )


def _acts_unasked(tool: ToolView, units: Sequence[Unit]) -> bool:
    acts = [word for word in tool.name_stems if is_generic(word) and _READING not in families_of(word)]
    if not acts:
        return False
    families = frozenset(number for word in acts for number in families_of(word))
    said = [part for unit in units if unit.is_word and not unit.is_stop for part in unit.parts]
    return not any(part in acts or families_of(part) & families for part in said)


def _verbs_of(tool: ToolView) -> frozenset[int]:
    opening = content_stems(tool.description)[:1]
    return frozenset(number for word in (*tool.name_stems, *opening) for number in families_of(word))


def _contradicts(verb: Unit, tool: ToolView) -> bool:
    """Whether the request takes something away and the tool does not, or the other way round."""
    asked = families_of(verb.stem) if verb.is_word else frozenset[int]()
    offered = _verbs_of(tool)
    if not asked or not offered or tool.vocabulary.get(verb.stem, 0.0) >= 1.0:
        return False
    return bool(asked & _ENDING) != bool(offered & _ENDING)


def _only_reads(verb: Unit, tool: ToolView) -> bool:
    """Whether the request only wants to see something and the tool does something."""
    asked = families_of(verb.stem) if verb.is_word else frozenset[int]()
    offered = _verbs_of(tool)
    return (
        asked == frozenset({_READING})
        and bool(offered)
        and _READING not in offered
        and verb.stem not in tool.name_stems
    )


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


def _evidence_of_all(stems: Sequence[Sequence[str]], tool: ToolView) -> list[float]:
    known: dict[tuple[str, ...], float] = {}
    found: list[float] = []
    for words in stems:
        key = tuple(words)
        if key not in known:
            known[key] = _evidence(words, tool)
        found.append(known[key])
    return found


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


def _particles(tool: ToolView, units: Sequence[Unit]) -> float:
    """Return what small words in a tool's name say: `turn_off` when the request says `off`."""
    said = {unit.low for unit in units if unit.is_stop}
    return sum(1.0 for word in tool.particles if word in said)


def _typed_evidence(tool: ToolView, units: Sequence[Unit]) -> float:
    """Return the little that values of fitting kinds say."""
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
    return min(typed, 1.0)


def _shaped_evidence(tool: ToolView, units: Sequence[Unit], said: str) -> float:
    """Return the much that the outline of an example says."""
    shown = [example for made in tool.leaves for example in made.shown]
    if _FORMULA.search(said) and any(_FORMULA.search(example) for example in shown):
        return 1.6
    told = [unit for unit in units if unit.kind in {"mixed", "number", "quoted", "proper"}]
    return 1.6 if any(looks_like_example(unit.raw, made) for unit in told for made in tool.leaves) else 0.0
