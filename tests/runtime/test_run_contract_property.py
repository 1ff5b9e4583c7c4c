"""Any script, asked in any way, does what a second and much shorter statement of the contract says it must do."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from run_model import (
    KINDS,
    KNOWN_REASONS,
    Call,
    Expected,
    Halt,
    Script,
    Turn,
    call_id,
    check_messages,
    predict,
    told_by_id,
)
from run_world import STYLES, WAYS, Outcome, play
from runs import of_type
from sizes import sized

from lousho import SDKError

REASONS = (*(one for one in KNOWN_REASONS if one != "error"), "weird", None)
TEXTS = st.text("ab \u00e9\U0001f600", max_size=4)
ABORTED = {"name": "AbortError", "message": "enough"}


def scripts(*, fails: bool = True) -> st.SearchStrategy[Script]:
    """Return a strategy of scripts; `fails` is whether a model call or a tool may end the run."""
    kinds = st.sampled_from([kind for kind in KINDS if kind != "halts"])
    if fails:
        kinds = st.one_of(kinds, kinds, kinds, st.sampled_from(KINDS))
    call = st.builds(Call, kind=kinds, snapshots=st.integers(0, 3), approved=st.booleans())
    busy = st.builds(
        Turn,
        text=TEXTS,
        calls=st.lists(call, min_size=1, max_size=8).map(tuple),
        finish=st.sampled_from(["tool_calls", "tool_calls", "stop", "other"]),
    )
    last = st.builds(
        Turn,
        text=TEXTS,
        finish=st.sampled_from(["stop", "stop", *REASONS]),
        fails=st.sampled_from([False, False, False, fails]),
    )
    return st.builds(
        lambda busy, last, **options: Script(turns=(*busy, last), **options),
        busy=st.lists(busy, max_size=4),
        last=last,
        max_steps=st.sampled_from([1, 2, 3, 4, 5, 50]),
        concurrency=st.sampled_from([1, 2, 3, 4, "unbounded"]),
        gaps=st.integers(0, 2),
        order=st.integers(0, 7),
    )


def check(outcome: Outcome, script: Script, expected: Expected) -> None:
    """Check all that came of a script that was not stopped."""
    world = outcome.world
    assert len(world.provider.requests) == expected.steps
    if script.concurrency != "unbounded":
        assert world.peak <= script.concurrency
    assert world.running == 0
    assert sorted(world.started) == sorted(world.ended)
    check_starts(outcome, script, expected)
    if expected.error is not None:
        check_failure(outcome, script, expected)
        return
    result = outcome.ended
    assert sorted(world.started) == sorted(expected.runs)
    assert (result.finish_reason, result.steps) == (expected.finish, expected.steps)
    if expected.limit:
        assert expected.text.strip() in result.text
        assert expected.limit in result.text
    else:
        assert result.text == expected.text
    check_messages(result.messages)
    assert told_by_id(result.messages) == expected.told
    assert [call.id for call in result.tool_calls] == expected.ids
    assert (result.tool_errors or 0) == sum(isinstance(one, str) for one in expected.told.values())
    assert result.usage.model_calls == len(result.step_usage) == expected.steps
    assert [one.content for one in result.messages if one.role == "assistant"] == [
        turn.text for turn in script.turns[: expected.steps]
    ]
    check_requests(outcome)


def check_starts(outcome: Outcome, script: Script, expected: Expected) -> None:
    """Check that calls are announced, and their gates asked, in call order and once each."""
    gated = [one for one in expected.ids if expected.told[one] not in ("validation", "not-found")]
    assert outcome.world.gates == gated[: len(outcome.world.gates)]
    if expected.error is None:
        assert outcome.world.gates == gated
    if not outcome.streams:
        return
    started = [event.tool_call_id for event in of_type(outcome.events, "tool.start")]
    assert started == expected.ids[: len(started)]
    if expected.error is not None:
        return
    assert started == expected.ids
    settled = of_type(outcome.events, "tool.done", "tool.error")
    assert sorted(event.tool_call_id for event in settled) == sorted(expected.ids)
    waited = [event.tool_call_id for event in of_type(outcome.events, "approval.requested")]
    assert waited == [one for one in expected.ids if one in expected.gated]
    resumed = [event.tool_call_id for event in of_type(outcome.events, "tool.resume")]
    assert sorted(resumed) == sorted(waited)
    if script.concurrency == 1:  # each one settles before the next one starts
        of_calls = of_type(outcome.events, "tool.start", "tool.resume", "tool.done", "tool.error")
        shown = [(event.type, event.tool_call_id) for event in of_calls]
        for (kind, identity), following in pairwise([*shown, ("", "")]):
            if kind == "tool.resume" or (kind == "tool.start" and identity not in expected.gated):
                assert following in (("tool.done", identity), ("tool.error", identity))


def check_requests(outcome: Outcome) -> None:
    """Check that each model call was sent the transcript as it is in the result, up to that call."""
    messages = [one.to_dict() for one in outcome.ended.messages]
    turns = [index for index, one in enumerate(messages) if one["role"] == "assistant"]
    for request, end in zip(outcome.world.provider.requests, turns, strict=True):
        assert request[0]["role"] == "system"
        assert request[1:] == messages[:end]


def check_failure(outcome: Outcome, script: Script, expected: Expected) -> None:
    """Check a run that its script makes fail."""
    assert outcome.result is None
    error = outcome.error
    if expected.error == "halt":
        assert isinstance(error, Halt)
        last = script.turns[expected.steps - 1].calls
        halted = [call_id(expected.steps, index) for index, call in enumerate(last) if call.kind == "halts"]
        assert halted[0] in outcome.world.started
        if script.concurrency == 1:  # nothing starts after it
            assert set(outcome.world.started) <= set(expected.ids[: expected.ids.index(halted[0]) + 1])
    else:
        assert isinstance(error, SDKError)
        assert error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
        assert "the line went dead" in str(error)
    usage: Any = getattr(error, "usage", None)
    assert usage is not None
    assert usage.model_calls == expected.steps - (expected.error == "provider")
    assert outcome.world.agent.session("s").messages == []
    if outcome.streams:
        done = outcome.streams[-1][-1]
        assert (done.type, done.finish_reason) == ("run.done", "error")


@pytest.mark.spec("RUN-31", "RUN-32", "RUN-35")
@hypothesis.settings(max_examples=sized(300, 10_000))
@hypothesis.given(scripts(), st.sampled_from(WAYS), st.sampled_from(STYLES))
async def test_every_script_in_every_way_of_asking_does_what_the_contract_says(script, way, style):
    expected = predict(script)
    outcome = await play(script, way, style)
    check(outcome, script, expected)
    if outcome.streams and outcome.result is not None:
        done = outcome.streams[-1][-1]
        assert (done.finish_reason, done.text) == (outcome.result.finish_reason, outcome.result.text)
    if way.startswith("session") and outcome.result is not None:
        session = outcome.world.agent.session("s")
        assert await session.load() == outcome.result.messages


def comparable(outcome: Outcome) -> Any:
    """Return what must be the same of two plays of a script, whatever way it was asked in."""
    if outcome.result is None:
        assert outcome.error is not None
        return type(outcome.error), str(outcome.error), len(outcome.world.provider.requests)
    wire = outcome.result.to_dict()
    assert json.loads(json.dumps(wire, allow_nan=False)) == wire
    return {key: value for key, value in wire.items() if key not in ("runId", "sessionId")}


@pytest.mark.spec("STRM-01", "STRM-04")
@hypothesis.settings(max_examples=sized(80, 3_000))
@hypothesis.given(scripts(), st.integers(0, 7), st.integers(0, 3), st.sampled_from(STYLES))
async def test_all_ways_of_asking_give_the_same_result(script, order, gaps, style):
    first = await play(script, "send")
    other = Script(script.turns, script.max_steps, script.concurrency, gaps, order)
    if predict(script).error == "halt" and script.concurrency != 1:
        return  # how many calls start before the one that ends the run is not promised
    for way in WAYS[1:]:
        again = await play(script if first.pauses else other, way, style)
        assert comparable(again) == comparable(first)
        assert again.world.provider.requests == first.world.provider.requests


def check_stopped(outcome: Outcome, script: Script, expected: Expected) -> None:
    """Check all that came of a script that was stopped at some moment."""
    world = outcome.world
    assert len(world.provider.requests) == world.asked_at_stop, "the model was asked after the abort"
    late = [one for one in world.started if one not in world.started_at_stop]
    assert late == [], "a call began after the abort"
    assert len(set(world.started)) == len(world.started)
    if outcome.error is not None:
        halting = {one for one in world.started_at_stop if one in expected.halts}  # it may win the race with the abort
        assert world.failed_before_stop or (isinstance(outcome.error, Halt) and halting)
        return
    result = outcome.ended
    check_messages(result.messages)
    if world.asked_at_stop < expected.steps and not world.failed_before_stop:
        assert result.finish_reason == "aborted"
    assert result.finish_reason in ("aborted", expected.finish)
    if world.text_at_stop not in (None, script.turns[world.asked_at_stop - 1].text):
        assert result.finish_reason == "aborted", "the rest of a text was heard after the abort"
    assert world.asked_at_stop <= result.steps <= world.asked_at_stop + 1  # a step may end before its model call begins
    told = told_by_id(result.messages)
    for identity, value in told.items():
        assert value in (expected.told.get(identity, "cancelled"), "cancelled")
        if identity in world.done_at_stop:
            assert value == expected.told[identity], "a result that was there is lost"
    failed = [value for value in told.values() if isinstance(value, str)]
    assert len(failed) - failed.count("cancelled") <= (result.tool_errors or 0) <= len(failed)
    if result.finish_reason != "aborted":
        return
    assert result.abort_reason == ABORTED
    assert any(turn.text.startswith(result.text) for turn in script.turns)
    if world.text_at_stop is not None:
        assert result.text == world.text_at_stop
    if outcome.streams:
        assert outcome.streams[-1][-1].finish_reason == "aborted"


@pytest.mark.spec("RUN-11", "RUN-15", "RUN-37")
@hypothesis.settings(max_examples=sized(350, 10_000))
@hypothesis.given(scripts(), st.sampled_from(WAYS), st.sampled_from(STYLES), st.integers(1, 60))
async def test_an_abort_at_any_event_ends_the_run_there_and_raises_nothing(script, way, style, moment):
    expected = predict(script)
    outcome = await play(script, way, style, stop_at=moment)
    if outcome.world.signal.aborted:
        check_stopped(outcome, script, expected)
    else:
        check(outcome, script, expected)
    session = outcome.world.agent.session("s")
    kept = await session.load()
    check_messages(kept)
    assert kept in ([], getattr(outcome.result, "messages", []))


@pytest.mark.spec("RUN-11", "RUN-37")
@hypothesis.settings(max_examples=sized(250, 8_000))
@hypothesis.given(scripts(), st.sampled_from(WAYS), st.sampled_from(STYLES), st.data())
async def test_an_abort_from_the_middle_of_a_call_ends_the_run_there_and_raises_nothing(script, way, style, data):
    expected = predict(script)
    hypothesis.assume(expected.runs)
    outcome = await play(script, way, style, stop_at=data.draw(st.sampled_from(sorted(expected.runs))))
    if outcome.world.signal.aborted:
        check_stopped(outcome, script, expected)
    else:
        assert expected.error == "halt", "every other call is reached"
        check(outcome, script, expected)


ENDINGS = st.builds(
    lambda texts, last, limit, kind: Script(
        turns=(*(Turn(text, (Call(kind),), "tool_calls") for text in texts), last), max_steps=max(1, len(texts) + limit)
    ),
    texts=st.lists(TEXTS, max_size=4),
    last=st.builds(Turn, text=TEXTS, finish=st.sampled_from(REASONS)),
    limit=st.sampled_from([-1, 0, 1, 2]),
    kind=st.sampled_from(["fine", "raises", "ghost", "bad", "counts"]),
)


@pytest.mark.spec("RUN-02", "HAZ-17", "HAZ-22")
@hypothesis.settings(max_examples=sized(80, 4_000))
@hypothesis.given(ENDINGS, st.sampled_from(WAYS), st.sampled_from(STYLES))
async def test_a_run_ends_for_the_reason_of_its_last_turn_or_at_its_limit_with_a_text_that_says_so(script, way, style):
    expected = predict(script)
    outcome = await play(script, way, style)
    check(outcome, script, expected)
    assert outcome.ended.finish_reason in ("stop", "length", "content_filter", "other", "max-steps")
    assert (outcome.ended.finish_reason == "max-steps") == (len(script.turns) > script.max_steps)
    if outcome.streams:
        done = outcome.streams[-1][-1]
        assert (done.finish_reason, done.text) == (outcome.ended.finish_reason, outcome.ended.text)


@pytest.mark.spec("RUN-19")
@hypothesis.settings(max_examples=sized(15, 200))
@hypothesis.given(scripts(), st.sampled_from(WAYS), st.sampled_from(STYLES))
async def test_an_abort_before_the_start_asks_no_model_and_runs_no_tool(script, way, style):
    outcome = await play(script, way, style, stop_at=0)
    result = outcome.ended
    assert (result.finish_reason, result.steps, result.text, result.abort_reason) == ("aborted", 0, "", ABORTED)
    assert outcome.world.provider.requests == []
    assert outcome.world.started == []
