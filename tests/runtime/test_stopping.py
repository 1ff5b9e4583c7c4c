"""Stopping a run: by signal, by leaving, by cancelling the task; with a model or a tool that does not listen."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from runs import WAIT, ChunkProvider, call, calls, check_event_order, of_type

from lousho import CancelSignal, PropagatingToolError, ToolContext, create_agent, tool
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta
from lousho.testing import mock_model


async def bounded(work: Any) -> Any:
    return await asyncio.wait_for(work, WAIT)


async def test_an_aborted_signal_stops_the_run_before_the_model_is_called():
    model = mock_model(["never"])
    signal = CancelSignal()
    signal.abort("not today")
    result = await create_agent(provider=model).send("go", signal=signal)
    assert (result.finish_reason, result.abort_reason) == (
        "aborted",
        {"name": "AbortError", "message": "not today"},
    )
    assert len(model.calls) == 0


async def test_an_abort_keeps_the_text_that_had_arrived_and_drops_what_comes_later():
    late = asyncio.Event()

    async def stubborn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("half an ")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            late.set()
        yield TextDelta("answer")
        yield Finish("stop")

    signal = CancelSignal()
    run = create_agent(provider=ChunkProvider(stubborn)).stream("go", signal=signal)
    events = []
    async for event in run:
        events.append(event)
        if event.type == "text.delta":
            signal.abort()
    check_event_order(events)
    result = await bounded(_await(run.result))
    await bounded(late.wait())
    assert (result.finish_reason, result.text) == ("aborted", "half an ")
    assert [event.text for event in of_type(events, "text.delta")] == ["half an "]
    assert result.messages[-1].interrupted
    assert of_type(events, "step.done")[0].finish_reason == "aborted"


async def _await(awaitable: Any) -> Any:
    return await awaitable


async def test_a_tool_that_ignores_the_abort_is_not_waited_for():
    release = threading.Event()
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool
    def hang() -> str:
        """Block a thread."""
        loop.call_soon_threadsafe(started.set)
        release.wait(30)
        return "too late"

    @tool
    async def quick() -> str:
        """End at once."""
        return "kept"

    signal = CancelSignal()
    agent = create_agent(provider=mock_model([calls(("hang", {}), ("quick", {}))]), tools=[hang, quick])
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    try:
        await bounded(started.wait())
        signal.abort()
        result = await bounded(task)
    finally:
        release.set()
    assert result.finish_reason == "aborted"
    by_name = {message.name: message for message in result.messages if message.role == "tool"}
    assert json.loads(str(by_name["hang"].content))["error"] == "ToolCancelledError"
    assert by_name["quick"].content == "kept"


async def test_the_signal_reaches_the_tool():
    seen: list[str] = []

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait for the abort."""
        signal.abort("enough")
        seen.append(str(await ctx.abort_signal.wait()))
        return "noticed"

    signal = CancelSignal()
    await bounded(create_agent(provider=mock_model([call("wait")]), tools=[wait]).send("go", signal=signal))
    assert signal.aborted
    assert seen in ([], ["enough"])  # told either by the signal or by being cancelled, never left waiting


async def test_a_timeout_signal_gives_its_name_as_the_reason():
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        await asyncio.sleep(60)
        yield TextDelta("never")

    result = await bounded(create_agent(provider=ChunkProvider(endless)).send("go", signal=CancelSignal.timeout(20)))
    assert result.finish_reason == "aborted"
    assert result.abort_reason is not None
    assert result.abort_reason["name"] == "TimeoutError"


async def test_cancelling_the_task_saves_the_session_turn_and_goes_on_cancelling():
    begun = asyncio.Event()

    @tool
    async def forever() -> str:
        """Never end."""
        begun.set()
        await asyncio.sleep(60)
        return "x"

    agent = create_agent(provider=mock_model([call("forever")]), tools=[forever])
    task = asyncio.ensure_future(agent.session("s").send("go"))
    await bounded(begun.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = await agent.session("s").load()
    assert [message.role for message in kept] == ["user", "assistant", "tool"]
    assert json.loads(str(kept[-1].content))["kind"] == "cancelled"


@pytest.mark.spec("BEY-16")
async def test_an_overdue_call_is_an_error_result_and_its_own_signal_fires():
    fired = asyncio.Event()

    @tool(timeout_ms=30)
    async def slow(ctx: ToolContext) -> str:
        """Take too long."""
        ctx.abort_signal.add_listener(lambda _: fired.set())
        await asyncio.sleep(60)
        return "x"

    model = mock_model([call("slow"), "Gave up."])
    result = await bounded(create_agent(provider=model, tools=[slow]).send("go"))
    await bounded(fired.wait())
    assert result.finish_reason == "stop"
    told = json.loads(str(model.calls[1].messages[-1].content))
    assert (told["error"], told["kind"]) == ("TimeoutError", "execution")
    assert "30 ms" in told["message"]


@pytest.mark.spec("BEY-16")
async def test_a_plain_function_that_hangs_is_ended_by_its_timeout_too():
    release = threading.Event()

    @tool(timeout_ms=30)
    def stuck() -> str:
        """Hang in a thread that nothing can stop."""
        release.wait(WAIT)
        return "x"

    model = mock_model([call("stuck"), "Gave up."])
    try:
        result = await bounded(create_agent(provider=model, tools=[stuck]).send("go"))
        assert not release.is_set()
    finally:
        release.set()
    assert (result.text, result.tool_errors) == ("Gave up.", 1)
    assert json.loads(str(model.calls[1].messages[-1].content))["error"] == "TimeoutError"


async def test_a_propagating_error_waits_for_running_calls_and_starts_no_more():
    order: list[str] = []
    gate = asyncio.Event()

    @tool
    async def sibling() -> str:
        """Take a while."""
        await bounded(gate.wait())
        order.append("sibling done")
        return "x"

    @tool
    async def stopper() -> str:
        """End the run."""
        gate.set()
        raise PropagatingToolError("stop")

    @tool
    async def later() -> str:
        """Never begin."""
        order.append("later")
        return "x"

    agent = create_agent(
        provider=mock_model([calls(("sibling", {}), ("stopper", {}), ("later", {}))]),
        tools=[sibling, stopper, later],
        tool_concurrency=2,
    )
    with pytest.raises(PropagatingToolError, match="stop"):
        await agent.send("go")
    assert order == ["sibling done"]


async def test_nothing_is_left_running_after_many_runs():
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = create_agent(provider=mock_model([call("add", a=1, b=2), "3"] * 200), tools=[add], on_event=lambda _: None)
    before = len(asyncio.all_tasks())
    for _ in range(100):
        await agent.send("add")
    async with agent.stream("add") as run:
        await run.result
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before
