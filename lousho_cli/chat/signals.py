"""Ctrl-C and the signals that end a program, delivered to the event loop instead of into the middle of a statement."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

UNANSWERED_PRESSES = 3
"""This many Ctrl-C that the loop did not get round to: code of the user blocks it, so the program is broken off."""

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

    def on_end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(terminate, 128 + number)

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
