"""Numbers, stamps and delivers the events of one stream. The only way anything leaves a run."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from lousho.core.events import AgentEvent

EventListener = Callable[[AgentEvent], object]
_log = logging.getLogger("lousho.runtime")


class Emitter:
    """One stream's emitter: `seq` counts from 0 without gaps, listeners are called in the order they were given.

    A listener that raises never fails the run: the first time is logged as a warning. The stream's own buffer is a
    listener too; `backlog` says how many events it still holds.
    """

    __slots__ = ("_listeners", "_seq", "_warned", "backlog", "run_id")

    def __init__(
        self, run_id: str, listeners: Sequence[EventListener] = (), backlog: Callable[[], int] | None = None
    ) -> None:
        self.run_id = run_id
        self.backlog = backlog
        self._listeners = tuple(listeners)
        self._seq = 0
        self._warned = False

    @property
    def listening(self) -> bool:
        """Whether anybody hears the events."""
        return bool(self._listeners)

    def emit(self, event: AgentEvent) -> None:
        """Stamp `event` and hand it to every listener."""
        if not self._listeners:
            return
        event.run_id = self.run_id
        event.seq = self._seq
        event.timestamp = _stamp()
        self._seq += 1
        for listener in self._listeners:
            try:
                answer = listener(event)
            except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a listener is the application's code
                self._warn("An event listener raised; the run goes on.", raised=True)
            else:
                if answer is not None:
                    self._not_awaited(answer)

    def stamped(self, event: AgentEvent) -> AgentEvent:
        """Return `event`, which is not of the stream, with the run and the time where nobody set them yet."""
        event.run_id = self.run_id
        event.timestamp = event.timestamp or _stamp()
        return event

    def tell(self, listener: Callable[..., object], *args: Any) -> None:
        """Call another of the application's listeners; it can fail the run no more than one for events can."""
        try:
            self._not_awaited(listener(*args))
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a listener is the application's code
            self._warn("A listener raised; the run goes on.", raised=True)

    def close(self) -> None:
        """End the stream: what still emits, an abandoned tool for one, is not heard any more."""
        self._listeners = ()

    def _not_awaited(self, answer: object) -> None:
        if inspect.iscoroutine(answer):
            answer.close()
            self._warn("A listener is an async function, so it does nothing; make it a plain one.")

    def _warn(self, text: str, *, raised: bool = False) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(text, exc_info=raised)


_latest: tuple[int, str] = (-1, "")
"""The last millisecond that was written out: several events of a run fall into one."""


def _stamp() -> str:
    global _latest
    now = time.time_ns() // 1_000_000
    known, text = _latest
    if now != known:
        second, rest = divmod(now, 1000)
        text = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(second))}.{rest:03d}Z"
        _latest = (now, text)
    return text


def timestamp_now(plus_seconds: float = 0.0) -> str:
    """Return the time in `plus_seconds` from now as events write it, e.g. `2026-10-01T09:30:00.000Z`."""
    now = time.time() + plus_seconds
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03d}Z"
