"""One checker for the order of a run's events, for every test that reads a stream.

What the events page promises is a property of all features together: numbering, steps that open and close, calls
that start once and settle once, text that adds up, pauses that stop everything. A test that looks at three events of a
run still wants the rest to hold. The rules themselves are in `event_rules`. Source: events page ("Ordering
guarantees").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from lousho.core.errors import SDKError
from lousho.core.event_wire import event_from_dict
from lousho.core.events import EVENT_CLASSES, BaseEvent
from lousho.testing.event_rules import RULES
from lousho.testing.event_walk import Problem, RunWalk, Seen

E = TypeVar("E")

MAX_PROBLEMS = 20
"""Problems a message lists; one early mistake often makes many more."""
SHOWN_AROUND = 2
"""Events shown before and after one that is wrong."""

_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
_MAY_BE_NULL = frozenset({("run.done", "object")})


class EventOrderError(SDKError):
    """A stream of events breaks what the events page promises. Source: testing page.

    Code: `LOUSHO_TEST_FAILED`.
    """

    default_code = "LOUSHO_TEST_FAILED"

    def __init__(self, problems: Sequence[Problem], seen: Sequence[Seen]) -> None:
        self.problems: list[str] = [problem.text for problem in problems]
        """What is wrong, one sentence each, in the order of the events."""
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        lines = [f"The order of the events is wrong: {count}."]
        lines += [f"- {problem.text}" for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            lines.append(f"- and {len(problems) - MAX_PROBLEMS} more")
        lines += _excerpt({problem.index for problem in problems[:MAX_PROBLEMS]}, seen)
        super().__init__("\n".join(lines))


def check_event_order(
    events: Iterable[E],
    *,
    complete: bool = True,
    resumed: bool = False,
    call_order: Sequence[str] | None = None,
) -> list[E]:
    """Check the events of one stream, event objects or their wire form, and return them as a list.

    - `complete=False`: the stream was left before its end, so `run.done` and late settlements may be missing.
    - `resumed=True`: the run goes on from a checkpoint, so calls of its unfinished step may run before the first
      `step.start`. A stream that continues an approval is recognised by its `tool.resume`.
    - `call_order`: the ids of the tool calls in the model's order; `tool.start` must follow it.

    Unknown event types only count for `seq`. Raises `LOUSHO_TEST_FAILED` (`EventOrderError`), listing every event that
    is out of place. Source: testing page, events page ("Ordering guarantees").
    """
    given = list(events)
    seen: list[Seen] = []
    problems: list[Problem] = []
    for index, event in enumerate(given):
        wire = _wire_form(event)
        if not wire:
            problems.append(Problem(index, f"#{index} is a {type(event).__name__}, which is no event"))
        seen.append(Seen(index, wire or {}))
    problems += _envelope_problems(seen)
    if not seen and complete:
        problems.append(Problem(0, "there are no events; a run has at least run.start and run.done"))
    problems += _order_problems(seen, complete=complete, resumed=resumed)
    if call_order is not None:
        problems += _call_order_problems(seen, list(call_order))
    if problems:
        raise EventOrderError(sorted(problems, key=lambda problem: problem.index), seen)
    return given


def _wire_form(event: object) -> dict[str, Any] | None:
    if isinstance(event, BaseEvent):
        return event.to_dict()
    return dict(cast("Mapping[str, Any]", event)) if isinstance(event, Mapping) else None


def _envelope_problems(seen: Sequence[Seen]) -> Iterable[Problem]:
    """Check what every event has by itself: fields and their types, numbering, one run, JSON that round-trips."""
    run_id = seen[0].data.get("runId") if seen else None
    for one in seen:
        if not one.data:
            continue
        if one.data.get("seq") != one.index:
            yield one.problem(f"has seq {one.data.get('seq')!r}; it is event number {one.index} of the stream")
        if one.data.get("runId") != run_id or not run_id:
            yield one.problem(f"has runId {one.data.get('runId')!r}; the stream began with {run_id!r}")
        timestamp = one.data.get("timestamp")
        if not isinstance(timestamp, str) or not _TIMESTAMP.fullmatch(timestamp):
            yield one.problem(f"has the timestamp {timestamp!r}; it is not like 2026-10-01T09:30:00.000Z")
        yield from _shape_problems(one)


def _shape_problems(one: Seen) -> Iterable[Problem]:
    try:
        equal = json.loads(json.dumps(one.data, allow_nan=False)) == one.data
    except (TypeError, ValueError, RecursionError) as error:
        yield one.problem(f"is not JSON ({error})")
        return
    if not equal:
        yield one.problem("is not the same after a round trip through JSON")
    cls = EVENT_CLASSES.get(one.type)
    if cls is None:
        if not one.type:
            yield one.problem("has no type")
        return
    try:
        event_from_dict(one.data)
    except SDKError as error:
        yield one.problem(f"is not valid: {error.detail}")
    for _, wire, required in cls.wire_fields:
        if not required and wire in one.data and one.data[wire] is None and (one.type, wire) not in _MAY_BE_NULL:
            yield one.problem(f"has {wire}: null; an optional field without a value is left out")


def _order_problems(seen: Sequence[Seen], *, complete: bool, resumed: bool) -> Iterable[Problem]:
    """Walk the events of the run and, apart from each other, of every sub-agent in it."""
    continued = resumed or any(one.type == "tool.resume" for one in seen)
    lead = RunWalk(RULES, continued=continued)
    children: dict[str, RunWalk] = {}
    for one in seen:
        if one.type not in EVENT_CLASSES:
            continue
        task = one.data.get("subagent")
        if not isinstance(task, Mapping):
            lead.see(one)
            continue
        path = _path_of(cast("Mapping[str, Any]", task))
        child = children.get(path)
        if child is None:
            above, _, call_id = path.rpartition("/")
            parent = children.get(above, lead) if above else lead
            child = children[path] = RunWalk(RULES, continued=continued, parent=parent, call_id=call_id)
            if not continued and not parent.knows(call_id):
                yield one.problem(f"comes before the tool.start of {call_id!r}, the call that started the sub-agent")
        child.see(one)
    for walk in (lead, *children.values()):
        yield from walk.problems
        yield from walk.at_the_end(complete=complete)


def _path_of(task: Mapping[str, Any]) -> str:
    parent = task.get("parent")
    above = f"{_path_of(cast('Mapping[str, Any]', parent))}/" if isinstance(parent, Mapping) else ""
    return f"{above}{task.get('toolCallId')}"


def _call_order_problems(seen: Sequence[Seen], order: list[str]) -> Iterable[Problem]:
    last = -1
    for one in seen:
        if one.type != "tool.start" or one.call_id not in order:
            continue
        place = order.index(one.call_id)
        if place < last:
            yield one.problem(f"starts after {order[last]!r}, which the model called later")
        last = max(last, place)


def _excerpt(wrong: set[int], seen: Sequence[Seen]) -> list[str]:
    """Return the events that are wrong, marked, with their neighbours."""
    near = {index + step for index in wrong for step in range(-SHOWN_AROUND, SHOWN_AROUND + 1)}
    lines: list[str] = []
    skipped = False
    for one in seen:
        if one.index not in near:
            skipped = True
            continue
        if skipped:
            lines.append("    ...")
        skipped = False
        lines.append(f"  {'>' if one.index in wrong else ' '} {one.label}")
    return ["Events:", *lines, *(["    ..."] if skipped else [])] if lines else []
