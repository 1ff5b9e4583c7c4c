"""Listeners that raise, call back, change what they are given or are not what they should be: the run never notices."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hostile import play, within, wrong
from runs import call, collect, of_type, types

from lousho import CancelSignal, SDKError, create_agent, tool
from lousho.testing import mock_model


@tool
async def ping() -> str:
    """Answer."""
    return "pong"


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text for you")

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), Mute(), asyncio.CancelledError(), StopIteration(), ExceptionGroup("g", [ValueError("v")])],
    ids=lambda error: type(error).__name__,
)
async def test_a_listener_that_always_raises_costs_one_warning_and_nothing_else(error, caplog):
    def sore(*_: object) -> None:
        raise error

    agent = create_agent(
        provider=mock_model([call("ping"), "Done."]),
        tools=[ping],
        on_event=sore,
        on_permission_decision=sore,
        permissions=[{"tool": "*", "action": "allow"}],
    )
    with caplog.at_level(logging.WARNING, logger="lousho"):
        result = await agent.send("go")
    assert (result.text, result.tool_errors) == ("Done.", None)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("option", ["on_event", "on_permission_decision", "tool_error_message"])
def test_a_listener_that_is_async_is_refused_where_it_is_given(option):
    async def listen(*_: object) -> None:
        """Never awaited by anybody."""

    class Listener:
        async def __call__(self, *_: object) -> None:
            """Never awaited by anybody."""

    for given in (listen, Listener()):
        with pytest.raises(SDKError) as caught:
            create_agent(provider=mock_model(["x"]), **wrong({option: given}))
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
        assert "plain function" in caught.value.detail


async def test_a_listener_that_returns_a_coroutine_is_told_that_nobody_awaits_it(caplog):
    async def nothing() -> None:
        """Never awaited by anybody."""

    agent = create_agent(provider=mock_model(["Hi."]), on_event=lambda _: nothing())
    with caplog.at_level(logging.WARNING, logger="lousho"):
        assert (await agent.send("go")).text == "Hi."
    assert ["async" in record.getMessage() for record in caplog.records] == [True]


async def test_a_listener_that_aborts_the_run_stops_it_at_any_event():
    for stop_at in range(12):
        signal = CancelSignal()

        def stop(event: Any, stop_at: int = stop_at, signal: CancelSignal = signal) -> None:
            if event.seq == stop_at:
                signal.abort("enough")

        agent = create_agent(provider=mock_model([call("ping"), "One two."]), tools=[ping], on_event=stop)
        played = await play(agent.stream("go", signal=signal))
        assert played.ended.finish_reason in ("aborted", "stop")
        assert played.events[-1].type == "run.done"


async def test_a_listener_that_cancels_the_task_of_the_run_cancels_it_in_order():
    heard: list[Any] = []

    def stop(event: Any) -> None:
        heard.append(event.type)
        if event.type == "tool.done":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    agent = create_agent(provider=mock_model([call("ping"), "never"]), tools=[ping], on_event=stop)
    with pytest.raises(asyncio.CancelledError):
        await within(asyncio.ensure_future(agent.session("s").send("go")))
    assert heard[-1] == "run.done"
    kept = agent.session("s").messages
    assert [message.role for message in kept[:3]] == ["user", "assistant", "tool"]
    assert all(message.interrupted for message in kept[3:])


async def test_a_listener_may_start_another_run():
    results: list[asyncio.Task[Any]] = []
    other = create_agent(provider=mock_model(["Other."] * 20))

    def start(event: Any) -> None:
        results.append(asyncio.ensure_future(other.send("hi")))
        other.send_sync("hi")

    agent = create_agent(provider=mock_model(["Done."]), on_event=start)
    assert (await within(agent.send("go"))).text == "Done."
    assert {(await task).text for task in results} == {"Other."}


async def test_a_listener_may_ask_for_the_next_turn_when_a_turn_is_done():
    turns: list[asyncio.Task[Any]] = []

    def again(event: Any) -> None:
        if event.type == "run.done" and len(turns) < 3:
            turns.append(asyncio.ensure_future(session.send("again")))

    session = create_agent(provider=mock_model(["1", "2", "3", "4"]), on_event=again).session("s")
    await within(session.send("go"))
    while not all(turn.done() for turn in turns):
        await within(asyncio.gather(*turns))
    assert [turn.result().text for turn in turns] == ["2", "3", "4"]
    assert len(session.messages) == 8


async def test_what_a_listener_does_to_an_event_changes_nothing_of_the_run():
    def vandal(event: Any) -> None:
        for name in ("args", "text", "tool_call_id", "tool_name", "step", "finish_reason"):
            if hasattr(event, name):
                setattr(event, name, "broken")

    model = mock_model([call("ping"), "Done."])
    result = await create_agent(provider=model, tools=[ping], on_event=vandal).send("go")
    assert (result.text, result.finish_reason, result.steps) == ("Done.", "stop", 2)
    assert [message.content for message in result.messages] == ["go", "", "pong", "Done."]


async def test_a_listener_hears_of_a_turn_that_was_refused_what_the_stream_says():
    heard: list[Any] = []

    @tool(needs_approval=True)
    async def gated() -> str:
        """Act."""
        return "ok"

    agent = create_agent(provider=mock_model([call("gated")]), tools=[gated], on_event=heard.append)
    await agent.session("s").send("go")
    heard.clear()
    streamed = await collect(agent.session("s").stream("again"))
    assert types(streamed) == ["run.start", "error", "run.done"]
    assert heard == streamed


async def test_two_readers_of_one_run_are_told_so_and_the_first_loses_nothing():
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "ok"

    run = create_agent(provider=mock_model([call("wait"), "Done."]), tools=[wait]).stream("go")
    reader = aiter(run)
    events = []
    while not events or events[-1].type != "tool.start":
        events.append(await anext(reader))
    first = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)
    for again in (anext(reader), _iterate(run)):
        with pytest.raises(SDKError) as caught:
            await again
        assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    release.set()
    events.append(await within(first))
    events += [event async for event in reader]
    assert [event.seq for event in events] == list(range(len(events)))
    assert events[-1].type == "run.done"


async def _iterate(run: Any) -> None:
    async for _ in run:
        raise AssertionError("read twice")


async def test_a_reader_that_gives_up_waiting_may_go_on_later():
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "ok"

    run = create_agent(provider=mock_model([call("wait"), "Done."]), tools=[wait]).stream("go")
    reader = aiter(run)
    events = []
    while not events or events[-1].type != "tool.start":
        events.append(await anext(reader))
    for _ in range(3):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(reader), 0.01)
    release.set()
    events += [event async for event in reader]
    assert [event.seq for event in events] == list(range(len(events)))
    assert of_type(events, "tool.done")
