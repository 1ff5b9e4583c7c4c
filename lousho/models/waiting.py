"""Waiting with a bound: every wait for a vendor ends by itself, or when the run is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lousho.core.cancel import CancelSignal

T = TypeVar("T")


async def bounded(
    work: Awaitable[T],
    *,
    signal: CancelSignal | None = None,
    timeout_ms: float | None = None,
    timed_out: Callable[[], Exception],
) -> T:
    """Await `work` for at most `timeout_ms` milliseconds (`None`: for ever), or until `signal` is aborted.

    Raises `timed_out()` when the time is over and the signal's reason when it was aborted; `work` is cancelled then.
    """
    if signal is not None and signal.reason is not None:
        if asyncio.iscoroutine(work):
            work.close()
        raise signal.reason
    loop = asyncio.get_running_loop()
    remove: Callable[[], None] | None = None
    limit = asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000)
    try:
        async with limit:
            if signal is not None:
                # The listener may run in any thread, and after this block is left.
                def stop(_: CancelSignal) -> None:
                    try:
                        loop.call_soon_threadsafe(end_now)
                    except RuntimeError:  # the loop is closed: nothing waits any more
                        return

                def end_now() -> None:
                    if not done:
                        limit.reschedule(loop.time())

                done = False
                remove = signal.add_listener(stop)
                try:
                    return await work
                finally:
                    done = True
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        if signal is not None and signal.reason is not None:
            raise signal.reason from None
        raise timed_out() from None
    finally:
        if remove is not None:
            remove()


async def pause(ms: float, signal: CancelSignal | None = None) -> None:
    """Sleep for `ms` milliseconds of the event loop's time; raises the signal's reason when aborted before."""
    if signal is None:
        await asyncio.sleep(ms / 1000)
        return
    await bounded(asyncio.sleep(ms / 1000), signal=signal, timed_out=AssertionError)
