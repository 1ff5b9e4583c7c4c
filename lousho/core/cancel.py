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

    __slots__ = ("__weakref__", "_awaited", "_detachers", "_listeners", "_lock", "_prune_at", "_reason")

    def __init__(self) -> None:
        self._reason: BaseException | None = None
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._awaited = False
        """Whether it is only held weakly by what aborts it, so that its listeners have to keep it alive."""
        self._prune_at = _FIRST_PRUNING
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
        if self._awaited:
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
                if len(self._listeners) >= self._prune_at:
                    self._prune()
                self._listeners.append(listener)
                if self._awaited and not isinstance(listener, _Relay):  # the signal behind a relay holds this one
                    _AWAITED.add(self)
                return lambda: self._remove(listener)
        listener(self)
        return lambda: None

    def _remove(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
            if self._awaited and all(isinstance(one, _Relay) for one in self._listeners):
                _AWAITED.discard(self)

    def _prune(self) -> None:
        """Forget the signals made of this one that are gone, whenever twice as many listeners have come together."""
        self._listeners = [one for one in self._listeners if not (isinstance(one, _Relay) and one.gone)]
        self._prune_at = max(_FIRST_PRUNING, 2 * len(self._listeners))

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
        signal._awaited = True
        _clock().add(signal, ms)
        return signal

    @classmethod
    def any(cls, *signals: CancelSignal | None) -> CancelSignal:
        """Return a signal that aborts with the reason of the first of `signals` to abort."""
        merged = cls()
        merged._awaited = True
        relay = _Relay(merged)
        merged._detachers.extend(signal.add_listener(relay) for signal in signals if signal is not None)
        return merged

    def detach(self) -> None:
        """Stop following the signals this one was made from, so that long-lived ones do not collect listeners."""
        detachers, self._detachers = self._detachers, []
        for detach in detachers:
            detach()


_FIRST_PRUNING = 64
"""How many listeners a signal may have before it looks for those that nobody needs any more."""


class _Relay:
    """Hands an abort on to a signal that was made of others, without keeping that signal alive."""

    __slots__ = ("_target",)

    def __init__(self, target: CancelSignal) -> None:
        self._target = weakref.ref(target)

    @property
    def gone(self) -> bool:
        """Whether nobody has the other signal any more."""
        return self._target() is None

    def __call__(self, source: CancelSignal) -> None:
        target = self._target()
        if target is not None:
            target.abort(source.reason)


_AWAITED: set[CancelSignal] = set()
"""Signals with a timeout, or made of others, that somebody listens to; one that nobody holds or hears may go."""


class _Clock:
    """One daemon thread for all timeouts, so that a run with a timeout costs no thread of its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._due: list[tuple[float, int, float, weakref.ref[CancelSignal]]] = []
        self._changed = threading.Condition()
        self._prune_at = _FIRST_PRUNING
        self._numbers = itertools.count()
        threading.Thread(target=self._run, name="lousho-clock", daemon=True).start()

    def add(self, signal: CancelSignal, ms: float) -> None:
        """Abort `signal` in `ms` milliseconds, if it still exists."""
        entry = (time.monotonic() + ms / 1000, next(self._numbers), ms, weakref.ref(signal))
        with self._changed:
            if len(self._due) >= self._prune_at:
                self._due = [one for one in self._due if one[3]() is not None]
                heapq.heapify(self._due)
                self._prune_at = max(_FIRST_PRUNING, 2 * len(self._due))
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


def _renew_after_fork() -> None:
    """Forget the lock and the clock of the parent process, whose thread is not there any more."""
    global _shared, _starting
    _shared, _starting = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


def _clock() -> _Clock:
    global _shared
    with _starting:
        if _shared is None or _shared.pid != os.getpid():
            _shared = _Clock()
        return _shared
