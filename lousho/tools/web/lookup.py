"""Looking names up without letting a slow name server hold up anything else.

The operating system's lookup blocks and cannot be stopped. In asyncio's own threads, which are few, a handful of names
whose servers never answer would keep every other user of them waiting, and the process from ending.
Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

MAX_LOOKUPS: Final = 64
"""Lookups at one time; further ones wait for their turn, each within the time of its request."""


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the operating system knows for a name. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def deliver(found: list[str], error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        if answer.cancelled():
            return
        found: list[str] = []
        failed: Exception | None = None
        try:
            found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the one who waits
            failed = error
        try:
            loop.call_soon_threadsafe(deliver, found, failed)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    _threads().submit(look_up)
    return await answer


class _Threads:
    """Daemon threads, each for as long as there is something to do."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0
        self._lock = threading.Lock()

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(job)
            if self._running >= MAX_LOOKUPS:
                return
            self._running += 1
        try:
            threading.Thread(target=self._work, name="lousho-lookup", daemon=True).start()
        except RuntimeError:  # the machine has no thread to give; those that are there go on
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    self._waiting.remove(job)
                    raise

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                job = self._waiting.popleft()
            job()


_shared: _Threads | None = None


def _threads() -> _Threads:
    global _shared
    if _shared is None or _shared.pid != os.getpid():  # threads do not survive a fork
        _shared = _Threads()
    return _shared
