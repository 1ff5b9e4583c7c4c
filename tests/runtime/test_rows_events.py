"""The finer print of the stream-events page: stamps, pauses and their continuations, the order inside a step."""

from __future__ import annotations

import asyncio
import datetime
import time
import typing
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import chunks
from runs import WAIT, ChunkProvider, call, calls, collect, of_type, types

from lousho import (
    AGENT_EVENT_SCHEMA_VERSION,
    AgentEvent,
    FunctionCall,
    ReasoningBlock,
    TextDeltaEvent,
    ToolCall,
    create_agent,
    is_agent_event,
    tool,
)
from lousho.models.provider import (
    Finish,
    ModelChunk,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCallChunk,
)
from lousho.testing import mock_model


@tool
async def lookup(word: str) -> dict[str, str]:
    """Look a word up."""
    return {"word": word}


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


def moment(text: str) -> datetime.datetime:
    assert text.endswith("Z")
    return datetime.datetime.fromisoformat(text)


@pytest.mark.spec("EVT-01")
async def test_stamps_are_the_time_in_utc_and_every_stream_counts_from_0():
    agent = create_agent(provider=mock_model([call("deploy", to="prod"), "Shipped."]), tools=[deploy])
    for_ms = datetime.timedelta(milliseconds=1)
    before = datetime.datetime.now(datetime.UTC) - for_ms
    run = agent.stream("ship")
    first = [event.to_dict() for event in await collect(run)]
    asked = next(event["approvalId"] for event in first if event["type"] == "approval.requested")
    continued = agent.approvals.stream_resolve(id=asked, approved=True)
    second = [event.to_dict() for event in await collect(continued)]
    after = datetime.datetime.now(datetime.UTC) + for_ms

    stamps = [moment(event["timestamp"]) for event in (*first, *second)]
    assert [before, *stamps, after] == sorted([before, *stamps, after])
    for wire, stream in ((first, run), (second, continued)):
        assert [event["seq"] for event in wire] == list(range(len(wire)))
        assert {event["runId"] for event in wire} == {stream.run_id}
        assert {event["v"] for event in wire} == {AGENT_EVENT_SCHEMA_VERSION} == {1}
        assert all("subagent" not in event for event in wire)
    assert run.run_id != continued.run_id


@pytest.mark.spec("EVT-04", "EVT-09", "EVT-10")
async def test_a_continuation_goes_on_counting_steps_and_does_not_start_a_call_again():
    script = [call("lookup", word="a"), calls(("deploy", {"to": "a"}), ("deploy", {"to": "b"})), "Shipped."]
    agent = create_agent(provider=mock_model(script), tools=[lookup, deploy])
    streams = [await collect(agent.stream("ship"))]
    for approved in (True, False):
        waiting = (await agent.approvals.list())[0]
        streams.append(await collect(agent.approvals.stream_resolve(id=waiting.id, approved=approved)))

    events = [event for stream in streams for event in stream]
    assert [event.step for event in of_type(events, "step.start")] == [1, 2, 3]
    assert [event.tool_call_id for event in of_type(events, "tool.start")] == ["call_1", "call_2", "call_3"]
    resumed = [event.to_dict() for event in of_type(streams[2], "tool.resume")]
    assert [(one["toolCallId"], one["toolName"], one["args"]) for one in resumed] == [
        ("call_2", "deploy", {"to": "a"}),
        ("call_3", "deploy", {"to": "b"}),
    ]
    assert of_type(streams[0], "tool.resume") == of_type(streams[1], "tool.resume") == []


@pytest.mark.spec("EVT-07")
async def test_each_step_with_text_has_its_own_text_done_and_a_step_without_has_none():
    script = [{"text": "Let me see.", **call("lookup", word="a")}, call("lookup", word="b"), "Both are words."]
    run = create_agent(provider=mock_model(script), tools=[lookup]).stream("go")
    steps: list[tuple[str, list[str]]] = []
    for event in await collect(run):
        if event.type == "step.start":
            steps.append(("", []))
        elif event.type == "text.delta":
            steps[-1] = (steps[-1][0] + event.text, steps[-1][1])
        elif event.type == "text.done":
            steps[-1][1].append(event.text)
    assert steps == [("Let me see.", ["Let me see."]), ("", []), ("Both are words.", ["Both are words."])]
    assert (await run.result).text == "Both are words."


@pytest.mark.spec("EVT-08", "EVT-41")
async def test_a_step_reasons_then_speaks_then_uses_its_tools_and_text_has_no_reasoning_in_it():
    turn = [
        ReasoningDelta("I should "),
        ReasoningDelta("look."),
        ReasoningEnd(ReasoningBlock("I should look.")),
        TextDelta("One "),
        TextDelta("moment."),
        ToolCallChunk(ToolCall("c1", FunctionCall("lookup", '{"word": "a"}'))),
        Finish("tool_calls"),
    ]
    end = [ReasoningDelta("Found."), TextDelta("A word."), Finish("stop")]
    events = await collect(create_agent(provider=chunks(turn, end), tools=[lookup]).stream("go"))
    assert types(events) == [
        "run.start",
        *("step.start", "reasoning.start", "reasoning.delta", "reasoning.delta", "reasoning.done"),
        *("text.delta", "text.done", "tool.start", "tool.done", "step.done"),
        *("step.start", "reasoning.start", "reasoning.delta", "reasoning.done", "text.delta", "text.done", "step.done"),
        "run.done",
    ]
    assert [event.text for event in of_type(events, "reasoning.delta")] == ["I should ", "look.", "Found."]
    assert [event.text for event in of_type(events, "reasoning.done")] == ["I should look.", "Found."]
    assert [event.text for event in of_type(events, "text.delta")] == ["One ", "moment.", "A word."]
    assert [event.text for event in of_type(events, "text.done")] == ["One moment.", "A word."]


@pytest.mark.spec("EVT-11", "EVT-42")
async def test_snapshots_are_json_numbered_for_each_call_and_lie_between_its_start_and_its_end():
    turns = [asyncio.Event() for _ in range(4)]

    async def snapshots(first: int) -> AsyncIterator[Any]:
        for index, number in enumerate((first, first + 2)):
            await asyncio.wait_for(turns[number].wait(), WAIT)
            yield {"day": datetime.date(2026, 10, 1 + number), "index": index}
            if number < 3:
                turns[number + 1].set()

    @tool
    async def even() -> AsyncIterator[Any]:
        """Take turns, first."""
        turns[0].set()
        async for one in snapshots(0):
            yield one

    @tool
    async def odd() -> AsyncIterator[Any]:
        """Take turns, second."""
        async for one in snapshots(1):
            yield one

    model = mock_model([calls(("even", {}), ("odd", {})), "Done."])
    events = [event.to_dict() for event in await collect(create_agent(provider=model, tools=[even, odd]).stream("go"))]
    partials = [event for event in events if event["type"] == "tool.partial"]
    assert [(one["toolCallId"], one["toolName"], one["index"], one["output"]["day"]) for one in partials] == [
        ("call_1", "even", 0, "2026-10-01"),
        ("call_2", "odd", 0, "2026-10-02"),
        ("call_1", "even", 1, "2026-10-03"),
        ("call_2", "odd", 1, "2026-10-04"),
    ]
    for call_id in ("call_1", "call_2"):
        own = [event["type"] for event in events if event.get("toolCallId") == call_id]
        assert own == ["tool.start", "tool.partial", "tool.partial", "tool.done"]
    done = {event["toolCallId"]: event["result"] for event in events if event["type"] == "tool.done"}
    assert done == {one["toolCallId"]: one["output"] for one in partials[2:]}


@pytest.mark.spec("EVT-12")
async def test_the_duration_of_a_decided_call_counts_from_its_resume_and_no_result_is_null():
    @tool(needs_approval=True)
    async def nothing() -> None:
        """Return nothing, after a while."""
        await asyncio.sleep(0.02)

    agent = create_agent(provider=mock_model([call("nothing"), "Done."]), tools=[nothing])
    asked = of_type(await collect(agent.stream("go")), "approval.requested")[0]
    await asyncio.sleep(0.2)
    decided = time.monotonic()
    events = await collect(agent.approvals.stream_resolve(id=asked.approval_id, approved=True))
    took = (time.monotonic() - decided) * 1000
    wire = of_type(events, "tool.done")[0].to_dict()
    assert wire["result"] is None
    assert (wire["toolCallId"], wire["toolName"]) == ("call_1", "nothing")
    assert 19 <= wire["durationMs"] <= took + 1
    assert isinstance(wire["durationMs"], int)
    assert wire.keys().isdisjoint({"replacedByHook", "executedBy"})


@pytest.mark.spec("EVT-14")
async def test_a_failed_call_is_named_and_timed():
    @tool
    async def slow(word: str) -> str:
        """Fail after a while."""
        await asyncio.sleep(0.02)
        raise LookupError(f"nothing about {word}")

    model = mock_model([calls(("slow", {"word": "a"}), ("slow", {"word": 3}), ("ghost", {})), "Sorry."])
    events = await collect(create_agent(provider=model, tools=[slow]).stream("go"))
    errors = {event.tool_call_id: event.to_dict() for event in of_type(events, "tool.error")}
    assert [errors[one]["toolName"] for one in ("call_1", "call_2", "call_3")] == ["slow", "slow", "ghost"]
    assert [errors[one]["error"]["name"] for one in ("call_1", "call_2", "call_3")] == [
        "LookupError",
        "ToolArgumentsValidationError",
        "ToolNotFoundError",
    ]
    assert errors["call_1"]["error"] == {"name": "LookupError", "message": "nothing about a"}
    assert 19 <= errors["call_1"]["durationMs"] < WAIT * 1000
    assert of_type(events, "tool.done") == []


@pytest.mark.spec("EVT-15")
@pytest.mark.parametrize("asked", [{}, {"allowFreeText": True}, {"options": ["Paris", "Rome"]}], ids=str)
async def test_a_question_has_only_the_parts_that_the_model_gave(asked: dict[str, Any]):
    args = {"question": "Which city?", **asked}
    agent = create_agent(provider=mock_model([call("ask_question", **args), "Booked."]), ask_question=True)
    event = of_type(await collect(agent.stream("book")), "approval.requested")[0].to_dict()
    assert event["question"] == {"text": "Which city?", **asked}
    assert (event["kind"], event["toolCallId"], event["toolName"], event["args"]) == (
        "question",
        "call_1",
        "ask_question",
        args,
    )
    assert "signIn" not in event
    assert (await agent.approvals.answer(id=event["approvalId"], answer="Rome")).text == "Booked."


@pytest.mark.spec("EVT-16")
async def test_a_decision_to_ask_comes_after_the_start_and_before_the_approval():
    rules = [{"tool": "lookup", "action": "ask", "reason": "look first"}]
    agent = create_agent(provider=mock_model([call("lookup", word="a"), "x"]), tools=[lookup], permissions=rules)
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(milliseconds=1)
    events = await collect(agent.stream("go"))
    after = datetime.datetime.now(datetime.UTC)
    assert types(events)[2:5] == ["tool.start", "permission.decision", "approval.requested"]
    decision = events[3].to_dict()
    assert (decision["toolCallId"], decision["toolName"], decision["decision"], decision["args"]) == (
        "call_1",
        "lookup",
        "ask",
        {"word": "a"},
    )
    assert decision["rule"] == {"index": 0, "reason": "look first"}
    assert before <= moment(decision["at"]) <= after
    assert decision.keys().isdisjoint({"mode", "hook", "reason"})


@pytest.mark.spec("EVT-16")
async def test_a_listener_for_decisions_is_enough_to_have_them_reported():
    heard: list[Any] = []
    agent = create_agent(
        provider=mock_model([call("lookup", word="a"), "x"]),
        tools=[lookup],
        on_permission_decision=lambda entry, _: heard.append(entry),
    )
    decided = of_type(await collect(agent.stream("go")), "permission.decision")
    assert [(event.decision, event.rule) for event in decided] == [("default", None)]
    assert [entry["decision"] for entry in heard] == ["default"]


@pytest.mark.spec("EVT-18", "EVT-32")
async def test_an_error_that_ends_the_run_is_named_in_it_and_run_done_follows():
    run = create_agent(provider=mock_model([call("lookup", word="a"), {"error": OSError("down")}]), tools=[lookup])
    events = [event.to_dict() for event in await collect(run.session("s").stream("go"))]
    assert [event["type"] for event in events][-4:] == ["step.start", "step.done", "error", "run.done"]
    assert events[-2]["error"] == {"name": "CompactedLLMProviderError", "message": "down"}
    assert (events[-1]["finishReason"], events[-1]["text"]) == ("error", "")
    assert events[-1].keys().isdisjoint({"usage", "object"})


@pytest.mark.spec("EVT-32")
async def test_run_done_says_what_the_result_says_in_every_ending():
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("so far ")
        await asyncio.sleep(60)

    again = call("lookup", word="a")
    agents = [
        create_agent(provider=mock_model(["The end."])),
        create_agent(provider=mock_model([{"text": "The", "finish_reason": "length"}])),
        create_agent(provider=mock_model([again], on_exhausted="repeat-last"), tools=[lookup], max_steps=2),
        create_agent(provider=mock_model([{"text": "May I?", **call("deploy", to="prod")}]), tools=[deploy]),
        create_agent(provider=ChunkProvider(endless)),
    ]
    endings: list[tuple[str, str]] = []
    for agent in agents:
        run = agent.stream("go")
        events: list[Any] = []
        async for event in run:
            events.append(event)
            if isinstance(event, TextDeltaEvent) and event.text == "so far ":
                run.abort("enough")
        result = await run.result
        done = events[-1].to_dict()
        assert [event.type for event in events].index("run.done") == len(events) - 1
        assert (done["finishReason"], done["text"]) == (result.finish_reason, result.text)
        assert done["usage"]["totalTokens"] == result.usage.total_tokens
        assert "object" not in done
        endings.append((done["finishReason"], done["text"]))
    assert endings == [
        ("stop", "The end."),
        ("length", "The"),
        ("max-steps", "Stopped after 2 steps: the step limit was reached before the task was finished."),
        ("awaiting-approval", ""),
        ("aborted", "so far "),
    ]


@pytest.mark.spec("EVT-43")
@pytest.mark.parametrize("approved", [True, False])
async def test_all_gated_calls_of_a_step_are_asked_about_together_after_the_others_ran(approved: bool):
    ran: list[str] = []

    @tool(needs_approval=True)
    async def gated(to: str) -> str:
        """Needs a yes."""
        ran.append(to)
        return "ok"

    turn = calls(("gated", {"to": "a"}), ("lookup", {"word": "x"}), ("gated", {"to": "b"}), ("lookup", {"word": "y"}))
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=[gated, lookup])
    first = await collect(agent.stream("go"))
    assert [(event.type, event.tool_call_id) for event in of_type(first, "tool.start")] == [
        ("tool.start", f"call_{number}") for number in (1, 2, 3, 4)
    ]
    assert types(first)[-6:] == [*["tool.done"] * 2, *["approval.requested"] * 2, "step.done", "run.done"]
    asked = of_type(first, "approval.requested")
    assert [event.tool_call_id for event in asked] == ["call_1", "call_3"]
    assert ran == []

    waits = await collect(agent.approvals.stream_resolve(id=asked[0].approval_id, approved=approved))
    assert (types(waits), waits[-1].finish_reason, ran) == (["run.start", "run.done"], "awaiting-approval", [])
    second = await collect(agent.approvals.stream_resolve(id=asked[1].approval_id, approved=approved))
    own = [event.type for event in second if getattr(event, "tool_call_id", "") == "call_3"]
    assert own == ["tool.resume", "tool.done" if approved else "tool.error"]
    assert types(second)[-5:] == ["step.start", "text.delta", "text.done", "step.done", "run.done"]
    assert {event.type for event in second[1:5]} == set(own)
    assert ran == (["a", "b"] if approved else [])


@pytest.mark.spec("EVT-50")
async def test_every_event_of_a_run_is_one_of_the_union_and_its_wire_form_is_recognized():
    members = {member.type: member for member in typing.get_args(AgentEvent)}
    agent = create_agent(
        provider=mock_model([call("deploy", to="prod"), "Shipped."], on_exhausted="repeat-last"),
        tools=[deploy],
        permissions=[{"tool": "deploy", "action": "allow"}],
    )
    for event in await collect(agent.stream("go")):
        assert type(event) is members[event.type]
        assert is_agent_event(event.to_dict())
        assert not is_agent_event({**event.to_dict(), "runId": 1})
