"""What happens to one tool call, row by row of the tools page: arguments, context, size, and every way to fail."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import date
from typing import Any

import pytest
from hostile import told, within
from pydantic import BaseModel
from runs import call, calls, collect, of_type

import lousho
from lousho import (
    CancelSignal,
    ToolArgumentsValidationError,
    ToolContext,
    ToolExecutionContext,
    create_agent,
    define_tool,
    tool,
)
from lousho.testing import mock_model


def result_of(agent_script: list[Any], *tools: Any, **options: Any) -> Any:
    """The coroutine of one run of a script."""
    return within(create_agent(provider=mock_model(agent_script), tools=list(tools), **options).send("go"))


# -- arguments -------------------------------------------------------------------------------------------------------------


class Booking(BaseModel):
    """What the model sends."""

    day: date
    seats: int = 2


@pytest.mark.spec("TOOL-20")
async def test_the_gate_and_the_tool_get_parsed_arguments():
    seen: list[Any] = []

    def gate(booking: Booking) -> bool:
        seen.append(booking)
        return False

    async def book(booking: Booking) -> str:
        seen.append(booking)
        return booking.day.strftime("%A")

    booked = define_tool(name="book", description="Book seats", input=Booking, execute=book, needs_approval=gate)
    result = await result_of([call("book", day="2026-10-01"), "Done."], booked)
    assert seen == [Booking(day=date(2026, 10, 1), seats=2)] * 2
    assert told(result) == ["Thursday"]


@pytest.mark.spec("TOOL-20", "TOOL-43")
async def test_arguments_that_do_not_fit_reach_neither_gate_nor_tool_and_the_model_may_try_again():
    called: list[str] = []

    @tool(needs_approval=lambda to, count: called.append("gate") or False)
    async def send_mail(to: str, count: int) -> str:
        """Send mail."""
        called.append(to)
        return f"sent {count}"

    model = mock_model([call("send_mail", count="many"), call("send_mail", to="ada", count=2), "Sent."])
    heard: list[Any] = []
    result = await create_agent(provider=model, tools=[send_mail], on_event=heard.append).send("go")
    assert called == ["gate", "ada"]
    refused = json.loads(str(model.calls[1].messages[-1].content))
    issues = refused["issues"]
    assert [sorted(issue) for issue in issues] == [["message", "path"]] * 2
    assert sorted(issue["path"] for issue in issues) == ["count", "to"]
    listed = "; ".join(f"{issue['path']}: {issue['message']}" for issue in issues)
    assert refused == {
        "error": "ToolArgumentsValidationError",
        "toolName": "send_mail",
        "message": f"Invalid arguments for tool 'send_mail': 2 issues ({listed})",
        "kind": "validation",
        "issues": issues,
    }
    assert (told(result)[1], result.text, result.tool_errors) == ("sent 2", "Sent.", 1)
    assert of_type(heard, "tool.error")[0].error.name == "ToolArgumentsValidationError"


@pytest.mark.spec("TOOL-43")
@pytest.mark.parametrize(
    ("args", "issues"),
    [
        ({"seats": {}}, {"day": "Field required", "seats": "Input should be a valid integer, received object"}),
        ({"day": "2026-10-01", "seats": [2]}, {"seats": "Input should be a valid integer, received array"}),
        ({"day": "2026-10-01", "notes": "x"}, {"notes": "Input should be a valid array, received string"}),
        ({"day": "2026-10-01", "notes": ["x", 7]}, {"notes.1": "Input should be a valid string, received number"}),
    ],
    ids=["missing and wrong", "an array", "a text", "inside a list"],
)
async def test_each_issue_says_where_and_what(args: dict[str, Any], issues: dict[str, str]):
    @tool
    async def book(day: date, seats: int = 2, notes: list[str] | None = None) -> str:
        """Book seats."""
        return "never"

    (answer,) = told(await result_of([call("book", **args), "Done."], book))
    assert {one["path"]: one["message"] for one in answer["issues"]} == issues


@pytest.mark.spec("TOOL-43")
def test_the_error_of_arguments_that_do_not_fit_has_its_issues():
    assert lousho.ToolArgumentsValidationError is ToolArgumentsValidationError
    strict = define_tool(name="strict", description="Strict", input=Booking, execute=lambda booking: "x")
    with pytest.raises(ToolArgumentsValidationError) as caught:
        strict.parse({"day": "never", "seats": []})
    assert [issue.path for issue in caught.value.issues] == ["day", "seats"]
    assert caught.value.issues[0].message in str(caught.value)


# -- beside each other, long results, aborts -------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-22")
@pytest.mark.parametrize(("limit", "most"), [("unbounded", 6), (2, 2), (1, 1)])
async def test_calls_of_a_turn_run_beside_each_other_and_their_results_stand_in_call_order(limit: Any, most: int):
    inside, seen = 0, 0
    full = asyncio.Event()

    @tool
    async def meet(number: int) -> int:
        """Wait until as many as may are here."""
        nonlocal inside, seen
        inside += 1
        seen = max(seen, inside)
        if inside == most:
            full.set()
        await within(full.wait())
        for _ in range(6 - number):  # later calls end first
            await asyncio.sleep(0)
        inside -= 1
        return number

    turn = calls(*[("meet", {"number": n}) for n in range(6)])
    result = await result_of([turn, "Done."], meet, tool_concurrency=limit)
    assert (seen, told(result)) == (most, list(range(6)))


LONG = "".join(f"{n:06d}\n" for n in range(8_600))  # 60,200 characters


@pytest.mark.spec("TOOL-23")
async def test_a_long_result_is_cut_for_the_model_and_the_transcript_and_whole_in_the_event():
    @tool
    async def dump() -> str:
        """Say a lot."""
        return LONG

    @tool
    async def records() -> list[dict[str, int]]:
        """Return a lot."""
        return [{"n": n} for n in range(8_000)]

    heard: list[Any] = []
    model = mock_model([calls(("dump", {}), ("records", {})), "Done."])
    result = await create_agent(provider=model, tools=[dump, records], on_event=heard.append).send("go")
    whole = [LONG, json.dumps([{"n": n} for n in range(8_000)], separators=(",", ":"))]
    in_request = [str(message.content) for message in model.calls[1].messages if message.role == "tool"]
    in_transcript = [str(message.content) for message in result.messages if message.role == "tool"]
    assert in_request == in_transcript
    for text, full in zip(in_request, whole, strict=True):
        assert len(full) > 60_000
        cut = len(full) - 50_000
        assert 50_000 <= len(text) <= 50_100
        assert text.startswith(full[:20_000])
        assert text.endswith(full[-20_000:])
        assert str(cut) in text[20_000:-20_000]
    events = {event.tool_name: event.result for event in of_type(heard, "tool.done")}
    assert events == {"dump": LONG, "records": [{"n": n} for n in range(8_000)]}


@pytest.mark.spec("TOOL-23")
@pytest.mark.parametrize(("cap", "cut"), [(None, 0), (100_000, 0), (math.inf, 0), (10_000, 40_000), (49_999, 1)])
async def test_the_limit_of_results_can_be_set_and_switched_off(cap: Any, cut: int):
    @tool
    async def dump() -> str:
        """Say a lot."""
        return LONG[:50_000]

    options: dict[str, Any] = {} if cap is None else {"max_tool_result_chars": cap}
    result = await result_of([call("dump"), "Done."], dump, **options)
    text = str(result.messages[2].content)
    if not cut:
        assert text == LONG[:50_000]
    else:
        assert text != LONG[:50_000]
        assert str(cut) in text or str(cut + 1) in text
        assert len(text) <= 50_000 - cut + 100


@pytest.mark.spec("TOOL-24")
async def test_an_abort_reaches_every_running_call():
    running = asyncio.Event()
    heard: list[str] = []

    @tool
    async def wait(name: str, ctx: ToolContext) -> str:
        """Wait for the abort."""
        ctx.abort_signal.add_listener(lambda reason: heard.append(name))
        if name == "b":
            running.set()
        await asyncio.Event().wait()
        return name

    signal = CancelSignal()
    agent = create_agent(provider=mock_model([calls(("wait", {"name": "a"}), ("wait", {"name": "b"}))]), tools=[wait])
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    await within(running.wait())
    assert heard == []
    signal.abort("enough")
    assert (await within(task)).finish_reason == "aborted"
    assert sorted(heard) == ["a", "b"]


# -- the context -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-30", "TOOL-31", "TOOL-33")
async def test_every_call_has_a_context_of_its_own_before_and_after_an_approval():
    seen: list[ToolExecutionContext] = []

    async def free(args: dict[str, Any], ctx: ToolExecutionContext) -> str:
        seen.append(ctx)
        return "x"

    @tool(needs_approval=True)
    async def gated(ctx: ToolExecutionContext) -> str:
        """Look around when allowed."""
        seen.append(ctx)
        return "x"

    @tool
    def without(word: str) -> str:
        """Need no context."""
        return word

    plain = define_tool(name="free", description="Look", input={"type": "object", "properties": {}}, execute=free)
    turn = calls(("free", {}), ("gated", {}), ("without", {"word": "w"}))
    heard: list[Any] = []
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=[plain, gated, without], on_event=heard.append)
    paused = await agent.session("s-1").send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert told(result) == ["x", "x", "w"]
    assert all(type(ctx) is lousho.ToolExecutionContext for ctx in seen)
    starts = {event.tool_name: event.tool_call_id for event in of_type(heard, "tool.start")}
    assert [ctx.tool_call_id for ctx in seen] == [starts["free"], starts["gated"]] == ["call_1", "call_2"]
    assert [ctx.session_id for ctx in seen] == ["s-1", "s-1"]
    assert [ctx.principal for ctx in seen] == [None, None]
    assert not any(ctx.abort_signal.aborted for ctx in seen)

    alone = create_agent(provider=mock_model([call("free"), "Done."]), tools=[plain])
    await alone.send("go")
    assert seen[-1].session_id is None


@pytest.mark.spec("TOOL-32")
async def test_a_tool_sees_the_transcript_before_its_turn_and_cannot_change_it():
    seen: list[Any] = []

    @tool
    async def look(ctx: ToolContext) -> str:
        """Look at the talk so far."""
        seen.append([(message.role, str(message.content)) for message in ctx.messages])
        assert isinstance(ctx.messages, tuple)
        for broken in (lambda: setattr(ctx, "messages", ()), lambda: setattr(ctx.messages[0], "content", "changed")):
            with pytest.raises(AttributeError):
                broken()
        return f"looked {len(seen)}"

    model = mock_model([{"text": "I look.", **call("look")}, {"text": "Again.", **call("look")}, "Done."])
    await create_agent(provider=model, tools=[look], instructions="Be brief.").send("go")
    assert seen == [
        [("user", "go")],
        [("user", "go"), ("assistant", "I look."), ("tool", "looked 1")],
    ]


@pytest.mark.spec("TOOL-35")
async def test_only_a_call_that_a_person_approved_knows_of_the_approval():
    seen: dict[str, Any] = {}

    @tool(needs_approval=lambda name: name != "free")
    async def act(name: str, ctx: ToolContext) -> str:
        """Do something."""
        seen[name] = ctx.approval
        return name

    turns = [calls(("act", {"name": "free"}), ("act", {"name": "gated"})), call("act", name="free"), "Done."]
    agent = create_agent(provider=mock_model(turns), tools=[act])
    paused = await agent.send("go")
    assert seen == {"free": None}
    seen.clear()
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True, note="only once")
    assert seen["free"] is None
    assert (seen["gated"].id, seen["gated"].note) == (paused.approval_id, "only once")


@pytest.mark.spec("TOOL-70")
@pytest.mark.parametrize("how", ["the option", "the tool"])
async def test_a_question_waits_for_its_answer(how: str):
    options: dict[str, Any] = {"ask_question": True} if how == "the option" else {"tools": [lousho.ask_question_tool()]}
    model = mock_model([call("ask_question", question="Which city?", options=["Paris", "Rome"]), "To Rome."])
    agent = create_agent(provider=model, **options)
    run = agent.stream("book")
    events = await collect(run)
    paused = await run.result
    assert (paused.finish_reason, of_type(events, "approval.requested")[0].kind) == ("awaiting-approval", "question")
    assert (await agent.approvals.list())[0].question == {"text": "Which city?", "options": ["Paris", "Rome"]}
    result = await agent.approvals.answer(id=str(paused.approval_id), answer="Rome")
    assert result.text == "To Rome."
    assert "Rome" in str(model.calls[1].messages[-1].content)
