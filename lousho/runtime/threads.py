"""Where sync tools run: daemon threads of our own.

A slow tool blocks neither the event loop nor asyncio's small default pool, and one that never returns cannot keep
the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
MOST_THREADS = 64
_Job = Callable[[], None]


class _Pool:
    """Starts a thread while all others are busy, up to a limit; further jobs wait for a free one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._blocked = 0
        """Threads whose job waits for an agent in a blocking call: what they wait for may need a thread of its own."""

    def submit(self, job: _Job) -> None:
        with self._lock:
            if self._idle <= self._jobs.qsize() and self._threads < MOST_THREADS + self._blocked:
                self._grow()
            self._jobs.put(job)

    @contextmanager
    def blocked(self) -> Generator[None]:
        """Let another thread work while this one waits in a blocking call."""
        with self._lock:
            self._blocked += 1
            if self._idle < self._jobs.qsize():
                self._grow()
        try:
            yield
        finally:
            with self._lock:
                self._blocked -= 1

    def _grow(self) -> None:
        """Start one more thread. A machine that has none to give is fine while there is any at all."""
        thread = threading.Thread(target=self._work, name="lousho-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if self._threads == 0:
                raise
            return
        self._threads += 1

    def _work(self) -> None:
        _here.pool = self
        while True:
            with self._lock:
                if self._threads > MOST_THREADS + self._blocked:  # there is one for each that was blocked: enough
                    self._threads -= 1
                    return
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            job()
            del job  # with the arguments and the result of its call, which an idle thread must not keep


_pool: _Pool | None = None
_here = threading.local()


def in_a_blocking_call() -> AbstractContextManager[None]:
    """Return a context in which a tool thread counts as waiting, so that the tools it waits for find a thread."""
    pool: _Pool | None = getattr(_here, "pool", None)
    return nullcontext() if pool is None else pool.blocked()


def in_thread(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    """Run `function(*args)` in a tool thread with the caller's context variables; 64 at a time, the rest wait.

    Threads that wait for another agent in a blocking call are not counted.

    A call whose future was cancelled while it waited for a thread never starts.
    """
    global _pool
    if _pool is None or _pool.pid != os.getpid():
        _pool = _Pool()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # pyright: ignore[reportArgumentType]
        else:
            future.set_exception(error)

    def job() -> None:
        if future.cancelled():
            return
        result, failure = None, None
        try:
            result = context.run(function, *args)
        except StopIteration as error:  # a future refuses to carry it
            failure = RuntimeError(f"The tool raised StopIteration: {error}")
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises belongs to its caller
            failure = error
        try:
            loop.call_soon_threadsafe(deliver, result, failure)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    _pool.submit(job)
    return future
