"""Waiting for work that an abort may cut short: the loser is cancelled and left, never waited for.

A provider or tool that ignores its cancellation goes on in the background; whatever it returns is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

from lousho.core.cancel import CancelSignal

T = TypeVar("T")
Outcome = Literal["done", "aborted", "overdue"]

_abandoned: set[asyncio.Future[Any]] = set()


class Aborted(Exception):
    """The run's signal fired while it waited. Internal: the loop turns it into a result."""

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__(str(reason))
        self.reason = reason


async def unless_aborted(work: Coroutine[Any, Any, T], signal: CancelSignal) -> T:
    """Return the result of `work`, or raise `Aborted` as soon as `signal` fires.

    When the waiting task itself is cancelled, the work is cancelled with it.
    """
    if signal.aborted:
        work.close()
        raise Aborted(signal.reason)
    task = asyncio.ensure_future(work)
    if await wait_for(task, signal) == "done":
        return task.result()
    raise Aborted(signal.reason)


async def wait_for(task: asyncio.Future[Any], signal: CancelSignal, timeout_ms: float | None = None) -> Outcome:
    """Wait until `task` ends, `signal` fires or `timeout_ms` passes; the task is abandoned in the last two cases."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome) -> None:
        if not waiter.done():
            waiter.set_result(outcome)

    def when_done(_: object) -> None:
        settle("done")

    task.add_done_callback(when_done)

    def when_aborted(_: object) -> None:
        loop.call_soon_threadsafe(settle, "aborted")

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
    return outcome


def abandon(task: asyncio.Future[Any]) -> None:
    """Cancel `task` and forget it; its outcome is read so that nothing is reported as never retrieved."""
    if task.done():
        _read(task)
        return
    _abandoned.add(task)
    task.add_done_callback(_forget)
    task.cancel()


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    _read(task)


def _read(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
