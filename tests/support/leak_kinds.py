"""Every way for a run to begin, to end and to be left, on one agent that outlives them all; for tests that look for leaks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from runs import WAIT

from lousho import (
    Agent,
    CancelSignal,
    ModelResponse,
    PropagatingToolError,
    SDKError,
    ToolContext,
    create_agent,
    tool,
)
from lousho.core.messages import FunctionCall, ToolCall
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta, ToolCallChunk

RELEASE = threading.Event()
"""Lets the tools go that hold a thread for longer than anybody waits for them."""


class Echo:
    """A provider without a memory: the user's text names the tools to call, once each, and then it answers."""

    name = "echo"
    default_model = "echo-1"

    def _turn(self, request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
        last = request.messages[-1]
        text = str(last.content)
        if last.role == "user" and text == "fail":
            raise OSError("the line went dead")
        if last.role == "user" and text.startswith("call "):
            names = text.removeprefix("call ").split()
            return "", tuple(ToolCall(f"c{n}", FunctionCall(name, '{"n": 3}')) for n, name in enumerate(names))
        return "One two three.", ()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        await self._wait(request)
        text, calls = self._turn(request)
        return ModelResponse(text=text, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        await self._wait(request)
        text, calls = self._turn(request)
        for word in text.split():
            yield TextDelta(f"{word} ")
            await asyncio.sleep(0)
        for call in calls:
            yield ToolCallChunk(call)
        yield Finish("tool_calls" if calls else "stop")

    async def _wait(self, request: ModelRequest) -> None:
        """Hang, and answer the abort with an answer or with an error that nobody is waiting for any more."""
        text = str(request.messages[-1].content)
        if text.startswith("hang"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if text == "hang on":
                    raise
                await asyncio.sleep(0)
                if text == "hang and fail":
                    raise OSError("nobody listens") from None


@tool
async def quick(n: int) -> int:
    """Answer."""
    return n


@tool
async def slow(n: int) -> int:
    """Give way."""
    for _ in range(n):
        await asyncio.sleep(0)
    return n


@tool
def blocking(n: int) -> int:
    """Use a thread."""
    return n


@tool
async def counting(n: int) -> AsyncIterator[int]:
    """Give snapshots."""
    for number in range(n):
        yield number
        await asyncio.sleep(0)


@tool
async def failing(n: int) -> int:
    """Fail."""
    raise LookupError("nothing here")


@tool
async def stopping(n: int) -> int:
    """End the run."""
    raise PropagatingToolError("enough")


@tool
async def hanging(n: int, ctx: ToolContext) -> int:
    """Hang until told to stop, and listen for that in two ways."""
    ctx.abort_signal.add_listener(lambda _: None)
    await ctx.abort_signal.wait()
    await asyncio.Event().wait()
    return n


@tool
async def stubborn(n: int) -> int:
    """Answer the abort with an error that nobody is waiting for any more."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        raise LookupError("nobody listens") from None
    return n


@tool
async def endless(n: int) -> AsyncIterator[int]:
    """Give snapshots for ever."""
    while True:
        yield n
        await asyncio.sleep(0)


@tool(timeout_ms=1)
async def overdue(n: int) -> int:
    """Take too long."""
    await asyncio.Event().wait()
    return n


@tool(timeout_ms=1)
def holding(n: int) -> int:
    """Hold a thread for too long."""
    RELEASE.wait(WAIT)
    return n


@tool
async def large(n: int) -> str:
    """Return a lot."""
    return "word " * 20_000


@tool(needs_approval=True)
async def gated(n: int) -> int:
    """Ask first."""
    return n


TOOLS = [
    quick,
    slow,
    blocking,
    counting,
    failing,
    stopping,
    hanging,
    stubborn,
    endless,
    overdue,
    holding,
    large,
    gated,
]


def wrong(value: object) -> Any:
    return value


def make_agent(**options: Any) -> Agent:
    return create_agent(provider=wrong(Echo()), tools=TOOLS, **options)


Kind = Callable[[Agent, CancelSignal, int], Awaitable[None]]
"""One run: on this agent, with this signal that outlives it where it takes one; the number varies it."""


def asking(text: str) -> Kind:
    async def send(agent: Agent, signal: CancelSignal, number: int) -> None:
        with suppress(SDKError, PropagatingToolError):
            await agent.send(text, signal=signal)

    return send


def reading(text: str) -> Kind:
    async def stream(agent: Agent, signal: CancelSignal, number: int) -> None:
        with suppress(SDKError, PropagatingToolError):
            async for _ in agent.stream(text, signal=signal):
                pass

    return stream


def leaving(text: str, how: str) -> Kind:
    async def leave(agent: Agent, signal: CancelSignal, number: int) -> None:
        run = agent.stream(text, signal=signal)
        if how == "unread":
            with suppress(SDKError, PropagatingToolError):
                await run.result
        elif how == "with":
            async with run:
                await _read(run, number % 5)
        elif how == "break":
            await _read(run, number % 5)
        # "forgotten": neither read nor awaited

    return leave


async def _read(run: Any, count: int) -> None:
    with suppress(SDKError, PropagatingToolError):
        async for event in run:
            if event.seq >= count:
                break


def stopping_by(text: str, how: str) -> Kind:
    async def stop(agent: Agent, signal: CancelSignal, number: int) -> None:
        own = CancelSignal.timeout(1) if how == "timeout" else CancelSignal()
        either = CancelSignal.any(signal, own)
        task = asyncio.ensure_future(agent.send(text, signal=either))
        for _ in range(5 + number % 10):
            await asyncio.sleep(0)
        if how == "abort":
            own.abort("enough")
        elif how == "cancel":
            task.cancel()
        with suppress(asyncio.CancelledError):
            assert (await task).finish_reason == "aborted"
        either.detach()

    return stop


async def waiting_for(agent: Agent, signal: CancelSignal, number: int) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(agent.send("call hanging", signal=signal), 0.001)


async def aborted_before(agent: Agent, signal: CancelSignal, number: int) -> None:
    own = CancelSignal()
    own.abort()
    await agent.send("hi", signal=own)


async def timeout_far_away(agent: Agent, signal: CancelSignal, number: int) -> None:
    await agent.send("call quick", signal=CancelSignal.timeout(3_600_000))


async def deciding(agent: Agent, signal: CancelSignal, number: int) -> None:
    paused = await agent.send("call gated quick gated", signal=signal)
    for index, approval_id in enumerate(paused.approval_ids):
        if number % 3 == 0:
            async for _ in agent.approvals.stream_resolve(id=approval_id, approved=index == 0, signal=signal):
                pass
        else:
            await agent.approvals.resolve(id=approval_id, approved=(number + index) % 2 == 0, signal=signal)


async def paused_and_dropped(agent: Agent, signal: CancelSignal, number: int) -> None:
    other = make_agent()
    assert (await other.session("s").send("call gated", signal=signal)).finish_reason == "awaiting-approval"


async def session_turns(agent: Agent, signal: CancelSignal, number: int) -> None:
    session = agent.session(f"s{number % 50}")
    with suppress(SDKError):
        await session.send("call quick", signal=signal)
        async for event in session.stream("call slow", signal=signal):
            if event.seq == number % 12:
                break
        await session.clear()


async def listening(agent: Agent, signal: CancelSignal, number: int) -> None:
    def sore(event: Any) -> None:
        raise ValueError("no")

    heard: list[Any] = []
    await agent.with_options(on_event=sore if number % 2 else heard.append).send("call quick counting", signal=signal)


async def blocking_twins(agent: Agent, signal: CancelSignal, number: int) -> None:
    def use() -> None:
        agent.send_sync("call quick blocking", signal=signal)
        stream = agent.stream_sync("call counting", signal=signal)
        for event in stream:
            if event.seq == number % 8:
                break
        if number % 2:
            stream.close()
        with agent.session(f"t{number % 50}").stream_sync("hi", signal=signal) as turn:
            next(turn)
        with suppress(SDKError):
            agent.send_sync("fail", signal=signal)

    await asyncio.to_thread(use)


KINDS: dict[str, Kind] = {
    "answered": asking("hi"),
    "with calls side by side": asking("call quick slow blocking counting quick blocking"),
    "with calls that fail": asking("call failing nosuchtool quick failing"),
    "with large results": asking("call large"),
    "with calls that are overdue": asking("call overdue quick overdue"),
    "with threads that are overdue": asking("call holding quick"),
    "failed": asking("fail"),
    "ended by a tool": asking("call slow stopping slow"),
    "read": reading("call quick slow blocking counting"),
    "read until it failed": reading("fail"),
    "never read": leaving("call quick counting", "unread"),
    "never read and failed": leaving("fail", "forgotten"),
    "forgotten": leaving("call slow blocking counting", "forgotten"),
    "left with a with": leaving("call slow counting hanging", "with"),
    "left with a break": leaving("call slow counting hanging", "break"),
    "aborted in a tool": stopping_by("call quick hanging blocking", "abort"),
    "aborted in a tool that fails late": stopping_by("call stubborn", "abort"),
    "aborted in a generator": stopping_by("call endless", "abort"),
    "aborted in the model": stopping_by("hang on", "abort"),
    "aborted in a model that answers late": stopping_by("hang", "abort"),
    "aborted in a model that fails late": stopping_by("hang and fail", "abort"),
    "aborted by the clock": stopping_by("call hanging endless", "timeout"),
    "aborted before it began": aborted_before,
    "with an abort that never comes": timeout_far_away,
    "cancelled in a tool": stopping_by("call hanging endless", "cancel"),
    "cancelled in the model": stopping_by("hang on", "cancel"),
    "cancelled by a timeout": waiting_for,
    "decided": deciding,
    "paused and dropped": paused_and_dropped,
    "turns of sessions": session_turns,
    "listened to": listening,
    "blocking": blocking_twins,
}
