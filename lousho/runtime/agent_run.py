"""A run in progress, as its owner holds it: an async iterator of events, and the result.

Events are buffered, never dropped, and nobody waits for a slow reader. Source: agents page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any

from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError
from lousho.core.events import AgentEvent
from lousho.core.messages import AgentInput
from lousho.runtime.inbox import InputQueue, QueuedInput, SteeredInput
from lousho.runtime.result import RunResult


class EventBuffer:
    """The events that were emitted and not read yet."""

    __slots__ = ("_ended", "_events", "_reader")

    def __init__(self) -> None:
        self._events: deque[AgentEvent] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._ended = False

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: AgentEvent) -> None:
        """Add an event and wake the reader."""
        self._events.append(event)
        self._wake()

    def end(self) -> None:
        """No more events will come."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def get(self) -> AgentEvent | None:
        """Return the next event, or `None` after the last one."""
        while not self._events:
            if self._ended:
                return None
            if self._reader is not None and not self._reader.done():
                raise already_iterated()
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
            self._reader = None
        return self._events.popleft()


def already_iterated() -> SDKError:
    """Return the error for a second reader."""
    return SDKError(
        "This run's events are read already; each event is delivered once.", code="LOUSHO_RUN_ALREADY_ITERATED"
    )


_going: set[asyncio.Task[Any]] = set()
"""Runs nobody may hold any more: an event loop keeps its tasks only weakly, and a run goes on by itself."""


def _keep(task: asyncio.Task[Any]) -> None:
    if len(_going) % 256 == 255:  # now and then: a loop that was closed early never says that its runs are over
        _going.difference_update([other for other in _going if other.get_loop().is_closed()])
    _going.add(task)
    task.add_done_callback(_going.discard)


class AgentRun:
    """A run that was started by `stream()`. Iterate it once for its events; await `result` for its outcome.

    The run goes on by itself whether or not anybody iterates. Leaving the loop early aborts it: reliably with
    `async with agent.stream(...) as run`, and in CPython also by simply breaking out. Source: agents page.
    """

    def __init__(
        self,
        run_id: str,
        start: Callable[[EventBuffer], Coroutine[Any, Any, RunResult]],
        signal: CancelSignal,
        *,
        throw_on_error: bool = True,
        on_end: Callable[[], None] | None = None,
        inbox: InputQueue | None = None,
    ) -> None:
        self.run_id = run_id
        """Identifies the run; every event carries it."""
        self._signal = signal
        self._throw_on_error = throw_on_error
        self._on_end = on_end
        self._inbox = InputQueue() if inbox is None else inbox
        self._buffer = EventBuffer()
        self._iterated = False
        self._task = asyncio.get_running_loop().create_task(start(self._buffer))
        self._task.add_done_callback(self._ended)
        _keep(self._task)

    def _ended(self, task: asyncio.Task[RunResult]) -> None:
        self._buffer.end()
        self._signal.detach()
        self._inbox.close()
        if self._on_end is not None:
            self._on_end()
        if not task.cancelled():
            task.exception()  # read it, so that a result nobody awaits is not reported as lost

    @property
    def result(self) -> Awaitable[RunResult]:
        """The outcome: await it (as often as you like) for the result, or for the error the run failed with."""
        return _Result(self._task)

    @property
    def done(self) -> bool:
        """Whether the run has ended or paused."""
        return self._task.done()

    def abort(self, reason: object = None) -> None:
        """Stop the run; its result has `finish_reason == 'aborted'` and keeps what there is."""
        self._signal.abort(reason)

    def enqueue(self, input: AgentInput) -> QueuedInput:  # noqa: A002 - the word of the whole field
        """Add user input (a text, content parts or user messages), from any thread; the run does not stop.

        It joins the transcript after the current step, before the next model call; a run that gives its final reply
        meanwhile answers it in one more step. Raises `LOUSHO_CONFIG_INVALID`. Source: queue-and-steer page.
        """
        return self._inbox.push(input)

    def steer(self, input: AgentInput) -> SteeredInput:  # noqa: A002
        """Redirect the run to new user input, from any thread.

        A model call that has emitted no text and no tool call is cut short and made again with the input. Otherwise the
        input waits as with `enqueue()`, and tool calls that have not begun are not run. Raises `LOUSHO_CONFIG_INVALID`.
        Source: queue-and-steer page.
        """
        return self._inbox.steer(input)

    def __aiter__(self) -> _EventIterator:
        if self._iterated:
            raise already_iterated()
        self._iterated = True
        return _EventIterator(self)

    def text_stream(self) -> TextStream:
        """Return an async iterator of the words of the run alone: the `text` of each `text.delta`, step after step.

        It is the run's one iteration, in place of the events: leaving it early aborts the run, and a failed run raises
        at its end unless told not to. What sub-agents say is not in it. Raises `LOUSHO_RUN_ALREADY_ITERATED`.
        """
        return TextStream(aiter(self))

    async def next_event(self) -> AgentEvent | None:
        """Return the next event, `None` after the last one; raises the run's error there unless told not to."""
        event = await self._buffer.get()
        if event is None and self._throw_on_error:
            await self._raise_failure()
        return event

    async def _raise_failure(self) -> None:
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error

    async def aclose(self) -> None:
        """Abort the run if it still goes on and wait until it has ended."""
        if not self._task.done():
            self.abort("The reader of the run left before it ended.")
            await asyncio.wait([self._task])

    async def __aenter__(self) -> AgentRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Result:
    """Awaits the run's task without cancelling it when the waiter is cancelled."""

    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[RunResult]) -> None:
        self._task = task

    def __await__(self) -> Generator[Any, None, RunResult]:
        return asyncio.shield(self._task).__await__()


class _EventIterator:
    """The one iteration of a run. Dropped before the end, it aborts the run."""

    __slots__ = ("_finished", "_run")

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._finished = False

    def __aiter__(self) -> _EventIterator:
        return self

    async def __anext__(self) -> AgentEvent:
        try:
            event = await self._run.next_event()
        except BaseException:
            self._finished = self._run.done
            raise
        if event is None:
            self._finished = True
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Stop reading: aborts the run if it still goes on."""
        self._finished = True
        await self._run.aclose()

    def __del__(self) -> None:
        if not self._finished and not self._run.done:
            self._run.abort("The reader of the run left before it ended.")


class TextStream:
    """The words of a run, read through its one iteration."""

    __slots__ = ("_events",)

    def __init__(self, events: _EventIterator) -> None:
        self._events = events

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> str:
        async for event in self._events:
            if event.type == "text.delta" and event.subagent is None:
                return event.text
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop reading: aborts the run if it still goes on."""
        await self._events.aclose()
