"""The cooperative way to stop a run: a signal that is handed down and looked at.

An aborted run returns `finish_reason == 'aborted'` and keeps its partial work. Cancelling the asyncio task that
awaits a run is the other way; it is handled where the run is driven, not here. Source: agents page.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable

Listener = Callable[["CancelSignal"], None]


class AbortError(Exception):
    """The reason of a signal that was aborted without one, or with a text."""

    name = "AbortError"


class AbortTimeout(AbortError):
    """The reason of a signal made with `CancelSignal.timeout(ms)`."""

    name = "TimeoutError"


class CancelSignal:
    """A flag that is set once, with a reason, and tells its listeners. Safe to abort from any thread.

    Listeners run in the thread that aborts; code that lives on an event loop must hop to it by itself
    (`wait()` does).
    """

    __slots__ = ("__weakref__", "_detachers", "_listeners", "_lock", "_reason", "_timed")

    def __init__(self) -> None:
        self._reason: BaseException | None = None
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._timed = False
        self._detachers: list[Callable[[], None]] = []

    @property
    def aborted(self) -> bool:
        """Whether `abort()` was called or the timeout passed."""
        return self._reason is not None

    @property
    def reason(self) -> BaseException | None:
        """The exception that says why, or `None` while not aborted."""
        return self._reason

    def abort(self, reason: object = None) -> None:
        """Abort with `reason`: an exception is kept, a text becomes an `AbortError`. A second call does nothing."""
        error = reason if isinstance(reason, BaseException) else AbortError(str(reason or "The run was aborted."))
        with self._lock:
            if self._reason is not None:
                return
            self._reason = error
            listeners, self._listeners = self._listeners, []
        if self._timed:
            _AWAITED.discard(self)
        for listener in listeners:
            try:
                listener(self)
            except Exception:
                logging.getLogger("lousho.core").warning("A listener of a CancelSignal raised.", exc_info=True)

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(signal)` once when aborted (at once if it already is); returns a function that removes it."""
        with self._lock:
            if self._reason is None:
                self._listeners.append(listener)
                if self._timed:
                    _AWAITED.add(self)
                return lambda: self._remove(listener)
        listener(self)
        return lambda: None

    def _remove(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if self._timed and not self._listeners:
                _AWAITED.discard(self)

    def throw_if_aborted(self) -> None:
        """Raise the reason if aborted."""
        if self._reason is not None:
            raise self._reason

    async def wait(self) -> BaseException:
        """Return the reason once aborted. Unbounded: race it against the work it may stop."""
        import asyncio

        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def wake(_: CancelSignal) -> None:
            loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

        remove = self.add_listener(wake)
        try:
            await done
        finally:
            remove()
        assert self._reason is not None
        return self._reason

    @classmethod
    def timeout(cls, ms: float) -> CancelSignal:
        """Return a signal that aborts by itself after `ms` milliseconds with the name `TimeoutError`.

        Raises `LOUSHO_CONFIG_INVALID` when `ms` is no number.
        """
        if not isinstance(ms, (int, float)) or ms != ms:  # pyright: ignore[reportUnnecessaryIsInstance]
            from lousho.core.errors import ConfigurationError

            raise ConfigurationError(f"CancelSignal.timeout() takes milliseconds; got {ms!r}.", field="ms")
        signal = cls()
        signal._timed = True
        _clock().add(signal, ms)
        return signal

    @classmethod
    def any(cls, *signals: CancelSignal | None) -> CancelSignal:
        """Return a signal that aborts with the reason of the first of `signals` to abort."""
        merged = cls()

        def relay(source: CancelSignal) -> None:
            merged.abort(source.reason)

        merged._detachers.extend(signal.add_listener(relay) for signal in signals if signal is not None)
        return merged

    def detach(self) -> None:
        """Stop following the signals this one was made from, so that long-lived ones do not collect listeners."""
        detachers, self._detachers = self._detachers, []
        for detach in detachers:
            detach()


_AWAITED: set[CancelSignal] = set()
"""Signals with a timeout that somebody listens to; one that nobody holds or hears may go before its time."""


class _Clock:
    """One daemon thread for all timeouts, so that a run with a timeout costs no thread of its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._due: list[tuple[float, int, float, weakref.ref[CancelSignal]]] = []
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        threading.Thread(target=self._run, name="lousho-clock", daemon=True).start()

    def add(self, signal: CancelSignal, ms: float) -> None:
        """Abort `signal` in `ms` milliseconds, if it still exists."""
        entry = (time.monotonic() + ms / 1000, next(self._numbers), ms, weakref.ref(signal))
        with self._changed:
            heapq.heappush(self._due, entry)
            if self._due[0] is entry:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            self._fire()

    def _fire(self) -> None:
        """Wait for the next timeout and abort its signal."""
        with self._changed:
            wait = min(self._due[0][0] - time.monotonic(), threading.TIMEOUT_MAX) if self._due else None
            if wait is None or wait > 0:
                self._changed.wait(wait)
                return
            ms, held = heapq.heappop(self._due)[2:]
        signal = held()
        if signal is not None:
            signal.abort(AbortTimeout(f"The operation was aborted after {ms:g} ms."))


_shared: _Clock | None = None
_starting = threading.Lock()


def _clock() -> _Clock:
    global _shared
    with _starting:
        if _shared is None or _shared.pid != os.getpid():
            _shared = _Clock()
        return _shared
