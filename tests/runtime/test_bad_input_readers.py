"""Listeners and readers at their worst: they block, call back, abort, go away in the middle or come too many at once."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from typing import Any

import pytest
from hostile import check_transcript, play, within
from runs import WAIT, call, collect, of_type

from lousho import Agent, CancelSignal, SDKError, create_agent, tool
from lousho.testing import check_event_order, mock_model


async def test_a_listener_that_blocks_delays_its_run_and_loses_nothing():
    blocked: list[str] = []

    def slow(event: Any) -> None:
        if event.type in ("run.start", "tool.done"):
            threading.Event().wait(0.05)
            blocked.append(event.type)

    @tool(timeout_ms=2_000)
    async def quick() -> str:
        """Answer."""
        return "ok"

    agent = create_agent(provider=mock_model([call("quick"), "Done."] * 3), tools=[quick], on_event=slow)
    began = time.monotonic()
    results = await asyncio.gather(*(collect(agent.session(f"s{number}").stream("go")) for number in range(3)))
    assert time.monotonic() - began >= 0.3
    assert sorted(blocked) == ["run.start"] * 3 + ["tool.done"] * 3
    assert [events[-1].finish_reason for events in results] == ["stop"] * 3


@pytest.mark.parametrize("outside", ["send", "stream", "send_sync", "stream_sync"])
@pytest.mark.parametrize("moment", ["run.start", "tool.start", "tool.done", "run.done"])
async def test_a_listener_that_asks_the_same_session_from_the_inside_never_hangs(outside, moment):
    inner: list[Any] = []

    def ask(event: Any) -> None:
        if event.type == moment and not inner:
            inner.append(None)
            try:
                inner.append(session.send_sync("inner").text)
            except SDKError as error:
                inner.append(error.code)

    @tool
    async def quick() -> str:
        """Answer."""
        return "ok"

    def turn(request: Any) -> Any:
        last = request.messages[-1]
        return call("quick") if last.role == "user" and last.content == "outer" else f"re {last.content}"

    model = mock_model([turn], on_exhausted="repeat-last")
    session = create_agent(provider=model, tools=[quick], on_event=ask).session("s")
    if outside == "send":
        text = (await within(session.send("outer"))).text
    elif outside == "stream":
        text = (await play(session.stream("outer"))).ended.text
    elif outside == "send_sync":
        text = (await within(asyncio.to_thread(session.send_sync, "outer"))).text
    else:
        text = (await within(asyncio.to_thread(lambda: list(session.stream_sync("outer")))))[-1].text
    assert text == "re ok"
    assert inner[1] in ("re inner", "LOUSHO_SESSION_BUSY", "LOUSHO_CONFIG_INVALID")
    assert [one.content for one in session.messages if one.role == "user"] in (["outer"], ["outer", "inner"])


async def test_a_listener_may_ask_the_agent_itself_and_other_sessions_in_a_blocking_way():
    texts: list[str] = []

    def ask(event: Any) -> None:
        if event.type == "tool.done" and len(texts) < 2:
            texts.append("")
            texts[0] = agent.send_sync("plain").text + agent.session("other").send_sync("other").text

    @tool
    async def quick() -> str:
        """Answer."""
        return "ok"

    def turn(request: Any) -> Any:
        last = request.messages[-1]
        return call("quick") if last.content == "go" else f"re {last.content}"

    agent = create_agent(provider=mock_model([turn], on_exhausted="repeat-last"), tools=[quick], on_event=ask)
    assert (await within(agent.session("s").send("go"))).text == "re ok"
    assert texts == ["re plainre other"]


def waiting_agent() -> tuple[Agent, asyncio.Event, asyncio.Event]:
    """Return an agent whose tool hangs, and events that say that it began and that it was told to stop."""
    began, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    return create_agent(provider=mock_model([call("hang"), "never"]), tools=[hang]), began, stopped


@pytest.mark.spec("STRM-07")
@pytest.mark.parametrize(
    "how", ["drop the iterator", "drop both", "close twice", "close and leave", "cancel the reader"]
)
async def test_a_reader_that_goes_away_in_whatever_way_ends_the_run_once(how):
    agent, began, stopped = waiting_agent()
    run: Any = agent.stream("go")
    result = run.result
    reader: Any = aiter(run)
    events = [await anext(reader)]
    await within(began.wait())
    if how == "close twice":
        await within(asyncio.gather(run.aclose(), run.aclose()))
        await within(run.aclose())
        events += [event async for event in reader]
    elif how == "close and leave":
        async with run:
            await within(run.aclose())
        events += [event async for event in reader]
    elif how == "cancel the reader":

        async def read() -> None:
            async with run:
                async for event in reader:
                    events.append(event)

        task = asyncio.ensure_future(read())
        while not of_type(events, "tool.start"):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await within(task)
    else:
        del reader
        if how == "drop both":
            del run
        gc.collect()
    await within(stopped.wait())
    ended = await within(result)
    assert ended.finish_reason == "aborted"
    check_transcript(ended)
    check_event_order(events, complete=events[-1].type == "run.done")


async def test_giving_up_on_a_result_does_not_give_up_the_run():
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "ok"

    run = create_agent(provider=mock_model([call("wait"), "Done."]), tools=[wait]).stream("go")

    async def result() -> Any:
        return await run.result

    waiting = [asyncio.ensure_future(result()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run.result, 0.01)
    assert not run.done
    release.set()
    assert [(await within(one)).text for one in waiting[1:]] == ["Done."] * 2
    assert (await run.result).text == "Done."


async def test_many_readers_at_once_get_the_events_once_and_everybody_else_is_told():
    agent = create_agent(provider=mock_model(["One two three four five."]))
    run = agent.stream("go")
    taken: list[Any] = []
    refused: list[str] = []

    async def read() -> None:
        try:
            async for event in run:
                taken.append(event)
                await asyncio.sleep(0)
        except SDKError as error:
            refused.append(error.code)

    await within(asyncio.gather(*(read() for _ in range(20))))
    check_event_order(taken)
    assert refused == ["LOUSHO_RUN_ALREADY_ITERATED"] * 19


async def test_a_signal_that_is_aborted_from_many_threads_in_the_middle_of_many_runs_ends_each_of_them():
    agent, began, _ = waiting_agent()
    agents = [agent.with_options(provider=mock_model([call("hang")])) for _ in range(20)]
    signal = CancelSignal()
    work = [asyncio.ensure_future(one.send("go", signal=signal)) for one in agents]
    await within(began.wait())
    threads = [threading.Thread(target=signal.abort, args=(f"reason {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    results = await within(asyncio.gather(*work))
    assert {result.finish_reason for result in results} == {"aborted"}
    assert len({json.dumps(result.abort_reason) for result in results}) == 1
    for thread in threads:
        thread.join(WAIT)
