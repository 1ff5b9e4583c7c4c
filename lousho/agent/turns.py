"""One turn at a time in a session, in the order they were asked for, whichever event loop asks."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from types import TracebackType


class TurnLock:
    """A first-come lock that tasks of several event loops can share (the blocking calls have a loop of their own)."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @property
    def held(self) -> bool:
        """Whether a turn is running."""
        return self._held

    async def __aenter__(self) -> None:
        with self._guard:
            if not self._held:
                self._held = True
                return
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._waiters.append((loop, future))
        try:
            await future
        except asyncio.CancelledError:
            with self._guard:
                handed_over = future.done() and not future.cancelled()
                if not handed_over:
                    self._waiters = deque(waiter for waiter in self._waiters if waiter[1] is not future)
            if handed_over:
                self._release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        with self._guard:
            while self._waiters:
                loop, future = self._waiters.popleft()
                if loop.is_closed():
                    continue
                loop.call_soon_threadsafe(self._hand_over, future)
                return
            self._held = False

    def _hand_over(self, future: asyncio.Future[None]) -> None:
        if future.done():  # the waiter was cancelled meanwhile: the lock is ours to pass on
            self._release()
        else:
            future.set_result(None)
