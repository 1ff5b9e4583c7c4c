"""Reading an answer's body within its limit: decompressed step by step, so that a small bomb stays small.

Both what comes over the network and what it unpacks to count against the limit. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

MAX_CODINGS: Final = 2
"""Compressions on top of each other that are undone; nobody needs more."""
ACCEPT_ENCODING: Final = "gzip, deflate"
PIECE: Final = 16 * 1024
"""Bytes that go into a decompression, and come out of it, at a time."""
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
        self.size = 0
        """Bytes that came out so far."""
        self._coding = coding
        self._members = 0
        self._machine: _Decompress | None = None
        self._over = False

    @property
    def complete(self) -> bool:
        """Whether what went in so far ended where a compressed body may end."""
        return self._machine is None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` unpacks to, a little at a time. A piece may be empty: it stands for work, not for bytes.

        Raises `BadEncoding`.
        """
        for begin in range(0, len(data), PIECE):  # what follows a member is copied: it must not be much
            part = data[begin : begin + PIECE]
            while (machine := self._machine_for(part)) is not None:
                try:
                    out = machine.decompress(part, PIECE)
                except zlib.error:
                    raise BadEncoding(self._coding) from None
                self.size += len(out)
                yield out
                if machine.eof:
                    part, self._machine = machine.unused_data, None  # another member may follow
                    continue
                part = machine.unconsumed_tail
                if not part and len(out) < PIECE:
                    break

    def _machine_for(self, data: bytes) -> _Decompress | None:
        """Return what unpacks `data`; nothing does when there is none, or when it only follows a body that is over."""
        if self._machine is not None or self._over or not data:
            return self._machine
        if self._members and (self._coding == "deflate" or not data.startswith(b"\x1f")):
            self._over = True
            return None
        if self._coding == "gzip":
            self._machine = zlib.decompressobj(_GZIP)
        else:
            # Servers mean either zlib's format or the bare one; the first byte tells them apart.
            bare = (data[0] & 0x0F) != 8
            self._machine = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
        self._members += 1
        return self._machine


def decoders_of(encoding: str) -> list[_Inflate] | None:
    """Return what undoes a `Content-Encoding`, in the order to apply; `None` for one that is not known here."""
    names = [name.strip().lower().removeprefix("x-") for name in encoding.split(",")]
    codings = [name for name in names if name not in ("", "identity")]
    if len(codings) > MAX_CODINGS or not set(codings) <= {"gzip", "deflate"}:
        return None
    return [_Inflate(coding) for coding in reversed(codings)]


async def read_body(chunk: Callable[[], Awaitable[bytes]], decoders: list[_Inflate], limit: int) -> Body:
    """Return at most `limit` bytes of a body, whose next bytes `chunk` gives. Raises `BadEncoding`.

    A compressed body that ends too early is one that was cut.
    """
    body = bytearray()
    received = pieces = 0
    while data := await chunk():
        received += len(data)
        for piece in _unpacked(data, decoders):
            body += piece
            pieces += 1
            if pieces % GIVE_WAY == 0:
                await asyncio.sleep(0)  # neither the event loop nor the request's own deadline may have to wait
            if max(received, len(body), *(decoder.size for decoder in decoders)) > limit:
                return Body(bytes(body[:limit]), truncated=True)
        if received > limit:  # of something that follows the body
            return Body(bytes(body), truncated=True)
    return Body(bytes(body), truncated=not all(decoder.complete for decoder in decoders))


def _unpacked(data: bytes, decoders: Sequence[_Inflate]) -> Iterator[bytes]:
    if not decoders:
        yield data
        return
    for piece in decoders[0].pieces(data):
        if piece:
            yield from _unpacked(piece, decoders[1:])
        else:
            yield piece
