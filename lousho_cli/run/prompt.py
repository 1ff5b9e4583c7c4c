"""Where the prompt of `lousho run` comes from: the command line, stdin, or both.

Stdin is read only where that is what a person means: for want of an argument, for the argument `-`, or to add to the
argument what a pipe or a file holds. Programs often start others with a stdin that is open and never says anything, so
beside an argument a silent stdin is waited for only so long, unless a program of the same command line is to fill it;
after that the argument is the prompt. Bytes are read in
a daemon thread, straight from the descriptor, which can hold up neither Ctrl-C nor the exit.
"""

from __future__ import annotations

import codecs
import os
import queue
import threading
import time
from typing import Final, TextIO

from lousho_cli.console import Console, is_terminal
from lousho_cli.errors import UsageError
from lousho_cli.run.feeder import fed_by_a_neighbour

STDIN: Final = "-"
"""The prompt that stands for stdin."""

NOTHING_ON_STDIN: Final = "the prompt is empty: stdin held no text"

MOST_BYTES = 10_000_000
"""Bytes that stdin may have; more is refused, not cut."""

QUIET_SECONDS = 2.0
"""After this much silence stderr says what is waited for."""

PATIENCE_SECONDS = 5.0
"""How long a stdin that has sent nothing yet is waited for beside an argument."""

_CHUNK = 65_536
_TICK = 0.5


def find_prompt(argument: str | None, console: Console) -> str:
    """Return the prompt: the argument, the text of stdin, or the argument, an empty line and the text of stdin.

    Raises `UsageError` when it is empty and when stdin has more than 10 MB.
    """
    if argument in (None, STDIN):
        text = _read_text(console, hurry=False)
        if not text.strip():
            raise UsageError(NOTHING_ON_STDIN)
        return text
    if is_terminal(console.stdin):
        return argument
    text = _read_text(console, hurry=True)
    return f"{argument}\n\n{text}" if text.strip() else argument


def has_ended(console: Console) -> bool:
    """Whether stdin ends without a byte, as far as it can be known at once. What it holds instead is lost."""
    descriptor = _descriptor_of(console.stdin)
    if descriptor is None:
        return True
    if is_terminal(console.stdin):
        return False
    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(descriptor, chunks), name="lousho-stdin", daemon=True).start()
    try:
        return not chunks.get(timeout=_TICK)
    except queue.Empty:
        return False


def _read_text(console: Console, *, hurry: bool) -> str:
    """Return what stdin holds, without the line breaks at its end."""
    stdin = console.stdin
    descriptor = _descriptor_of(stdin)
    if descriptor is None:
        return ""
    if is_terminal(stdin):
        keys = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
        console.tell(f"reading from stdin; {keys} on an empty line ends it", "dim")
    data = _read_bytes(descriptor, console, hurry=hurry, announced=is_terminal(stdin))
    name = codecs.lookup(stdin.encoding or "utf-8").name
    codec = "utf-8-sig" if name == "utf-8" else name  # some programs begin with a byte order mark
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        text = data.decode(codec, "replace")
        console.tell(f"note: stdin is not {name} text; what could not be read is replaced", "dim")
    return text.replace("\r\n", "\n").rstrip("\n")


def _read_bytes(descriptor: int, console: Console, *, hurry: bool, announced: bool) -> bytes:
    """Return everything up to the end of stdin; with `hurry`, nothing when it stays silent for too long."""
    chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(descriptor, chunks), name="lousho-stdin", daemon=True).start()
    found = bytearray()
    heard = time.monotonic()
    while True:
        try:
            chunk = chunks.get(timeout=_TICK)  # in small steps: Windows delivers Ctrl-C only between them
        except queue.Empty:
            silence = time.monotonic() - heard
            if silence >= QUIET_SECONDS and not announced:
                announced = True
                hurry = hurry and not found and not fed_by_a_neighbour(descriptor)
                console.tell(_announcement(hurry=hurry), "dim")
            if hurry and not found and silence >= PATIENCE_SECONDS:
                console.tell(f"note: stdin was silent for {PATIENCE_SECONDS:g} seconds and is left out", "dim")
                return b""
            continue
        if not chunk:
            return bytes(found)
        heard = time.monotonic()
        found += chunk
        if len(found) > MOST_BYTES:
            raise UsageError(
                f"stdin has more than the {MOST_BYTES // 1_000_000} MB that a prompt may have, so nothing was sent."
                " Name a large file in the prompt and let a tool read it"
            )


def _announcement(*, hurry: bool) -> str:
    if not hurry:
        return "reading from stdin"
    return f"reading from stdin, at most {PATIENCE_SECONDS:g} seconds if it stays silent; < {os.devnull} skips it"


def _pump(descriptor: int, chunks: queue.SimpleQueue[bytes]) -> None:
    """Hand over what the descriptor has, in pieces, and an empty one at its end."""
    taken = 0
    while taken <= MOST_BYTES:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError:  # it was closed, or cannot be read: the input has ended
            chunk = b""
        chunks.put(chunk)
        taken += len(chunk)
        if not chunk:
            return


def _descriptor_of(stdin: TextIO | None) -> int | None:
    """Return the descriptor to read from; None where there is no stdin, or one that is not a file of the system."""
    try:
        return None if stdin is None else stdin.fileno()
    except (OSError, ValueError):
        return None
