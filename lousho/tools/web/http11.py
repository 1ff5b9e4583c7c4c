"""HTTP/1.1 over one connection, and the answer to whether it may serve another request.

A connection whose server said more than the answer is not used again: what is left over would be read as the answer to
the next request. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import h11

if TYPE_CHECKING:
    from lousho.tools.web.sockets import Wire

MAX_HEAD_BYTES: Final = 100 * 1024
"""The longest head of an answer, chunk size line or trailer, in bytes."""
MAX_INTERIM: Final = 100
"""Answers like "100 Continue" before the one that counts."""

Origin = tuple[str, str, int]


class Connection:
    """A connection to one origin; one request at a time."""

    def __init__(self, wire: Wire, origin: Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self._wire = wire
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def ask(self, request: h11.Request, body: bytes | None) -> h11.Response:
        """Send a request and return the head of its answer. Raises `h11.ProtocolError` and `OSError`."""
        events: list[h11.Event] = [request, *([h11.Data(body)] if body else ()), h11.EndOfMessage()]
        await self._wire.write(b"".join(self._http.send(event) or b"" for event in events))
        for _ in range(MAX_INTERIM + 1):
            if isinstance(event := await self._event(), h11.Response):
                return event
        raise h11.RemoteProtocolError("too many interim answers")

    async def chunk(self) -> bytes:
        """Return the next bytes of the answer's body, none at its end. Raises `h11.ProtocolError` and `OSError`."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    @property
    def usable(self) -> bool:
        """Whether an idle connection can take a request."""
        return self._wire.quiet

    def rest(self) -> bool:
        """Get ready for the next request; `False` when there cannot be one."""
        http = self._http
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        if http.trailing_data[0] or not self._wire.quiet:
            return False
        http.start_next_cycle()
        return True

    def abort(self) -> None:
        """Hang up."""
        self._wire.abort()

    async def _event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            data = await self._wire.read()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise h11.RemoteProtocolError("the server disconnected without an answer")
            self._http.receive_data(data)
