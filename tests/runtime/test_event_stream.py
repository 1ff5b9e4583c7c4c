"""What a run says while it runs: which events, with which fields, in which order."""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from runs import WAIT, ChunkProvider, call, calls, check_event_order, collect, of_type, types

from lousho import CancelSignal, PropagatingToolError, ToolContext, create_agent, define_tool, tool
from lousho.core.messages import FunctionCall, ReasoningBlock, ToolCall
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
    return {"word": word, "meaning": "a thing"}


@tool
async def broken(word: str) -> str:
    """Always fails."""
    raise LookupError(f"nothing about {word}")


@pytest.mark.spec("EVT-46", "EVT-05", "EVT-07")
async def test_a_text_only_run_has_the_documented_sequence():
    agent = create_agent(provider=mock_model(["One two three."]))
    events = await collect(agent.stream("count"))
    assert types(events) == ["run.start", "step.start", "text.delta", "text.done", "step.done", "run.done"]
    deltas = [event.text for event in of_type(events, "text.delta")]
    assert len(deltas) > 1
    assert "".join(deltas) == of_type(events, "text.done")[0].text == "One two three."


@pytest.mark.spec("EVT-46", "EVT-03", "EVT-04")
async def test_a_run_with_one_tool_call_has_the_documented_sequence():
    agent = create_agent(provider=mock_model([call("lookup", word="cat"), "A cat."]), tools=[lookup], name="dictionary")
    events = await collect(agent.stream("what is a cat"))
    assert types(events) == [
        "run.start",
        "step.start",
        "tool.start",
        "tool.done",
        "step.done",
        "step.start",
        "text.delta",
        "text.done",
        "step.done",
        "run.done",
    ]
    assert events[0].to_dict()["agentName"] == "dictionary"
    assert [event.step for event in of_type(events, "step.start")] == [1, 2]
    assert [event.finish_reason for event in of_type(events, "step.done", "run.done")] == ["tool_calls", "stop", "stop"]


@pytest.mark.spec("EVT-01")
async def test_every_event_is_stamped_and_numbered_without_gaps():
    agent = create_agent(provider=mock_model([call("lookup", word="cat"), "A cat."]), tools=[lookup])
    run = agent.stream("go")
    wire = [event.to_dict() for event in await collect(run)]
    assert [event["seq"] for event in wire] == list(range(len(wire)))
    assert {event["runId"] for event in wire} == {run.run_id}
    assert {event["v"] for event in wire} == {1}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["timestamp"]) for event in wire)
    assert all("subagent" not in event for event in wire)


@pytest.mark.spec("EVT-02")
async def test_the_wire_form_leaves_out_what_has_no_value_and_survives_json():
    @tool
    async def nothing() -> None:
        """Return nothing."""

    agent = create_agent(provider=mock_model([call("nothing"), "Done."]), tools=[nothing])
    for event in await collect(agent.stream("go")):
        wire = event.to_dict()
        assert json.loads(json.dumps(wire)) == wire
        missing = {key for key, value in wire.items() if value is None}
        assert missing <= ({"result"} if event.type == "tool.done" else set())


@pytest.mark.spec("EVT-12")
async def test_a_result_is_reported_in_its_json_form_with_its_duration():
    @tool
    async def stamp() -> dict[str, Any]:
        """Return values that JSON does not have."""
        await asyncio.sleep(0.01)
        return {"day": datetime.date(2026, 10, 1), "nothing": None, "letters": {"b", "a"}}

    agent = create_agent(provider=mock_model([call("stamp"), "Done."]), tools=[stamp])
    done = of_type(await collect(agent.stream("go")), "tool.done")[0]
    assert done.to_dict()["result"] == {"day": "2026-10-01", "nothing": None, "letters": ["a", "b"]}
    assert (done.tool_call_id, done.tool_name) == ("call_1", "stamp")
    assert done.duration_ms >= 9


@pytest.mark.spec("EVT-09")
@pytest.mark.parametrize(
    ("sent", "args", "raw"),
    [
        pytest.param('{"word": "cat"}', {"word": "cat"}, None, id="valid JSON"),
        pytest.param('```json\n{"word": "cat",}\n```', {"word": "cat"}, "same", id="repaired"),
        pytest.param('{"word": "ca', {}, "same", id="cut off"),
    ],
)
async def test_tool_start_carries_the_arguments_and_the_text_that_had_to_be_repaired(sent, args, raw):
    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall("lookup", sent)))
        yield Finish("tool_calls")

    async def answer(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("ok")
        yield Finish("stop")

    agent = create_agent(provider=ChunkProvider(turn, answer), tools=[lookup])
    start = of_type(await collect(agent.stream("go")), "tool.start")[0].to_dict()
    assert (start["toolCallId"], start["toolName"], start["args"]) == ("c1", "lookup", args)
    assert start.get("rawArgs") == (sent if raw == "same" else None)


@pytest.mark.spec("EVT-14")
@pytest.mark.parametrize(
    ("turn", "name", "message"),
    [
        pytest.param(call("broken", word="x"), "LookupError", "nothing about x", id="it raised"),
        pytest.param(call("lookup", word=3), "ToolArgumentsValidationError", "Invalid arguments", id="bad arguments"),
        pytest.param(call("ghost"), "ToolNotFoundError", "ghost", id="unknown tool"),
    ],
)
async def test_a_failed_call_is_a_tool_error_and_the_run_goes_on(turn, name, message):
    model = mock_model([turn, "Sorry."])
    agent = create_agent(provider=model, tools=[lookup, broken])
    run = agent.stream("go")
    error = of_type(await collect(run), "tool.error")[0].to_dict()
    assert error["error"]["name"] == name
    assert message in error["error"]["message"]
    assert error["durationMs"] >= 0
    told = model.calls[1].messages[-1]
    assert told.is_error
    assert json.loads(str(told.content))["error"] == name
    assert (await run.result).text == "Sorry."


@pytest.mark.spec("EVT-11", "EVT-42")
async def test_parallel_calls_start_in_call_order_and_end_in_order_of_completion():
    second_done = asyncio.Event()

    @tool
    async def slow() -> AsyncIterator[str]:
        """Wait for the other one, with two snapshots."""
        yield "waiting"
        await asyncio.wait_for(second_done.wait(), WAIT)
        yield "waited"

    @tool
    async def quick() -> str:
        """End at once."""
        second_done.set()
        return "quick"

    model = mock_model([calls(("slow", {}), ("quick", {})), "Done."])
    events = await collect(create_agent(provider=model, tools=[slow, quick]).stream("go"))
    tool_events = of_type(events, "tool.start", "tool.partial", "tool.done")
    assert [event.tool_name for event in tool_events if event.type == "tool.start"] == ["slow", "quick"]
    assert [event.tool_name for event in tool_events if event.type == "tool.done"] == ["quick", "slow"]
    partials = [(event.index, event.output) for event in tool_events if event.type == "tool.partial"]
    assert partials == [(0, "waiting"), (1, "waited")]
    assert [message.tool_call_id for message in model.calls[1].messages[-2:]] == ["call_1", "call_2"]


@pytest.mark.spec("EVT-08", "EVT-41")
async def test_reasoning_is_reported_apart_from_the_answer_and_before_it():
    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ReasoningDelta("Hmm, ")
        yield ReasoningDelta("yes.")
        yield ReasoningEnd(ReasoningBlock("Hmm, yes.", signature="sig"))
        yield TextDelta("Yes.")
        yield Finish("stop")

    run = create_agent(provider=ChunkProvider(turn)).stream("is it?")
    events = await collect(run)
    assert types(events)[1:6] == [
        "step.start",
        "reasoning.start",
        "reasoning.delta",
        "reasoning.delta",
        "reasoning.done",
    ]
    assert of_type(events, "reasoning.done")[0].text == "Hmm, yes."
    result = await run.result
    assert result.text == of_type(events, "run.done")[0].text == "Yes."
    assert result.reasoning == "Hmm, yes."
    assert result.messages[-1].reasoning == (ReasoningBlock("Hmm, yes.", signature="sig"),)


@pytest.mark.spec("EVT-16")
async def test_permission_decisions_are_reported_once_per_call_between_start_and_end():
    rules: list[dict[str, Any]] = [
        {"tool": "broken", "action": "deny", "reason": "no"},
        {"tool": "lookup", "action": "allow"},
    ]
    heard: list[Any] = []
    model = mock_model([calls(("lookup", {"word": "a"}), ("broken", {"word": "b"}), ("day", {})), "Done."])
    day = define_tool(name="day", description="Name the day", execute=lambda: "Monday")
    agent = create_agent(
        provider=model,
        tools=[lookup, broken, day],
        permissions=rules,
        on_permission_decision=lambda entry, _: heard.append(entry),
    )
    events = await collect(agent.stream("go"))
    decided = [event.to_dict() for event in of_type(events, "permission.decision")]
    assert [(d["toolName"], d["decision"], d.get("rule")) for d in decided] == [
        ("lookup", "allow", {"index": 1}),
        ("broken", "deny", {"index": 0, "reason": "no"}),
        ("day", "default", None),
    ]
    assert [d["args"] for d in decided] == [{"word": "a"}, {"word": "b"}, {}]
    assert [(entry["toolName"], entry["at"]) for entry in heard] == [(d["toolName"], d["at"]) for d in decided]
    order = [(e.type, "broken") for e in events if getattr(e, "tool_name", None) == "broken"]
    assert [kind for kind, _ in order] == ["tool.start", "permission.decision", "tool.error"]


@pytest.mark.spec("EVT-16")
async def test_no_permission_decision_without_rules_and_no_arguments_under_redaction():
    plain = create_agent(provider=mock_model([call("lookup", word="a"), "x"]), tools=[lookup])
    assert of_type(await collect(plain.stream("go")), "permission.decision") == []
    redacted = create_agent(
        provider=mock_model([call("lookup", word="a"), "x"]),
        tools=[lookup],
        permissions=[{"tool": "*", "action": "allow"}],
        redact_content=True,
    )
    decision = of_type(await collect(redacted.stream("go")), "permission.decision")[0].to_dict()
    assert "args" not in decision
    assert decision["decision"] == "allow"


@pytest.mark.spec("EVT-17", "EVT-32")
async def test_usage_of_steps_and_of_the_run_is_reported_or_estimated():
    counted = {"usage": {"input_tokens": 20, "output_tokens": 6}}
    model = mock_model([{**call("lookup", word="cat"), **counted}, {"text": "A cat."}])
    run = create_agent(provider=model, tools=[lookup]).stream("go")
    events = await collect(run)
    first, second = (event.to_dict()["usage"] for event in of_type(events, "step.done"))
    assert first == {
        "promptTokens": 20,
        "completionTokens": 6,
        "totalTokens": 26,
        "inputTokens": 20,
        "outputTokens": 6,
        "estimated": False,
    }
    assert second["estimated"] is True
    assert second["inputTokens"] > 0
    whole = events[-1].to_dict()["usage"]
    assert whole["modelCalls"] == 2
    assert whole["totalTokens"] == first["totalTokens"] + second["totalTokens"]
    assert whole["estimated"] is True
    assert (await run.result).usage.total_tokens == whole["totalTokens"]


@pytest.mark.spec("EVT-32", "EVT-17", "EVT-18")
async def test_a_failed_model_call_ends_with_error_and_run_done_without_usage():
    run = create_agent(provider=mock_model([{"error": ConnectionError("no route to the model")}])).stream("go")
    events: list[Any] = []
    with pytest.raises(Exception, match="no route to the model"):
        async for event in run:
            events.append(event.to_dict())
    assert [event["type"] for event in events] == ["run.start", "step.start", "step.done", "error", "run.done"]
    assert events[2]["finishReason"] == "error"
    assert "usage" not in events[2]
    assert "no route to the model" in events[3]["error"]["message"]
    assert {key: events[4].get(key) for key in ("finishReason", "text", "usage")} == {
        "finishReason": "error",
        "text": "",
        "usage": None,
    }


@pytest.mark.spec("EVT-32", "EVT-40", "EVT-17")
async def test_every_ending_closes_its_step_and_has_one_run_done():
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("so far ")
        await asyncio.sleep(60)

    @tool(needs_approval=True)
    async def gated() -> str:
        """Needs a yes."""
        return "ok"

    @tool
    async def stopper() -> str:
        """Ends the run."""
        raise PropagatingToolError("stop here")

    signal = CancelSignal()
    endings = {
        "stop": create_agent(provider=mock_model(["Done."])),
        "awaiting-approval": create_agent(provider=mock_model([call("gated")]), tools=[gated]),
        "max-steps": create_agent(
            provider=mock_model([call("lookup", word="a")], on_exhausted="repeat-last"), tools=[lookup], max_steps=2
        ),
        "error": create_agent(provider=mock_model([call("stopper")]), tools=[stopper]),
        "aborted": create_agent(provider=ChunkProvider(endless)),
    }
    for reason, agent in endings.items():
        run = agent.stream("go", signal=signal if reason == "aborted" else None, throw_on_error=False)
        events = []
        async for event in run:
            events.append(event)
            if reason == "aborted" and event.type == "text.delta":
                signal.abort()
        check_event_order(events)
        assert events[-1].type == "run.done"
        assert events[-1].finish_reason == reason
        assert [event.type for event in events].count("run.done") == 1
        last_step = of_type(events, "step.done")[-1].finish_reason
        assert last_step == ("tool_calls" if reason == "max-steps" else reason)


@pytest.mark.spec("EVT-43", "EVT-10", "EVT-15")
async def test_a_pause_and_its_continuation_are_two_streams_that_share_the_call():
    ran: list[str] = []

    @tool(needs_approval=True)
    async def deploy(to: str) -> str:
        """Deploy somewhere."""
        ran.append(to)
        return f"deployed to {to}"

    model = mock_model([calls(("deploy", {"to": "prod"}), ("lookup", {"word": "x"})), "Shipped."])
    agent = create_agent(provider=model, tools=[deploy, lookup])
    first = await collect(agent.stream("ship"))
    assert types(first) == [
        "run.start",
        "step.start",
        "tool.start",
        "tool.start",
        "tool.done",
        "approval.requested",
        "step.done",
        "run.done",
    ]
    assert ran == []
    asked = of_type(first, "approval.requested")[0].to_dict()
    assert (asked["toolCallId"], asked["toolName"], asked["args"]) == ("call_1", "deploy", {"to": "prod"})
    assert "kind" not in asked
    assert [event.finish_reason for event in of_type(first, "step.done", "run.done")] == ["awaiting-approval"] * 2

    second = await collect(agent.approvals.stream_resolve(id=asked["approvalId"], approved=True))
    assert types(second) == [
        "run.start",
        "tool.resume",
        "tool.done",
        "step.start",
        "text.delta",
        "text.done",
        "step.done",
        "run.done",
    ]
    resumed = of_type(second, "tool.resume")[0].to_dict()
    assert (resumed["toolCallId"], resumed["toolName"], resumed["args"]) == ("call_1", "deploy", {"to": "prod"})
    assert of_type(second, "step.start")[0].step == 2
    assert ran == ["prod"]


@pytest.mark.spec("EVT-15")
async def test_a_question_is_an_approval_of_its_own_kind():
    question = {"question": "Which city?", "options": ["Paris", "Rome"], "allowFreeText": False}
    agent = create_agent(
        provider=mock_model([{"tool_calls": [{"name": "ask_question", "args": question}]}]), ask_question=True
    )
    asked = of_type(await collect(agent.stream("book")), "approval.requested")[0].to_dict()
    assert asked["kind"] == "question"
    assert asked["question"] == {"text": "Which city?", "options": ["Paris", "Rome"], "allowFreeText": False}


async def test_a_listener_that_raises_is_logged_once_and_never_fails_the_run(caplog):
    def listener(_: object) -> None:
        raise OSError("listener is broken")

    agent = create_agent(provider=mock_model(["One two three four."]), on_event=listener)
    with caplog.at_level(logging.WARNING, logger="lousho"):
        result = await agent.send("go")
    assert result.text == "One two three four."
    assert len([record for record in caplog.records if record.name.startswith("lousho")]) == 1


async def test_a_late_reader_still_gets_every_event_and_a_second_one_is_refused():
    run = create_agent(provider=mock_model(["One two three."])).stream("go")
    await asyncio.wait_for(asyncio.ensure_future(_result(run)), WAIT)
    assert types(await collect(run))[-1] == "run.done"
    with pytest.raises(Exception, match="LOUSHO_RUN_ALREADY_ITERATED"):
        aiter(run)


async def _result(run: Any) -> Any:
    return await run.result


async def test_leaving_the_loop_early_aborts_the_run():
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("a")
        await asyncio.sleep(60)

    run = create_agent(provider=ChunkProvider(endless)).stream("go")
    async for event in run:
        if event.type == "text.delta":
            break
    result = await asyncio.wait_for(_result(run), WAIT)
    assert result.finish_reason == "aborted"
    assert (result.text, result.messages[-1].interrupted) == ("a", True)


async def test_the_context_tells_a_tool_about_its_call():
    seen: list[ToolContext] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        """Look around."""
        seen.append(ctx)
        return "seen"

    agent = create_agent(provider=mock_model([call("look"), "Done."]), tools=[look])
    await agent.session("s1").send("go")
    context = seen[0]
    assert (context.tool_call_id, context.tool_name, context.session_id) == ("call_1", "look", "s1")
    assert [message.role for message in context.messages] == ["user"]
    assert context.approval is None
    assert not context.abort_signal.aborted
