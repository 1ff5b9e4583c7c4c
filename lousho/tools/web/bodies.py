"""Reading an answer's body within its limit: decompressed step by step, so that a small bomb stays small.

Both what comes over the network and what it unpacks to count against the limit. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable
from typing import Final, NamedTuple, Protocol

MAX_CODINGS: Final = 2
"""Compressions on top of each other that are undone; nobody needs more."""
ACCEPT_ENCODING: Final = "gzip, deflate"
GIVE_WAY: Final = 256
"""Pieces of a body that are taken in a row before the event loop gets its turn."""

_GZIP: Final = 16 + zlib.MAX_WBITS


class BadEncoding(Exception):
    """A body is not compressed the way its header says. Internal; the message is the name of the compression."""


class Body(NamedTuple):
    """The bytes of an answer, at most as many as the limit."""

    data: bytes
    truncated: bool


class _Decompress(Protocol):
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class _Inflate:
    """One compression, undone piece by piece."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._members = 0
        self._machine: _Decompress | None = None

    def feed(self, data: bytes, most: int) -> bytes:
        """Return what `data` unpacks to, `most` bytes of it: as many mean that there may be more."""
        out = b""
        while data and len(out) < most:
            machine = self._machine or self._open(data)
            try:
                out += machine.decompress(data, most - len(out))
            except zlib.error:
                raise BadEncoding(self._coding) from None
            if not machine.eof:
                break
            data, self._machine = machine.unused_data, None  # another member may follow
        return out

    def _open(self, data: bytes) -> _Decompress:
        if self._members and (self._coding == "deflate" or not data.startswith(b"\x1f")):
            self._machine = _Spent()
        elif self._coding == "gzip":
            self._machine = zlib.decompressobj(_GZIP)
        else:
            # Servers mean either zlib's format or the bare one; the first byte tells them apart.
            bare = (data[0] & 0x0F) != 8
            self._machine = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
        self._members += 1
        return self._machine


class _Spent:
    """Stands where a compressed body is over: it swallows what a server appends."""

    unconsumed_tail = b""
    unused_data = b""
    eof = False

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        del data, max_length
        return b""


def decoders_of(encoding: str) -> list[_Inflate] | None:
    """Return what undoes a `Content-Encoding`, in the order to apply; `None` for one that is not known here."""
    names = [name.strip().lower().removeprefix("x-") for name in encoding.split(",")]
    codings = [name for name in names if name not in ("", "identity")]
    if len(codings) > MAX_CODINGS or not set(codings) <= {"gzip", "deflate"}:
        return None
    return [_Inflate(coding) for coding in reversed(codings)]


async def read_body(stream: AsyncIterable[bytes], decoders: list[_Inflate], limit: int) -> Body:
    """Return at most `limit` bytes of a body. Raises `BadEncoding`."""
    body = bytearray()
    received = pieces = 0
    async for chunk in stream:
        pieces += 1
        if pieces % GIVE_WAY == 0:
            await asyncio.sleep(0)  # a body in tiny pieces must not keep the event loop, or its own deadline, waiting
        received += len(chunk)
        data = chunk
        cut = False
        for decoder in decoders:
            most = limit - len(body) + 1 if decoder is decoders[-1] else limit + 1
            data = decoder.feed(data, most)
            cut = cut or len(data) >= most
        body += data
        if cut or received > limit or len(body) > limit:
            return Body(bytes(body[:limit]), truncated=True)
    return Body(bytes(body), truncated=False)
