"""Options of one call: its own model, tools and limits, names that do not exist, and the same in every way to ask."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from runs import WAIT, call, collect, types

from lousho import (
    Agent,
    CancelSignal,
    ConfigurationError,
    SDKError,
    Tool,
    create_agent,
    deny,
    tool,
)
from lousho.agent.call_options import StreamOptions, TurnOptions
from lousho.testing import mock_model


def named(name: str) -> Tool:
    @tool(name=name)
    async def do() -> str:
        """Do it."""
        return name

    return do


FIND, SAVE, SEND = named("find_book"), named("save_book"), named("send_book")


def names(request: Any) -> list[str]:
    return [one.function.name for one in request.tools]


def library(*script: Any, **options: Any) -> tuple[Agent, Any]:
    model = mock_model([*script] or ["Hello!"], on_exhausted="repeat-last")
    given: dict[str, Any] = {"provider": model, "model": "usual", "tools": [FIND, SAVE], **options}
    return create_agent(**given), model


async def through_send(agent: Agent, **options: Any) -> Any:
    return await agent.send("Hi", **options)


async def through_stream(agent: Agent, **options: Any) -> Any:
    run = agent.stream("Hi", **options)
    await collect(run)
    return await run.result


async def through_session(agent: Agent, **options: Any) -> Any:
    return await agent.session().send("Hi", **options)


async def through_session_stream(agent: Agent, **options: Any) -> Any:
    run = agent.session().stream("Hi", **options)
    await collect(run)
    return await run.result


async def through_send_sync(agent: Agent, **options: Any) -> Any:
    return await asyncio.to_thread(lambda: agent.send_sync("Hi", **options))


async def through_stream_sync(agent: Agent, **options: Any) -> Any:
    return (await asyncio.to_thread(lambda: list(agent.stream_sync("Hi", **options))))[-1]


async def through_session_sync(agent: Agent, **options: Any) -> Any:
    return await asyncio.to_thread(lambda: agent.session().send_sync("Hi", **options))


async def through_session_stream_sync(agent: Agent, **options: Any) -> Any:
    return (await asyncio.to_thread(lambda: list(agent.session().stream_sync("Hi", **options))))[-1]


Ask = Callable[..., Awaitable[Any]]
EVERY_WAY = pytest.mark.parametrize(
    "ask",
    [
        through_send,
        through_stream,
        through_session,
        through_session_stream,
        through_send_sync,
        through_stream_sync,
        through_session_sync,
        through_session_stream_sync,
    ],
)


@pytest.mark.spec("BEY-30")
@EVERY_WAY
async def test_one_call_has_its_own_model_tools_and_steps_and_the_agent_stays_as_it_is(ask: Ask):
    agent, model = library("One.", "Two.", call("send_book"))
    await ask(agent, model="special", tools=["save_book", SEND])
    await ask(agent)
    result = await ask(agent, extra_tools=[SEND], max_steps=2)
    assert result.finish_reason == "max-steps"
    assert [(request.model, names(request)) for request in model.calls] == [
        ("special", ["save_book", "send_book"]),
        ("usual", ["find_book", "save_book"]),
        ("usual", ["find_book", "save_book", "send_book"]),
        ("usual", ["find_book", "save_book", "send_book"]),
    ]
    assert (agent.model, list(agent.tools)) == ("usual", ["find_book", "save_book"])


@pytest.mark.spec("BEY-30")
async def test_a_call_may_have_no_tools_and_a_mapping_renames_them():
    agent, model = library()
    await agent.send("Hi", tools=[])
    await agent.send("Hi", tools={"post": SEND}, extra_tools={"keep": SAVE})
    await agent.send("Hi", tools=(name for name in ("find_book",)))
    assert [names(request) for request in model.calls] == [[], ["post", "keep"], ["find_book"]]


@pytest.mark.spec("BEY-30")
async def test_a_tool_that_a_call_brings_runs_under_the_rules_of_the_agent():
    agent, model = library(
        call("send_book"), "Done.", call("send_book"), "Done.", permissions=[deny("send_book", "no")]
    )
    result = await agent.send("Hi", extra_tools=[SEND])
    assert "no" in str(result.messages[2].content)
    free, _ = library(call("send_book"), "Done.")
    assert (await free.send("Hi", tools=[SEND])).messages[2].content == "send_book"
    assert len(model.calls) == 2


@pytest.mark.spec("BEY-30")
async def test_the_model_of_a_call_is_a_model_string_where_the_agent_was_made_with_one():
    agent = create_agent(model="mock/first")
    seen: list[str] = []
    listening = agent.with_options(on_event=lambda event: seen.append(event.type))
    result = await listening.send("Hi", model="mock/second")
    assert list(result.usage.by_model) == ["mock/second"]
    assert list((await listening.send("Hi")).usage.by_model) == ["mock/first"]
    assert "run.done" in seen


@pytest.mark.spec("BEY-30")
async def test_what_a_call_brings_wins_over_functions_which_are_then_not_called():
    called: list[str] = []

    def noted(name: str, value: Any) -> Any:
        return lambda ctx: called.append(name) or value

    agent, model = library(model=noted("model", "chosen"), tools=noted("tools", [FIND, SAVE]))
    await agent.send("Hi", model="special", tools=[SEND])
    assert called == []
    await agent.send("Hi", tools=["save_book"], extra_tools=[SEND])
    assert called == ["model", "tools"]
    assert [(request.model, names(request)) for request in model.calls] == [
        ("special", ["send_book"]),
        ("chosen", ["save_book", "send_book"]),
    ]
    with pytest.raises(ConfigurationError, match=r"names 'sav_book'.*did you mean 'save_book'"):
        await agent.send("Hi", tools=["sav_book"])
    with pytest.raises(ConfigurationError, match="extra_tools has 'find_book'"):
        await agent.send("Hi", extra_tools=[FIND])
    assert types(await collect(agent.stream("Hi", extra_tools=[FIND], throw_on_error=False))) == [
        "run.start",
        "error",
        "run.done",
    ]


@pytest.mark.spec("STRM-10", "BEY-30")
@pytest.mark.parametrize(
    ("options", "code", "field", "said"),
    [
        pytest.param({"tools": FIND}, "LOUSHO_CONFIG_INVALID", "tools", "must be a list", id="a lone tool"),
        pytest.param({"tools": "find_book"}, "LOUSHO_CONFIG_INVALID", "tools", "must be a list", id="a lone name"),
        pytest.param({"tools": [print]}, "LOUSHO_CONFIG_INVALID", "tools", "tool", id="a function"),
        pytest.param(
            {"tools": [SEND, SEND]}, "LOUSHO_CONFIG_INVALID", "tools", "two tools are named 'send_book'", id="2"
        ),
        pytest.param(
            {"tools": ["find_book", FIND]}, "LOUSHO_CONFIG_INVALID", "tools", "'find_book'", id="name and tool"
        ),
        pytest.param({"tools": ["find_bok"]}, "LOUSHO_CONFIG_INVALID", "tools", "'find_book'?", id="a misspelt name"),
        pytest.param({"extra_tools": [FIND]}, "LOUSHO_CONFIG_INVALID", "extra_tools", "'find_book'", id="one it has"),
        pytest.param(
            {"tools": [SEND], "extra_tools": [SEND]},
            "LOUSHO_CONFIG_INVALID",
            "extra_tools",
            "'send_book'",
            id="in both",
        ),
        pytest.param({"extra_tools": ["find_book"]}, "LOUSHO_CONFIG_INVALID", "tools", "tool", id="a name to add"),
        pytest.param({"model": 7}, "LOUSHO_CONFIG_INVALID", "model", "must be a text", id="a model that is none"),
        pytest.param({"model": ""}, "LOUSHO_CONFIG_INVALID", "model", "must be a text", id="an empty model"),
        pytest.param({"model": lambda ctx: "x"}, "LOUSHO_CONFIG_INVALID", "model", "must be a text", id="a function"),
        pytest.param({"max_steps": 0}, "LOUSHO_CONFIG_INVALID", "maxSteps", "at least 1", id="no steps"),
    ],
)
async def test_what_a_call_cannot_have_is_refused_before_anything_runs(
    options: dict[str, Any], code: str, field: str, said: str
):
    agent, model = library()
    session = agent.session("s")
    for start in (agent.stream, session.stream):
        with pytest.raises(SDKError) as caught:
            start("Hi", **options)
        assert (caught.value.code, said in caught.value.detail) == (code, True)
        assert getattr(caught.value, "field", None) == field
    for send in (agent.send, session.send):
        with pytest.raises(SDKError, match="LOUSHO_CONFIG_INVALID"):
            await send("Hi", **options)
    assert (len(model.calls), session.messages) == (0, [])


@pytest.mark.spec("STRM-10")
@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("second", "LOUSHO_PROVIDER_SPEC_INVALID"),
        ("mokc/second", "LOUSHO_PROVIDER_UNKNOWN"),
        ("openai/gpt-4.1-mini", "LOUSHO_PROVIDER_MISSING_API_KEY"),
    ],
)
async def test_a_model_string_that_cannot_be_asked_raises_from_the_call_itself(clean_env: Any, model: str, code: str):
    agent = create_agent(model="mock/first")
    with pytest.raises(SDKError) as caught:
        agent.stream("Hi", model=model)
    assert caught.value.code == code
    assert (await agent.send("Hi")).finish_reason == "stop"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"max_stpes": 2}, "'max_stpes' is not a known option (did you mean 'max_steps'?)", id="a typo"),
        pytest.param({"system": "x"}, "(did you mean 'instructions'?)", id="the word of another system"),
        pytest.param({"temperature": 0}, "(did you mean 'model_settings.temperature'?)", id="a setting"),
        pytest.param({"timeout": 5}, "(did you mean 'signal'?)", id="a timeout"),
        pytest.param(
            {"permissions": []},
            "is an option of create_agent(), not of one call; agent.with_options(",
            id="the agent's",
        ),
    ],
)
@EVERY_WAY
async def test_a_name_that_does_not_exist_is_told_with_the_nearest_one(ask: Ask, options: dict[str, Any], said: str):
    agent, model = library()
    with pytest.raises(ConfigurationError) as caught:
        await ask(agent, **options)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", next(iter(options)))
    assert said in caught.value.detail
    assert len(model.calls) == 0


async def test_an_option_that_is_none_counts_as_not_given_in_every_call():
    agent, model = library()
    nothing: dict[str, Any] = dict.fromkeys([*TurnOptions.__annotations__, "no_such_name"])
    for ask in (through_send, through_stream, through_session, through_session_stream):
        assert (await ask(agent, **nothing)).finish_reason == "stop"
    assert names(model.calls[0]) == ["find_book", "save_book"]


async def test_only_the_stream_of_an_agent_takes_throw_on_error_and_no_session_a_session_id():
    agent, _ = library()
    for start in (agent.session("s").stream, agent.session("s").send_sync):
        with pytest.raises(ConfigurationError, match="throw_on_error"):
            start("Hi", throw_on_error=False)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="session_id"):
        await agent.session("s").send("Hi", session_id="t")  # type: ignore[call-arg]


def test_decisions_by_blocking_calls_tell_a_name_that_does_not_exist_too():
    agent, _ = library()
    approvals: Any = agent.approvals
    for decide in (approvals.resolve_sync, approvals.stream_resolve_sync):
        with pytest.raises(ConfigurationError, match=r"'aproved' is not a known option \(did you mean 'approved'"):
            decide(id="x", aproved=True)
    with pytest.raises(ConfigurationError, match=r"did you mean 'answer'"):
        approvals.answer_sync(id="x", anser="y")


@pytest.mark.spec("TOOL-34")
@pytest.mark.parametrize("ask", [through_send, through_stream, through_send_sync, through_stream_sync])
async def test_a_run_under_a_session_id_needs_a_store_that_keeps_checkpoints(ask: Ask):
    agent, model = library()
    with pytest.raises(ConfigurationError) as caught:
        await ask(agent, session_id="job-1")
    assert caught.value.code == "LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE"
    assert "agent.session('job-1')" in caught.value.detail
    with pytest.raises(SDKError) as bad:
        await ask(agent, session_id="../etc")
    assert bad.value.code == "LOUSHO_SESSION_ID_INVALID"
    assert len(model.calls) == 0


async def test_calls_at_the_same_time_keep_their_options_apart():
    agent, model = library(lambda request: f"{request.model}: {', '.join(names(request))}")
    pairs = [(f"m-{number}", [FIND, SAVE, SEND][: number % 4]) for number in range(24)]
    runs = [agent.send("Hi", model=name, tools=tools) for name, tools in pairs]
    results = await asyncio.wait_for(asyncio.gather(*runs), WAIT)
    assert [result.text for result in results] == [
        f"{name}: {', '.join(one.name for one in tools)}" for name, tools in pairs
    ]
    assert len(model.calls) == 24


async def test_queued_turns_keep_the_options_they_were_asked_with():
    agent, model = library(lambda request: str(request.model))
    session = agent.session("s")
    runs = [session.stream(str(number), model=f"m-{number}") for number in range(5)]
    assert [(await run.result).text for run in runs] == [f"m-{number}" for number in range(5)]
    assert len(model.calls) == 5


@pytest.mark.spec("BEY-29")
async def test_the_version_is_on_the_start_of_every_stream_also_of_one_that_never_began():
    @tool(needs_approval=True)
    async def ship() -> str:
        """Ship it."""
        return "shipped"

    heard: list[Any] = []
    agent, _ = library(call("ship"), "Done.", tools=[ship], version="2026-05 (b)", on_event=heard.append)
    paused = await agent.session("s").send("go")
    await collect(agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True))
    await collect(agent.approvals.stream_resolve(id="nobody.1", approved=True))
    starts = [event.to_dict() for event in heard if event.type == "run.start"]
    assert [start["version"] for start in starts] == ["2026-05 (b)"] * 3
    plain, _ = library()
    assert "version" not in (await collect(plain.stream("Hi")))[0].to_dict()
    with pytest.raises(ConfigurationError, match="version must be a text"):
        library(version=2)


def test_the_options_of_a_call_are_typed_in_one_place():
    assert set(StreamOptions.__annotations__) == {
        *TurnOptions.__annotations__,
        "session_id",
        "permission_mode",
        "throw_on_error",
    }
    for method in (Agent.send, Agent.send_sync, Agent.stream, Agent.stream_sync):
        (options,) = [
            one for one in inspect.signature(method).parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD
        ]
        assert "Unpack" in str(options.annotation)
    doc = cast("str", Agent.send.__doc__)
    assert all(f"`{name}`" in doc for name in (*TurnOptions.__annotations__, "session_id", "permission_mode"))


async def test_a_signal_of_the_call_still_stops_it():
    agent, _ = library({"text": "slow", "delay_ms": 60_000})
    result = await asyncio.wait_for(agent.send("Hi", model="m", signal=CancelSignal.timeout(30)), WAIT)
    assert result.finish_reason == "aborted"
