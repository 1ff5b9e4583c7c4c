"""The cooperative way to stop a run: a signal that is handed down and looked at.

An aborted run returns `finish_reason == 'aborted'` and keeps its partial work. Cancelling the asyncio task that
awaits a run is the other way; it is handled where the run is driven, not here. Source: runs page.
"""

from __future__ import annotations

import threading
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

    __slots__ = ("_detachers", "_listeners", "_lock", "_reason", "_timer")

    def __init__(self) -> None:
        self._reason: BaseException | None = None
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
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
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        for listener in listeners:
            listener(self)

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(signal)` once when aborted (at once if it already is); returns a function that removes it."""
        with self._lock:
            if self._reason is None:
                self._listeners.append(listener)
                return lambda: self._remove(listener)
        listener(self)
        return lambda: None

    def _remove(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

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
        """Return a signal that aborts by itself after `ms` milliseconds with the name `TimeoutError`."""
        signal = cls()
        timer = threading.Timer(
            ms / 1000, lambda: signal.abort(AbortTimeout(f"The operation was aborted after {ms:g} ms."))
        )
        timer.daemon = True
        signal._timer = timer
        timer.start()
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
