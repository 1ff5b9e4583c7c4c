"""Ctrl-C and the signals that end a program, delivered to the event loop instead of into the middle of a statement."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lousho_cli.errors import Terminated

UNANSWERED_PRESSES = 3
"""This many Ctrl-C that the loop did not get round to: code of the user blocks it, so the program is broken off."""

UNANSWERED_SECONDS = 5.0
"""How long a SIGTERM waits for a loop that is blocked; then, or at the second one, the program is broken off."""

_ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")


@contextmanager
def signals_to(interrupt: Callable[[], None], terminate: Callable[[int], None]) -> Generator[None]:
    """While open, Ctrl-C calls `interrupt()` and SIGTERM, SIGHUP and SIGQUIT call `terminate(128 + number)`.

    Must be opened inside a running event loop. Outside the main thread nothing is caught.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    unanswered = 0
    patience: threading.Timer | None = None
    broken_off = False

    def delivered() -> None:
        nonlocal unanswered
        unanswered = 0
        interrupt()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal unanswered
        unanswered += 1
        if unanswered >= UNANSWERED_PRESSES:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(delivered)

    def ending(number: int) -> None:
        nonlocal patience
        if patience is not None:
            patience.cancel()
            patience = None
        terminate(128 + number)

    def on_end(number: int, frame: FrameType | None) -> None:
        nonlocal patience, broken_off
        if broken_off:  # what cleans up now must not be interrupted as well
            return
        if patience is not None:
            broken_off = True
            raise Terminated(128 + number)
        patience = threading.Timer(UNANSWERED_SECONDS, _send_again, (number,))
        patience.daemon = True
        patience.start()
        loop.call_soon_threadsafe(ending, number)

    before: dict[int, Any] = {signal.SIGINT: signal.signal(signal.SIGINT, on_interrupt)}
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, on_end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if patience is not None:
            patience.cancel()


def _send_again(number: int) -> None:
    """Send a signal to the main thread, so that it also wakes from a call that blocks it."""
    if sys.platform == "win32":
        signal.raise_signal(number)
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, number)
