"""A user's message becomes tasks: one call each, in order, with what is known of its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from lousho.models.demo.arguments import Arguments, arguments_for
from lousho.models.demo.choose import Evidence, Match, close_matches
from lousho.models.demo.clauses import Clause, clauses_of
from lousho.models.demo.convert import PLACES
from lousho.models.demo.reading import Reading, Unit, read
from lousho.models.demo.results import Outcome
from lousho.models.demo.schema import as_mapping
from lousho.models.demo.views import ToolView
from lousho.models.demo.words import ASKING, AUXILIARIES, BACK_REFERENCES, RESULT_WORDS, families_of, is_generic

Status: TypeAlias = Literal["open", "called", "done", "failed", "skipped", "dropped"]

_READING = 0
_WISHES = frozenset("need want please would like can could will wish".split())
_LINKS = frozenset("and what how or also same now instead but then for in on at with to".split())


@dataclass(slots=True)
class Task:
    """One call the user asked for, and what has become of it."""

    tool: ToolView
    arguments: Arguments
    reading: Reading
    lo: int
    hi: int
    group: int
    """Which clause it came from: calls of one clause do not wait for each other."""
    after: bool = False
    """Whether the user said that it comes after the one before."""
    status: Status = "open"
    outcome: Outcome | None = None
    tried: set[str] = field(default_factory=set[str])
    call_id: str = ""
    reported: bool = False
    repairs: int = 0
    asked_twice: bool = False
    candidates: list[Match] = field(default_factory=lambda: [])
    """Tools between which the user has to choose first."""

    @property
    def refers_back(self) -> bool:
        """Whether the clause speaks of something that was said or found before."""
        units = self.reading.units[self.lo : self.hi]
        return any(self._points_back(unit, nxt) for unit, nxt in zip(units, [*units[1:], None], strict=False))

    def _points_back(self, unit: Unit, nxt: Unit | None) -> bool:
        """Whether a word stands for something known: not the `it` of `it is late`, not the `that` of `say that …`."""
        if unit.stem in RESULT_WORDS or unit.low == "same":
            return True
        alone = nxt is None or nxt.kind == "mark" or nxt.is_preposition or nxt.low in {"one", "ones", "and", "please"}
        noun = nxt is not None and (nxt.stem in self.tool.nouns or nxt.stem in RESULT_WORDS)
        if unit.low in PLACES or unit.low in {"that", "this"}:
            return alone or noun
        return unit.low in BACK_REFERENCES and (nxt is None or nxt.low not in AUXILIARIES)

    @property
    def only_reads(self) -> bool:
        """Whether the tool's name promises that it changes nothing."""
        return any(_READING in families_of(word) for word in self.tool.name_stems) or not any(
            is_generic(word) for word in self.tool.name_stems
        )

    @property
    def words(self) -> list[str]:
        """The words of the clause."""
        return [unit.raw for unit in self.reading.units[self.lo : self.hi] if unit.kind != "mark"]

    def failed_with(self, tool: ToolView) -> bool:
        """Whether this was a call of `tool` that failed."""
        return self.tool is tool and self.status == "failed"

    def key(self) -> str:
        """Return the arguments in a form that can be compared."""
        return json.dumps(self.arguments.call(), sort_keys=True, default=str)


def known_words(tools: Sequence[ToolView]) -> frozenset[str]:
    """Return the stems that a capital makes no name of, because tools and parameters are called so."""
    return frozenset(
        word for tool in tools for word in (*tool.name_stems, *(w for leaf in tool.leaves for w in leaf.words))
    ) | {word for tool in tools for word, weight in tool.vocabulary.items() if weight >= 1.6}


def tasks_for(message: str, tools: Sequence[ToolView], now: datetime) -> tuple[list[Task], Evidence]:
    """Return the tasks of a message, none when it asks for no tool."""
    reading = read(message, now=now, known=known_words(tools))
    evidence = Evidence(reading, tools)
    clauses = clauses_of(evidence)
    requests = [clause for clause in clauses if clause.matches and not _only_states(clause, clauses, reading)]
    context = [(clause.lo, clause.hi) for clause in clauses if clause not in requests]
    tasks: list[Task] = []
    for clause in requests:
        tasks.extend(_tasks_of(clause, len(tasks), reading, context, now))
    return tasks, evidence


def _only_states(clause: Clause, clauses: Sequence[Clause], reading: Reading) -> bool:
    """Whether a sentence tells something beside another one that asks: `My order is A-17.`"""
    if not any(other is not clause and other.matches for other in clauses):
        return False
    units = reading.units[clause.lo : clause.hi]
    if not units or units[0].low not in {"my", "our", "i", "im", "we", "the", "it", "this", "ive"}:
        return False
    if any(unit.low in _WISHES for unit in units[:6]):
        return False
    return any(unit.low in AUXILIARIES | {"im", "ive"} for unit in units[:7])


def _tasks_of(
    clause: Clause, group: int, reading: Reading, context: Sequence[tuple[int, int]], now: datetime
) -> list[Task]:
    matches = clause.matches or []
    options: list[tuple[tuple[float, int, bool], Match, list[Arguments]]] = []
    close = close_matches(matches)[:6]
    named = any(match.by_name for match in close)
    for match in close:
        calls = arguments_for(match.tool, reading, clause.lo, clause.hi, now, context)
        if not match.strong and not _may_be_meant(match, calls[0], clause, reading):
            continue
        cost, fewer_values, acts = _cost(match, calls[0], matches[0].score)
        # A verb that another tool has in its name was meant for that one.
        cost += 1.2 if named and not match.by_name else 0.0
        options.append(((cost, fewer_values, acts), match, calls))
    if not options:
        return []
    options.sort(key=lambda option: option[0])
    _, best, calls = options[0]
    tasks = [Task(best.tool, call, reading, clause.lo, clause.hi, group, after=clause.after) for call in calls]
    least = options[0][0][0]
    rivals = [match for order, match, _ in options if order[0] <= least + 0.1 and order[1:] == options[0][0][1:]]
    if len(rivals) > 1 and not _is_read(best.tool):
        tasks = tasks[:1]
        tasks[0].candidates = rivals
    return tasks


def _cost(match: Match, call: Arguments, best: float) -> tuple[float, int, bool]:
    """Return how badly a tool fits a clause, for choosing between tools that the words name alike."""
    gaps = len(call.missing) + len(call.complaints)
    cost = 2.0 * gaps + (1.5 if match.unasked else 0.0) + 0.8 * call.unexplained + (0.0 if match.strong else 0.5)
    cost += 3.0 * (1.0 - match.score / best) if best > 0 else 0.0
    return cost, -len(call.values), not _is_read(match.tool)


def _may_be_meant(match: Match, call: Arguments, clause: Clause, reading: Reading) -> bool:
    """Whether a tool that the words hardly name is meant: it has all it needs, or points back at what has it."""
    if call.complaints:
        return False
    if call.missing:
        back = any(unit.low in BACK_REFERENCES or unit.low in PLACES for unit in reading.units[clause.lo : clause.hi])
        return back and match.by_name and not match.light
    return _is_founded(match, call)


def _is_founded(match: Match, call: Arguments) -> bool:
    """Whether what fills a tool that the words hardly name is more than any words: a number, a date, a choice …"""
    if not match.tool.leaves:
        return not match.light
    values = [(leaf, call.values[leaf.path]) for leaf in match.tool.leaves if leaf.path in call.values]
    if not values:
        return False
    if not match.light or any(leaf.kind != "string" or leaf.form is not None for leaf, _ in values):
        return True
    return match.seeks and any(value[:1].isupper() for _, value in values)


def _is_read(tool: ToolView) -> bool:
    return any(_READING in families_of(word) for word in tool.name_stems)


def forced_task(message: str, tool: ToolView, now: datetime) -> Task:
    """Return the task for a tool that must be called whatever the message says."""
    reading = read(message, now=now, known=known_words([tool]))
    call = arguments_for(tool, reading, 0, len(reading.units), now)[0]
    return Task(tool, call, reading, 0, len(reading.units), 0)


def follow_ups(message: str, previous: Sequence[Task], now: datetime) -> list[Task]:
    """Return the previous request with other values: `and in Rome?`, `what about tomorrow?`."""
    if not previous:
        return []
    last = previous[-1]
    reading = read(message, now=now, known=known_words([last.tool]))
    units = [unit for unit in reading.units if unit.kind != "mark"]
    if not units or len(units) > 12:
        return []
    links = units[0].low in _LINKS
    if not links and (
        len(units) > 4 or any(unit.is_word and not unit.is_stop and unit.kind == "word" for unit in units)
    ):
        return []
    unknown = [u for u in units if u.kind == "word" and not u.is_stop and u.stem not in last.tool.vocabulary]
    if len(unknown) > 2 or (units[0].low in ASKING and len(units) > 1 and units[1].low != "about"):
        return []
    tasks: list[Task] = []
    for call in arguments_for(last.tool, reading, 0, len(reading.units), now):
        if not call.values:
            return []
        merged = last.arguments.copy()
        merged.values.update(call.values)
        tasks.append(Task(last.tool, merged, reading, 0, len(reading.units), 0))
    return tasks


def repeated(previous: Sequence[Task]) -> list[Task]:
    """Return the previous turn's tasks to be done once more."""
    return [
        Task(task.tool, task.arguments.copy(), task.reading, task.lo, task.hi, task.group, after=task.after)
        for task in previous
    ]


def arguments_of(raw: str) -> Mapping[str, Any]:
    """Return a recorded call's arguments."""
    try:
        value = json.loads(raw or "{}")
    except ValueError:
        return {}
    return as_mapping(value)
