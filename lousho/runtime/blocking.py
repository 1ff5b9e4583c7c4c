"""The blocking face: coroutines run on one background event loop, so it works in a script, a thread, a notebook.

Inside a running event loop a blocking call blocks that loop, but does not deadlock: the work is on another one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


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
        self.loop.run_forever()


_current: _LoopThread | None = None
_lock = threading.Lock()


def _loop_thread() -> _LoopThread:
    global _current
    with _lock:
        if _current is None or _current.pid != os.getpid():
            _current = _LoopThread()
        return _current


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end and return what it returns; Ctrl-C cancels it and waits for its clean-up."""
    host = _loop_thread()
    if threading.current_thread() is host.thread:
        work.close()
        from lousho.core.errors import SDKError

        raise SDKError(
            "A blocking call was made from inside a run that was itself started by a blocking call; "
            "use the async method there.",
            code="LOUSHO_CONFIG_INVALID",
        )
    future = asyncio.run_coroutine_threadsafe(work, host.loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise


def iterate_blocking(
    open_stream: Callable[[], AsyncIterable[T]], close: Callable[[], Coroutine[Any, Any, None]]
) -> Iterator[T]:
    """Yield what an async iterator yields. Closing the generator early runs `close()` on the loop."""

    async def start() -> AsyncIterator[T]:
        return aiter(open_stream())

    async def step(stream: AsyncIterator[T]) -> tuple[bool, T | None]:
        try:
            return True, await anext(stream)
        except StopAsyncIteration:
            return False, None

    stream = run_blocking(start())
    ended = False
    try:
        while True:
            more, item = run_blocking(step(stream))
            if not more:
                ended = True
                return
            yield item  # pyright: ignore[reportReturnType]
    finally:
        if not ended:
            run_blocking(close())
