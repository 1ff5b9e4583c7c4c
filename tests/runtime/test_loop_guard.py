"""A model that repeats one failing call is told so, and at last has to answer without its tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hostile import play, told
from runs import call, calls, collect, of_type, types

from lousho import Agent, RunResult, create_agent, deny, tool
from lousho.testing import MockModel, mock_model


class Desk:
    """An agent with tools that fail, succeed or do as told, and a record of what ran."""

    def __init__(self, *script: Any, **options: Any) -> None:
        self.ran: list[str] = []
        self.fails = True
        ran = self.ran

        @tool
        async def broken(text: str = "x", number: int = 0) -> str:
            """Fail."""
            ran.append(text)
            raise LookupError(f"no {text}")

        @tool
        async def works(text: str = "x") -> str:
            """Work."""
            ran.append(text)
            return "fine"

        @tool
        async def moody() -> str:
            """Fail or work."""
            ran.append("moody")
            if self.fails:
                raise OSError("not now")
            return "fine"

        @tool(needs_approval=True)
        async def gated(text: str = "x") -> str:
            """Fail, after asking."""
            ran.append(text)
            raise LookupError(f"no {text}")

        self.model: MockModel = mock_model(script)
        self.agent: Agent = create_agent(
            provider=self.model, tools=[broken, works, moody, gated], max_steps=options.pop("max_steps", 30), **options
        )

    async def send(self) -> RunResult:
        return await self.agent.send("go")


def kinds(result: RunResult) -> list[str]:
    """What the model was told of each call: the kind of a failure, or its result."""
    return [one["kind"] if isinstance(one, dict) else one for one in told(result)]


@pytest.mark.spec("BEY-34")
async def test_the_third_identical_failing_call_is_not_run_and_says_why():
    desk = Desk(*[call("broken", text="b")] * 3, "I give up.")
    result = await desk.send()
    assert desk.ran == ["b", "b"]
    assert kinds(result) == ["execution", "execution", "denied"]
    refused = told(result)[2]
    assert refused["error"] == "ToolDeniedError"
    assert refused["reason"] == "this exact call failed 2 times in a row"
    assert "no b" in refused["message"]
    assert "Change the arguments" in refused["message"]
    assert (result.text, result.finish_reason, result.tool_errors) == ("I give up.", "stop", 3)


@pytest.mark.spec("BEY-34")
async def test_the_fifth_takes_the_tools_away_for_a_last_answer():
    desk = Desk(*[call("broken")] * 5, "It cannot be done.")
    result = await desk.send()
    assert desk.ran == ["x", "x"]
    assert [bool(request.tools) for request in desk.model.calls] == [True] * 5 + [False]
    note = desk.model.calls[-1].messages[-1]
    assert note.role == "user"
    assert "'broken' failed 5 times in a row" in str(note.content)
    assert note not in result.messages  # it is for the model alone
    assert (result.text, result.finish_reason, result.steps) == ("It cannot be done.", "stop", 6)


@pytest.mark.spec("BEY-34", "HAZ-22")
@pytest.mark.parametrize(
    ("last", "text"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param(call("broken"), None, id="the call again"),
        pytest.param({"text": "Once more.", "tool_calls": [{"name": "works"}]}, "Once more.", id="words and a call"),
    ],
)
async def test_the_last_answer_is_one_whatever_the_model_sends(last: Any, text: str | None):
    desk = Desk(*[call("broken")] * 5, last)
    played = await play(desk.agent.stream("go"))
    result = played.ended
    assert result.finish_reason == "stop"
    if text is None:
        assert result.text.startswith("Stopped: the same call of the tool 'broken' failed 5 times in a row")
    else:
        assert result.text == text
    assert of_type(played.events, "run.done")[0].text == result.text
    assert desk.ran == ["x", "x"]
    assert result.messages[-1].tool_calls == ()


@pytest.mark.spec("BEY-34")
@pytest.mark.parametrize(
    "between",
    [
        pytest.param(call("works"), id="a call that succeeds"),
        pytest.param(call("broken", text="other"), id="other arguments"),
        pytest.param(call("broken", number=7), id="one more argument"),
        pytest.param(call("ghost"), id="another failing tool"),
    ],
)
async def test_anything_else_in_between_starts_the_count_anew(between: Any):
    desk = Desk(call("broken"), call("broken"), between, call("broken"), call("broken"), "Done.")
    result = await desk.send()
    assert "denied" not in kinds(result)
    assert desk.ran.count("x") >= 4


@pytest.mark.spec("BEY-34")
async def test_a_success_beside_the_failing_call_starts_the_count_anew():
    beside = calls(("broken", {}), ("works", {}))
    desk = Desk(call("broken"), beside, call("broken"), call("broken"), "Done.")
    assert kinds(await desk.send()) == ["execution", "execution", "fine", "execution", "execution"]


async def test_a_call_that_works_at_last_is_forgotten():
    def cured(_: Any) -> Any:
        desk.fails = False
        return call("moody")

    def ill(_: Any) -> Any:
        desk.fails = True
        return call("moody")

    desk = Desk(call("moody"), cured, ill, call("moody"), call("moody"), "Done.")
    assert kinds(await desk.send()) == ["execution", "fine", "execution", "execution", "denied"]


async def test_the_order_and_the_spelling_of_arguments_make_no_other_call():
    spelled = ['{"text": "a", "number": 1}', '{"number":1,"text":"a"}', "{'number': 1, 'text': 'a',}"]
    desk = Desk(*[{"tool_calls": [{"name": "broken", "arguments": text}]} for text in spelled], "Done.")
    assert kinds(await desk.send())[-1] == "denied"
    assert desk.ran == ["a", "a"]


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        pytest.param(call("ghost"), "not-found", id="an unknown tool"),
        pytest.param(call("broken", number="many"), "validation", id="arguments that do not fit"),
        pytest.param({"tool_calls": [{"name": "works", "arguments": "{{"}]}, "validation", id="no JSON"),
        pytest.param(call("broken"), "execution", id="a tool that raises"),
        pytest.param(call("works", text="denied"), "denied", id="a rule that denies"),
    ],
)
async def test_every_way_in_which_a_call_can_fail_by_itself_counts(turn: Any, kind: str):
    desk = Desk(*[turn] * 3, "Done.", permissions=[deny("works", "not here")])
    result = await desk.send()
    assert kinds(result) == [kind, kind, "denied"]
    assert "failed 2 times in a row" in told(result)[2]["message"]


async def test_equal_calls_of_one_turn_are_one_failure_because_the_model_knew_of_none():
    desk = Desk(calls(*[("broken", {})] * 7), calls(*[("broken", {})] * 2), calls(*[("broken", {})] * 2), "Done.")
    result = await desk.send()
    assert kinds(result) == ["execution"] * 9 + ["denied"] * 2
    assert desk.model.calls[-1].tools


async def test_a_turn_of_failing_calls_that_is_repeated_is_noticed_call_by_call():
    turn = calls(("broken", {"text": "a"}), ("broken", {"text": "b"}))
    other = calls(("broken", {"text": "a"}), ("broken", {"text": "c"}))
    desk = Desk(turn, turn, other, "Done.")
    assert kinds(await desk.send()) == ["execution"] * 4 + ["denied", "execution"]


async def test_a_refusal_by_a_person_counts_for_nothing():
    turn = call("gated")
    desk = Desk(*[turn] * 4, "Done.")
    result = await desk.send()
    for _ in range(4):
        assert result.finish_reason == "awaiting-approval"
        result = await desk.agent.approvals.resolve(id=str(result.approval_id), approved=False)
    assert kinds(result) == ["rejected"] * 4
    assert result.text == "Done."


async def test_an_approval_that_came_too_late_counts_for_nothing():
    desk = Desk(*[call("gated")] * 4, "Done.", approval_ttl_ms=1)
    result = await desk.send()
    for _ in range(4):
        await asyncio.sleep(0.005)  # until it is too late
        result = await desk.agent.approvals.resolve(id=str(result.approval_id), approved=True)
    assert kinds(result) == ["denied"] * 4
    assert all("expired" in one["message"] for one in told(result))
    assert result.text == "Done."


@pytest.mark.spec("BEY-34")
async def test_the_count_goes_on_behind_a_pause_and_asks_nobody_about_a_call_that_is_refused():
    desk = Desk(*[call("gated")] * 3, "Done.")
    first = await desk.send()
    second = await desk.agent.approvals.resolve(id=str(first.approval_id), approved=True)
    assert second.finish_reason == "awaiting-approval"
    result = await desk.agent.approvals.resolve(id=str(second.approval_id), approved=True)
    assert (result.finish_reason, result.text) == ("stop", "Done.")
    assert kinds(result) == ["execution", "execution", "denied"]


async def test_a_pause_that_was_saved_without_the_count_is_continued():
    desk = Desk(call("gated"), "Done.")
    paused = await desk.send()
    store = desk.agent.approval_store
    (step,) = await store.list()
    state = json.loads(step.state)
    assert state.pop("failing") == []
    step.state = json.dumps(state)
    assert await store.save(step)
    result = await desk.agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (result.text, kinds(result)) == ("Done.", ["execution"])


@pytest.mark.spec("BEY-34")
async def test_without_the_guard_a_model_may_repeat_itself_until_its_steps_are_used_up():
    desk = Desk(*[call("broken")] * 7, loop_guard=False, max_steps=7)
    result = await desk.send()
    assert desk.ran == ["x"] * 7
    assert result.finish_reason == "max-steps"
    assert all(request.tools for request in desk.model.calls)


async def test_a_refusal_repeats_nothing_that_was_hidden_from_the_model():
    desk = Desk(*[call("broken", text="password")] * 3, "Done.", tool_error_message=lambda error, info: "It failed.")
    result = await desk.send()
    assert told(result)[2]["message"].endswith("It failed with: It failed.")
    assert "no password" not in json.dumps([message.to_dict() for message in result.messages])


async def test_each_run_counts_anew():
    desk = Desk(call("broken"), call("broken"), "No.", call("broken"), call("broken"), "No.")
    session = desk.agent.session("s")
    await session.send("go")
    await session.send("go")
    assert desk.ran == ["x"] * 4


async def test_a_refused_call_starts_and_fails_in_the_stream_like_any_other():
    desk = Desk(*[call("broken")] * 3, "Done.")
    events = await collect(desk.agent.stream("go"))
    assert types(events)[-9:-5] == ["step.start", "tool.start", "tool.error", "step.done"]
    assert of_type(events, "tool.error")[-1].error.name == "ToolDeniedError"


async def test_a_choice_of_tools_is_not_sent_once_there_are_none():
    desk = Desk(*[call("broken")] * 5, "Done.", model_settings={"tool_choice": "required"})
    await desk.send()
    assert [request.tool_choice for request in desk.model.calls][-2:] == ["required", None]
