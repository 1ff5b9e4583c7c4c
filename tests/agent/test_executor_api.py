"""The executor API: an agent as plain data, run with parts handed over call by call, on the loop of every agent."""

from __future__ import annotations

import asyncio
import base64
import copy
import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from runs import WAIT, call, calls, collect, types

import lousho
import lousho.executor
from lousho import (
    CancelSignal,
    ConfigurationError,
    FilePart,
    Message,
    SDKError,
    TextPart,
    ToolContext,
    create_agent,
    create_mock_provider,
    define_tool,
    tool,
)
from lousho.executor import AgentBuilder, AgentConfig, AgentExecutor, ToolRegistry
from lousho.testing import check_event_order, mock_model


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool
async def broken(word: str) -> str:
    """Look a word up in a library that burned down."""
    raise RuntimeError("no books left")


def shout(word: str) -> str:
    return f"{word}!"


def librarian(*tools: Any) -> AgentConfig:
    return AgentBuilder.create().set_name("Librarian").set_prompt("You look words up.").add_tools(tools).build()


# -- the agent as data -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-04")
def test_the_names_of_the_executor_come_from_one_module_that_loads_nothing_until_they_are_used():
    for name in ("AgentBuilder", "AgentExecutor", "resume_after_approval", "ToolRegistry"):
        assert name in lousho.executor.__all__
        assert name in dir(lousho.executor)
        assert callable(getattr(lousho.executor, name))
    program = "import sys, lousho.executor; print(*[name for name in sys.modules if name.startswith('lousho')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["lousho", "lousho.executor"]
    with pytest.raises(AttributeError, match="has no attribute 'AgentExecuter'"):
        getattr(lousho.executor, "AgentExecuter")  # noqa: B009


@pytest.mark.spec("EXEC-01")
async def test_a_built_agent_is_plain_data_that_runs():
    builder = AgentBuilder.create().set_name("Customer Support Agent").set_prompt("You are a helpful assistant.")
    builder.set_id("support-1").set_description("Answers customers.").set_model("small").set_version("7")
    agent = builder.set_settings({"temperature": 0.2}).add_tool(lookup).build()
    assert dataclasses.is_dataclass(agent)
    assert (agent.name, agent.prompt, agent.model, dict(agent.tools)) == (
        "Customer Support Agent",
        "You are a helpful assistant.",
        "small",
        {"lookup": lookup},
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        agent.name = "Other"  # type: ignore[misc]
    assert copy.deepcopy(dataclasses.replace(agent, tools={})) == dataclasses.replace(agent, tools={})
    assert json.loads(json.dumps(agent.to_dict())) == agent.to_dict()
    assert AgentConfig.of(agent.to_dict()).tools == {"lookup": None}

    model = mock_model([call("lookup", word="a"), "Found."])
    events: list[Any] = []
    result = await AgentExecutor.execute(agent=agent, input="a?", provider=model, on_agent_event=events.append)
    assert (result.text, result.agent_name) == ("Found.", "Customer Support Agent")
    request = model.calls[0]
    assert (request.model, request.temperature) == ("small", 0.2)
    assert request.messages[0] == Message("system", "You are a helpful assistant.")
    assert [one.function.name for one in request.tools] == ["lookup"]
    assert (events[0].agent_id, events[0].version) == ("support-1", "7")


@pytest.mark.spec("EXEC-01")
def test_a_builder_can_go_on_after_it_built_and_changes_no_agent_that_it_gave():
    builder = AgentBuilder.create().set_name("a").set_settings({"temperature": 0})
    first = builder.build()
    second = builder.add_tool("lookup").set_name("b").set_settings({"max_tokens": 5, "model": "m"}).build()
    assert (first.name, dict(first.tools), dict(first.model_settings)) == ("a", {}, {"temperature": 0})
    assert (second.name, list(second.tools), second.model) == ("b", ["lookup"], "m")
    assert dict(second.model_settings) == {"temperature": 0, "max_tokens": 5}


@pytest.mark.parametrize(
    ("build", "says"),
    [
        pytest.param(lambda: AgentBuilder.create().set_name("").build(), "name is empty", id="an empty name"),
        pytest.param(lambda: AgentBuilder.create().set_prompt(7).build(), "prompt must be a text", id="a number"),  # type: ignore[arg-type]
        pytest.param(lambda: AgentBuilder.create().add_tool(print).build(), "neither a tool", id="a function"),  # type: ignore[arg-type]
        pytest.param(lambda: librarian(lookup, "lookup"), "two tools are named 'lookup'", id="twice"),
        pytest.param(lambda: AgentConfig(tools="lookup"), "tools must be tools", id="a text"),  # type: ignore[arg-type]
        pytest.param(lambda: AgentConfig(tools={"a": 1}), "neither a tool", id="a mapping of numbers"),  # type: ignore[dict-item]
        pytest.param(lambda: AgentConfig(model_settings={"temperature": 9}), "temperature", id="a setting"),
        pytest.param(lambda: AgentConfig.of({"nam": "a"}), "did you mean 'name'?", id="a misspelled key"),
        pytest.param(lambda: AgentConfig.of({"instructions": "a"}), "did you mean 'prompt'?", id="another word"),
        pytest.param(lambda: AgentConfig.of({"settings": {}}), "did you mean 'model_settings'?", id="a short word"),
        pytest.param(
            lambda: AgentConfig.of(create_agent(provider=mock_model([]))), "send() and stream()", id="an Agent"
        ),
    ],
)
def test_an_agent_that_cannot_be_is_refused_when_it_is_written_down(build: Any, says: str):
    with pytest.raises(ConfigurationError) as caught:
        build()
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    assert says in caught.value.detail


# -- running it ------------------------------------------------------------------------------------------------------------


def without_ids(result: Any) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "runId"}


SCRIPTS = [
    pytest.param(["Hello."], {}, id="an answer"),
    pytest.param([{"text": "Wait.", **call("lookup", word="a")}, "A."], {}, id="a tool call"),
    pytest.param(
        [calls(("lookup", {"word": "a"}), ("broken", {"word": "b"}), ("lookup", {}))] * 2, {"max_steps": 2}, id="steps"
    ),
    pytest.param([{"text": "Hm.", "reasoning": "Let me think.", "finish_reason": "length"}], {}, id="cut off"),
]


@pytest.mark.spec("EXEC-02", "STRM-01")
@pytest.mark.parametrize(("script", "options"), SCRIPTS)
async def test_the_executor_and_create_agent_give_the_same_result_and_events(script: Any, options: dict[str, Any]):
    config = librarian(lookup, broken)
    made = create_agent(
        provider=mock_model(script),
        name="Librarian",
        instructions="You look words up.",
        tools=[lookup, broken],
        **options,
    )
    sent = await made.send("a?")
    streamed = await collect(
        create_agent(
            provider=mock_model(script), name="Librarian", instructions="You look words up.", tools=[lookup, broken]
        ).stream("a?", **options)
    )
    executed = await AgentExecutor.execute(agent=config, input="a?", provider=mock_model(script), **options)
    blocking = await asyncio.to_thread(
        lambda: AgentExecutor.execute_sync(agent=config, input="a?", provider=mock_model(script), **options)
    )
    run = AgentExecutor.stream(agent=config, input="a?", provider=mock_model(script), **options)
    events = await collect(run)
    result = await run.result
    assert without_ids(executed) == without_ids(sent) == without_ids(blocking) == without_ids(result)
    assert types(events) == types(streamed)
    assert {event.run_id for event in events} == {run.run_id} == {result.run_id}

    def read() -> tuple[list[Any], Any]:
        stream = AgentExecutor.stream_sync(agent=config, input="a?", provider=mock_model(script), **options)
        return list(stream), stream.result()

    read_events, read_result = await asyncio.to_thread(read)
    assert types(check_event_order(read_events)) == types(streamed)
    assert without_ids(read_result) == without_ids(sent)


@pytest.mark.spec("EXEC-02")
async def test_there_are_no_executors_to_keep():
    with pytest.raises(ConfigurationError, match=r"AgentExecutor\.execute\(\.\.\.\) on the class itself"):
        AgentExecutor()


@pytest.mark.spec("EXEC-03")
@pytest.mark.parametrize("missing", ["agent", "input", "provider"])
async def test_the_three_parts_of_a_run_are_required_and_nothing_else_is(missing: str):
    parts: dict[str, Any] = {"agent": AgentConfig(), "input": "Hi", "provider": mock_model(["Hello."])}
    assert (await AgentExecutor.execute(**parts)).text == "Hello."
    code = f"LOUSHO_CONFIG_MISSING_{missing.upper()}"
    without: dict[str, Any] = {key: value for key, value in parts.items() if key != missing}
    for lacking in ({**without, missing: None}, without):
        with pytest.raises(ConfigurationError) as caught:
            await AgentExecutor.execute(**lacking)
        assert (caught.value.code, caught.value.field) == (code, missing)
        with pytest.raises(ConfigurationError) as at_once:
            AgentExecutor.stream(**lacking)  # nothing is awaited
        with pytest.raises(ConfigurationError) as blocking:
            await asyncio.to_thread(AgentExecutor.stream_sync, **lacking)
        assert at_once.value.code == blocking.value.code == code
    assert len(parts["provider"].calls) == 1


@pytest.mark.spec("EXEC-04")
async def test_the_input_is_a_text_or_a_conversation():
    async def asked(given: Any) -> list[Message]:
        model = mock_model(["Fine."])
        result = await AgentExecutor.execute(agent=AgentConfig(prompt=""), input=given, provider=model)
        assert result.messages[:-1] == list(model.calls[0].messages)
        return list(model.calls[0].messages)

    assert await asked("How are you?") == [Message("user", "How are you?")]
    talk = [Message("user", "Hi"), Message("assistant", "Hello."), Message("user", "How are you?")]
    assert await asked(talk) == talk
    assert await asked([message.to_dict() for message in talk]) == talk
    picture = FilePart(base64.b64encode(b"%PDF-1.4").decode(), "application/pdf")
    assert await asked([TextPart("Read this"), picture]) == [Message("user", (TextPart("Read this"), picture))]
    for wrong in (7, [], {"role": "user"}, [{"role": "nobody"}]):
        with pytest.raises(SDKError) as caught:
            await asked(wrong)
        assert caught.value.code in ("LOUSHO_CONFIG_INVALID", "LOUSHO_VALIDATION_FAILED")


@pytest.mark.spec("EXEC-05", "TOOL-84")
async def test_two_agents_share_a_registry_and_each_gets_the_tools_that_its_config_names():
    registry = ToolRegistry()
    registry.register(lookup)
    registry.register("reverse", {"description": "Turn a word round.", "execute": lambda args: str(args["word"])[::-1]})
    registry.register_many({"shout": define_tool(name="x", description="Shout.", execute=shout)})
    registry.register_many([broken])

    async def run(*names: str) -> tuple[list[str], list[Any]]:
        model = mock_model([calls(*((name, {"word": "abc"}) for name in ("lookup", "reverse", "shout"))), "Done."])
        result = await AgentExecutor.execute(
            agent=librarian(*names), input="go", provider=model, tool_registry=registry, match_tool_names=False
        )
        offered = [one.function.name for one in model.calls[0].tools]
        return offered, [
            message.content for message in result.messages if message.role == "tool" and not message.is_error
        ]

    assert await run("lookup", "reverse") == (["lookup", "reverse"], ["ABC", "cba"])
    assert await run("shout") == (["shout"], ["abc!"])
    assert await run() == ([], [])  # what is registered and not named is not offered


@pytest.mark.spec("TOOL-84")
@pytest.mark.parametrize(
    ("registry", "says"),
    [
        pytest.param(
            ToolRegistry([lookup]), "the tool_registry does not have it (did you mean 'lookup'?)", id="misspelled"
        ),
        pytest.param(None, "no tool_registry was given", id="no registry"),
        pytest.param([lookup], "tool_registry must be a ToolRegistry", id="a list"),
    ],
)
async def test_a_tool_that_nobody_has_is_refused_before_the_model_is_asked(registry: Any, says: str):
    model = mock_model(["never"])
    with pytest.raises(ConfigurationError) as caught:
        await AgentExecutor.execute(agent=librarian("lookp"), input="a", provider=model, tool_registry=registry)
    assert says in caught.value.detail
    assert model.calls == ()


async def test_a_tool_of_the_agent_itself_wins_over_one_of_its_name_in_the_registry():
    own = define_tool(name="lookup", description="My own.", execute=shout)
    model = mock_model([call("lookup", word="a"), "Done."])
    result = await AgentExecutor.execute(
        agent=librarian(own), input="a", provider=model, tool_registry=ToolRegistry([lookup])
    )
    assert result.messages[2].content == "a!"


# -- how it runs and ends --------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-10")
async def test_a_signal_ends_a_run_of_the_executor_as_aborted():
    signal, begun = CancelSignal(), asyncio.Event()

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait for the end."""
        begun.set()
        await ctx.abort_signal.wait()
        raise RuntimeError("stopped")

    model = mock_model([call("wait"), "never"])
    running = asyncio.create_task(
        AgentExecutor.execute(agent=librarian(wait), input="a", provider=model, signal=signal)
    )
    await asyncio.wait_for(begun.wait(), WAIT)
    signal.abort("user left")
    result = await asyncio.wait_for(running, WAIT)
    assert (result.finish_reason, result.abort_reason) == ("aborted", {"name": "AbortError", "message": "user left"})
    timed = await AgentExecutor.execute(
        agent=librarian(wait), input="a", provider=mock_model([call("wait")]), signal=CancelSignal.timeout(20)
    )
    assert (timed.finish_reason, timed.abort_reason["name"] if timed.abort_reason else "") == (
        "aborted",
        "TimeoutError",
    )
    begun.clear()
    run = AgentExecutor.stream(agent=librarian(wait), input="a", provider=mock_model([call("wait")]))
    await asyncio.wait_for(begun.wait(), WAIT)
    await run.aclose()
    assert (await run.result).finish_reason == "aborted"


@pytest.mark.spec("RUN-30")
@pytest.mark.parametrize(("limit", "at_once"), [(None, 3), ("unbounded", 3), (2, 2), (1, 1)])
async def test_tool_concurrency_is_how_many_calls_run_at_once(limit: Any, at_once: int):
    running = most = 0
    full = asyncio.Event()

    @tool
    async def work(n: int) -> int:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == at_once:
            full.set()
        await asyncio.wait_for(full.wait(), WAIT)
        running -= 1
        return n

    model = mock_model([calls(*(("work", {"n": n}) for n in range(3))), "Done."])
    result = await AgentExecutor.execute(agent=librarian(work), input="a", provider=model, tool_concurrency=limit)
    assert most == at_once
    assert [message.content for message in result.messages if message.role == "tool"] == ["0", "1", "2"]


@pytest.mark.spec("RUN-30")
@pytest.mark.parametrize("limit", [0, -1, 1.5, "many", True])
async def test_any_other_tool_concurrency_is_refused(limit: Any):
    starts: list[Any] = [AgentExecutor.execute, AgentExecutor.stream]
    for start in starts:
        with pytest.raises(ConfigurationError, match="tool_concurrency"):
            await start(agent=AgentConfig(), input="a", provider=mock_model([]), tool_concurrency=limit)


@pytest.mark.spec("EXEC-12")
async def test_the_result_has_the_documented_keys_and_no_key_without_a_value():
    always = {"text", "messages", "toolCalls", "usage", "stepUsage", "finishReason", "steps", "agentName", "runId"}
    plain = await AgentExecutor.execute(
        agent=librarian(), input="Hi", provider=create_mock_provider(responses=["Hello!"])
    )
    assert set(plain.to_dict()) == always
    model = mock_model([{"reasoning": "Hm.", "text": "A.", "usage": {"input_tokens": 3, "output_tokens": 4}}])
    result = await AgentExecutor.execute(agent=librarian(), input="Hi", provider=model)
    assert (result.text, result.reasoning, result.finish_reason, result.steps) == ("A.", "Hm.", "stop", 1)
    assert (result.agent_name, result.usage.total_tokens, result.step_usage[0].total_tokens) == ("Librarian", 7, 7)
    assert (result.tool_calls, result.approval_id) == ([], None)
    dump = result.to_dict()
    assert set(dump) == {*always, "reasoning"}
    assert (dump["usage"]["totalTokens"], dump["stepUsage"][0]["totalTokens"]) == (7, 7)
    assert json.loads(json.dumps(dump)) == dump


async def test_a_failed_run_raises_and_a_failed_stream_raises_at_its_end_unless_it_must_not():
    parts: dict[str, Any] = {"agent": AgentConfig(), "input": "a"}
    with pytest.raises(SDKError):
        await AgentExecutor.execute(**parts, provider=mock_model([{"error": RuntimeError("down")}]))
    loud = AgentExecutor.stream(**parts, provider=mock_model([{"error": RuntimeError("down")}]))
    with pytest.raises(SDKError):
        await collect(loud)
    quiet = AgentExecutor.stream(**parts, provider=mock_model([{"error": RuntimeError("down")}]), throw_on_error=False)
    assert types(await collect(quiet))[-2:] == ["error", "run.done"]
    with pytest.raises(SDKError):
        await quiet.result


async def test_the_session_id_reaches_the_tools_and_long_results_are_cut_as_the_option_says():
    known: list[Any] = []

    @tool
    def look(ctx: ToolContext) -> str:
        """Look."""
        known.append((ctx.session_id, ctx.run_id))
        return "x" * 100

    result = await AgentExecutor.execute(
        agent=librarian(look),
        input="a",
        provider=mock_model([call("look"), "Done."]),
        session_id="chat-42",
        max_tool_result_chars=20,
    )
    assert known == [("chat-42", result.run_id)]
    assert result.session_id == "chat-42"
    content = str(result.messages[2].content)
    assert content.startswith("x" * 10)
    assert content.count("x") < 100
