"""Waiting for work that an abort may cut short: the loser is cancelled and left, never waited for.

A provider or tool that ignores its cancellation goes on in the background; whatever it returns is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Literal, NamedTuple, TypeVar, cast

from lousho.core.cancel import CancelSignal

T = TypeVar("T")
Outcome = Literal["done", "aborted", "overdue"]

GIVE_WAY = 256
"""Items of a foreign iterator that are taken in a row before the event loop gets its turn."""

_abandoned: set[asyncio.Future[Any]] = set()


class Aborted(Exception):
    """The run's signal fired while it waited. Internal: the loop turns it into a result."""

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__()
        self.reason = reason


class SelfCancelled(Exception):
    """Work ended as cancelled though nobody here cancelled it: its own code did, or something it waited for.

    It is a failure of that work and must not pass for a cancellation of the run.
    """

    name = "CancelledError"

    def __init__(self) -> None:
        super().__init__("Its own code cancelled it, not the run.")


class _Exit(Exception):
    """Carries a `SystemExit` out of a task of its own, where asyncio would end the whole event loop with it."""

    def __init__(self, error: SystemExit) -> None:
        super().__init__()
        self.error = error


class _Contained(Coroutine[Any, Any, T]):
    """A coroutine whose `SystemExit` stays inside. Not an `async def`: one that never starts would leave `work` open."""

    __slots__ = ("__name__", "_work", "when_ended")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.when_ended: Callable[[], None] | None = None
        """Called in the very step in which the work ends: a done callback would run one turn of the loop later."""
        self.__name__ = getattr(work, "__qualname__", type(work).__name__)

    def send(self, value: Any, /) -> Any:
        try:
            return self._work.send(value)
        except SystemExit as error:
            self._end()
            raise _Exit(error) from error
        except BaseException:
            self._end()
            raise

    def throw(self, *error: Any) -> Any:
        try:
            return self._work.throw(*error)
        except SystemExit as exit_:
            self._end()
            raise _Exit(exit_) from exit_
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self.when_ended is not None:
            self.when_ended()

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()


async def unless_aborted(work: Coroutine[Any, Any, T], signal: CancelSignal) -> T:
    """Return the result of `work`, or raise `Aborted` as soon as `signal` fires.

    When the waiting task itself is cancelled, the work is cancelled with it. Raises `SelfCancelled` when the work was
    cancelled by itself.
    """
    if signal.aborted:
        work.close()
        raise Aborted(signal.reason)
    task = start(work)
    if await wait_for(task, signal) == "done":
        return outcome_of(task)
    raise Aborted(signal.reason)


def start(work: Awaitable[T]) -> asyncio.Future[T]:
    """Start `work` in a task of its own, for `wait_for()` and `outcome_of()`."""
    contained = _Contained(cast("Coroutine[Any, Any, T]", work)) if isinstance(work, Coroutine) else work
    return asyncio.ensure_future(contained)


def outcome_of(task: asyncio.Future[T]) -> T:
    """Return or raise what a finished task ended with. Raises `SelfCancelled` where it ended as cancelled."""
    try:
        return task.result()
    except asyncio.CancelledError:
        raise SelfCancelled from None
    except _Exit as carried:
        raise carried.error from None


class Saved(NamedTuple):
    """How a piece of work that must not be cut off ended."""

    error: BaseException | None
    cancelled: asyncio.CancelledError | None
    """The cancellation of the waiting task that came meanwhile, for the caller to raise when it is done."""


async def uninterrupted(work: Coroutine[Any, Any, object]) -> Saved:
    """Run `work` to its end even when the waiting task is cancelled meanwhile."""
    task = start(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    try:
        outcome_of(task)
    except BaseException as error:  # noqa: BLE001 - handed to the caller, who has the cancellation to raise as well
        return Saved(error, cancelled)
    return Saved(None, cancelled)


async def wait_for(task: asyncio.Future[Any], signal: CancelSignal, timeout_ms: float | None = None) -> Outcome:
    """Wait until `task` ends, `signal` fires or `timeout_ms` passes; the task is abandoned in the last two cases."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome) -> None:
        if not waiter.done():
            waiter.set_result(outcome)

    def when_done(_: object = None) -> None:
        settle("done")

    body = task.get_coro() if isinstance(task, asyncio.Task) else None
    if isinstance(body, _Contained) and not task.done():
        body.when_ended = when_done
    else:
        task.add_done_callback(when_done)

    def when_aborted(_: object) -> None:
        try:
            loop.call_soon_threadsafe(settle, "aborted")
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    remove = signal.add_listener(when_aborted)
    timer = None if timeout_ms is None else loop.call_later(timeout_ms / 1000, settle, "overdue")
    try:
        outcome = await waiter
    except asyncio.CancelledError:
        abandon(task)
        raise
    finally:
        remove()
        if timer is not None:
            timer.cancel()
    if outcome != "done" and task.done() and not task.cancelled():
        return "done"  # it landed in the same tick: its result is kept
    if outcome != "done":
        task.remove_done_callback(when_done)
        abandon(task)
    elif not task.done():
        await asyncio.wait([task])  # its last step has run; only the task itself has not noted it yet
    return outcome


def abandon(task: asyncio.Future[Any]) -> None:
    """Cancel `task` and forget it; its outcome is read so that nothing is reported as never retrieved."""
    task.cancel()
    if task.done():
        _read(task)
        return
    _abandoned.add(task)
    task.add_done_callback(_forget)


async def abandoned_ended(seconds: float) -> None:
    """Wait until the work that was abandoned on this event loop has ended, at most `seconds` seconds."""
    loop = asyncio.get_running_loop()
    here = [task for task in _abandoned if task.get_loop() is loop]
    if here:
        await asyncio.wait(here, timeout=seconds)


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    _read(task)


def _read(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
