"""Functions of the run that fail, hang or return nonsense: a coded error before the model is asked, nothing lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from runs import WAIT, collect, types

from lousho import (
    AgentRun,
    CancelSignal,
    ConfigurationError,
    LLMProviderError,
    RunConfigContext,
    SDKError,
    create_agent,
    tool,
)
from lousho.testing import mock_model


@tool
async def refund(order_id: str) -> str:
    """Refund an order."""
    return f"refunded {order_id}"


def echo(**options: Any) -> Any:
    """An agent that answers `Hello!` for ever."""
    return create_agent(provider=mock_model(["Hello!"], on_exhausted="repeat-last"), **options)


async def tenant(ctx: RunConfigContext) -> str:
    return f"You are the support agent of {(ctx.metadata or {}).get('tenant', 'Acme')}."


class NoSuchTenantError(Exception):
    """What the application raises."""


def fails_at_once(ctx: RunConfigContext) -> Any:
    raise NoSuchTenantError("tenant 7")


async def fails_later(ctx: RunConfigContext) -> Any:
    await asyncio.sleep(0)
    raise NoSuchTenantError("tenant 7")


FAILING = pytest.mark.parametrize("function", [fails_at_once, fails_later], ids=["sync", "async"])
FIELDS = pytest.mark.parametrize("field", ["model", "instructions", "tools"])


@pytest.mark.spec("API-18", "ERR-26")
@FAILING
@FIELDS
async def test_a_function_that_raises_fails_the_run_before_the_model_is_asked(function: Any, field: str):
    heard: list[Any] = []
    model = mock_model(["Hello!"], on_exhausted="repeat-last")
    agent = create_agent(provider=model, on_event=heard.append, **{field: function})
    with pytest.raises(ConfigurationError) as caught:
        await agent.send("Hi")
    error = caught.value
    assert (error.code, error.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", field)
    assert isinstance(error.__cause__, NoSuchTenantError)
    assert error.detail == f"The function for {field!r} failed: NoSuchTenantError: tenant 7"
    assert (types(heard), error.usage) == (["run.start", "error", "run.done"], None)
    assert len(model.calls) == 0


@pytest.mark.spec("API-18", "ERR-26")
@FAILING
@FIELDS
async def test_its_stream_ends_with_an_error_event(function: Any, field: str):
    heard: list[Any] = []
    agent = echo(on_event=heard.append, **{field: function})
    run = agent.stream("Hi", throw_on_error=False)
    events = await collect(run)
    assert types(events) == ["run.start", "error", "run.done"]
    assert (events[1].error.name, events[2].finish_reason) == ("ConfigurationError", "error")
    assert events[1].error.message == f"The function for {field!r} failed: NoSuchTenantError: tenant 7"
    assert heard == events
    with pytest.raises(ConfigurationError, match="tenant 7"):
        await run.result
    with pytest.raises(ConfigurationError, match="tenant 7"):
        await collect(agent.stream("Hi"))


@pytest.mark.spec("API-18", "ERR-26")
@FAILING
async def test_a_session_keeps_its_transcript_and_takes_the_next_turn(function: Any):
    broken = [False]

    def instructions(ctx: RunConfigContext) -> Any:
        return function(ctx) if broken[0] else "Be kind."

    session = echo(instructions=instructions).session("s")
    await session.send("One")
    before = session.messages
    broken[0] = True
    with pytest.raises(ConfigurationError):
        await session.send("Two")
    events = await collect(session.stream("Three"))
    assert (types(events), session.messages) == (["run.start", "error", "run.done"], before)
    assert await session.load() == before
    broken[0] = False
    await session.send("Four")
    assert [message.content for message in session.messages] == ["One", "Hello!", "Four", "Hello!"]


def leaves(ctx: RunConfigContext) -> Any:
    raise SystemExit(3)


async def cancels_itself(ctx: RunConfigContext) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize("function", [leaves, cancels_itself])
async def test_neither_an_exit_nor_a_cancellation_of_its_own_passes_for_one_of_the_run(function: Any):
    run = echo(instructions=function).stream("Hi", throw_on_error=False)
    assert (await collect(run))[-1].finish_reason == "error"
    with pytest.raises(ConfigurationError) as caught:
        await run.result
    assert caught.value.code == "LOUSHO_CONFIG_RESOLVER_FAILED"


async def test_a_key_in_the_text_of_its_failure_is_blacked_out_and_a_long_text_cut():
    def tells(ctx: RunConfigContext) -> str:
        raise RuntimeError("refused sk-abcdef1234567890 " + "x" * 10_000)

    with pytest.raises(ConfigurationError) as caught:
        await echo(model=tells).send("Hi")
    assert "[REDACTED]" in caught.value.detail
    assert "sk-abcdef" not in str(caught.value)
    assert len(caught.value.detail) < 700


@pytest.mark.parametrize(
    ("options", "cause", "said"),
    [
        pytest.param({"model": None}, "LOUSHO_CONFIG_INVALID", "must return a text; it returned None", id="forgotten"),
        pytest.param({"model": " "}, "LOUSHO_CONFIG_INVALID", "empty text", id="an empty model"),
        pytest.param({"instructions": 7}, "LOUSHO_CONFIG_INVALID", "an object of type int", id="a number"),
        pytest.param({"tools": None}, "LOUSHO_CONFIG_INVALID", "must be a list", id="no tools at all"),
        pytest.param({"tools": "refund"}, "LOUSHO_CONFIG_INVALID", "must be a list", id="a name"),
        pytest.param({"tools": [refund, refund]}, "LOUSHO_CONFIG_INVALID", "two tools are named 'refund'", id="twice"),
        pytest.param({"tools": [print]}, "LOUSHO_CONFIG_INVALID", "tool", id="a bare function"),
    ],
)
async def test_what_it_returns_is_checked_like_a_value_that_is_written_down(
    options: dict[str, Any], cause: str, said: str
):
    ((field, value),) = options.items()
    with pytest.raises(ConfigurationError) as caught:
        await echo(**{field: lambda ctx: value}).send("Hi")
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", field)
    assert isinstance(caught.value.__cause__, SDKError)
    assert caught.value.__cause__.code == cause
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ("gpt-4.1-mini", "LOUSHO_PROVIDER_SPEC_INVALID"),
        ("opneai/gpt-4.1-mini", "LOUSHO_PROVIDER_UNKNOWN"),
        ("openai/gpt-4.1-mini", "LOUSHO_PROVIDER_MISSING_API_KEY"),
    ],
)
async def test_a_model_that_cannot_be_asked_keeps_its_reason_as_the_cause(clean_env: Any, model: str, cause: str):
    with pytest.raises(ConfigurationError) as caught:
        await create_agent(model=lambda ctx: model).send("Hi")
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_RESOLVER_FAILED", "model")
    assert getattr(caught.value.__cause__, "code", None) == cause


def no_argument() -> str:
    return "x"


def generates(ctx: RunConfigContext) -> Any:
    yield "x"


async def streams(ctx: RunConfigContext) -> Any:
    yield "x"


@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        pytest.param({"model": no_argument}, "model", "one argument, the RunConfigContext", id="takes nothing"),
        pytest.param({"instructions": lambda a, b: "x"}, "instructions", "one argument", id="takes two"),
        pytest.param({"tools": generates}, "tools", "is a generator", id="a generator"),
        pytest.param({"instructions": streams}, "instructions", "is a generator", id="an async generator"),
        pytest.param({"model": str}, "model", "a text or a function", id="a class"),
        pytest.param({"model": refund}, "model", "a text or a function", id="a tool"),
        pytest.param({"instructions": 7}, "instructions", "a text or a function", id="a number"),
        pytest.param({"name": no_argument}, "name", "must be a text", id="an option that is never a function"),
        pytest.param({"tools": refund}, "tools", "must be a list", id="a lone tool is no function"),
    ],
)
def test_a_function_that_could_not_be_called_is_refused_when_the_agent_is_made(
    options: dict[str, Any], field: str, said: str
):
    with pytest.raises(ConfigurationError) as caught:
        echo(**options)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", field)
    assert said in caught.value.detail


class Hangs:
    """A function that never comes back, and says when it was called and when it was let go."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, ctx: RunConfigContext) -> Any:
        self.called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@FIELDS
async def test_an_abort_does_not_wait_for_a_function_that_hangs(field: str):
    hangs, signal, heard = Hangs(), CancelSignal(), []
    agent = echo(on_event=heard.append, **{field: hangs})
    task = asyncio.ensure_future(agent.session("s").send("Hi", signal=signal))
    await asyncio.wait_for(hangs.called.wait(), WAIT)
    signal.abort("enough")
    result = await asyncio.wait_for(task, WAIT)
    assert (result.finish_reason, (result.abort_reason or {})["message"]) == ("aborted", "enough")
    assert (result.steps, agent.session("s").messages) == (0, [])
    assert types(heard) == ["run.start", "run.done"]
    await asyncio.wait_for(hangs.cancelled.wait(), WAIT)


async def test_a_streamed_run_is_aborted_while_its_function_hangs():
    hangs = Hangs()
    run: AgentRun = echo(tools=hangs).stream("Hi")
    await asyncio.wait_for(hangs.called.wait(), WAIT)
    run.abort("the reader left")
    events = await collect(run)
    assert (types(events), events[-1].finish_reason) == (["run.start", "run.done"], "aborted")
    assert (await run.result).finish_reason == "aborted"


async def test_a_cancelled_task_lets_its_function_go_and_the_session_is_free():
    hangs, heard = Hangs(), []
    once = [True]

    def first_hangs(ctx: RunConfigContext) -> Any:
        return hangs(ctx) if once.pop() else "x"

    session = echo(instructions=first_hangs, on_event=heard.append).session("s")
    task = asyncio.ensure_future(session.send("Hi"))
    await asyncio.wait_for(hangs.called.wait(), WAIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(hangs.cancelled.wait(), WAIT)
    assert [(event.type, getattr(event, "finish_reason", None)) for event in heard] == [
        ("run.start", None),
        ("run.done", "aborted"),
    ]
    once.append(False)
    assert (await asyncio.wait_for(session.send("Hi"), WAIT)).text == "Hello!"


async def test_a_signal_that_was_aborted_before_calls_no_function():
    signal = CancelSignal()
    signal.abort("never mind")
    result = await echo(instructions=fails_at_once).send("Hi", signal=signal)
    assert result.finish_reason == "aborted"


async def test_long_lived_signals_collect_no_listeners():
    signal = CancelSignal()
    for function in (fails_at_once, tenant):
        for _ in range(5):
            await asyncio.gather(echo(instructions=function).send("Hi", signal=signal), return_exceptions=True)
    assert signal._listeners == []


async def test_a_failure_of_the_model_is_still_the_models():
    agent = create_agent(
        provider=mock_model([{"error": LLMProviderError("down", status_code=503)}]), instructions=tenant
    )
    with pytest.raises(LLMProviderError) as caught:
        await agent.send("Hi")
    assert caught.value.usage is not None
