"""Walks the events of one run and keeps what the rules need to know. `event_rules` has the rules themselves.

Each sub-agent is walked apart: the guarantees hold for the lead's events and separately for each sub-agent's.
Source: events page ("Ordering guarantees"), agents page ("Sub-agents").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

STOPPED = frozenset({"aborted", "error", "steered", "guardrail", "budget-exceeded"})
"""Reasons a step or run ends early with, leaving things open."""

_IN_STEPS = frozenset(
    {
        "text.delta",
        "text.done",
        "object.delta",
        "reasoning.start",
        "reasoning.delta",
        "reasoning.done",
        "provider.retry",
        "provider.fallback",
        "compaction.start",
        "compaction.done",
    }
)
_BEFORE_TEXT = frozenset(
    {"compaction.start", "compaction.done", "provider.retry", "provider.fallback", "reasoning.start", "reasoning.delta"}
)
_AFTER_AN_APPROVAL = frozenset(
    {"approval.requested", "input.queued", "input.steered", "step.done", "run.done", "error", "budget.exceeded"}
)
_AFTER_A_STEER = frozenset({"reasoning.done", "input.queued", "input.steered", "step.done"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and at which event."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a stream in its wire form, and its place."""

    index: int
    data: dict[str, Any]

    @property
    def type(self) -> str:
        """The event's type, or an empty text."""
        return str(self.data.get("type") or "")

    @property
    def call_id(self) -> str:
        """The id of the tool call it speaks of."""
        return str(self.data.get("toolCallId"))

    @property
    def label(self) -> str:
        """How the event is shown: number, type and what tells it from the others."""
        telling = ("step", "toolCallId", "toolName", "index", "finishReason", "kind", "text")
        shown = [json.dumps(self.data[key], ensure_ascii=False, default=str) for key in telling if key in self.data]
        task = self.data.get("subagent")
        if isinstance(task, Mapping):
            shown.append(f"[{cast('Mapping[str, Any]', task).get('name')}]")
        return " ".join([f"#{self.index}", self.type or "?", *(text[:40] for text in shown)])

    def problem(self, text: str) -> Problem:
        """Return what is wrong with this event."""
        return Problem(self.index, f"{self.label}: {text}")


@dataclass(slots=True)
class Call:
    """A tool call whose start, or resume, was seen."""

    name: str
    began: Seen
    parent: str | None = None
    partials: int = 0
    state: str = "open"
    """`open`, `waiting` for a decision, or `settled`."""


Rule: TypeAlias = "Callable[[RunWalk, Seen], None]"


class RunWalk:
    """What has been seen of one run, lead or sub-agent, and what was wrong with it."""

    def __init__(
        self, rules: Mapping[str, Rule], *, continued: bool, parent: RunWalk | None = None, call_id: str = ""
    ) -> None:
        self._rules = rules
        self.problems: list[Problem] = []
        self.parent = parent
        self.call_id = call_id
        """The call that started it, of a sub-agent."""
        self.children: list[RunWalk] = []
        if parent is not None:
            parent.children.append(self)
        self.continued = continued
        self.first: Seen | None = None
        self.last: Seen | None = None
        self.done: Seen | None = None
        self.step: Seen | None = None
        self.last_step: Seen | None = None
        self.step_reason: str | None = None
        self.applied: Seen | None = None
        self.tripped: Seen | None = None
        self.types: set[str] = set()
        self.calls: dict[str, Call] = {}
        self.orphans: list[Seen] = []
        self.begin_step()

    def begin_step(self) -> None:
        """Forget what belongs to the step before."""
        self.text: list[str] = []
        self.text_done = False
        self.rewrote = False
        self.tools = False
        self.asked: Seen | None = None
        self.steering: Seen | None = None
        self.reasoning: list[str] | None = None
        self.compacting: Seen | None = None

    def wrong(self, one: Seen, text: str) -> None:
        """Note a problem."""
        self.problems.append(one.problem(text))

    def knows(self, call_id: str) -> bool:
        """Whether a call with this id has started here."""
        return call_id in self.calls

    def waits(self, call_id: str) -> bool:
        """Whether a call waits for a decision, itself or through what it started."""
        if self.calls[call_id].state == "waiting":
            return True
        if any(inner.parent == call_id and inner.state == "waiting" for inner in self.calls.values()):
            return True
        return any(
            child.call_id == call_id and any(child.waits(inner) for inner in child.calls) for child in self.children
        )

    def see(self, one: Seen) -> None:
        """Take the next event."""
        if self.first is None:
            self.first = one
            if self.parent is None and one.type != "run.start":
                self.wrong(one, "is the first event; a run begins with run.start")
        if self.done is not None:
            self.wrong(one, "comes after run.done, which is the last event")
        if one.type in _IN_STEPS and self.step is None:
            self.wrong(one, "lies outside of a step")
        if one.type in _BEFORE_TEXT and self.step is not None and (self.text or self.text_done or self.tools):
            self.wrong(one, "comes after text or tool events of its step")
        if self.asked is not None and one.type not in _AFTER_AN_APPROVAL:
            self.wrong(one, f"comes after #{self.asked.index} approval.requested; a paused step only ends")
        if self.steering is not None and one.type not in _AFTER_A_STEER:
            self.wrong(one, f"comes after #{self.steering.index} input.steered (immediate); its step ends next")
        if self.applied is not None and one.type not in ("step.start", "input.applied", "input.queued"):
            self.wrong(one, f"comes between #{self.applied.index} input.applied and the step.start it names")
        rule = self._rules.get(one.type)
        if rule is not None:
            rule(self, one)
        self.types.add(one.type)
        self.last = one

    def at_the_end(self, *, complete: bool) -> Iterable[Problem]:
        """Return what is missing when no more events come."""
        if not complete or self.last is None:
            return
        if self.parent is None and self.done is None:
            yield self.last.problem("is the last event; a run ends with run.done")
        if self.step is not None:
            yield self.step.problem("has no step.done")
        reason = self.done.data.get("finishReason") if self.done is not None else None
        top = self.parent
        while top is not None and reason is None:
            reason, top = (top.done.data.get("finishReason") if top.done is not None else None), top.parent
        if not self.continued and reason != "aborted":
            for one in self.orphans:
                yield one.problem("has no tool.start")
        if reason in STOPPED or reason == "awaiting-approval":
            return
        for call in self.calls.values():
            if call.state != "settled":
                yield call.began.problem("has no tool.done or tool.error")
