"""A command at a real terminal: a pseudo-terminal, and what a person would see on its screen."""

from __future__ import annotations

import os
import re
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pexpect
import pyte

PATIENCE = 15.0
"""Seconds to wait for something on the screen. The machine may be busy; a test that passes never waits this long."""


class PtyScreen:
    """A running command and its screen of `rows` x `columns`."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        rows: int = 40,
        columns: int = 80,
    ) -> None:
        self.raw = ""
        """Everything the command wrote, control sequences included."""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        merged = {**os.environ, **(env or {})}
        self.child = pexpect.spawn(
            command[0], list(command[1:]), cwd=str(cwd), env=merged, dimensions=(rows, columns), encoding="utf-8"
        )
        self.child.delaybeforesend = None
        self._gone = False
        self._modes = termios.tcgetattr(self.child.child_fd)

    @property
    def rows(self) -> list[str]:
        """The lines on the screen, without trailing blanks and without the empty ones below the last."""
        lines = [line.rstrip() for line in self._screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.rows)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 0."""
        return self._screen.cursor.y, self._screen.cursor.x

    def send(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def signal(self, number: int) -> None:
        """Send a signal to the command."""
        assert self.child.pid is not None
        os.kill(self.child.pid, number)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def wait_for(self, what: str | Callable[[], bool], *, patience: float = PATIENCE) -> float:
        """Wait until the screen shows the pattern `what` (or `what()` is true); return the seconds it took."""
        started = time.monotonic()
        while not self._met(what):
            left = patience - (time.monotonic() - started)
            if left <= 0 or not self._read(min(left, 0.2)):
                if self._met(what):
                    break
                raise AssertionError(f"{what!r} did not appear. The screen:\n{self.text}")
        return time.monotonic() - started

    def wait_for_prompt(self, *, patience: float = PATIENCE) -> float:
        """Wait until an empty prompt is the last line; return the seconds it took."""
        return self.wait_for(
            lambda: bool(self.rows) and self.rows[-1] in ("> your message, or /help", ">"), patience=patience
        )

    def wait_for_quiet(self) -> None:
        """Read until nothing has arrived for a moment."""
        size = -1
        while size != len(self.raw):
            size = len(self.raw)
            if not self._read(0.1):
                return

    def wait_for_exit(self) -> int:
        """Read what is left and return the exit code; a death by signal is minus its number."""
        started = time.monotonic()
        while self._read(0.2):
            assert time.monotonic() - started < PATIENCE, f"the command does not end. The screen:\n{self.text}"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0)

    def hang_up(self) -> int:
        """Close the terminal under the command; return its exit code, or minus the signal it died of."""
        pid = self.child.pid
        assert pid is not None
        spare = os.open(os.devnull, os.O_RDWR)
        os.dup2(spare, self.child.child_fd)
        os.close(spare)
        self._gone = True
        started = time.monotonic()
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() - started < PATIENCE, "the command does not end"
            os.sched_yield()

    def modes_restored(self) -> bool:
        """Whether the terminal echoes and buffers lines as it did at the start."""
        return termios.tcgetattr(self.child.child_fd)[:4] == self._modes[:4]

    def close(self) -> None:
        """End the command."""
        if self._gone:
            os.close(self.child.child_fd)
        else:
            self.child.close(force=True)

    def _met(self, what: str | Callable[[], bool]) -> bool:
        return what() if callable(what) else re.search(what, self.text, re.MULTILINE) is not None

    def _read(self, timeout: float) -> bool:
        """Show what arrives within `timeout` seconds; False once the command has closed the terminal."""
        try:
            data = self.child.read_nonblocking(65_536, timeout)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True


def lousho(*args: str) -> list[str]:
    """The command line of a verb."""
    return [sys.executable, "-m", "lousho_cli", *args]
