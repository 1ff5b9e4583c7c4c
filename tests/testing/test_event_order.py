"""The checker of event streams accepts every order the stream-events page allows and names what breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lousho.agent import create_agent
from lousho.core.errors import SDKError
from lousho.core.event_wire import event_from_dict
from lousho.core.usage import RunUsage
from lousho.testing import EventOrderError, check_event_order, mock_model
from lousho.tools import tool

Event = dict[str, Any]

DEFAULTS: dict[str, Event] = {
    "run.start": {"agentName": "agent"},
    "step.start": {"step": 1},
    "step.done": {"step": 1, "finishReason": "stop"},
    "text.delta": {"text": "Hi "},
    "text.done": {"text": "Hi "},
    "object.delta": {"object": {}},
    "reasoning.delta": {"text": "hm"},
    "reasoning.done": {"text": "hm"},
    "tool.start": {"args": {}},
    "tool.resume": {"args": {}},
    "tool.partial": {"output": 1, "index": 0},
    "tool.done": {"result": None, "durationMs": 1},
    "tool.error": {"error": {"name": "Error", "message": "no"}, "durationMs": 1},
    "todo.updated": {"todos": [], "counts": {}},
    "approval.requested": {"approvalId": "ap-1", "args": {}},
    "permission.decision": {"decision": "ask", "at": "now"},
    "error": {"error": {"name": "Error", "message": "no"}},
    "provider.retry": {"attempt": 1, "maxRetries": 2, "delayMs": 1, "error": {"message": "no"}, "provider": "p"},
    "provider.fallback": {"from": "a", "to": "b", "error": {"message": "no"}},
    "compaction.start": {"strategy": "s", "tokensBefore": 9, "contextWindow": 9, "thresholdTokens": 8},
    "compaction.done": {"strategy": "s", "tokensBefore": 9, "tokensAfter": 5, "prunedToolCallIds": []},
    "context.cleared": {"sessionId": "s", "messagesCleared": 2},
    "budget.exceeded": {"limit": "maxTokens", "value": 9, "max": 8, "scope": "run"},
    "input.queued": {"id": "i", "text": "more"},
    "input.steered": {"id": "i", "text": "no, this", "mode": "immediate"},
    "input.applied": {"id": "i", "step": 2},
    "guardrail.tripped": {"name": "g", "kind": "input", "reason": "r"},
    "guardrail.rewrote": {"name": "g", "kind": "output", "reason": "r"},
    "agent.drift": {"toolsAdded": [], "toolsRemoved": [], "toolsChanged": [], "instructions": True},
    "handoff": {"from": "a", "to": "b"},
    "run.done": {"finishReason": "stop", "text": "Hi "},
}


def ev(type: str, call: str | None = None, **fields: Any) -> Event:
    """An event with its required fields; `call` is the id of the tool call it speaks of."""
    out: Event = {"type": type, **DEFAULTS.get(type, {}), **fields}
    if call is not None:
        out["toolCallId"] = call
        if type not in ("handoff", "todo.updated"):
            out.setdefault("toolName", "look_up")
    return out


def numbered(events: list[Event]) -> list[Event]:
    """The events with what every event carries."""
    return [
        {"type": "", "runId": "run-1", "seq": seq, "timestamp": "2026-10-01T09:30:00.000Z", "v": 1, **event}
        for seq, event in enumerate(events)
    ]


def run(*inside: Event, done: Event | None = None, start: bool = True) -> list[Event]:
    """A run around the given events."""
    return numbered([*([ev("run.start")] if start else []), *inside, done or ev("run.done")])


def step(number: int, *inside: Event, reason: str = "stop") -> list[Event]:
    """A step around the given events."""
    return [ev("step.start", step=number), *inside, ev("step.done", step=number, finishReason=reason)]


def ended(reason: str, text: str = "") -> Event:
    return ev("run.done", finishReason=reason, text=text)


SAID = [ev("text.delta"), ev("text.done")]
LAST = step(2, *SAID)
ASKS = [ev("tool.start", "c1"), ev("tool.start", "c2"), ev("permission.decision", "c2"), ev("tool.done", "c1")]
TASK = {"name": "helper", "depth": 1, "toolCallId": "c1"}
DEEPER = {"name": "deep", "depth": 2, "toolCallId": "c1", "parent": TASK}


def of_helper(*events: Event, task: Event = TASK) -> list[Event]:
    return [{**event, "subagent": task} for event in events]


GOOD: dict[str, list[Event]] = {
    "text only": run(*step(1, ev("text.delta"), ev("text.delta", text="you"), ev("text.done", text="Hi you"))),
    "one tool call": run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), reason="tool_calls"), *LAST),
    "text and a tool": run(*step(1, *SAID, ev("tool.start", "c1"), ev("tool.error", "c1"), reason="tool_calls"), *LAST),
    "an empty answer": run(*step(1), done=ended("stop")),
    "parallel calls": run(
        *step(
            1,
            ev("tool.start", "c1"),
            ev("tool.start", "c2"),
            ev("tool.partial", "c2"),
            ev("tool.partial", "c1"),
            ev("tool.partial", "c2", index=1),
            ev("tool.done", "c2"),
            ev("todo.updated", "c2"),
            ev("tool.error", "c1"),
            reason="tool_calls",
        ),
        *LAST,
    ),
    "reasoning and a retry": run(
        *step(
            1,
            ev("compaction.start"),
            ev("compaction.done"),
            ev("reasoning.start"),
            ev("reasoning.delta"),
            ev("reasoning.done"),
            ev("provider.retry"),
            ev("provider.fallback"),
            ev("reasoning.start"),
            ev("reasoning.delta", text="a"),
            ev("reasoning.delta", text="b"),
            ev("reasoning.done", text="ab"),
            *SAID,
        )
    ),
    "a pause": run(
        *step(1, *ASKS, ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")
    ),
    "a continuation": run(
        ev("agent.drift"), ev("tool.resume", "c2"), ev("tool.partial", "c2"), ev("tool.done", "c2"), *LAST
    ),
    "a continuation that pauses again": run(
        ev("tool.resume", "c2"), ev("approval.requested", "c2"), done=ended("awaiting-approval")
    ),
    "a decision while another is open": run(done=ended("awaiting-approval")),
    "a continuation that is aborted": run(ev("tool.error", "c2"), done=ended("aborted")),
    "an abort": run(*step(1, ev("text.delta"), reason="aborted"), done=ended("aborted", "Hi ")),
    "a failure": run(*step(1, ev("text.delta"), reason="error"), ev("error"), done=ended("error")),
    "a failure before the first step": run(ev("error"), done=ended("error")),
    "out of steps": run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1")), done=ended("max-steps", "stopped")),
    "an object": run(
        *step(1, ev("text.delta", text="{}"), ev("object.delta"), ev("text.done", text="{}")),
        done=ev("run.done", object=None),
    ),
    "queued input": run(*step(1, ev("input.queued"), *SAID), ev("input.applied"), *LAST),
    "steering": run(*step(1, ev("input.steered"), reason="steered"), ev("input.applied"), *LAST),
    "steering that waits": run(
        *step(1, ev("text.delta"), ev("input.steered", mode="queued"), ev("text.done")), ev("input.applied"), *LAST
    ),
    "a blocked input": run(ev("guardrail.tripped"), done=ended("guardrail")),
    "a blocked output": run(
        *step(1, ev("text.delta"), ev("guardrail.tripped", kind="output")), done=ended("guardrail")
    ),
    "a blocked call that raises": run(
        *step(1, ev("tool.start", "c1"), ev("guardrail.tripped", kind="tool"), reason="error"),
        ev("error"),
        done=ended("error"),
    ),
    "a rewritten output": run(
        *step(1, ev("text.delta"), ev("guardrail.rewrote"), ev("text.done", text="safe")), done=ended("stop", "safe")
    ),
    "a spent budget": run(*step(1, *SAID), ev("budget.exceeded"), done=ended("budget-exceeded", "Hi ")),
    "a handoff": run(
        *step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), reason="tool_calls"), ev("handoff", "c1"), *LAST
    ),
    "hosted tools before the text": run(
        *step(1, ev("tool.start", "c1", executedBy="provider"), ev("tool.done", "c1", executedBy="provider"), *SAID)
    ),
    "calls inside of code": run(
        *step(
            1,
            ev("tool.start", "c1"),
            ev("tool.start", "c1:1", parentToolCallId="c1"),
            ev("tool.done", "c1:1", parentToolCallId="c1"),
            ev("tool.done", "c1"),
        ),
        done=ended("stop"),
    ),
    "sub-agents": run(
        ev("step.start"),
        ev("tool.start", "c1"),
        *of_helper(*step(1, ev("tool.start", "c1"))[:-1]),
        *of_helper(*step(1, *SAID), task=DEEPER),
        *of_helper(ev("tool.done", "c1"), ev("step.done", finishReason="tool_calls"), *LAST),
        ev("tool.done", "c1"),
        ev("step.done", finishReason="tool_calls"),
        *LAST,
    ),
    "a sub-agent that pauses": run(
        ev("step.start"),
        ev("tool.start", "c1"),
        *of_helper(ev("step.start"), ev("tool.start", "c7")),
        ev("approval.requested", "c7"),
        *of_helper(ev("step.done", finishReason="aborted")),
        ev("step.done", finishReason="awaiting-approval"),
        done=ended("awaiting-approval"),
    ),
    "an answer that the model itself calls an error": run(
        *step(1, *SAID, reason="error"), done=ev("run.done", finishReason="error", text="Hi ", usage=RunUsage().to_dict())
    ),
    "an event of a newer version": run(ev("future.event", what=None), *step(1, *SAID)),
}  # fmt: skip


@pytest.mark.parametrize("events", GOOD.values(), ids=list(GOOD))
def test_an_allowed_order_passes_in_both_forms(events: list[Event]):
    assert check_event_order(iter(events)) == events
    objects = [event_from_dict(event) for event in events]
    assert check_event_order(objects) == objects


def changed(events: list[Event], index: int, **fields: Any) -> list[Event]:
    """A copy of `events` with fields of one event replaced, or taken out where they are `...`."""
    event = {key: value for key, value in {**events[index], **fields}.items() if value is not ...}
    return [*events[:index], event, *events[index + 1 :]]


TEXT_RUN = GOOD["text only"]
BAD: list[tuple[str, list[Event], str]] = [
    ("a gap in seq", changed(TEXT_RUN, 2, seq=7), "has seq 7; it is event number 2"),
    ("seq from one", numbered([])[:0] + [{**e, "seq": e["seq"] + 1} for e in TEXT_RUN], "has seq 1; it is event number 0"),
    ("another run id", changed(TEXT_RUN, 3, runId="run-2"), "has runId 'run-2'; the stream began with 'run-1'"),
    ("no run id", [{**e, "runId": ""} for e in TEXT_RUN], "has runId ''"),
    ("a timestamp without milliseconds", changed(TEXT_RUN, 1, timestamp="2026-10-01T09:30:00Z"), "has the timestamp"),
    ("another version", changed(TEXT_RUN, 1, v=2), "schema version 2 is not 1"),
    ("a field of the wrong type", changed(TEXT_RUN, 1, step="1"), "'step' has the wrong type"),
    ("a missing field", changed(TEXT_RUN, 0, agentName=...), "'agentName' is missing"),
    ("an optional null", changed(TEXT_RUN, 0, agentId=None), "has agentId: null"),
    ("a value JSON cannot hold", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1", result={1, 2}))), "is not JSON"),
    ("a number JSON cannot hold", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1", result=float("nan")))), "is not JSON"),
    ("a value JSON changes", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1", result=(1,)))), "round trip"),
    ("no type", changed(TEXT_RUN, 1, type=""), "has no type"),
    ("nothing at all", [], "there are no events"),
    ("no run.start", run(*step(1, *SAID), start=False), "is the first event; a run begins with run.start"),
    ("two run.start", run(ev("run.start"), *step(1, *SAID)), "run.start: comes twice"),
    ("no run.done", TEXT_RUN[:-1], "is the last event; a run ends with run.done"),
    ("two run.done", run(*step(1, *SAID), ev("run.done")), "comes after run.done"),
    ("an event after run.done", numbered([*TEXT_RUN, ev("input.queued")]), "comes after run.done"),
    ("a failed run with text", run(ev("error"), done=ended("error", "Hi ")), "belongs to a failed run"),
    ("a failed run with usage", run(ev("error"), done=ev("run.done", finishReason="error", text="", usage={})), "belongs to a failed run"),
    ("a failed run without error", run(done=ended("error")), "has the finish reason 'error', and there was no error"),
    ("a step that never ends", run(ev("step.start"), *SAID), "has no step.done before run.done"),
    ("a step that ends twice", run(*step(1, *SAID), ev("step.done")), "has no step.start"),
    ("a step inside of a step", run(ev("step.start"), *step(2, *SAID), ev("step.done")), "has no step.done"),
    ("a step closed by another number", run(ev("step.start"), *SAID, ev("step.done", step=2)), "closes step 1"),
    ("a step number left out", run(*step(1, *SAID), *step(3, *SAID)), "has the number 3; the step before it was 1"),
    ("a step number from zero", run(*step(0, *SAID)), "has the number 0"),
    ("text outside of a step", run(*SAID), "lies outside of a step"),
    ("a call outside of a step", run(ev("tool.start", "c1"), ev("tool.done", "c1"), *step(1, *SAID)), "lies outside of a step"),
    ("a retry outside of a step", run(ev("provider.retry"), *step(1, *SAID)), "lies outside of a step"),
    ("text that does not add up", changed(TEXT_RUN, 4, text="Hi there"), "is not the text of its step's text.delta events joined"),
    ("text.done twice", run(*step(1, *SAID, ev("text.done"))), "comes after the text.done of its step"),
    ("a delta after text.done", run(*step(1, *SAID, ev("text.delta"))), "comes after the text.done of its step"),
    ("no text.done", run(*step(1, ev("text.delta"))), "ends a step with text.delta and without text.done"),
    ("an object without its text", run(*step(1, ev("object.delta"), *SAID)), "does not follow the text.delta"),
    ("text after a call", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), *SAID)), "comes after the tool events"),
    ("a call before text.done", run(*step(1, ev("text.delta"), ev("tool.start", "c1"), ev("text.done"), ev("tool.done", "c1"))), "comes before the text.done"),
    ("a compaction after text", run(*step(1, *SAID, ev("compaction.start"), ev("compaction.done"))), "comes after text or tool events"),
    ("a retry after text", run(*step(1, *SAID, ev("provider.retry"))), "comes after text or tool events"),
    ("a fallback after a call", run(*step(1, ev("tool.start", "c1"), ev("provider.fallback"), ev("tool.done", "c1"))), "comes after text or tool events"),
    ("a compaction without end", run(*step(1, ev("compaction.start"), *SAID)), "has no compaction.done"),
    ("a compaction without start", run(*step(1, ev("compaction.done"), *SAID)), "has no compaction.start"),
    ("a compaction in a compaction", run(*step(1, ev("compaction.start"), ev("compaction.start"), ev("compaction.done"), *SAID)), "begins while"),
    ("a manual compaction", run(*step(1, ev("compaction.start", trigger="manual"), ev("compaction.done"), *SAID)), "session listeners only"),
    ("a cleared context", run(ev("context.cleared"), *step(1, *SAID)), "session listeners only"),
    ("reasoning after text", run(*step(1, *SAID, ev("reasoning.start"), ev("reasoning.done", text=""))), "comes after text or tool events"),
    ("reasoning open when text comes", run(*step(1, ev("reasoning.start"), *SAID)), "comes before the reasoning.done"),
    ("reasoning open when a call comes", run(*step(1, ev("reasoning.start"), ev("tool.start", "c1"), ev("tool.done", "c1"))), "comes before the reasoning.done"),
    ("reasoning open at a retry", run(*step(1, ev("reasoning.start"), ev("provider.retry"), *SAID)), "comes before the failed attempt's reasoning.done"),
    ("reasoning without end", run(*step(1, ev("reasoning.start"))), "ends a step whose reasoning has no reasoning.done"),
    ("reasoning without start", run(*step(1, ev("reasoning.delta"), *SAID)), "has no reasoning.start"),
    ("reasoning that does not add up", run(*step(1, ev("reasoning.start"), ev("reasoning.done", text="x"), *SAID)), "reasoning.delta events joined"),
    ("reasoning twice at once", run(*step(1, ev("reasoning.start"), ev("reasoning.start"), ev("reasoning.done", text=""), *SAID)), "comes before the reasoning.done"),
    ("a call that never settles", run(*step(1, ev("tool.start", "c1"), reason="tool_calls"), *LAST), "has no tool.done or tool.error before"),
    ("a call that settles twice", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), ev("tool.error", "c1"))), "speaks of a call that is settled"),
    ("a call that starts twice", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), ev("tool.start", "c1"), ev("tool.done", "c1"))), "had started already"),
    ("a result without a start", run(*step(1, ev("tool.done", "c1"))), "has no tool.start"),
    ("a result without a start before the steps", run(ev("tool.done", "c1"), *step(1, *SAID)), "has no tool.start"),
    ("a partial without a start", run(*step(1, ev("tool.partial", "c1"))), "has no tool.start"),
    ("a result of another tool", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1", toolName="other"))), "names the tool otherwise"),
    ("a partial after the result", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), ev("tool.partial", "c1"))), "speaks of a call that is settled"),
    ("partials from one", run(*step(1, ev("tool.start", "c1"), ev("tool.partial", "c1", index=1), ev("tool.done", "c1"))), "it is partial number 0 of its call"),
    ("partials with a gap", run(*step(1, ev("tool.start", "c1"), ev("tool.partial", "c1"), ev("tool.partial", "c1", index=2), ev("tool.done", "c1"))), "it is partial number 1"),
    ("todos not right after", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), ev("input.queued"), ev("todo.updated", "c1"))), "does not come right after"),
    ("a decision after the result", run(*step(1, ev("tool.start", "c1"), ev("tool.done", "c1"), ev("permission.decision", "c1"))), "does not lie between"),
    ("a decision before the start", run(*step(1, ev("permission.decision", "c1"), ev("tool.start", "c1"), ev("tool.done", "c1"))), "does not lie between"),
    ("an inner call without its outer", run(*step(1, ev("tool.start", "c2", parentToolCallId="c1"), ev("tool.done", "c2"))), "which is not running"),
    ("an inner call that outlives its outer", run(*step(1, ev("tool.start", "c1"), ev("tool.start", "c1:1", parentToolCallId="c1"), ev("tool.done", "c1"), ev("tool.done", "c1:1"))), "a call inside of it"),
    ("an approval without a start", run(*step(1, ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")), "approval.requested \"c2\" \"look_up\": has no tool.start"),
    ("an approval twice", run(*step(1, ev("tool.start", "c2"), ev("approval.requested", "c2"), ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")), "comes twice for its call"),
    ("an approval of a settled call", run(*step(1, ev("tool.start", "c2"), ev("tool.done", "c2"), ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")), "speaks of a call that is settled"),
    ("a result after the pause", run(*step(1, *ASKS[:3], ev("approval.requested", "c2"), ev("tool.done", "c1"), reason="awaiting-approval"), done=ended("awaiting-approval")), "a paused step only ends"),
    ("a start after the pause", run(*step(1, ev("tool.start", "c2"), ev("approval.requested", "c2"), ev("tool.start", "c3"), reason="awaiting-approval"), done=ended("awaiting-approval")), "a paused step only ends"),
    ("a result of a waiting call", run(*step(1, ev("tool.start", "c2"), ev("approval.requested", "c2"), ev("tool.done", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")), "speaks of a call that waits"),
    ("a pause with a call still open", run(*step(1, *ASKS[:3], ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("awaiting-approval")), "\"c1\" \"look_up\": has no tool.done"),
    ("a pause without a request", run(*step(1, *ASKS[:1], ASKS[3], reason="awaiting-approval"), done=ended("awaiting-approval")), "no approval.requested came in the step"),
    ("a request without a pause", run(*step(1, *ASKS, ev("approval.requested", "c2"), reason="tool_calls"), done=ended("awaiting-approval")), "its reason is not 'awaiting-approval'"),
    ("a paused step in a run that is not", run(*step(1, *ASKS, ev("approval.requested", "c2"), reason="awaiting-approval"), done=ended("stop")), "the last step.done 'awaiting-approval'"),
    ("a paused run whose step is not", run(*step(1, *SAID), done=ended("awaiting-approval")), "the last step.done 'stop'"),
    ("a step after a pause", run(*step(1, *ASKS, ev("approval.requested", "c2"), reason="awaiting-approval"), *LAST), "begins after a step that waits"),
    ("a resume after the first step", run(*step(1, *SAID), ev("tool.resume", "c2"), ev("tool.done", "c2"), *LAST), "comes after the first step.start"),
    ("a resume of a started call", run(ev("tool.resume", "c2"), ev("tool.done", "c2"), ev("tool.resume", "c2"), ev("tool.done", "c2"), *LAST), "resumes a call of the same stream"),
    ("a resumed call that never settles", run(ev("tool.resume", "c2"), *LAST), "has no tool.done or tool.error"),
    ("drift after a resume", run(ev("tool.resume", "c2"), ev("agent.drift"), ev("tool.done", "c2"), *LAST), "does not come right after the start"),
    ("drift in a step", run(*step(1, ev("agent.drift"), *SAID)), "does not come right after the start"),
    ("input applied inside of a step", run(*step(1, ev("input.applied"), *SAID)), "inputs join between steps"),
    ("input applied to another step", run(*step(1, *SAID), ev("input.applied", step=3), *LAST), "names another step"),
    ("something between applied and its step", run(*step(1, *SAID), ev("input.applied"), ev("handoff", "c1"), *LAST), "comes between"),
    ("a steer that ends with text", run(*step(1, ev("input.steered"), *SAID, reason="steered"), ev("input.applied"), *LAST), "its step ends next"),
    ("a steered step without a steer", run(*step(1, reason="steered"), *LAST), "there was no input.steered"),
    ("a steer that does not end the step so", run(*step(1, ev("input.steered")), ev("input.applied"), *LAST), "its reason is not 'steered'"),
    ("a steered step with text", run(*step(1, ev("text.delta"), ev("input.steered"), reason="steered"), ev("input.applied"), *LAST), "its aborted call has text events"),
    ("an immediate steer between steps", run(*step(1, *SAID), ev("input.steered"), *LAST), "outside of a model call"),
    ("a step after a blocked input", run(ev("guardrail.tripped"), *step(1, *SAID), done=ended("guardrail")), "begins after"),
    ("a blocked output that is shown", run(*step(1, ev("text.delta"), ev("guardrail.tripped", kind="output"), ev("text.done")), done=ended("guardrail")), "blocked"),
    ("an output checked too late", run(*step(1, *SAID, ev("guardrail.rewrote"))), "comes after the text.done it is about"),
    ("a call after a blocked one", run(*step(1, ev("tool.start", "c1"), ev("guardrail.tripped", kind="tool"), ev("tool.start", "c2")), done=ended("guardrail")), "starts after"),
    ("a tripped guardrail in a run that goes well", run(ev("guardrail.tripped"), done=ended("stop")), "its finish reason is 'guardrail' or 'error'"),
    ("a guardrail ending without a trip", run(done=ended("guardrail")), "there was no guardrail.tripped"),
    ("a budget ending without a budget", run(*step(1, *SAID), done=ended("budget-exceeded")), "there was no budget.exceeded"),
    ("a spent budget in a run that goes well", run(*step(1, *SAID), ev("budget.exceeded")), "its finish reason is 'budget-exceeded' or 'error'"),
    ("an aborted step in a run that goes well", run(*step(1, reason="aborted")), "the last step.done 'aborted'"),
    ("a handoff before its call is done", run(*step(1, ev("tool.start", "c1"), ev("handoff", "c1"), ev("tool.done", "c1")), *LAST), "comes before the tool.done"),
    ("a sub-agent before its call", run(ev("step.start"), *of_helper(*step(1, *SAID)), ev("tool.start", "c1"), ev("tool.done", "c1"), ev("step.done")), "comes before the tool.start of 'c1'"),
    ("a run.start of a sub-agent", run(ev("step.start"), ev("tool.start", "c1"), *of_helper(ev("run.start")), ev("tool.done", "c1"), ev("step.done")), "belongs to the top-level run only"),
    ("a run.done of a sub-agent", run(ev("step.start"), ev("tool.start", "c1"), *of_helper(ev("run.done")), ev("tool.done", "c1"), ev("step.done")), "belongs to the top-level run only"),
    ("a sub-agent's step that never ends", run(ev("step.start"), ev("tool.start", "c1"), *of_helper(ev("step.start")), ev("tool.done", "c1"), ev("step.done")), "[helper]: has no step.done"),
    ("a sub-agent that asks by itself", run(ev("step.start"), ev("tool.start", "c1"), *of_helper(ev("step.start"), ev("tool.start", "c7"), ev("approval.requested", "c7"), ev("step.done", finishReason="aborted")), ev("step.done", finishReason="aborted"), done=ended("aborted")), "a sub-agent's pause is reported once"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "says"), [pytest.param(events, says, id=name) for name, events, says in BAD])
def test_a_broken_order_is_named(events: list[Event], says: str):
    with pytest.raises(EventOrderError) as caught:
        check_event_order(events)
    assert caught.value.code == "LOUSHO_TEST_FAILED"
    assert says in "\n".join(caught.value.problems)


def test_the_message_shows_what_is_wrong_among_its_neighbours():
    events = run(*step(1, *[ev("text.delta")] * 9, ev("text.done", text="Hi " * 9), ev("tool.start", "call_1")))
    with pytest.raises(SDKError) as caught:
        check_event_order(events)
    assert caught.value.detail == (
        "The order of the events is wrong: 1 problem.\n"
        '- #12 tool.start "call_1" "look_up": has no tool.done or tool.error before #13 step.done\n'
        "Events:\n"
        "    ...\n"
        '    #10 text.delta "Hi "\n'
        '    #11 text.done "Hi Hi Hi Hi Hi Hi Hi Hi Hi "\n'
        '  > #12 tool.start "call_1" "look_up"\n'
        '    #13 step.done 1 "stop"\n'
        '    #14 run.done "stop" "Hi "'
    )


def test_a_stream_that_was_left_early_passes_as_such():
    events = TEXT_RUN[:3]
    assert check_event_order(events, complete=False) == events
    assert check_event_order([], complete=False) == []
    with pytest.raises(EventOrderError, match="a run ends with run.done"):
        check_event_order(events)


def test_a_run_from_a_checkpoint_may_run_calls_before_its_first_step():
    events = run(ev("tool.start", "c1"), ev("tool.done", "c1"), *step(5, *SAID))
    assert check_event_order(events, resumed=True) == events
    with pytest.raises(EventOrderError, match="lies outside of a step"):
        check_event_order(events)


def test_calls_start_in_the_order_the_model_wrote_them():
    events = GOOD["parallel calls"]
    assert check_event_order(events, call_order=["c1", "c2"]) == events
    with pytest.raises(EventOrderError, match="starts after 'c1', which the model called later"):
        check_event_order(events, call_order=["c2", "c1"])


@pytest.mark.parametrize("junk", [None, 5, "run.start", object(), {"type": ["x"]}, {"type": "run.start"}, {}])
def test_what_is_no_event_is_named(junk: Any):
    with pytest.raises(EventOrderError) as caught:
        check_event_order([*TEXT_RUN[:-1], junk, TEXT_RUN[-1]])
    assert any(problem.startswith("#6") for problem in caught.value.problems)


def test_a_stream_of_nothing_but_mistakes_has_a_readable_message():
    with pytest.raises(EventOrderError) as caught:
        check_event_order([{"type": "tool.done", "seq": 5}] * 3000)
    assert len(caught.value.detail) < 10_000
    assert "and " in caught.value.detail


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool
async def count(to: int) -> Any:
    """Count, showing each number."""

    async def numbers() -> Any:
        for number in range(to):
            yield number

    return numbers()


@tool(needs_approval=True)
def ship(order: str) -> str:
    """Ship an order."""
    return order


def script() -> Iterator[Any]:
    yield {
        "text": "Let me see.",
        "tool_calls": [
            {"name": "look_up", "args": {"word": "a"}},
            {"name": "count", "args": {"to": 3}},
            {"name": "ship", "args": {"order": "1"}},
            {"name": "nobody", "args": {}},
            {"name": "look_up", "args": {"wrong": 1}},
        ],
        "reasoning": "hm",
    }
    yield "Done, it is shipped."


@pytest.mark.parametrize("approved", [True, False])
async def test_a_real_run_passes_before_and_after_its_pause(approved: bool):
    agent = create_agent(provider=mock_model(list(script())), tools=[look_up, count, ship])
    run_before = agent.stream("go")
    order = [f"call_{number}" for number in range(1, 6)]
    paused = check_event_order([event async for event in run_before], call_order=order)
    result = await run_before.result
    assert paused[-1].type == "run.done"
    run_after = agent.approvals.stream_resolve(id=str(result.approval_id), approved=approved)
    continued = check_event_order([event async for event in run_after])
    assert [event.type for event in continued][:2] == ["run.start", "tool.resume"]
