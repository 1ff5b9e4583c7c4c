"""A socket that closes at once: whoever opened it can drop it in a `finally`, without a wait that could be cancelled.

asyncio's own streams, and the pools built on them, close by awaiting. A task that is cancelled while it waits there leaves
its connection behind, and a server can arrange for that. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import ssl

MAX_UNREAD: Final = 64 * 1024
"""Bytes that may wait to be read before the other side is no longer listened to."""


class Wire(asyncio.Protocol):
    """One connection, read and written by one task at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self._blocked = False
        self._waiting: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, address: str, port: int, tls: ssl.SSLContext | None = None, name: str = "") -> Wire:
        """Connect to an address; with `tls` the certificate is verified against `name`. Raises `OSError`."""
        wire = cls()
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: wire, address, port, ssl=tls, server_hostname=name if tls is not None else None
            )
        except BaseException:
            wire.abort()
            raise
        return wire

    @property
    def quiet(self) -> bool:
        """Whether the connection is open, all is sent, and nothing came over it that was not read."""
        return not self._ended and not self._received and not self._blocked

    async def read(self) -> bytes:
        """Return what has come, some bytes at least; none at the end. Raises `OSError`."""
        while not self._received and not self._ended:
            await self._wait()
        if self._received:
            data = bytes(self._received)
            self._received.clear()
            if self._transport is not None:
                self._transport.resume_reading()
            return data
        if self._error is not None:
            raise self._error
        return b""

    async def write(self, data: bytes) -> None:
        """Send `data`, or as much as the other side takes before it says something.

        That a connection is lost shows when it is read: the answer may have come before.
        """
        if self._transport is None or self._ended:
            return
        self._transport.write(data)
        while self._blocked and not self._ended and not self._received:
            await self._wait()

    def abort(self) -> None:
        """Close the connection now, whatever was not sent yet."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= MAX_UNREAD and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._blocked = False
        self._wake()

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        self._wake()

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
