"""For tests that attack a run: streams of arbitrary objects, and the whole outcome of a run, good or bad, checked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

from runs import WAIT, ChunkProvider, calls

from lousho import AgentRun, Message, RunResult, create_agent, define_tool
from lousho.core.events import AgentEvent
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import Finish, ModelRequest, TextDelta, ToolCallChunk
from lousho.testing import check_event_order, mock_model


def chunks(*turns: Sequence[Any]) -> ChunkProvider:
    """Return a provider whose turns yield exactly these objects, whatever they are."""

    def turn(items: Sequence[Any]) -> Any:
        async def play(_: ModelRequest) -> AsyncIterator[Any]:
            for item in items:
                yield item

        return play

    return ChunkProvider(*[turn(items) for items in turns])


def wrong(value: object) -> Any:
    """Return `value` for a place where it does not belong."""
    return value


def asks(name: Any, arguments: Any = "{}", call_id: Any = "c1") -> ToolCallChunk:
    """Return the chunk of one tool call; nothing about it needs to be right."""
    return ToolCallChunk(ToolCall(call_id, FunctionCall(name, arguments)))


ANSWER = (TextDelta("Done."), Finish("stop"))
"""A turn that ends a run."""


@dataclass
class Played:
    """All that came of a run."""

    events: list[AgentEvent]
    result: RunResult | None = None
    error: BaseException | None = None

    @property
    def ended(self) -> RunResult:
        """The result of a run that did not fail."""
        assert self.result is not None, f"the run failed: {self.error!r}"
        return self.result


async def within(work: Awaitable[Any]) -> Any:
    """Return what `work` gives, which must not take longer than any single wait may."""
    return await asyncio.wait_for(_awaited(work), WAIT)


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def play(run: AgentRun) -> Played:
    """Read a run to its end, check the order of its events and the transcript of its result, and return both."""
    played = Played([])

    async def read() -> None:
        async for event in run:
            played.events.append(event)

    try:
        await within(read())
    except BaseException as error:  # the error of the run, which its result has as well
        _raise_if_cancelled()
        played.error = error
    try:
        played.result = await within(run.result)
    except BaseException as error:  # a test looks at whatever it is
        _raise_if_cancelled()
        played.error = error
    check_event_order(played.events)
    if played.result is not None:
        check_transcript(played.result)
    return played


def _raise_if_cancelled() -> None:
    """Raise when it is the reader who was cancelled, not the run."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def check_transcript(result: RunResult) -> None:
    """Check that every call of the transcript has exactly one result, right behind its turn and in call order.

    Calls of the last turn may lack theirs while the run waits for a person.
    """
    messages = list(result.messages)
    json.dumps(result.to_dict(), allow_nan=False, ensure_ascii=False).encode("utf-8")
    while messages:
        message = messages.pop(0)
        assert message.role != "tool", "a tool message without its call"
        results: list[Message] = []
        while message.tool_calls and messages and messages[0].role == "tool":
            results.append(messages.pop(0))
        wanted = [call.id for call in message.tool_calls]
        if not messages and not results and result.finish_reason == "awaiting-approval":
            return
        assert [one.tool_call_id for one in results] == wanted
        assert len(set(wanted)) == len(wanted)


def told(result: RunResult) -> list[Any]:
    """Return what the model was told of every call, parsed where it is JSON."""
    texts = [str(message.content) for message in result.messages if message.role == "tool"]
    return [_parsed(text) for text in texts]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def acting(act: Any) -> list[Any]:
    """Return one async and one sync tool that do the same."""

    async def awaited(arguments: dict[str, Any]) -> Any:
        return act()

    def blocking(arguments: dict[str, Any]) -> Any:
        return act()

    schema = {"type": "object", "properties": {}}
    return [
        define_tool(name="awaited", description="Act", input=schema, execute=awaited),
        define_tool(name="blocking", description="Act", input=schema, execute=blocking),
    ]


async def act_in_both(act: Any, **options: Any) -> Any:
    """Run both tools in one step and return what was played."""
    model = mock_model([calls(("awaited", {}), ("blocking", {})), "Done."])
    return await play(create_agent(provider=model, tools=acting(act), **options).stream("go"))
