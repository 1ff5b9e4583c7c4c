"""Ending the program from outside, for code of an agent that blocks the event loop or refuses to be cancelled.

Nothing inside the event loop can stop such code, and a command that a script waits for must not hang on it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from lousho_cli.errors import FAILED, INTERRUPTED

WRITE_SECONDS = 2.0
"""How long the last words may take to be written."""


@contextmanager
def breaking_off(last_words: Callable[[], int]) -> Generator[Callable[[float], None]]:
    """Give a function that says in how many seconds the program ends, whatever blocks it, unless this is left before.

    `last_words()` then writes what there is to say and returns the exit code.
    """
    timers: list[threading.Timer] = []

    def break_off() -> None:
        codes: list[int] = []
        # A thread of its own: the output may be what is stuck, and then nothing more can be said.
        writing = threading.Thread(target=lambda: codes.append(last_words()), daemon=True)
        writing.start()
        writing.join(WRITE_SECONDS)
        os._exit(codes[0] if codes else FAILED)

    def break_off_in(seconds: float) -> None:
        timer = threading.Timer(seconds, break_off)
        timer.daemon = True
        timer.start()
        timers.append(timer)

    try:
        yield break_off_in
    finally:
        for timer in timers:
            timer.cancel()


@contextmanager
def leaving_on_ctrl_c() -> Generator[Callable[[], None]]:
    """Give a function that makes the next Ctrl-C end the program on the spot, for when the run itself is over.

    Closing the event loop would take it for one more wish to cancel something. Undone when this is left.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: None
        return

    def leave(number: int, frame: FrameType | None) -> None:
        os._exit(INTERRUPTED)

    def leave_on_ctrl_c() -> None:
        signal.signal(signal.SIGINT, leave)

    try:
        yield leave_on_ctrl_c
    finally:
        signal.signal(signal.SIGINT, before)
