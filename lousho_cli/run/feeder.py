"""Who is at the other end of stdin: a program of the same command line, or whoever started us and says nothing.

Both look alike from here, an open pipe without a word. In `slow | lousho run x 'Summarise'` the silence will end; the
pipe that a service or an editor hands to what it starts stays silent for ever. The difference is in who holds the
writing end: a neighbour, or nobody but our own ancestors. Only Linux tells.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_INIT = 1


def fed_by_a_neighbour(descriptor: int) -> bool:
    """Return whether a child of one of our ancestors, itself none of them, can write to the pipe at `descriptor`.

    False where nothing tells: another system, something else than a pipe, a process that may not be looked at.
    """
    if sys.platform != "linux":
        return False
    family = _ancestors()
    with suppress(OSError):
        pipe = (_PROCESSES / f"self/fd/{descriptor}").readlink()
        for process in _PROCESSES.iterdir():
            number = int(process.name) if process.name.isdecimal() else 0
            neighbour = number not in (0, os.getpid(), *family) and _parent_of(number) in family
            if neighbour and _can_write(process, pipe):
                return pipe.name.startswith("pipe:")
    return False


def _ancestors() -> set[int]:
    """Return our parent, its parent and so on, without the first process, whose children come from everywhere."""
    found: set[int] = set()
    number = os.getppid()
    while number > _INIT and number not in found:
        found.add(number)
        number = _parent_of(number)
    return found


def _parent_of(number: int) -> int:
    """Return a process's parent; 0 for one that is gone."""
    try:
        text = (_PROCESSES / f"{number}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[1])  # the name in the brackets may hold anything
    except (OSError, ValueError, IndexError):
        return 0


def _can_write(process: Path, pipe: Path) -> bool:
    with suppress(OSError):  # it is gone, or belongs to somebody else
        for link in (process / "fd").iterdir():
            with suppress(OSError):  # this one was closed meanwhile
                if link.readlink() == pipe and _writable(process / "fdinfo" / link.name):
                    return True
    return False


def _writable(info: Path) -> bool:
    lines = info.read_text(encoding="utf-8").splitlines()
    flags = next((line.split()[1] for line in lines if line.startswith("flags:")), "0")
    return int(flags, 8) & (os.O_WRONLY | os.O_RDWR) != 0
