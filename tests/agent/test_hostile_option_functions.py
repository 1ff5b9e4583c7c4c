"""Functions of the run that are anything at all: they can neither cancel, nor end, nor mix up the runs they choose for."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import warnings
from typing import Any

import pytest
from hostile import play, within
from hostile_values import KEY, Client, check_refusal
from runs import types
from sizes import sized

from lousho import CancelSignal, ConfigurationError, RunConfigContext, create_agent, define_tool, tool
from lousho.testing import mock_model


@tool
async def look_up(name: str) -> str:
    """Look an address up."""
    return f"{name}@example.com"


def desk(*script: Any, **options: Any) -> Any:
    """An agent that answers `Hello!` for ever, or its script."""
    model = mock_model([*script] or ["Hello!"], on_exhausted="repeat-last")
    given: dict[str, Any] = {"provider": model, "tools": [look_up], **options}
    return create_agent(**given)


class Answering:
    def __init__(self, value: Any) -> None:
        self.value = value

    async def __call__(self, ctx: RunConfigContext) -> Any:
        return self.value

    def method(self, ctx: RunConfigContext) -> Any:
        return self.value

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return self.value


def _future(value: Any) -> Any:
    future = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda value: lambda ctx: value, id="lambda"),
        pytest.param(lambda value: functools.partial(lambda extra, ctx: value, 1), id="partial"),
        pytest.param(lambda value: Answering(value), id="object with an async __call__"),
        pytest.param(lambda value: Answering(value).method, id="method"),
        pytest.param(lambda value: lambda ctx: _future(value), id="future"),
        pytest.param(lambda value: lambda ctx: Answering(value), id="something to await"),
        pytest.param(lambda value: lambda *args, **more: value, id="any arguments"),
    ],
)
async def test_a_function_of_any_kind_chooses(function: Any):
    tools = [define_tool(name=f"t{n}", description="d", input={"type": "object"}, execute=print) for n in range(300)]
    agent = desk(model=function("m"), instructions=function("i"), tools=function(one for one in tools))
    assert (await within(agent.send("Hi"))).text == "Hello!"
    [asked] = agent.provider.calls
    assert (asked.model, asked.messages[0].content, len(asked.tools)) == ("m", "i", 300)


async def never_awaited(ctx: RunConfigContext) -> Any:
    return asyncio.sleep(0)


def _ends(error: type[BaseException]) -> Any:
    def tools(ctx: RunConfigContext) -> Any:
        yield look_up
        raise error

    return lambda ctx: tools(ctx)


@pytest.mark.parametrize(
    ("field", "function"),
    [
        pytest.param("instructions", never_awaited, id="a coroutine inside a coroutine"),
        pytest.param("tools", _ends(asyncio.CancelledError), id="tools that cancel"),
        pytest.param("tools", _ends(SystemExit), id="tools that exit"),
        pytest.param("tools", _ends(RuntimeError), id="tools that fail"),
        pytest.param("tools", lambda ctx: [look_up, look_up], id="two of a name"),
        pytest.param("tools", lambda ctx: [Client(KEY)], id="no tool"),
        pytest.param("instructions", lambda ctx: Client(KEY), id="no text"),
        pytest.param("model", lambda ctx: b"m" * 1_000_000, id="bytes"),
    ],
)
async def test_what_a_function_gives_is_no_more_than_a_failed_run(field: str, function: Any):
    agent = desk(**{field: function})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        played = await play(agent.session("s").stream("Hi"))
        gc.collect()
    assert isinstance(played.error, ConfigurationError)
    check_refusal(played.error, field)
    assert (played.error.code, played.error.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", field)
    assert (types(played.events), agent.provider.calls) == (["run.start", "error", "run.done"], ())
    assert await agent.session("s").load() == []


@pytest.mark.parametrize("ask", ["send", "stream", "session"])
async def test_an_abort_while_tools_are_chosen_is_an_abort_also_when_the_call_picked_some_of_them(ask: str):
    chosen = asyncio.Event()

    async def never(ctx: RunConfigContext) -> Any:
        chosen.set()
        await asyncio.Event().wait()

    agent, signal = desk(tools=never), CancelSignal()
    options: dict[str, Any] = {"tools": ["look_up"], "signal": signal}
    if ask == "stream":
        work = asyncio.ensure_future(within(agent.stream("Hi", **options).result))
    else:
        asked = agent if ask == "send" else agent.session("s")
        work = asyncio.ensure_future(within(asked.send("Hi", **options)))
    await within(chosen.wait())
    signal.abort("enough")
    result = await work
    assert (result.finish_reason, result.abort_reason) == ("aborted", {"name": "AbortError", "message": "enough"})
    assert agent.provider.calls == ()


async def test_a_failure_shows_neither_a_key_of_the_environment_nor_one_of_an_address(clean_env: Any):
    os.environ["OPENAI_API_KEY"] = KEY

    def refused(ctx: RunConfigContext) -> str:
        raise ConnectionError(f"{KEY} was refused by https://desk:{KEY[:7]}@books.example")

    with pytest.raises(ConfigurationError, match="was refused by https://.REDACTED.@books.example") as caught:
        await desk(instructions=refused).send("Hi")
    assert KEY[:7] not in str(caught.value)


async def test_hundreds_of_runs_whose_functions_choose_fail_and_hang_do_not_mix():
    async def instructions(ctx: RunConfigContext) -> str:
        assert ctx.metadata is not None
        number = ctx.metadata["number"]
        ctx.metadata.clear()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        if number % 3 == 1:
            raise ValueError(f"no {number}")
        if number % 3 == 2:
            await asyncio.Event().wait()
        return f"i{number}"

    def model(ctx: RunConfigContext) -> str:
        return f"m{(ctx.metadata or {})['number']}"

    agent = desk(model=model, instructions=instructions, tools=lambda ctx: [look_up])

    async def one(number: int) -> Any:
        signal = CancelSignal.timeout(50) if number % 3 == 2 else None
        asked = agent if number % 2 else agent.session(f"s{number % 10}")
        return await asked.send(f"q{number}", metadata={"number": number}, signal=signal)

    count = sized(300, 3_000)
    outcomes = await asyncio.wait_for(
        asyncio.gather(*(one(number) for number in range(count)), return_exceptions=True), 30
    )
    for number, outcome in enumerate(outcomes):
        if number % 3 == 1:
            assert f"no {number}" in str(outcome)
        else:
            assert getattr(outcome, "finish_reason", outcome) == ("aborted" if number % 3 == 2 else "stop")
    asked = [(one.model, one.messages[0].content, one.messages[-1].content) for one in agent.provider.calls]
    assert sorted(asked) == sorted((f"m{n}", f"i{n}", f"q{n}") for n in range(0, count, 3))
    for number in range(0, 10, 2):
        kept = [str(one.content) for one in await agent.session(f"s{number}").load() if one.role == "user"]
        assert kept == [f"q{n}" for n in range(number, count, 10) if n % 3 == 0]
