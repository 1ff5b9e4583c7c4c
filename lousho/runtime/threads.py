"""Where sync tools run: daemon threads of our own.

A slow tool blocks neither the event loop nor asyncio's small default pool, and one that never returns cannot keep
the process from ending. A thread cannot be stopped, so a call that was given up goes on in its own; another thread
takes its place, until there are so many of them that further calls can only fail.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal, TypeVar

from lousho.core.errors import ToolExecutionError

T = TypeVar("T")
MOST_THREADS = 64
MOST_LEFT_BEHIND = 192
"""Threads whose call was given up and that are replaced; those beyond are among the 64."""
LONG_WAIT_SECONDS = 5.0
"""How long a call waits for a thread before that is worth a warning."""
_REPLACE_SECONDS = 0.05
"""How long after a call was given up its thread is replaced: of calls that are given up together, none may begin."""

_log = logging.getLogger("lousho.runtime")


class ThreadCall(asyncio.Future[T]):
    """A call in a tool thread, or on its way to one. One that is given up before it began never begins."""

    place: Literal["waiting", "working", "ended"] = "waiting"
    left_behind = False
    """Whether it was given up while a thread worked on it."""
    pool: _Pool

    def cancel(self, msg: Any = None) -> bool:
        """Give the call up."""
        given_up = super().cancel(msg)
        if given_up:
            self.pool.leave(self)
        return given_up


class _Job:
    """A call and what it calls."""

    __slots__ = ("_work", "call")

    def __init__(self, call: ThreadCall[Any], work: Callable[[], Any]) -> None:
        self.call = call
        self._work = work

    def run(self) -> None:
        result, failure = None, None
        try:
            result = self._work()
        except StopIteration as error:  # a future refuses to carry it
            failure = RuntimeError(f"The tool raised StopIteration: {error}")
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises belongs to its caller
            failure = error
        self.tell(result, failure)

    def tell(self, result: object, failure: BaseException | None) -> None:
        """Hand over how the call ended, from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.call.get_loop().call_soon_threadsafe(_deliver, self.call, result, failure)


def _deliver(call: ThreadCall[Any], result: object, failure: BaseException | None) -> None:
    if call.done():
        return
    if failure is None:
        call.set_result(result)
    else:
        call.set_exception(failure)


class _Pool:
    """Starts a thread while all others are busy, up to a limit; further jobs wait for a free one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._left = 0
        """Threads whose call was given up and goes on."""
        self._blocked = 0
        """Threads whose job waits for an agent in a blocking call: what they wait for may need a thread of its own."""
        self._warned = False

    @property
    def _limit(self) -> int:
        return MOST_THREADS + self._blocked + min(self._left, MOST_LEFT_BEHIND)

    def submit(self, job: _Job) -> bool:
        """Hand a job to the threads; return whether it has one now. Raises `LOUSHO_TOOL_EXECUTION_FAILED`."""
        with self._lock:
            ready = self._idle > self._jobs.qsize() or (self._threads < self._limit and self._grow())
            if not ready and self._stuck:
                raise self._no_thread()
            self._jobs.put(job)
        return ready

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

    def leave(self, call: ThreadCall[Any]) -> None:
        """Take note that a call was given up."""
        with self._lock:
            if call.place != "working":
                return
            call.left_behind = True
            self._left += 1
            if self._jobs.empty():  # whatever is submitted next starts a thread
                return
        with suppress(RuntimeError):  # the loop is closed
            call.get_loop().call_later(_REPLACE_SECONDS, self._replace)

    def _replace(self) -> None:
        """Start a thread for a job that waits, in place of one that was left behind, or refuse all if none can come."""
        refused: list[_Job] = []
        with self._lock:
            if self._idle < self._jobs.qsize() and self._threads < self._limit:
                self._grow()
            error = self._no_thread()
            while self._stuck and not self._jobs.empty():
                refused.append(self._jobs.get_nowait())
        for job in refused:
            job.tell(None, error)

    @property
    def _stuck(self) -> bool:
        """Whether every thread was left behind."""
        return 0 < self._threads <= self._left

    def _no_thread(self) -> ToolExecutionError:
        return ToolExecutionError(
            f"The call did not begin: all {self._threads} threads for plain functions are taken by earlier calls that "
            "were given up and never ended.",
            help_line=False,
        )

    def warn(self, call: ThreadCall[Any]) -> None:
        """Say, once in a process, that calls wait long for a thread."""
        if call.place == "waiting" and not self._warned:
            self._warned = True
            _log.warning(
                "A tool call has waited %g s for a thread, because all %d are busy. Give plain functions that may take "
                "long a timeout_ms, or make them async.",
                LONG_WAIT_SECONDS,
                self._threads,
            )

    def _grow(self) -> bool:
        """Start one more thread. A machine that has none to give is fine while there is any at all."""
        thread = threading.Thread(target=self._work, name="lousho-tool", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if self._threads == 0:
                raise
            return False
        self._threads += 1
        return True

    def _work(self) -> None:
        _here.pool = self
        while self._stay():
            job = self._jobs.get()
            if self._begin(job.call):
                job.run()
                self._end(job.call)
            del job  # with the arguments and the result of its call, which an idle thread must not keep

    def _stay(self) -> bool:
        """Whether a thread may take the next job. There is one more for each that is blocked or left behind."""
        with self._lock:
            if self._threads > self._limit:
                self._threads -= 1
                return False
            self._idle += 1
            return True

    def _begin(self, call: ThreadCall[Any]) -> bool:
        with self._lock:
            self._idle -= 1
            if not call.done():
                call.place = "working"
            return call.place == "working"

    def _end(self, call: ThreadCall[Any]) -> None:
        with self._lock:
            call.place = "ended"
            if call.left_behind:
                self._left -= 1


_pool: _Pool | None = None
_here = threading.local()


def in_a_blocking_call() -> AbstractContextManager[None]:
    """Return a context in which a tool thread counts as waiting, so that the tools it waits for find a thread."""
    pool: _Pool | None = getattr(_here, "pool", None)
    return nullcontext() if pool is None else pool.blocked()


def in_thread(function: Callable[..., T], *args: Any) -> ThreadCall[T]:
    """Run `function(*args)` in a tool thread with the caller's context variables; 64 at a time, the rest wait.

    Threads that wait for another agent in a blocking call are not counted, nor are up to 192 whose call was given up.
    Raises `LOUSHO_TOOL_EXECUTION_FAILED` when every thread there may be is taken by a call that was given up.
    """
    global _pool
    if _pool is None or _pool.pid != os.getpid():
        _pool = _Pool()
    pool = _pool
    loop = asyncio.get_running_loop()
    call: ThreadCall[T] = ThreadCall(loop=loop)
    call.pool = pool
    if not pool.submit(_Job(call, partial(contextvars.copy_context().run, function, *args))):
        timer = loop.call_later(LONG_WAIT_SECONDS, pool.warn, call)
        call.add_done_callback(lambda _: timer.cancel())
    return call
