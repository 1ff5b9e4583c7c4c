"""Coded errors that a run, an approval or a session gives, each provoked once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from runs import WAIT, ChunkProvider, call, calls, collect

from lousho import (
    FunctionCall,
    McpToolError,
    ModelChunk,
    ModelRequest,
    PropagatingToolError,
    SDKError,
    ToolCall,
    WorkspaceError,
    create_agent,
    tool,
)
from lousho.models.provider import Finish, TextDelta, ToolCallChunk
from lousho.testing import mock_model


@tool
async def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


@tool(needs_approval=True)
async def gated() -> str:
    """Needs a yes."""
    return "ok"


@pytest.mark.spec("ERR-12")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(WorkspaceError("outside the workspace"), "execution", id="a workspace"),
        pytest.param(McpToolError("the server said no"), "mcp", id="an MCP server"),
    ],
)
async def test_plain_tool_failures_are_told_to_the_model_and_the_run_goes_on(error, kind):
    @tool
    async def fail() -> str:
        """Fail."""
        raise error

    model = mock_model([call("fail"), "Noted."])
    result = await create_agent(provider=model, tools=[fail]).send("go")
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (told["error"], told["kind"], told["message"]) == (type(error).__name__, kind, str(error))
    assert result.text == "Noted."


@pytest.mark.spec("ERR-12")
async def test_a_propagating_error_rejects_the_run():
    @tool
    async def fail() -> str:
        """Fail."""
        raise PropagatingToolError("stop everything")

    model = mock_model([call("fail"), "never"])
    with pytest.raises(PropagatingToolError, match="stop everything"):
        await create_agent(provider=model, tools=[fail]).send("go")
    assert len(model.calls) == 1


@pytest.mark.spec("ERR-44")
@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        pytest.param('{"to": "sam"}', "sent to sam", id="plain"),
        pytest.param('```json\n{"to": "sam",}\n```', "sent to sam", id="code fence and trailing comma"),
        pytest.param('"{\\"to\\": \\"sam\\"}"', "sent to sam", id="encoded twice"),
        pytest.param('{"to": "a,]b"}', "sent to a,]b", id="a comma inside a text stays"),
        pytest.param('{"to": 42}', "to", id="the wrong type"),
        pytest.param("", "to", id="empty means no arguments"),
        pytest.param("[1, 2]", "(root)", id="no object"),
        pytest.param('"just text"', "(root)", id="a text"),
        pytest.param('{"to": "sa', "(root)", id="cut off"),
        pytest.param('{"to": NaN}', "(root)", id="not JSON"),
        pytest.param("[" * 100_000, "(root)", id="nested without end"),
        pytest.param("x" * 6_000_000, "(root)", id="far too long"),
    ],
)
async def test_arguments_are_repaired_or_complained_about_by_path(sent, outcome):
    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall("send", sent)))
        yield Finish("tool_calls")

    async def answer(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("ok")
        yield Finish("stop")

    provider = ChunkProvider(turn, answer)
    result = await create_agent(provider=provider, tools=[send]).send("go")
    told = str(provider.requests[1].messages[-1].content)
    if outcome.startswith("sent"):
        assert told == outcome
        return
    complaint = json.loads(told)
    assert (complaint["error"], complaint["kind"]) == ("ToolArgumentsValidationError", "validation")
    assert [issue["path"] for issue in complaint["issues"]] == [outcome]
    assert len(told) < 3000
    assert (result.text, result.tool_errors) == ("ok", 1)


@pytest.mark.spec("ERR-50")
async def test_two_decisions_on_one_step_that_race_are_a_conflict_and_nothing_runs_twice():
    ran: list[str] = []

    @tool(needs_approval=True)
    async def note(word: str) -> str:
        """Note a word."""
        ran.append(word)
        return "noted"

    agent = create_agent(
        provider=mock_model([calls(("note", {"word": "a"}), ("note", {"word": "b"})), "Done."]), tools=[note]
    )
    paused = await agent.send("go")
    first, second = paused.approval_ids
    decisions = [agent.approvals.resolve(id=first, approved=answer) for answer in (True, False, True)]
    outcomes = await asyncio.gather(*decisions, return_exceptions=True)
    codes = {getattr(outcome, "code", None) for outcome in outcomes}
    assert codes <= {None, "LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND"}
    assert sum(getattr(outcome, "code", None) is None for outcome in outcomes) == 1
    await agent.approvals.resolve(id=second, approved=True)
    assert ran in (["a", "b"], ["b"])


@pytest.mark.spec("ERR-53")
async def test_a_decision_of_the_wrong_kind_is_refused_and_the_pause_stays():
    question = {"tool_calls": [{"name": "ask_question", "args": {"question": "Which?"}}]}
    agent = create_agent(provider=mock_model([question, "Fine."]), ask_question=True)
    asked = str((await agent.send("go")).approval_id)
    with pytest.raises(SDKError) as caught:
        await agent.approvals.resolve(id=asked, approved=True)
    assert caught.value.code == "LOUSHO_APPROVAL_KIND_MISMATCH"
    assert (await agent.approvals.resolve(id=asked, approved=True, note="the first")).text == "Fine."

    other = create_agent(provider=mock_model([call("gated"), "Done."]), tools=[gated])
    waiting = str((await other.send("go")).approval_id)
    with pytest.raises(SDKError) as refused:
        await other.approvals.answer(id=waiting, answer="yes")
    assert refused.value.code == "LOUSHO_APPROVAL_KIND_MISMATCH"
    assert (await other.approvals.resolve(id=waiting, approved=True)).text == "Done."


@pytest.mark.spec("ERR-61")
async def test_a_session_is_busy_while_its_turn_runs_and_after_another_writer():
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        begun.set()
        await asyncio.wait_for(go_on.wait(), WAIT)
        yield TextDelta("late")
        yield Finish("stop")

    agent = create_agent(provider=ChunkProvider(slow))
    turn = asyncio.ensure_future(agent.session("s").send("go"))
    await asyncio.wait_for(begun.wait(), WAIT)
    with pytest.raises(SDKError) as busy:
        await agent.session("s").clear()
    assert busy.value.code == "LOUSHO_SESSION_BUSY"
    other = agent.with_options(provider=mock_model(["first"]))
    await other.session("s").send("quick")
    go_on.set()
    with pytest.raises(SDKError) as lost:
        await turn
    assert lost.value.code == "LOUSHO_SESSION_BUSY"
    assert [message.content for message in await agent.session("s").load()] == ["quick", "first"]


@pytest.mark.spec("ERR-76")
async def test_a_run_is_read_once():
    run = create_agent(provider=mock_model(["Hello."])).stream("go")
    await collect(run)
    with pytest.raises(SDKError) as caught:
        async for _ in run:
            raise AssertionError("it was read before")
    assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"


@pytest.mark.spec("ERR-101")
async def test_unused_turns_of_a_script_fail_the_test():
    model = mock_model(["one", "two", "three"])
    await create_agent(provider=model).send("go")
    with pytest.raises(SDKError) as caught:
        model.assert_exhausted()
    assert caught.value.code == "LOUSHO_TEST_FAILED"
    assert "2" in caught.value.detail


@pytest.mark.spec("ENV-01")
async def test_lousho_model_names_the_model_when_nothing_else_does(monkeypatch):
    monkeypatch.setenv("LOUSHO_MODEL", "mock/anything")
    agent = create_agent()
    assert (agent.provider.name, agent.model) == ("mock", "anything")
    assert (await agent.send("hi")).finish_reason == "stop"
    monkeypatch.setenv("OPENAI_API_KEY", "not-used")
    assert create_agent().provider.name == "mock"
    assert create_agent(provider=mock_model(["x"])).model == "mock-model"


@pytest.mark.spec("HAZ-02")
async def test_a_paused_session_without_a_durable_store_refuses_what_would_lose_the_turn():
    agent = create_agent(provider=mock_model([call("gated"), "Done."]), tools=[gated])
    session = agent.session("s")
    paused = await session.send("go")
    for attempt in (session.send("more"), session.clear()):
        with pytest.raises(SDKError) as caught:
            await attempt
        assert caught.value.code == "LOUSHO_SESSION_AWAITING_APPROVAL"
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.spec("HAZ-18")
async def test_two_calls_with_one_id_both_run_and_keep_the_transcript_valid():
    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        for name in ("a", "b"):
            yield ToolCallChunk(ToolCall("same", FunctionCall("send", json.dumps({"to": name}))))
        yield Finish("tool_calls")

    async def answer(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("ok")
        yield Finish("stop")

    provider = ChunkProvider(turn, answer)
    await create_agent(provider=provider, tools=[send]).send("go")
    assistant, first, second = provider.requests[1].messages[-3:]
    asked = [made.id for made in assistant.tool_calls]
    assert asked == [first.tool_call_id, second.tool_call_id]
    assert len(set(asked)) == 2
    assert (first.content, second.content) == ("sent to a", "sent to b")


@pytest.mark.spec("HAZ-20")
async def test_results_that_json_does_not_know_do_not_fail_the_run():
    @tool
    async def odd() -> object:
        """Return something odd."""
        ring: list[object] = [{1, 2}, b"\x00", float("nan"), 10**40, {(1, 2): "pair"}, "\ud800"]
        ring.append(ring)
        return ring

    model = mock_model([call("odd"), "Fine."])
    result = await create_agent(provider=model, tools=[odd]).send("go")
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert told == [[1, 2], {"$bytes": "AA=="}, None, str(10**40), {"(1, 2)": "pair"}, "\ufffd", "[circular]"]
    assert (result.text, result.tool_errors) == ("Fine.", None)


@pytest.mark.spec("HAZ-21")
async def test_a_continued_run_counts_the_calls_made_before_the_pause():
    model = mock_model([call("send", to="a"), call("gated"), call("send", to="b"), "Done."])
    agent = create_agent(provider=model, tools=[send, gated])
    paused = await agent.send("go")
    assert [made.name for made in paused.tool_calls] == ["send", "gated"]
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert [made.name for made in result.tool_calls] == ["send", "gated", "send"]
    assert (result.steps, result.usage.model_calls) == (4, 4)


@pytest.mark.spec("HAZ-22")
async def test_a_run_that_a_limit_stopped_says_so():
    agent = create_agent(
        provider=mock_model([call("send", to="a")], on_exhausted="repeat-last"), tools=[send], max_steps=1
    )
    run = agent.stream("go")
    events = await collect(run)
    assert (
        events[-1].text
        == (await run.result).text
        == ("Stopped after 1 step: the step limit was reached before the task was finished.")
    )


@pytest.mark.spec("HAZ-19")
@pytest.mark.parametrize("named", ["send", "functions.send", "tools/send", "vendor:send"])
async def test_a_vendors_prefix_on_a_tool_name_resolves_to_the_tool(named):
    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield ToolCallChunk(ToolCall("c1", FunctionCall(named, '{"to": "sam"}')))
        yield Finish("tool_calls")

    async def answer(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("ok")
        yield Finish("stop")

    provider = ChunkProvider(turn, answer)
    result = await create_agent(provider=provider, tools=[send]).send("go")
    assert provider.requests[1].messages[-1].content == "sent to sam"
    assert [made.name for made in result.tool_calls] == ["send"]
