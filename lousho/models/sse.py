"""Reading server-sent events from bytes that arrive in any pieces.

A stream may be cut anywhere, in the middle of a character or between `\\r` and `\\n`; lines end in `\\n`, `\\r\\n` or `\\r`;
comments and unknown fields are skipped. Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""The longest event that is taken; a longer one raises `EventTooLarge`."""

_BOM = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """One event is longer than `MAX_EVENT_BYTES`. Plain: the adapter that reads the stream turns it into a coded error."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: its `event:` name, empty when it has none, and its `data:` lines joined by newlines."""

    event: str
    data: str


class EventDecoder:
    """Turns chunks of bytes into events; keeps what is unfinished for the next chunk."""

    __slots__ = ("_data", "_data_size", "_event", "_first", "_limit", "_line", "_skip_newline")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._line = bytearray()
        self._data: list[str] = []
        self._data_size = 0
        self._event = ""
        self._first = True
        self._skip_newline = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes. Raises `EventTooLarge`."""
        if self._skip_newline and chunk:
            # The last chunk ended in `\r`, which ended its line; a `\n` right after it belongs to it.
            self._skip_newline = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        events: list[ServerSentEvent] = []
        for piece in chunk.splitlines(keepends=True):
            if piece[-1:] not in (b"\n", b"\r"):
                self._line += piece
                self._check(len(self._line))
                continue
            self._line += piece.rstrip(b"\r\n")
            self._check(len(self._line))
            self._end_of_line(events)
        self._skip_newline = chunk[-1:] == b"\r"
        return events

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream completes.

        The format drops an event without its blank line; servers forget that line after their last event, and an event
        that was cut off does not survive being read as JSON, so it is given out.
        """
        events: list[ServerSentEvent] = []
        if self._line:
            self._end_of_line(events)
        self._dispatch(events)
        return events

    def _end_of_line(self, events: list[ServerSentEvent]) -> None:
        raw = bytes(self._line)
        self._line.clear()
        if self._first:
            self._first = False
            raw = raw.removeprefix(_BOM)
        if not raw:
            self._dispatch(events)
            return
        name, _, value = raw.partition(b":")
        if name == b"data":
            self._data_size += len(value)
            self._check(self._data_size)
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif name == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            events.append(ServerSentEvent(self._event, "\n".join(self._data)))
            self._data = []
            self._data_size = 0
        self._event = ""

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLarge(f"an event is longer than {self._limit:,} bytes")
