"""The blocking face: coroutines run on one background event loop, so it works in a script, a thread, a notebook.

Inside a running event loop a blocking call blocks that loop, but does not deadlock: the work is on another one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from concurrent import futures
from contextvars import ContextVar, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from lousho.core.errors import ConfigurationError
from lousho.runtime.racing import abandoned_ended
from lousho.runtime.threads import in_a_blocking_call

if TYPE_CHECKING:
    from lousho.core.events import AgentEvent
    from lousho.core.messages import AgentInput
    from lousho.runtime.agent_run import AgentRun
    from lousho.runtime.inbox import QueuedInput, SteeredInput
    from lousho.runtime.result import RunResult

T = TypeVar("T")
CLEAN_UP_SECONDS = 10.0
"""How long Ctrl-C waits for the end of the run that it interrupted; a second Ctrl-C does not wait."""
ABANDONED_SECONDS = 2.0
"""How long it then waits for tools and providers that are still cleaning up."""


class _LoopThread:
    """A daemon thread with a running event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="lousho-blocking", daemon=True)
        self.thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._ready.set)
        while True:
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # raised in a task: it is the task's result, too
                continue


_current: _LoopThread | None = None
_lock = threading.Lock()
blocked_loops: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("lousho_blocked_loops", default=())
"""The event loops that cannot go on before the work that runs here has ended: it was asked for by a blocking call in
one of their tasks."""


def _renew_after_fork() -> None:
    """Forget the lock and the loop of the parent process, whose thread is not there any more."""
    global _current, _lock
    _current, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


def _loop_thread() -> _LoopThread:
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = _LoopThread()
        return _current


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end and return what it returns; Ctrl-C cancels it and waits until it has ended.

    Raises `LOUSHO_CONFIG_INVALID` on the background loop itself, where it would wait for ever.
    """
    try:
        host = _loop_thread()
    except RuntimeError as error:  # no thread can be started: an interpreter that ends refuses them
        work.close()
        raise ConfigurationError(
            "A blocking call needs a thread, and none can be started any more. While a program ends, use "
            "asyncio.run() with the async method, or make the first blocking call earlier.",
            cause=error,
        ) from error
    if threading.current_thread() is host.thread:
        work.close()
        raise ConfigurationError(
            "A blocking call was made from inside a run that was itself started by a blocking call; "
            "use the async method there."
        )
    call = _Call(work)
    try:
        with in_a_blocking_call():
            call.submit(host.loop)
            return call.outcome.result()
    except KeyboardInterrupt:
        host.loop.call_soon_threadsafe(call.stop)
        futures.wait([call.outcome], timeout=CLEAN_UP_SECONDS)
        left = asyncio.run_coroutine_threadsafe(abandoned_ended(ABANDONED_SECONDS), host.loop)
        futures.wait([left], timeout=ABANDONED_SECONDS)
        raise


class _Call(Generic[T]):
    """Work on its way to another thread's event loop and back. It can be stopped at every moment of that."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self.outcome: futures.Future[T] = futures.Future()

    def submit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the work on `loop`; it knows which event loop the calling thread keeps from going on meanwhile."""
        context = copy_context()
        try:
            context.run(blocked_loops.set, (*blocked_loops.get(), asyncio.get_running_loop()))
        except RuntimeError:  # no event loop runs here
            pass
        loop.call_soon_threadsafe(self._begin, context=context)

    def _begin(self) -> None:
        if self.outcome.done():
            self._work.close()
            return
        self._task = asyncio.ensure_future(self._work)
        self._task.add_done_callback(self._deliver)

    def _deliver(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._cancelled()
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    def stop(self) -> None:
        """Cancel the work; to be called on its event loop."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._cancelled()

    def _cancelled(self) -> None:
        if not self.outcome.done():
            self.outcome.cancel()
            self.outcome.set_running_or_notify_cancel()  # without it those who wait do not hear of it


class BlockingStream(Iterator[T]):
    """Yields what an async iterator yields, each item by a blocking call. `close()` it, or leave a `with` block, to stop.

    Dropped before the end it is stopped, too, but nobody waits for that: it may happen on any thread, or while the
    program ends.
    """

    def __init__(self, source: AsyncIterable[T], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._source = source
        self._close = close
        self._stream: AsyncIterator[T] | None = None
        self._ended = False
        self._handed_over = False

    def text(self: BlockingStream[AgentEvent]) -> BlockingStream[str]:
        """Return a stream of the run's words alone, in place of its events: `AgentRun.text_stream()`.

        Raises `LOUSHO_RUN_ALREADY_ITERATED`.
        """
        words = cast("AgentRun", self._source).text_stream()
        self._handed_over = True
        return BlockingStream(words, self._close)

    def result(self: BlockingStream[AgentEvent]) -> RunResult:
        """Wait until the run has ended and return its result, or raise what it failed with."""
        run = cast("AgentRun", self._source)

        async def ended() -> RunResult:
            return await run.result

        try:
            return run_blocking(ended())
        except KeyboardInterrupt:
            self.close()
            raise

    def enqueue(self: BlockingStream[AgentEvent], input: AgentInput) -> QueuedInput:  # noqa: A002
        """Add user input to the run: `AgentRun.enqueue()`. Raises `LOUSHO_CONFIG_INVALID`."""
        return cast("AgentRun", self._source).enqueue(input)

    def steer(self: BlockingStream[AgentEvent], input: AgentInput) -> SteeredInput:  # noqa: A002
        """Redirect the run to new user input: `AgentRun.steer()`. Raises `LOUSHO_CONFIG_INVALID`."""
        return cast("AgentRun", self._source).steer(input)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if self._ended:
            raise StopIteration
        try:
            more, item = run_blocking(self._step())
        except KeyboardInterrupt:
            self.close()
            raise
        except BaseException:
            self._ended = True
            raise
        if not more:
            self._ended = True
            raise StopIteration
        return cast("T", item)

    async def _step(self) -> tuple[bool, T | None]:
        if self._stream is None:
            self._stream = aiter(self._source)
        try:
            return True, await anext(self._stream)
        except StopAsyncIteration:
            return False, None

    def close(self) -> None:
        """Stop reading and wait until what was read from has ended."""
        if not self._ended:
            self._ended = True
            run_blocking(self._close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._ended or self._handed_over or _current is None or _current.pid != os.getpid():
            return
        work = self._close()
        try:
            asyncio.run_coroutine_threadsafe(work, _current.loop)
        except RuntimeError:  # the loop is closed
            work.close()


def iterate_blocking(
    open_stream: Callable[[], AsyncIterable[T]], close: Callable[[], Coroutine[Any, Any, None]]
) -> BlockingStream[T]:
    """Return a blocking iterator over what `open_stream()` returns, which is called at once, on the background loop.

    Closing it early runs `close()` there, and so does Ctrl-C. Raises what `open_stream()` raises.
    """
    opened: list[AsyncIterable[T]] = []

    async def begin() -> None:
        opened.append(open_stream())

    try:
        run_blocking(begin())
    except KeyboardInterrupt:
        if opened:
            run_blocking(close())
        raise
    return BlockingStream(opened[0], close)
