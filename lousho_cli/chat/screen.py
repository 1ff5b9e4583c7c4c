"""The only place where the chat writes: two streams, one for the agent's words and one for the talk about them.

On a terminal both are the screen. When the output goes to a pipe or a file, it carries the agent's words alone, without
colours, and the talk goes to stderr. Nothing that was written is ever repainted: the scrollback is the transcript. What
a model or a tool says cannot steer the terminal, and a character that the stream's encoding lacks is degraded.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from lousho.core.console_text import safe_text
from lousho_cli.chat.pieces import Pieces
from lousho_cli.console import Style, colours_wanted, columns_of, folded

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
FALLBACK_WIDTH = 80


class Screen:
    """Writes to `output` (the agent's words, what a command was asked for) and `talk` (everything else).

    Without `talk`, both are `output`. Safe to use from several threads, because tools print from theirs.
    """

    def __init__(self, output: TextIO, talk: TextIO | None = None) -> None:
        self.output = output
        self.talk = output if talk is None else talk
        self.divert: Callable[[str], bool] | None = None
        """Takes what the agent's code prints while an editor owns the screen; False when it does not want it."""
        self._colours = colours_wanted(self.talk)
        self._words = Pieces()
        self._thoughts = Pieces()
        self._unfinished: list[TextIO] = []
        self._speaker: str | None = None
        self.lock = threading.RLock()
        """Held while anything is written; whoever keeps text back for the screen takes it too."""
        self.before_print: Callable[[], None] | None = None
        """Called, with the lock held, before the agent's code prints: what led to it goes first."""

    @property
    def width(self) -> int:
        """The columns of the terminal now, or 80."""
        try:
            return max(os.get_terminal_size(self.talk.fileno()).columns, 10)
        except (OSError, ValueError):  # no terminal
            return FALLBACK_WIDTH

    def words(self, piece: str) -> None:
        """Write a piece of the agent's text as it arrives."""
        with self.lock:
            self._speak("words")
            self._put(self.output, self._words.push(piece))

    def thought(self, piece: str) -> None:
        """Write a piece of the model's reasoning, dim."""
        with self.lock:
            self._speak("thoughts")
            self._put(self.talk, self._thoughts.push(piece), "dim")

    def line(self, text: str = "", *styles: Style) -> None:
        """Write one or more whole lines of talk."""
        with self.lock:
            self.fresh_line()
            self._put(self.talk, f"{text}\n", *styles)

    def sentences(self, text: str, *styles: Style) -> None:
        """Write lines of talk of our own, on a terminal with line breaks between words only."""
        self.line(folded(text, columns_of(self.talk)), *styles)

    def data(self, text: str) -> None:
        """Write whole lines that a command was asked for, such as the transcript."""
        with self.lock:
            self.fresh_line()
            self._put(self.output, text if text.endswith("\n") else f"{text}\n")

    def question(self, text: str) -> None:
        """Write a question and leave the cursor behind it."""
        with self.lock:
            self.fresh_line()
            self._put(self.talk, text)

    def answered(self, text: str) -> None:
        """Write the answer behind its question, where no terminal echoed it."""
        with self.lock:
            self._put(self.talk, f"{text}\n")

    def typed(self) -> None:
        """Take note that a person ended the line with Enter, which the terminal showed by itself."""
        with self.lock:
            if self.talk in self._unfinished:
                self._unfinished.remove(self.talk)

    def printed(self, text: str) -> None:
        """Write what the agent's own code printed: it is talk, so that it never mixes with the agent's words."""
        with self.lock:
            if self.divert is not None and self.divert(text):
                return
            if self.before_print is not None:
                self.before_print()
            self._speak("tool")
            self._put(self.talk, text, raw=True)

    def write_raw(self, lines: str) -> None:
        """Write whole lines of the agent's code as they are, where an editor made room for them."""
        with self.lock:
            self._put(self.talk, lines, raw=True)

    def fresh_line(self) -> None:
        """Make the next character start a line, on both streams."""
        with self.lock:
            self._flush_pieces()
            self._speaker = None
            for stream in list(self._unfinished):
                self._put(stream, "\n")

    @contextmanager
    def catching_prints(self) -> Generator[None]:
        """While open, what code prints to stdout or stderr goes through this object."""
        before = sys.stdout, sys.stderr
        ours = tuple(ToolPrints(self, stream) for stream in before)
        sys.stdout, sys.stderr = ours
        try:
            yield
        finally:
            if (sys.stdout, sys.stderr) == ours:
                sys.stdout, sys.stderr = before

    def _flush_pieces(self) -> None:
        self._put(self.talk, self._thoughts.rest(), "dim")
        self._put(self.output, self._words.rest())

    def _speak(self, speaker: str) -> None:
        """Words, thoughts and prints each start on a line of their own."""
        if self._speaker not in (None, speaker):
            self.fresh_line()
        self._speaker = speaker

    def _put(self, stream: TextIO, text: str, *styles: Style, raw: bool = False) -> None:
        if not text:
            return
        encoding = getattr(stream, "encoding", None) or "utf-8"
        shown = text.encode(encoding, "replace").decode(encoding) if raw else safe_text(text, encoding)
        if shown.endswith("\n"):
            if stream in self._unfinished:
                self._unfinished.remove(stream)
        elif shown and stream not in self._unfinished:
            self._unfinished.append(stream)
        if stream is self.output:
            stream.write(self._painted(shown, styles) if stream is self.talk else shown)
            stream.flush()
            return
        with suppress(OSError, ValueError):  # nobody reads the talk: the agent's words are still wanted
            stream.write(self._painted(shown, styles))
            stream.flush()

    def _painted(self, text: str, styles: tuple[Style, ...]) -> str:
        """Colour each line by itself, so that a line cut out of the scrollback is complete."""
        if not styles or not self._colours:
            return text
        start = f"\x1b[{';'.join(_CODES[style] for style in styles)}m"
        return "\n".join(f"{start}{line}\x1b[0m" if line else "" for line in text.split("\n"))


class ToolPrints(io.TextIOBase):
    """Stands in for a standard stream while the chat runs; asked about the terminal, it answers for the real one."""

    def __init__(self, screen: Screen, real: TextIO | None) -> None:
        super().__init__()
        self._screen = screen
        self._real = screen.talk if real is None else real

    def write(self, text: str) -> int:
        self._screen.printed(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._screen.talk.isatty()

    def fileno(self) -> int:
        return self._real.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._real.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._real.errors

    @property
    def buffer(self) -> Any:
        """The bytes behind the real stream, for code that writes them itself."""
        return self._real.buffer
