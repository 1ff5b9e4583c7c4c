"""How long a call may take: the tool's own limit, the agent's for tools without one, and none for generators."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import play, told, within
from runs import WAIT, call, calls, of_type

from lousho import CancelSignal, ToolContext, create_agent, tool
from lousho.testing import mock_model


@pytest.mark.spec("TOOL-09")
@pytest.mark.parametrize("own", [True, False], ids=["its own limit", "the agent's limit"])
async def test_an_overdue_call_is_an_error_its_signal_fires_and_the_run_goes_on(own: bool):
    fired: asyncio.Queue[Any] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def hear(signal: CancelSignal) -> None:
        loop.call_soon_threadsafe(fired.put_nowait, signal.reason)

    @tool(timeout_ms=50 if own else None)
    async def sleeps(ctx: ToolContext) -> str:
        """Sleep."""
        ctx.abort_signal.add_listener(hear)
        await asyncio.sleep(60)
        return "never"

    model = mock_model([call("sleeps"), "Gave up."])
    agent = create_agent(provider=model, tools=[sleeps], tool_timeout_ms=None if own else 50)
    played = await play(agent.stream("go"))
    result = played.ended
    assert (result.text, result.finish_reason, result.tool_errors) == ("Gave up.", "stop", 1)
    assert told(result) == [
        {
            "error": "TimeoutError",
            "toolName": "sleeps",
            "message": "The tool 'sleeps' did not finish within 50 ms.",
            "kind": "execution",
        }
    ]
    assert "50 ms" in str(await within(fired.get()))
    failed = of_type(played.events, "tool.error")[0]
    assert failed.error.name == "TimeoutError"
    assert 50 <= failed.duration_ms < WAIT * 1000


@pytest.mark.spec("BEY-35")
async def test_the_agents_limit_is_for_tools_without_one_sync_and_async():
    release = threading.Event()

    @tool
    async def waits() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "never"

    @tool
    def blocks() -> str:
        """Block a thread."""
        release.wait(WAIT)
        return "never"

    @tool
    def hands_on() -> Any:
        """Return what has to be awaited."""
        return asyncio.sleep(60)

    @tool(timeout_ms=60_000)
    async def patient() -> str:
        """Take longer than the agent's limit."""
        await ended.wait()
        return "in the end"

    ended = asyncio.Event()
    heard: list[str] = []

    def hear(event: Any) -> None:
        if event.type == "tool.error":
            heard.append(event.tool_name)
            if len(heard) == 3:
                ended.set()

    names = ["waits", "blocks", "hands_on", "patient"]
    model = mock_model([calls(*[(name, {}) for name in names]), "Done."])
    agent = create_agent(provider=model, tools=[waits, blocks, hands_on, patient], tool_timeout_ms=30, on_event=hear)
    try:
        result = await within(agent.send("go"))
    finally:
        release.set()
    answers = told(result)
    assert [one["error"] for one in answers[:3]] == ["TimeoutError"] * 3
    assert answers[3] == "in the end"
    assert sorted(heard) == ["blocks", "hands_on", "waits"]


@pytest.mark.spec("TOOL-09", "BEY-35")
@pytest.mark.parametrize("options", [{"own": 20}, {"agent": 20}], ids=["its own limit", "the agent's limit"])
async def test_a_generator_may_go_on_for_as_long_as_it_has_something_to_show(options: dict[str, int]):
    overdue = asyncio.Event()

    @tool(timeout_ms=options.get("own"))
    async def reports() -> AsyncIterator[str]:
        """Report."""
        yield "begun"
        await overdue.wait()
        yield "ended"

    loop = asyncio.get_running_loop()
    loop.call_later(0.06, overdue.set)
    model = mock_model([call("reports"), "Done."])
    agent = create_agent(provider=model, tools=[reports], tool_timeout_ms=options.get("agent"))
    assert told(await within(agent.send("go"))) == ["ended"]


async def test_a_call_that_ends_in_time_leaves_nothing_that_listens_to_the_run():
    kept: list[CancelSignal] = []

    @tool
    async def quick(ctx: ToolContext) -> str:
        """End at once."""
        kept.append(ctx.abort_signal)
        return "done"

    signal = CancelSignal()
    model = mock_model([*[call("quick")] * 5, "Done."])
    await create_agent(provider=model, tools=[quick], tool_timeout_ms=60_000).send("go", signal=signal)
    signal.abort()
    assert [own.aborted for own in kept] == [False] * 5


async def test_an_abort_still_ends_a_call_that_has_a_limit():
    going = asyncio.Event()

    @tool
    async def waits() -> str:
        """Wait."""
        going.set()
        await asyncio.sleep(60)
        return "never"

    run = create_agent(provider=mock_model([call("waits")]), tools=[waits], tool_timeout_ms=60_000).stream("go")
    await within(going.wait())
    run.abort("enough")
    result = await within(run.result)
    assert result.finish_reason == "aborted"
    assert json.loads(str(result.messages[-1].content))["kind"] == "cancelled"
