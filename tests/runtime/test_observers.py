"""The functions of the executor that watch model calls and tool calls: when they hear what, and what they cannot do."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hostile import told
from runs import call, calls, collect, of_type

from lousho import LLMProviderError, tool
from lousho.executor import AgentBuilder, AgentExecutor, ToolRegistry, resume_after_approval
from lousho.stores.memory import memory_store
from lousho.testing import mock_model

LONG = "x" * 60_000


@tool
async def look(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool
async def long() -> str:
    """Return a lot."""
    return LONG


@tool
async def fail() -> str:
    """Fail."""
    raise LookupError("nothing")


@tool(needs_approval=True)
async def deploy() -> str:
    """Deploy."""
    return "deployed"


TOOLS = [look, long, fail, deploy]


def watched(script: Any, log: list[tuple[str, Any]], **options: Any) -> dict[str, Any]:
    agent = AgentBuilder.create().set_name("watched").set_prompt("Be brief.").add_tools(TOOLS).build()
    names = ("on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result")

    def note(name: str) -> Any:
        return lambda heard: log.append((name, heard))

    registry = ToolRegistry(TOOLS)
    given = {"agent": agent, "provider": mock_model(script), "tool_registry": registry, "input": "go"}
    return {**given, **{name: note(name) for name in names}, **options}


@pytest.mark.parametrize("streamed", [False, True])
async def test_each_is_told_at_its_moment_of_everything(streamed: bool):
    log: list[tuple[str, Any]] = []
    turn = {"text": "Hm.", **calls(("look", {"word": "a"}), ("ghost", {}), ("look", {})), "usage": {"input_tokens": 7}}
    options = watched([turn, "Done."], log, tool_concurrency=1)
    if streamed:
        run = AgentExecutor.stream(**options)
        events = await collect(run)
        starts = of_type(events, "tool.start")
        assert [heard.seq for name, heard in log if name == "on_tool_call"] == [event.seq for event in starts]
        run_id = run.run_id
    else:
        run_id = (await AgentExecutor.execute(**options)).run_id
    assert [name for name, _ in log] == [
        "on_llm_request",
        "on_llm_response",
        *["on_tool_call", "on_tool_result"] * 3,
        "on_llm_request",
        "on_llm_response",
    ]
    first, answer, started, done, *_ = [heard for _, heard in log]
    assert [message.role for message in first.messages] == ["system", "user"]
    assert [one.function.name for one in first.tools] == ["look", "long", "fail", "deploy"]
    assert (answer.text, len(answer.tool_calls), answer.finish_reason) == ("Hm.", 3, "tool_calls")
    assert answer.usage.input_tokens == 7
    assert (started.tool_name, started.args, started.tool_call_id) == ("look", {"word": "a"}, "call_1")
    assert (done.result, done.tool_call_id) == ("A", "call_1")
    assert {heard.run_id for name, heard in log if name.startswith("on_tool")} == {run_id}
    assert all(heard.timestamp for name, heard in log if name.startswith("on_tool"))
    failed = [heard.error.name for name, heard in log if name == "on_tool_result" and heard.type == "tool.error"]
    assert failed == ["ToolNotFoundError", "ToolArgumentsValidationError"]


@pytest.mark.spec("TOOL-23")
async def test_a_result_is_told_whole_though_the_model_gets_it_cut():
    log: list[tuple[str, Any]] = []
    result = await AgentExecutor.execute(**watched([call("long"), "Done."], log))
    assert [heard.result for name, heard in log if name == "on_tool_result"] == [LONG]
    assert "[10000 characters cut]" in str(result.messages[2].content)


@pytest.mark.spec("TOOL-41")
async def test_a_failed_call_is_told_as_a_failure():
    log: list[tuple[str, Any]] = []
    result = await AgentExecutor.execute(**watched([call("fail"), "Done."], log))
    (heard,) = [heard for name, heard in log if name == "on_tool_result"]
    assert (heard.type, heard.error.name, heard.error.message) == ("tool.error", "LookupError", "nothing")
    assert result.messages[2].is_error


async def test_what_they_do_with_what_they_are_told_changes_nothing():
    def spoil(heard: Any) -> None:
        for name in ("messages", "tools"):
            items = getattr(heard, name, None)
            if isinstance(items, list):
                items.clear()
        if hasattr(heard, "args"):
            heard.args["word"] = "spoiled"
        if isinstance(getattr(heard, "result", None), dict):
            heard.result.clear()

    @tool
    async def table() -> dict[str, int]:
        """Return a table."""
        return {"a": 1}

    seen: list[Any] = []
    spoilers = dict.fromkeys(("on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result"), spoil)
    agent = AgentBuilder.create().set_name("x").add_tools([look, table]).build()
    model = mock_model([calls(("look", {"word": "a"}), ("table", {})), "Done."])
    result = await AgentExecutor.execute(
        agent=agent,
        provider=model,
        tool_registry=ToolRegistry([look, table]),
        input="go",
        on_agent_event=seen.append,
        **spoilers,
    )
    assert told(result) == ["A", {"a": 1}]
    assert of_type(seen, "tool.done")[-1].result == {"a": 1}
    assert all(request.tools for request in model.calls)


async def test_what_they_raise_costs_one_warning_a_run_and_nothing_else(caplog: pytest.LogCaptureFixture):
    def explode(_: Any) -> None:
        raise RuntimeError("not interested")

    exploding = dict.fromkeys(("on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result"), explode)
    with caplog.at_level(logging.WARNING, logger="lousho"):
        result = await AgentExecutor.execute(**watched([call("look", word="a"), "Done."], [], **exploding))
    assert (result.text, result.finish_reason) == ("Done.", "stop")
    assert len(caplog.records) == 1


async def test_a_model_call_that_fails_has_a_request_and_no_response():
    log: list[tuple[str, Any]] = []
    with pytest.raises(LLMProviderError):
        await AgentExecutor.execute(**watched([{"error": "down"}], log))
    assert [name for name, _ in log] == ["on_llm_request"]


async def test_a_decided_call_is_not_started_again_and_its_result_is_told():
    log: list[tuple[str, Any]] = []
    store = memory_store().approvals
    options = watched([call("deploy"), "Done."], log, approval_store=store)
    paused = await AgentExecutor.execute(**options)
    assert [name for name, _ in log] == ["on_llm_request", "on_llm_response", "on_tool_call"]
    log.clear()
    watching = {name: given for name, given in options.items() if name.startswith("on_")}
    await resume_after_approval(
        {"id": paused.approval_id, "approved": True}, store, options["tool_registry"], options["provider"], **watching
    )
    assert [name for name, _ in log] == ["on_tool_result", "on_llm_request", "on_llm_response"]
    assert log[0][1].result == "deployed"
