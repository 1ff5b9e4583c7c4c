"""Permission modes of agents, calls and sessions: what each lets run, how they are switched, what is told of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from runs import call, calls, collect, of_type

from lousho import (
    ConfigurationError,
    PermissionModeChange,
    RunResult,
    ask,
    create_agent,
    create_todo_tools,
    current_date_tool,
    day_name_tool,
    memory_store,
    tool,
    web_fetch_tool,
)
from lousho.testing import mock_model

PLAN = "The agent is in plan mode: it may read but not change anything. Describe the change instead."
DONT_ASK = "The agent is in dontAsk mode: calls that need approval are refused."


class Desk:
    """Tools that write down what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

        @tool(annotations={"readOnlyHint": True})
        def look(at: str) -> str:
            """Look at something."""
            self.done.append(f"look {at}")
            return "a page"

        @tool(annotations={"readOnlyHint": True}, needs_approval=True)
        def peek(at: str) -> str:
            """Look at something private."""
            self.done.append(f"peek {at}")
            return "a secret page"

        @tool(edits_files=True, needs_approval=True)
        def append(line: str) -> str:
            """Append a line to a file."""
            self.done.append(f"append {line}")
            return "appended"

        @tool(needs_approval=True)
        def deploy(to: str) -> str:
            """Deploy."""
            self.done.append(f"deploy {to}")
            return "deployed"

        @tool
        def note(text: str) -> str:
            """Write a note down."""
            self.done.append(f"note {text}")
            return "noted"

        self.tools = [look, peek, append, deploy, note]

    def agent(self, *script: Any, **options: Any) -> Any:
        self.model = mock_model([*script])
        all_options: dict[str, Any] = {"tools": self.tools, **options}
        return create_agent(provider=self.model, **all_options)


def told(result: RunResult) -> list[Any]:
    """Return what the model read of its calls: texts of results, and of errors kind and reason."""
    found: list[Any] = []
    for message in result.messages:
        if message.role == "tool":
            error = json.loads(str(message.content)) if message.is_error else None
            found.append(message.content if error is None else (error["kind"], error.get("reason")))
    return found


@pytest.mark.spec("PMODE-02")
@pytest.mark.parametrize("options", [{}, {"permission_mode": "default"}])
async def test_without_a_mode_a_call_that_asks_pauses_and_the_others_run(options: dict[str, Any]):
    desk = Desk()
    agent = desk.agent(calls(("note", {"text": "a"}), ("append", {"line": "b"}), ("deploy", {"to": "c"})), **options)
    result = await agent.send("go")
    assert (result.finish_reason, len(result.approval_ids), desk.done) == ("awaiting-approval", 2, ["note a"])


@pytest.mark.spec("PMODE-03", "PMODE-07", "TOOL-06")
async def test_plan_mode_runs_only_tools_that_say_they_read():
    desk = Desk()
    script = calls(("look", {"at": "a"}), ("append", {"line": "b"}), ("deploy", {"to": "c"}), ("note", {"text": "d"}))
    result = await desk.agent(script, "I would append b.", permission_mode="plan").send("go")
    assert told(result) == ["a page", ("denied", PLAN), ("denied", PLAN), ("denied", PLAN)]
    assert (result.finish_reason, desk.done) == ("stop", ["look a"])


@pytest.mark.spec("PMODE-03", "TOOL-49")
async def test_an_allow_rule_does_not_lift_plan_mode_and_a_reading_tool_may_still_ask():
    desk = Desk()
    agent = desk.agent(
        calls(("note", {"text": "a"}), ("peek", {"at": "b"})),
        "Seen.",
        permissions=[{"tool": "note", "action": "allow"}],
        permission_mode="plan",
    )
    paused = await agent.send("go")
    assert (paused.finish_reason, desk.done) == ("awaiting-approval", [])
    result = await agent.approvals.resolve(id=paused.approval_id, approved=True)
    assert (told(result), desk.done) == ([("denied", PLAN), "a secret page"], ["peek b"])


@pytest.mark.spec("PMODE-07")
@pytest.mark.parametrize("hint", [False, None, "true", 1])
async def test_only_a_true_hint_makes_a_tool_read_only_and_an_editing_tool_never_is(hint: Any):
    desk = Desk()
    annotations = {"readOnlyHint": hint}
    odd = [desk.tools[4].replace(annotations=annotations)]
    assert told(await desk.agent(call("note", text="a"), "x", tools=odd, permission_mode="plan").send("go")) == [
        ("denied", PLAN)
    ]
    both = [desk.tools[2].replace(annotations={"readOnlyHint": True})]
    assert told(await desk.agent(call("append", line="a"), "x", tools=both, permission_mode="plan").send("go")) == [
        ("denied", PLAN)
    ]


@pytest.mark.spec("PMODE-04")
async def test_the_prompt_of_a_run_in_plan_mode_says_so_and_an_unknown_tool_is_still_unknown():
    desk = Desk()
    agent = desk.agent(call("erase", all=True), "x", "y", instructions="Be kind.")
    result = await agent.send("go", permission_mode="plan")
    assert [kind for kind, _ in told(result)] == ["not-found"]
    await agent.send("go")
    first, second, third = (request.messages[0].content for request in desk.model.calls)
    assert first == second
    assert third == "Be kind."
    own, empty, paragraph = str(first).split("\n")
    assert (own, empty) == ("Be kind.", "")
    assert "plan mode" in paragraph


async def test_a_prompt_that_the_transcript_brings_gets_the_paragraph_too_and_an_empty_one_is_that_alone():
    desk = Desk()
    agent = desk.agent("x", "y", instructions="", permission_mode="plan")
    await agent.send([{"role": "system", "content": "Mine."}, {"role": "user", "content": "go"}])
    await agent.send("go")
    mine, alone = (request.messages[0] for request in desk.model.calls)
    assert mine.role == alone.role == "system"
    assert mine.content == f"Mine.\n\n{alone.content}"


@pytest.mark.spec("PMODE-05", "TOOL-08")
async def test_accept_edits_runs_edits_without_asking_and_nothing_else():
    desk = Desk()
    script = calls(("append", {"line": "a"}), ("deploy", {"to": "b"}), ("peek", {"at": "c"}), ("note", {"text": "d"}))
    agent = desk.agent(script, permission_mode="acceptEdits", permissions=[ask("append")])
    paused = await agent.send("go")
    assert (paused.finish_reason, desk.done) == ("awaiting-approval", ["append a", "note d"])
    waiting = [one.tool_name for one in await agent.approvals.list()]
    assert waiting == ["deploy", "peek"]


@pytest.mark.spec("PMODE-12")
async def test_a_tool_is_no_file_edit_by_its_name():
    desk = Desk()
    named = [desk.tools[3].renamed("write_file"), desk.tools[2]]
    script = calls(("write_file", {"to": "a"}), ("append", {"line": "b"}))
    paused = await desk.agent(script, tools=named, permission_mode="acceptEdits").send("go")
    assert (paused.finish_reason, desk.done) == ("awaiting-approval", ["append b"])
    marked = [desk.tools[3].replace(metadata={"editsFiles": True})]
    result = await desk.agent(call("deploy", to="c"), "x", tools=marked, permission_mode="acceptEdits").send("go")
    assert (result.finish_reason, desk.done) == ("stop", ["append b", "deploy c"])


@pytest.mark.spec("PMODE-06")
async def test_dont_ask_refuses_whatever_would_pause_and_runs_the_rest():
    desk = Desk()
    script = calls(
        ("look", {"at": "a"}),
        ("deploy", {"to": "b"}),
        ("ask_question", {"question": "Really?"}),
        ("note", {"text": "c"}),
        ("append", {"line": "d"}),
        ("peek", {"at": "e"}),
    )
    agent = desk.agent(
        script,
        "Done.",
        ask_question=True,
        permissions=[ask("look"), {"tool": "append", "action": "allow"}],
        permission_mode="dontAsk",
    )
    result = await agent.send("go")
    no = ("denied", DONT_ASK)
    assert told(result) == [no, no, no, "noted", "appended", no]
    assert (result.finish_reason, desk.done, await agent.approvals.list()) == ("stop", ["note c", "append d"], [])


@pytest.mark.spec("PMODE-08")
async def test_the_built_in_tools_that_read_run_in_plan_mode_and_those_that_write_do_not():
    desk = Desk()
    script = calls(
        ("current_date", {}),
        ("day_name", {"date": "2026-10-01"}),
        ("todo_read", {}),
        ("todo_write", {"todos": []}),
        ("web_fetch", {"url": "http://127.0.0.1:9/"}),
    )
    tools = [current_date_tool, day_name_tool, *create_todo_tools().tools, web_fetch_tool]
    result = await desk.agent(script, "x", tools=tools, permission_mode="plan").send("go")
    date, day, todos, written, fetched = told(result)
    assert isinstance(date, str)
    assert "Thursday" in day
    assert isinstance(todos, str)
    assert written == ("denied", PLAN)
    assert fetched[1] != PLAN  # it ran: the address is refused by the tool itself


@pytest.mark.spec("PMODE-10")
async def test_plan_mode_lets_a_question_be_asked():
    desk = Desk()
    agent = desk.agent(
        call("ask_question", question="Which file?"), "I see.", ask_question=True, permission_mode="plan"
    )
    paused = await agent.send("go")
    assert paused.finish_reason == "awaiting-approval"
    result = await agent.approvals.answer(id=paused.approval_id, answer="notes.md")
    assert (result.text, told(result)) == ("I see.", ['{"answer":"notes.md"}'])


@pytest.mark.spec("PMODE-14", "PMODE-18")
async def test_a_function_is_asked_at_every_tool_call_and_the_prompt_stays_as_it_was():
    desk = Desk()
    mode = {"now": "default"}
    agent = desk.agent(
        call("note", text="a"), call("note", text="b"), call("note", text="c"), "x", permission_mode=lambda: mode["now"]
    )
    modes = iter(("default", "plan", "default"))
    run = agent.stream("go")
    async for event in run:
        if event.type == "step.start":
            mode["now"] = next(modes, "default")
    assert told(await run.result) == ["noted", ("denied", PLAN), "noted"]
    assert desk.done == ["note a", "note c"]
    assert len({str(request.messages[0].content) for request in desk.model.calls}) == 1


@pytest.mark.spec("PMODE-15")
async def test_the_mode_of_a_call_holds_for_that_run_alone():
    desk = Desk()
    agent = desk.agent(call("note", text="a"), "x", call("note", text="b"), "y", call("note", text="c"), "z")
    assert told(await agent.send("go", permission_mode="plan")) == [("denied", PLAN)]
    run = agent.stream("go", permission_mode="plan")
    await collect(run)
    assert told(await run.result) == [("denied", PLAN)]
    assert told(await agent.send("go")) == ["noted"]


@pytest.mark.spec("PMODE-16")
async def test_a_session_has_a_mode_that_can_be_switched_in_the_middle_of_a_turn():
    desk = Desk()
    agent = desk.agent(
        call("note", text="a"),
        "x",
        calls(("note", {"text": "b"}), ("note", {"text": "c"})),
        call("note", text="d"),
        "y",
    )
    session = agent.session("s", permission_mode="plan")
    assert session.permission_mode == "plan"
    assert told(await session.send("go")) == [("denied", PLAN)]
    session.set_permission_mode("default")
    assert session.permission_mode == "default"
    run = session.stream("go")
    async for event in run:
        if event.type == "tool.start":
            session.set_permission_mode("plan")
    assert told(await run.result)[1:] == ["noted", ("denied", PLAN), ("denied", PLAN)]
    assert desk.done == ["note b"]


@pytest.mark.spec("PMODE-16")
async def test_a_session_without_a_mode_follows_the_agent_and_remembers_its_own_when_nobody_holds_it():
    desk = Desk()
    mode = {"now": "default"}
    agent = desk.agent("x", permission_mode=lambda: mode["now"])
    session = agent.session("s")
    assert session.permission_mode == "default"
    mode["now"] = "dontAsk"
    assert session.permission_mode == "dontAsk"
    session.set_permission_mode("plan")
    del session
    assert (agent.session("s").permission_mode, agent.session("t").permission_mode) == ("plan", "dontAsk")


@pytest.mark.spec("PMODE-17")
async def test_each_switch_of_a_session_is_reported_and_nothing_else_is():
    desk, seen = Desk(), list[PermissionModeChange]()
    agent = desk.agent(call("note", text="a"), "x", on_permission_mode_change=seen.append, permission_mode="dontAsk")
    session = agent.session("s", permission_mode="plan")
    await session.send("go")
    assert (session.permission_mode, seen) == ("plan", [])
    session.set_permission_mode("acceptEdits")
    session.set_permission_mode("acceptEdits")
    agent.session("s", permission_mode="default")
    assert [(one.session_id, one.from_, one.to) for one in seen] == [
        ("s", "plan", "acceptEdits"),
        ("s", "acceptEdits", "default"),
    ]
    wire = seen[0].to_dict()
    assert list(wire) == ["sessionId", "from", "to", "at"]
    assert wire["at"].endswith("Z")


async def test_a_listener_that_raises_does_not_stop_a_switch():
    def broken(_: object) -> None:
        raise RuntimeError("no")

    session = Desk().agent("x", on_permission_mode_change=broken).session()
    session.set_permission_mode("plan")
    assert session.permission_mode == "plan"


@pytest.mark.spec("PMODE-19", "EVT-16")
async def test_in_a_mode_every_decision_is_told_and_the_mode_where_it_decided():
    desk, entries = Desk(), list[Any]()
    script = calls(("note", {"text": "a"}), ("append", {"line": "b"}), ("look", {"at": "c"}))

    async def decisions(**options: Any) -> list[dict[str, Any]]:
        run = desk.agent(script, "x", **options).stream("go")
        events = of_type(await collect(run), "permission.decision")
        return [{key: one.to_dict().get(key) for key in ("decision", "mode", "reason", "rule")} for one in events]

    said = {"decision": "default", "mode": None, "reason": None, "rule": None}
    assert await decisions() == []
    refused = {**said, "decision": "deny", "mode": "plan", "reason": PLAN}
    assert await decisions(permission_mode="plan") == [refused, refused, said]
    edited = {**said, "decision": "allow", "mode": "acceptEdits"}
    assert await decisions(permission_mode="acceptEdits") == [said, edited, said]
    unasked = {**said, "decision": "deny", "mode": "dontAsk", "reason": DONT_ASK}
    assert await decisions(permission_mode="dontAsk") == [said, unasked, said]
    ruled = await decisions(
        permission_mode="plan",
        permissions=[ask("look"), {"tool": "note", "action": "allow"}],
        on_permission_decision=lambda entry, principal: entries.append((entry, principal)),
    )
    assert ruled[0] == {**refused, "rule": {"index": 1}}
    assert [(entry["decision"], entry.get("mode"), principal) for entry, principal in entries] == [
        ("deny", "plan", None),
        ("deny", "plan", None),
        ("ask", None, None),
    ]


@pytest.mark.spec("PMODE-22")
async def test_a_decided_turn_goes_on_in_the_mode_that_its_session_has_now():
    desk = Desk()
    agent = desk.agent(call("deploy", to="a"), call("deploy", to="b"), "x")
    session = agent.session("s")
    paused = await session.send("go")
    session.set_permission_mode("dontAsk")
    result = await agent.approvals.resolve(id=paused.approval_id, approved=True)
    assert (told(result), desk.done) == (["deployed", ("denied", DONT_ASK)], ["deploy a"])


@pytest.mark.spec("PMODE-22")
async def test_a_decided_run_without_a_session_goes_on_in_the_agents_mode_not_in_that_of_the_call():
    desk = Desk()
    agent = desk.agent(call("deploy", to="a"), call("append", line="b"), "x", permission_mode="dontAsk")
    paused = await agent.send("go", permission_mode="acceptEdits")
    assert paused.finish_reason == "awaiting-approval"
    result = await agent.approvals.resolve(id=paused.approval_id, approved=True)
    assert (told(result), desk.done) == (["deployed", ("denied", DONT_ASK)], ["deploy a"])


@pytest.mark.spec("PMODE-22")
async def test_a_mode_is_not_saved_with_a_pause_so_another_agent_on_the_store_uses_its_own():
    desk, store = Desk(), memory_store()
    first = desk.agent(call("deploy", to="a"), store=store)
    session = first.session("s", permission_mode="acceptEdits")
    paused = await session.send("go")
    (step,) = await store.approvals.list()
    assert "acceptEdits" not in json.dumps(step.state)
    other = desk.agent(call("append", line="b"), "x", store=store, permission_mode="dontAsk")
    result = await other.approvals.resolve(id=paused.approval_id, approved=True)
    assert (told(result), desk.done) == (["deployed", ("denied", DONT_ASK)], ["deploy a"])


@pytest.mark.spec("PMODE-23")
async def test_an_approved_call_is_refused_in_plan_mode_unless_its_tool_reads():
    desk = Desk()
    agent = desk.agent(calls(("deploy", {"to": "a"}), ("peek", {"at": "b"})), "x")
    session = agent.session("s")
    paused = await session.send("go")
    session.set_permission_mode("plan")
    await agent.approvals.resolve(id=paused.approval_ids[0], approved=True)
    run = agent.approvals.stream_resolve(id=paused.approval_ids[1], approved=True)
    events = await collect(run)
    assert (told(await run.result), desk.done) == ([("denied", PLAN), "a secret page"], ["peek b"])
    assert [(one.decision, one.mode) for one in of_type(events, "permission.decision")] == [("deny", "plan")]


@pytest.mark.spec("PMODE-24")
@pytest.mark.parametrize("mode", ["yolo", "Plan", "", 3, ["plan"], True])
async def test_an_unknown_mode_is_refused_wherever_it_is_given(mode: Any):
    desk = Desk()
    agent = desk.agent("x")
    session = agent.session("s")
    for give in (
        lambda: desk.agent(permission_mode=mode),
        lambda: agent.session("t", permission_mode=mode),
        lambda: session.set_permission_mode(mode),
        lambda: agent.stream("go", permission_mode=mode),
        lambda: agent.send_sync("go", permission_mode=mode),
    ):
        with pytest.raises(ConfigurationError) as raised:
            await asyncio.to_thread(give)
        assert (raised.value.code, raised.value.field) == ("LOUSHO_CONFIG_INVALID", "permission_mode")
    assert session.permission_mode == "default"


def test_a_near_name_of_a_mode_is_told():
    with pytest.raises(ConfigurationError, match="did you mean 'acceptEdits'"):
        create_agent(model="mock/mini", permission_mode="accept_edits")  # type: ignore[arg-type]


async def test_a_function_that_cannot_say_a_mode_lets_nothing_run():
    desk = Desk()
    answers = iter(["default", "nonsense"])
    agent = desk.agent(call("note", text="a"), "x", permission_mode=lambda: next(answers))
    result = await agent.send("go")
    assert (result.finish_reason, desk.done) == ("stop", [])
    assert told(result)[0][0] != "denied"
    broken = desk.agent("x", permission_mode=lambda: 1 / 0)
    run = broken.stream("go", throw_on_error=False)
    events = await collect(run)
    assert [one.type for one in events] == ["run.start", "error", "run.done"]
    assert events[1].error.name == "ConfigurationError"
    with pytest.raises(ConfigurationError) as raised:
        await broken.send("go")
    assert raised.value.code == "LOUSHO_CONFIG_RESOLVER_FAILED"
    assert desk.model.calls == ()


async def _later() -> str:
    return "plan"


@pytest.mark.parametrize("function", [_later, lambda context: "plan"])
def test_the_function_is_a_plain_one_without_arguments(function: Any):
    with pytest.raises(ConfigurationError) as raised:
        create_agent(model="mock/mini", permission_mode=function)
    assert raised.value.field == "permission_mode"


async def test_a_turn_cannot_bring_a_mode_and_the_error_says_what_can():
    session = Desk().agent("x").session()
    with pytest.raises(ConfigurationError, match=r"set_permission_mode\(\)"):
        await session.send("go", permission_mode="plan")  # type: ignore[call-arg]


async def test_a_description_shows_the_mode_and_does_not_call_a_function_for_it():
    asked: list[str] = []
    agent = Desk().agent("x", permission_mode="plan")
    described = await agent.describe()
    assert described["permissionMode"] == "plan"
    assert "plan mode" in described["instructions"]
    varying = agent.with_options(permission_mode=lambda: asked.append("asked") or "plan")
    assert ((await varying.describe())["permissionMode"], asked) == ("depends", [])
    assert (await varying.describe(input="go"))["permissionMode"] == "plan"


@pytest.mark.spec("PMODE-13")
async def test_arguments_come_before_the_mode_so_the_model_sees_the_nearer_problem():
    desk, entries = Desk(), list[Any]()
    agent = desk.agent(
        call("deploy", where="a"),
        "x",
        permission_mode="plan",
        on_permission_decision=lambda *told: entries.append(told),
    )
    result = await agent.send("go")
    assert [kind for kind, _ in told(result)] == ["validation"]
    assert entries == []


async def test_a_run_that_goes_on_tells_the_model_the_mode_it_goes_on_in():
    desk = Desk()
    agent = desk.agent(call("peek", at="a"), call("peek", at="b"), "x", instructions="Be kind.")
    session = agent.session("s", permission_mode="plan")
    paused = await session.send("go")
    again = await agent.approvals.resolve(id=paused.approval_id, approved=True)
    session.set_permission_mode("default")
    await agent.approvals.resolve(id=again.approval_id, approved=True)
    first, second, third = (str(request.messages[0].content) for request in desk.model.calls)
    assert first == second
    assert third == "Be kind."
