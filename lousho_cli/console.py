"""The one object that owns the terminal: what goes where, in which colours, and whether anybody can be asked.

Results go to stdout, everything said about them to stderr. Colours appear on a terminal only, `NO_COLOR` and
`TERM=dumb` switch them off and `FORCE_COLOR` on; nothing is told by colour alone. A character that the stream cannot
encode is degraded, never an exception. No rich here: a short message must not cost its import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal, NamedTuple, TextIO

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]

_CODES: Mapping[Style, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


LONGEST_NUMBER = 9
_STDIN, _STDOUT, _STDERR = 0, 1, 2


def colours_wanted(stream: TextIO | None, env: Mapping[str, str] | None = None) -> bool:
    """Return whether text written to `stream` may carry colour codes."""
    env = os.environ if env is None else env
    if env.get("NO_COLOR"):
        return False
    forced = env.get("FORCE_COLOR")
    if forced:
        return forced.lower() not in ("0", "false")
    return env.get("TERM") != "dumb" and is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person is at the other end of `stream`."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # a closed stream
        return False


def whole_number(text: str) -> int | None:
    """Return the number that was typed, None when it is none; Python refuses thousands of digits with an exception."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else None


def columns_of(stream: TextIO | None) -> int | None:
    """Return how many columns the terminal behind `stream` has; None where there is none."""
    if stream is None or not is_terminal(stream):
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def folded(text: str, columns: int | None, *, used: int = 0, indent: str = "") -> str:
    """Return `text` with lines of at most `columns` characters, broken between words; without `columns` as it is.

    `used` columns of the first line are taken already; what continues a line begins with `indent`. A longer word stays
    whole.
    """
    if columns is None:
        return text
    rows: list[str] = []
    for line in text.split("\n"):
        first, *words = line.split(" ")
        row = first
        for word in words:
            if row.strip() and used + len(row) + 1 + len(word) > columns:
                rows.append(row.rstrip())
                row, used = indent + word, 0
            else:
                row += f" {word}"
        rows.append(row)
        used = 0
    return "\n".join(rows)


class Painted(NamedTuple):
    """A piece of a line in a style of ours. Plain pieces may come from anywhere: their own colour codes are taken out."""

    text: str
    styles: tuple[Style, ...]


class Console:
    """Reads and writes for a command. Streams that are missing (a closed descriptor) swallow what is written."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None, stdin: TextIO | None = None) -> None:
        self.stdout = sys.stdout if stdout is None else stdout
        self.stderr = sys.stderr if stderr is None else stderr
        self.stdin = sys.stdin if stdin is None else stdin

    @property
    def interactive(self) -> bool:
        """Whether a question can be asked: a person can read it and type the answer."""
        return is_terminal(self.stdin) and is_terminal(self.stderr)

    def out(self, *pieces: str | Painted, end: str = "\n") -> None:
        """Write a result to stdout."""
        self._write(self.stdout, (*pieces, end))

    def say(self, *pieces: str | Painted, end: str = "\n") -> None:
        """Write progress, advice or an error text to stderr, at once; where nobody reads it, it is not missed."""
        try:
            self._write(self.stderr, (*pieces, end))
            if self.stderr is not None:
                self.stderr.flush()
        except (OSError, ValueError):
            self.abandon_stderr()

    def error(self, text: str, *, fold: bool = True) -> None:
        """Write `error: <text>` to stderr; `fold=False` keeps a command line in it whole, to be copied."""
        self.say(paint("error:", "red"), f" {folded(text, columns_of(self.stderr), used=7) if fold else text}")

    def tell(self, text: str, *styles: Style) -> None:
        """Write sentences to stderr, on a terminal with line breaks between words only."""
        self.say(paint(folded(text, columns_of(self.stderr)), *styles))

    def flush(self) -> None:
        """Push out what was written; raises what the stream raises, so that a full disk is not silent."""
        if self.stdout is not None and not self.stdout.closed:  # code of the user may close it
            self.stdout.flush()

    def ask(self, question: str) -> str:
        """Return one typed line, without its newline. Raises `EOFError` when the input ends."""
        self.say(question, end="")
        line = self.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    @contextmanager
    def apart_from_prints(self) -> Generator[Console]:
        """While open, the given console alone writes to stdout; what the agent's code prints there goes to stderr.

        That holds for the descriptor itself, so also for a child process or a C extension. A terminal shows both
        anyway and stays as it is, as does a stdout that is not the process's own.
        """
        stdout = self.stdout
        if stdout is None or is_terminal(stdout) or _descriptor_of(stdout) != _STDOUT:
            yield self
            return
        stdout.flush()
        with ExitStack() as stack:
            results = os.fdopen(os.dup(_STDOUT), "w", encoding=stdout.encoding, errors=stdout.errors)
            stack.callback(_to_the_end, results)
            stack.callback(os.dup2, results.fileno(), _STDOUT)
            stack.callback(_to_the_end, stdout, close=False)
            os.dup2(_STDERR, _STDOUT)
            yield Console(results, self.stderr, self.stdin)
            results.flush()

    def abandon_stdout(self) -> None:
        """Point stdout at nothing, so that the interpreter's last flush does not complain about a reader who left."""
        _to_nothing(sys.stdout)

    def abandon_stderr(self) -> None:
        """The same for stderr: what its buffer still holds would fail once more and replace the exit code."""
        if self.stderr is sys.stderr:
            _to_nothing(self.stderr)

    def _write(self, stream: TextIO | None, pieces: Iterable[str | Painted]) -> None:
        if stream is None:
            return
        from lousho.core.console_text import safe_text

        encoding = getattr(stream, "encoding", None) or "utf-8"
        coloured = colours_wanted(stream)
        for piece in pieces:
            if isinstance(piece, str):
                stream.write(safe_text(piece, encoding))
                continue
            text = safe_text(piece.text, encoding)
            codes = ";".join(_CODES[style] for style in piece.styles)
            stream.write(f"\x1b[{codes}m{text}\x1b[0m" if coloured and codes else text)


def fill_closed_descriptors() -> None:
    """Open the null device for each of stdin, stdout and stderr that is closed.

    Else the next file or socket would get its number, and what a tool's child process prints would land there.
    """
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number, so this one
            os.set_inheritable(opened, True)


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # not a file of the system
        return None


def _to_the_end(stream: TextIO, *, close: bool = True) -> None:
    """Write out what is held back, without a complaint: whoever cared has flushed before."""
    with suppress(OSError, ValueError):
        stream.flush()
    with suppress(OSError, ValueError):
        if close:
            stream.close()


def _to_nothing(stream: TextIO | None) -> None:
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        if stream is not None:
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    except (OSError, ValueError, AttributeError):
        return


def paint(text: str, *styles: Style) -> Painted:
    """Return `text` as a piece of a line that has these styles where the stream takes colours."""
    return Painted(text, styles)
