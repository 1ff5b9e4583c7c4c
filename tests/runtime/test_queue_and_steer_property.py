"""Whatever is sent to a run at whatever moment: each input is in the transcript exactly once, or is said not to be."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lousho import FunctionCall, ToolCall, create_agent, tool
from lousho.models.provider import (
    Finish,
    ModelChunk,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    ToolCallChunk,
)
from lousho.testing import check_event_order
from tests.support.runs import WAIT
from tests.support.sizes import sized

Action = Literal["enqueue", "steer", "abort"]
Turn = Literal["answer", "think", "tools", "pay"]


class Scripted:
    """A provider that takes its turns from a list and answers when it is used up."""

    name = "scripted"
    default_model = "scripted-1"

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        number = len(self.requests)
        turn = self._turns.pop(0) if self._turns else "answer"
        await asyncio.sleep(0)
        if turn == "think":
            for _ in range(3):
                yield ReasoningDelta("hm ")
                await asyncio.sleep(0)
        if turn in ("tools", "pay"):
            for index in range(3):
                name = "pay" if turn == "pay" and index == 1 else "look"
                yield ToolCallChunk(ToolCall(f"c{number}-{index}", FunctionCall(name, "{}")))
                await asyncio.sleep(0)
            yield Finish("tool_calls")
            return
        for word in ("one ", "two"):
            yield TextDelta(word)
            await asyncio.sleep(0)
        yield Finish("stop")

    async def generate(self, request: ModelRequest) -> ModelResponse:
        raise NotImplementedError

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


@tool
async def look() -> str:
    """Look."""
    await asyncio.sleep(0)
    return "seen"


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def check_legal(messages: list[Any], waiting: bool) -> None:
    """Every call has its result right after the turn that made it, and no result is without a call."""
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        assert message.role != "tool"
        ids = [one.id for one in message.tool_calls]
        results = [one.tool_call_id for one in messages[position : position + len(ids)] if one.role == "tool"]
        if waiting and ids and position == len(messages):
            return
        assert results == ids
        position += len(ids)


async def play(turns: list[Turn], moments: list[tuple[int, Action]], concurrency: int, max_steps: int) -> None:
    provider = Scripted(turns)
    agent = create_agent(provider=provider, tools=[look, pay], tool_concurrency=concurrency, max_steps=max_steps)
    run = agent.stream("start", throw_on_error=False)
    sent: list[tuple[str, Any]] = []

    def act(action: Action) -> None:
        text = f"input {len(sent)}"
        if action == "abort":
            run.abort()
        elif action == "enqueue":
            sent.append((text, run.enqueue(text)))
        else:
            sent.append((text, run.steer(text)))

    async def user() -> None:
        for ticks, action in moments:
            for _ in range(ticks):
                await asyncio.sleep(0)
            act(action)

    acting = asyncio.create_task(user())
    events: list[Any] = [event async for event in run]
    result = await run.result
    await acting
    check_event_order(events)
    waiting = result.finish_reason == "awaiting-approval"
    check_legal(result.messages, waiting)
    there = [str(message.content) for message in result.messages if message.role == "user"]
    told = [event.id for event in events if event.type in ("input.queued", "input.steered")]
    applied = [event.id for event in events if event.type == "input.applied"]
    joined: list[str] = []
    for text, one in sent:
        if one.applied is False:
            assert one.id not in told
            assert text not in there
            continue
        outcome = await (one.joined if hasattr(one, "joined") else one.applied)
        assert there.count(text) == outcome
        assert applied.count(one.id) == outcome
        assert told.count(one.id) == 1
        if outcome:
            joined.append(text)
    assert there == ["start", *joined]
    assert len([event for event in events if event.type == "step.start"]) <= max_steps
    steered = [event for event in events if event.type == "step.done" and event.finish_reason == "steered"]
    immediate = [event for event in events if event.type == "input.steered" and event.mode == "immediate"]
    assert len(steered) <= len(immediate)
    if result.finish_reason == "stop":
        assert len(joined) == len([one for _, one in sent if one.applied is not False]) or max_steps == len(
            [event for event in events if event.type == "step.start"]
        )


@pytest.mark.spec("EVT-40", "QSTEER-01", "QSTEER-03")
@settings(max_examples=sized(150, 3_000), deadline=None)
@given(
    turns=st.lists(st.sampled_from(["answer", "think", "tools", "pay"]), max_size=5),
    moments=st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(["enqueue", "steer", "enqueue", "steer", "abort"])), max_size=6
    ),
    concurrency=st.integers(1, 3),
    max_steps=st.integers(1, 6),
)
def test_every_input_is_in_the_transcript_once_or_is_said_not_to_be(
    turns: list[Turn], moments: list[tuple[int, Action]], concurrency: int, max_steps: int
) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(play(turns, moments, concurrency, max_steps), WAIT * 2)

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(bounded())
