"""Tools that show their progress, row by row of the tools page: snapshots, the result, aborts and places."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import told, within
from runs import call, calls, collect, of_type, types

from lousho import CancelSignal, create_agent, define_tool, tool
from lousho.testing import check_event_order, mock_model


@tool
async def report(topic: str) -> AsyncIterator[dict[str, Any]]:
    """Write a report."""
    parts: list[str] = []
    for part in ("news", "papers"):
        parts.append(f"{part} on {topic}")
        yield {"parts": parts, "done": False}
    yield {"parts": parts, "done": True}


@pytest.mark.spec("TOOL-90")
async def test_each_yield_is_a_whole_snapshot_and_the_last_one_is_the_result():
    model = mock_model([call("report", topic="sun"), "Done."])
    run = create_agent(provider=model, tools=[report]).stream("go")
    events = await collect(run)
    first, both = ["news on sun"], ["news on sun", "papers on sun"]
    snapshots = [{"parts": first, "done": False}, {"parts": both, "done": False}, {"parts": both, "done": True}]
    partials = [event.to_dict() for event in of_type(events, "tool.partial")]
    assert [(one["index"], one["output"]) for one in partials] == list(enumerate(snapshots))
    assert {(one["toolCallId"], one["toolName"]) for one in partials} == {("call_1", "report")}
    assert types(events)[2:7] == ["tool.start", "tool.partial", "tool.partial", "tool.partial", "tool.done"]
    assert of_type(events, "tool.done")[0].result == snapshots[-1]
    assert told(await run.result) == [snapshots[-1]]
    assert json.loads(str(model.calls[1].messages[-1].content)) == snapshots[-1]


@tool
async def silent() -> AsyncIterator[str]:
    """Say nothing."""
    for word in ():
        yield word


@tool
async def nothing() -> None:
    """Return nothing."""


@tool
def nothing_in_a_thread() -> None:
    """Return nothing."""


@tool
async def stops_early(words: int) -> AsyncIterator[str]:
    """Say some words and return."""
    for n in range(words):
        yield f"word {n}"
        if n == 1:
            return


@pytest.mark.spec("TOOL-91")
async def test_without_a_yield_or_a_value_the_result_is_null_everywhere():
    names = ("silent", "nothing", "nothing_in_a_thread")
    model = mock_model([calls(*[(name, {}) for name in names], ("stops_early", {"words": 9})), "Done."])
    agent = create_agent(provider=model, tools=[silent, nothing, nothing_in_a_thread, stops_early])
    run = agent.stream("go")
    events = await collect(run)
    done = {event.tool_name: event.to_dict()["result"] for event in of_type(events, "tool.done")}
    assert done == {**dict.fromkeys(names), "stops_early": "word 1"}
    in_request = [str(message.content) for message in model.calls[1].messages if message.role == "tool"]
    assert in_request == ["null", "null", "null", "word 1"]
    assert [str(one.content) for one in (await run.result).messages if one.role == "tool"] == in_request
    assert all("error" not in event.type for event in events)


@pytest.mark.spec("TOOL-92")
async def test_a_snapshot_is_in_the_stream_and_nowhere_else():
    @tool
    async def count() -> AsyncIterator[str]:
        """Count."""
        for n in range(3):
            yield f"only a snapshot {n}"
        yield "the result"

    model = mock_model([call("count"), "Counted."])
    agent = create_agent(provider=model, tools=[count])
    run = agent.session("s").stream("go")
    events = await collect(run)
    result = await run.result
    streamed = json.dumps([event.to_dict() for event in of_type(events, "tool.partial")])
    assert streamed.count("only a snapshot") == 3
    kept = [
        [event.to_dict() for event in events if event.type != "tool.partial"],
        [message.to_dict() for request in model.calls for message in request.messages],
        [message.to_dict() for message in await agent.session("s").load()],
        (await agent.store.sessions.load("s")).messages,
        result.to_dict(),
    ]
    assert "the result" in json.dumps(kept)
    assert "only a snapshot" not in json.dumps(kept)


@pytest.mark.spec("TOOL-94")
async def test_a_gated_tool_shows_nothing_before_its_approval_and_everything_after_it():
    begun: list[str] = []

    @tool(needs_approval=True)
    async def publish(page: str) -> AsyncIterator[str]:
        """Publish a page."""
        begun.append(page)
        yield "uploading"
        yield "published"

    agent = create_agent(provider=mock_model([call("publish", page="a"), "Done."]), tools=[publish])
    first = await collect(agent.stream("go"))
    assert (of_type(first, "tool.partial", "tool.done"), begun) == ([], [])
    waiting = (await agent.approvals.list())[0]
    second = await collect(agent.approvals.stream_resolve(id=waiting.id, approved=True))
    assert types(second)[:5] == ["run.start", "tool.resume", "tool.partial", "tool.partial", "tool.done"]
    assert [(event.index, event.output) for event in of_type(second, "tool.partial")] == [
        (0, "uploading"),
        (1, "published"),
    ]
    assert begun == ["a"]


@pytest.mark.spec("TOOL-95")
async def test_an_abort_stops_the_reading_at_once_and_closes_the_generator():
    closed = asyncio.Event()
    signal = CancelSignal()

    @tool
    async def endless() -> AsyncIterator[int]:
        """Count for ever."""
        try:
            n = 0
            while True:
                yield n
                n += 1
                await asyncio.sleep(0)
        finally:
            closed.set()

    run = create_agent(provider=mock_model([call("endless"), "never"]), tools=[endless]).stream("go", signal=signal)
    events: list[Any] = []

    async def read() -> None:
        async for event in run:
            events.append(event)
            if event.type == "tool.partial" and event.index == 3:
                signal.abort()

    await within(read())
    await within(closed.wait())
    check_event_order(events)
    result = await run.result
    assert result.finish_reason == "aborted"
    assert told(result)[0]["kind"] == "cancelled"
    assert types(events)[-3:] == ["tool.error", "step.done", "run.done"]
    assert len(of_type(events, "tool.partial")) <= 6
    assert events[-1].finish_reason == "aborted"


class Pages:
    """Can be iterated asynchronously, and is no generator."""

    def __init__(self) -> None:
        self.read = 0

    def __aiter__(self) -> Pages:
        return self

    async def __anext__(self) -> str:
        self.read += 1
        raise StopAsyncIteration

    def to_dict(self) -> dict[str, int]:
        return {"pages": 3}


@pytest.mark.spec("TOOL-97")
@pytest.mark.parametrize("style", ["async", "sync"])
async def test_a_result_that_can_be_iterated_is_an_ordinary_result(style: str):
    pages = Pages()

    async def later(args: dict[str, Any]) -> Pages:
        return pages

    def now(args: dict[str, Any]) -> Pages:
        return pages

    fetch = define_tool(
        name="fetch",
        description="Fetch pages",
        input={"type": "object", "properties": {}},
        execute=later if style == "async" else now,
    )
    events = await collect(create_agent(provider=mock_model([call("fetch"), "Done."]), tools=[fetch]).stream("go"))
    assert of_type(events, "tool.partial") == []
    assert len(of_type(events, "tool.done")) == 1
    assert pages.read == 0


@pytest.mark.spec("TOOL-98")
async def test_a_generator_holds_its_place_until_its_end():
    log: list[str] = []

    @tool
    async def work(name: str) -> AsyncIterator[str]:
        """Work in steps."""
        for n in range(3):
            log.append(f"{name}{n}")
            yield f"{name}{n}"
            await asyncio.sleep(0)
        log.append(f"{name} ends")

    turn = calls(("work", {"name": "a"}), ("work", {"name": "b"}))
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=[work], tool_concurrency=1)
    result = await within(agent.send("go"))
    assert log == ["a0", "a1", "a2", "a ends", "b0", "b1", "b2", "b ends"]
    assert told(result) == ["a2", "b2"]


@pytest.mark.spec("TOOL-98")
async def test_calling_the_function_itself_gives_the_generator():
    snapshots = [snapshot["done"] async for snapshot in report.execute(topic="sun")]
    assert snapshots == [False, False, True]
