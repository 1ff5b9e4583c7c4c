"""What a run has to do, said a second time: scripts of model turns, and what they must lead to.

`predict()` knows nothing of the runtime: it is the contract of the tools, runs and events pages as one short loop.
`run_world.py` plays the same scripts for real.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lousho import Message, PropagatingToolError

FAILURES = {"raises": "execution", "ghost": "not-found", "bad": "validation"}
RUNNABLE = ("fine", "waits", "threaded", "counts", "raises", "gated", "halts")
KINDS = (*RUNNABLE, "ghost", "bad")
NO_ROOM = "Stopped: the model's reply reached its token limit (max_tokens) before it had any text."
KNOWN_REASONS = ("stop", "length", "tool_calls", "content_filter", "error", "other")


class Halt(PropagatingToolError):
    """The scripted error that ends a run on purpose."""


class ScriptedFailure(OSError):
    """The scripted failure of a model call."""


@dataclass(frozen=True)
class Call:
    """One scripted tool call. `snapshots` counts for `counts`, `approved` for `gated`."""

    kind: str
    snapshots: int = 1
    approved: bool = True


@dataclass(frozen=True)
class Turn:
    """One scripted model turn."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = "stop"
    fails: bool = False


@dataclass(frozen=True)
class Script:
    """All that decides how a run goes; what differs between two plays of it must make no difference."""

    turns: tuple[Turn, ...]
    max_steps: int = 50
    concurrency: int | Literal["unbounded"] = "unbounded"
    gaps: int = 0
    """How often everything gives way to others in between."""
    order: int = 0
    """Which of the calls that wait is let go first."""


@dataclass
class Expected:
    """What a script must lead to. `error` is set for a run that must fail."""

    error: Literal["provider", "halt"] | None = None
    finish: str = ""
    text: str = ""
    limit: str = ""
    """What the text has to say, besides, of the limit that stopped the run."""
    steps: int = 0
    ids: list[str] = field(default_factory=lambda: [])
    told: dict[str, Any] = field(default_factory=lambda: {})
    """By call: its value, or the kind of its failure."""
    runs: set[str] = field(default_factory=lambda: set())
    """The calls whose function is called."""
    halts: set[str] = field(default_factory=lambda: set())
    """The calls that end the run."""
    gated: set[str] = field(default_factory=lambda: set())
    """The calls that wait for a person."""


def call_id(step: int, index: int) -> str:
    return f"c{step}.{index}"


def number_of(step: int, index: int) -> int:
    """Return the argument of a call: no two calls of a script are the same."""
    return step * 100 + index


def outcome_of(call: Call, number: int) -> Any:
    """Return what the model must be told of a call: its value or the kind of its failure."""
    if call.kind in FAILURES:
        return FAILURES[call.kind]
    if call.kind == "gated" and not call.approved:
        return "rejected"
    if call.kind == "counts":
        return number + call.snapshots - 1 if call.snapshots else None
    return number


def predict(script: Script) -> Expected:
    """Return what the contract says about a script."""
    expected = Expected()
    for step, turn in enumerate(script.turns, start=1):
        expected.steps = step
        if turn.fails:
            expected.error = "provider"
            return expected
        for index, call in enumerate(turn.calls):
            expected.ids.append(call_id(step, index))
            expected.told[call_id(step, index)] = outcome_of(call, number_of(step, index))
            if call.kind == "gated":
                expected.gated.add(call_id(step, index))
            if call.kind not in ("ghost", "bad") and (call.kind != "gated" or call.approved):
                expected.runs.add(call_id(step, index))
        expected.halts = {call_id(step, index) for index, call in enumerate(turn.calls) if call.kind == "halts"}
        if expected.halts:
            expected.error = "halt"
            return expected
        if not turn.calls:
            reason = turn.finish if turn.finish in KNOWN_REASONS else "other"
            expected.finish = "stop" if reason == "tool_calls" else reason
            expected.text = turn.text or (NO_ROOM if reason == "length" else "")
            return expected
        if step == script.max_steps:
            expected.finish, expected.text = "max-steps", turn.text
            expected.limit = f"Stopped after {step} step{'' if step == 1 else 's'}: the step limit was reached"
            return expected
    raise AssertionError("a script must end")


def check_messages(messages: Sequence[Message], *, waiting: bool = False) -> None:
    """Check that every call has exactly one result, right behind its turn and in call order, and all of it is JSON.

    `waiting`: the results of the last turn may be missing, because it waits for a person.
    """
    for message in messages:
        assert Message.from_dict(json.loads(json.dumps(message.to_dict(), allow_nan=False))) == message
    owed: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            assert owed, "a result without its call"
            assert message.tool_call_id == owed.pop(0), "a result out of place"
        else:
            assert not owed, f"calls without a result: {owed}"
            owed = [call.id for call in message.tool_calls]
            assert len({*owed} | seen) == len(owed) + len(seen), "an id twice"
            seen |= set(owed)
    assert waiting or not owed, f"calls without a result: {owed}"


def told_by_id(messages: Sequence[Message]) -> dict[str, Any]:
    """Return what the model was told of every call: its value, or the kind of its failure."""
    found: dict[str, Any] = {}
    for message in messages:
        if message.role == "tool":
            value = json.loads(str(message.content))
            assert message.is_error == isinstance(value, dict), message
            found[str(message.tool_call_id)] = value["kind"] if isinstance(value, dict) else value
    return found
