"""Keeping one HTTP client for each event loop, and closing it for good: when its loop ends, or its provider is gone.

Both may happen in the same moment, and neither may leave a socket open. Source: providers page ("Request timeout").
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

_CLOSING: set[asyncio.Task[None]] = set()


class KeptClient:
    """The client of one event loop, and the generator that closes it when the loop shuts down."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        clients: dict[asyncio.AbstractEventLoop, KeptClient],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.client = client
        self.keeper = self._close_with_the_loop()
        self._clients = clients
        self._loop = loop
        self._closing: asyncio.Task[None] | None = None

    def close(self) -> asyncio.Task[None]:
        """Start to close the client, once, and return the task that does it. Belongs in the client's loop."""
        if self._closing is None:
            if self._clients.get(self._loop) is self:
                del self._clients[self._loop]
            self._closing = _Unstoppable(self.client.aclose(), loop=self._loop)
            _CLOSING.add(self._closing)
            self._closing.add_done_callback(self._closed)
        return self._closing

    def _closed(self, closing: asyncio.Task[None]) -> None:
        _CLOSING.discard(closing)
        # Ended here, where it takes no wait, and not by the garbage collector at a bad moment. A loop that shuts down may
        # be at it already: then it waits for this very task.
        with suppress(StopIteration, RuntimeError):
            self.keeper.aclose().send(None)

    async def _close_with_the_loop(self) -> AsyncGenerator[None, None]:
        """Close the client when this generator is closed, which an event loop does with all of them before it ends.

        It is the only hook a loop offers: without it every `asyncio.run()` would leave open sockets behind.
        """
        try:
            yield
        finally:
            closing = self.close()
            if not closing.done():
                await asyncio.wait([closing])


class _Unstoppable(asyncio.Task[None]):
    """A short task that is not cancelled: a loop that ends cancels all tasks, and waits for them.

    A client closes its connections one after the other, so that stopping it half-way would leave the others open.
    """

    def cancel(self, msg: Any | None = None) -> bool:
        return False


def close_all(clients: dict[asyncio.AbstractEventLoop, KeptClient]) -> None:
    """Close the clients of a provider that is gone, each in its own loop. May run in any thread."""
    for loop, kept in list(clients.items()):
        if not loop.is_closed():
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(kept.close)
