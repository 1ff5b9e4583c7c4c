"""Hundreds of runs at once and thousands in a row, many of them stopped: all end, and nothing of them stays behind."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from hostile import play, within
from runs import call, calls, types
from sizes import sized

from lousho import CancelSignal, PropagatingToolError, SDKError, create_agent, define_tool, tool
from lousho.testing import mock_model

BOUND = 40.0
"""Seconds for a whole crowd of runs, far above what it takes."""


@tool
async def quick(number: int) -> int:
    """Answer at once."""
    return number


@tool
async def slow(number: int) -> int:
    """Give way a few times."""
    for _ in range(number):
        await asyncio.sleep(0)
    return number


@tool
def blocking(number: int) -> int:
    """Run in a thread."""
    return number


@tool
async def failing(number: int) -> int:
    """Fail."""
    raise LookupError(str(number))


@tool
async def snapshots(number: int):
    """Stream."""
    for item in range(number):
        yield item
        await asyncio.sleep(0)


@tool(needs_approval=True)
async def gated(number: int) -> int:
    """Ask first."""
    return number


@tool(timeout_ms=5)
async def overdue(number: int) -> int:
    """Take too long."""
    await asyncio.sleep(60)
    return number


@tool
async def stopping(number: int) -> int:
    """Stop the run."""
    raise PropagatingToolError(str(number))


TOOLS = [quick, slow, blocking, failing, snapshots, gated, overdue, stopping]


def script(chance: random.Random) -> list[Any]:
    """Return some turns of calls to any tools, and an answer or a failure."""
    names = [one.name for one in TOOLS if one.name != "stopping" or chance.random() < 0.1]
    turns: list[Any] = [
        calls(*[(chance.choice(names), {"number": chance.randrange(5)}) for _ in range(chance.randrange(1, 4))])
        for _ in range(chance.randrange(3))
    ]
    return [*turns, chance.choice(["Done.", "Done.", "Done.", {"error": OSError("down")}])]


async def one(chance: random.Random, signal: CancelSignal | None = None) -> str:
    """Run an agent in some way, stop it at some moment or not, and decide what it asks; returns how it ended."""
    agent = create_agent(provider=mock_model(script(chance)), tools=TOOLS)
    source: Any = agent.session("s") if chance.random() < 0.5 else agent
    own = CancelSignal.any(signal) if signal is not None else CancelSignal()
    way = chance.choice(["send", "stream", "leave"])
    if way == "leave":
        with suppress(SDKError, PropagatingToolError):
            async with source.stream("go", signal=own) as run:
                async for _ in run:
                    if chance.random() < 0.2:
                        break
        return "left"
    work: Any = source.send("go", signal=own) if way == "send" else play(source.stream("go", signal=own))
    task = asyncio.ensure_future(work)
    stop = chance.choice(["none", "none", "abort", "cancel"])
    if stop != "none":
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)
        if stop == "abort":
            own.abort("enough")
        else:
            task.cancel()
    try:
        outcome = await task
    except asyncio.CancelledError:
        return "cancelled"
    except (SDKError, PropagatingToolError):
        return "failed"
    result = outcome if way == "send" else outcome.result
    while result is not None and result.finish_reason == "awaiting-approval":
        try:
            result = await agent.approvals.resolve(id=result.approval_ids[0], approved=chance.random() < 0.5)
        except (SDKError, PropagatingToolError):
            return "failed"
    return "failed" if result is None else result.finish_reason


def open_files() -> int:
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.is_dir() else 0


async def test_three_hundred_runs_at_once_with_stops_at_any_moment_all_end():
    before = asyncio.all_tasks()
    work = asyncio.gather(*[one(random.Random(number)) for number in range(300)])
    outcomes = await asyncio.wait_for(work, BOUND)
    assert set(outcomes) >= {"stop", "aborted", "cancelled", "failed", "left"}
    for _ in range(50):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_thousands_of_runs_leave_no_task_no_thread_no_file_and_no_listener():
    shared = CancelSignal()
    await asyncio.gather(*[one(random.Random(-number), shared) for number in range(200)])
    gc.collect()
    tasks, threads, files = asyncio.all_tasks(), threading.active_count(), open_files()
    for start in range(0, sized(600, 20_000), 100):
        await asyncio.wait_for(
            asyncio.gather(*[one(random.Random(start + number), shared) for number in range(100)]), BOUND
        )
    for _ in range(50):
        await asyncio.sleep(0)
    gc.collect()
    assert asyncio.all_tasks() == tasks
    assert threading.active_count() <= max(threads, 64 + 8)
    assert open_files() <= files + 2


async def test_a_signal_that_outlives_its_runs_keeps_nothing_of_them():
    signal = CancelSignal()
    refused = 0
    for number in range(200):
        agent = create_agent(provider=mock_model([call("gated", number=1), "Done."]), tools=[gated])
        paused = await agent.session("s").send("go", signal=signal)
        for work in (
            agent.session("s").send("refused", signal=signal),
            agent.approvals.resolve(id="ap-unknown.1", approved=True, signal=signal),
            agent.session("s").stream("refused", signal=signal).result,
        ):
            try:
                await work
            except SDKError:
                refused += 1
        if number % 2:
            await agent.approvals.resolve(id=str(paused.approval_id), approved=True, signal=signal)
    assert refused == 600
    assert signal._listeners == []


async def test_finished_runs_are_freed_at_once():
    class Mark:
        """Something a run holds through its tool."""

    mark = Mark()
    gone = weakref.ref(mark)

    def build(held: Mark) -> Any:
        return define_tool(
            name="hold", description="Hold", input={"type": "object"}, execute=lambda arguments: str(type(held))
        )

    agent = create_agent(provider=mock_model([call("hold"), "Done."]), tools=[build(mark)])
    played = await play(agent.stream("go"))
    assert types(played.events)[-1] == "run.done"
    del agent, played, mark
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert gone() is None


async def test_timeouts_by_signal_cost_no_thread_each():
    agent = create_agent(provider=mock_model(["Hi."], on_exhausted="repeat-last"))
    await agent.send("go", signal=CancelSignal.timeout(60_000))
    before = threading.active_count()
    for _ in range(300):
        await agent.send("go", signal=CancelSignal.timeout(60_000))
    assert threading.active_count() <= before


async def test_tens_of_thousands_of_events_are_read_late_and_whole():
    turns = [{"text": "word " * 5_000} for _ in range(6)]
    agent = create_agent(
        provider=mock_model(
            [{**turn, "tool_calls": [{"name": "quick", "args": {"number": 1}}]} for turn in turns] + ["Done."]
        ),
        tools=[quick],
        max_steps=30,
    )
    run = agent.stream("go")
    result = await asyncio.wait_for(asyncio.shield(_result(run)), BOUND)
    assert result.finish_reason == "stop"
    played = await asyncio.wait_for(play(run), BOUND)
    assert len(played.events) > 30_000


async def _result(run: Any) -> Any:
    return await run.result


async def test_a_crowd_that_is_stopped_by_one_signal_ends_at_once():
    began = 0
    all_began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        nonlocal began
        began += 1
        if began == 300:
            all_began.set()
        await asyncio.sleep(60)
        return "never"

    signal = CancelSignal()
    work = [
        create_agent(provider=mock_model([call("wait")]), tools=[wait]).send("go", signal=signal) for _ in range(300)
    ]
    crowd = asyncio.gather(*work)
    await within(all_began.wait())
    signal.abort("enough")
    assert {result.finish_reason for result in await within(crowd)} == {"aborted"}
