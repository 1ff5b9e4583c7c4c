"""Where lines come from: the contract, lines from a script, and lines from a pipe or a bare terminal.

A pipe is read on demand and only where the chat is defined to read. The reading happens in a daemon thread, straight
from the descriptor: an input that stays open and sends nothing can then neither block the loop nor hold up the exit.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, TextIO, runtime_checkable

from lousho.core.errors import ValidationError
from lousho_cli.chat.screen import Screen

LONGEST_MESSAGE = 1_000_000
"""Characters of one message; a longer one is refused, not cut."""

QUIET_SECONDS = 2.0
_CHUNK = 65_536


class EndOfInput(Exception):
    """There are no more lines."""


class Interrupted(Exception):
    """Ctrl-C was pressed while a line was read; `draft` is what had been typed by then."""

    def __init__(self, draft: str = "") -> None:
        super().__init__()
        self.draft = draft


@runtime_checkable
class Lines(Protocol):
    """Somebody, or something, that types."""

    @property
    def interactive(self) -> bool:
        """Whether a person sits there, who sees a prompt and can press keys."""
        ...

    @property
    def echoes(self) -> bool:
        """Whether what is typed shows on the screen by itself."""
        ...

    async def message(self) -> str:
        """Return the next message. Raises `EndOfInput` or `Interrupted`."""
        ...

    async def answer(self, question: str) -> str:
        """Put `question`, its last line, and return what is typed after it appeared. Raises like `message`."""
        ...

    def interrupt(self) -> bool:
        """Make a pending read raise `Interrupted`; False when nothing is being read."""
        ...

    def unsend(self) -> None:
        """Turn what was typed ahead into a draft: it is offered for editing, not sent."""
        ...


class ScriptedLines:
    """Lines from an iterable: each one is a message, or the answer to the question that is open."""

    interactive = False
    echoes = False

    def __init__(self, source: Iterable[str] | AsyncIterable[str], screen: Screen) -> None:
        self._screen = screen
        self._sync: Iterator[str] | None = None
        self._async: AsyncIterator[str] | None = None
        if isinstance(source, AsyncIterable):
            self._async = aiter(source)
        else:
            self._sync = iter(source)

    async def message(self) -> str:
        """Return the next line."""
        try:
            line = await anext(self._async) if self._async is not None else next(self._sync or iter(()))
        except (StopIteration, StopAsyncIteration):
            raise EndOfInput from None
        return checked(line.removesuffix("\n").removesuffix("\r"))

    async def answer(self, question: str) -> str:
        """Write the question, return the next line."""
        self._screen.question(question)
        return await self.message()

    def interrupt(self) -> bool:
        """A script cannot be interrupted."""
        return False

    def unsend(self) -> None:
        """A script is what it is."""


class PipedLines:
    """Lines from a pipe, a file, or a terminal that only a plain prompt suits (`TERM=dumb`)."""

    def __init__(self, stdin: TextIO | None, screen: Screen, *, interactive: bool = False) -> None:
        self.interactive = interactive
        self.echoes = interactive
        self._screen = screen
        self._descriptor = None if stdin is None else stdin.fileno()
        encoding = (stdin.encoding if stdin is not None else None) or "utf-8"
        name = codecs.lookup(encoding).name
        self._decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)(errors="replace")
        self._text = ""
        self._ended = stdin is None
        self._announced = interactive
        self._chunk: asyncio.Future[bytes] | None = None
        self._interrupted: asyncio.Future[None] | None = None

    async def message(self) -> str:
        """Return the next line; a person sees a prompt first."""
        if self.interactive:
            self._screen.question("> ")
        return await self._line()

    async def answer(self, question: str) -> str:
        """Write the question, return the next line; at a terminal, the next one typed after the question."""
        before = self._typed_before() if self.interactive else ""
        self._screen.question(question)
        try:
            return await self._line()
        finally:
            self._text = before + self._text

    def interrupt(self) -> bool:
        """Stop waiting for the line; what is read later belongs to the next one."""
        if self._interrupted is None or self._interrupted.done():
            return False
        self._interrupted.set_exception(Interrupted())
        return True

    def unsend(self) -> None:
        """What a pipe sent stays as it is."""

    async def _line(self) -> str:
        searched = 0
        overlong = False
        while True:
            end = self._text.find("\n", searched)
            if end >= 0 or self._ended:
                break
            searched = len(self._text)
            if searched > LONGEST_MESSAGE:  # keep reading to the end of the line, keep nothing of it
                overlong, self._text, searched = True, "", 0
            await self._read()
        if end < 0 and not self._text and not overlong:
            raise EndOfInput
        if self.echoes:
            self._screen.typed()
        end = len(self._text) if end < 0 else end
        line, self._text = self._text[:end], self._text[end + 1 :]
        return checked(line.removesuffix("\r"), overlong=overlong)

    async def _read(self) -> None:
        """Take in one more chunk, from the read that is under way if an interrupted one is."""
        assert self._descriptor is not None
        loop = asyncio.get_running_loop()
        if self._chunk is None:
            self._chunk = loop.create_future()
            threading.Thread(target=_read_chunk, args=(self._descriptor, loop, self._chunk), daemon=True).start()
        self._interrupted = loop.create_future()
        timer = None if self._announced else loop.call_later(QUIET_SECONDS, self._announce)
        try:
            await asyncio.wait([self._chunk, self._interrupted], return_when=asyncio.FIRST_COMPLETED)
            if self._interrupted.done():
                self._interrupted.result()
        finally:
            self._interrupted = None
            if timer is not None:
                timer.cancel()
        data, self._chunk = self._chunk.result(), None
        self._announced = True
        self._ended = not data
        self._text += self._decoder.decode(data, final=not data)

    def _typed_before(self) -> str:
        """Take away what was typed by now, so that it does not answer a question nobody has read."""
        if sys.platform == "win32" or self._descriptor is None:
            return ""
        import select
        import termios

        while select.select([self._descriptor], [], [], 0)[0] and (data := os.read(self._descriptor, _CHUNK)):
            self._text += self._decoder.decode(data)
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        before, self._text = self._text, ""
        return before

    def _announce(self) -> None:
        self._announced = True
        self._screen.line("reading from stdin", "dim")


def checked(line: str, *, overlong: bool = False) -> str:
    """Return `line`, or raise `LOUSHO_VALIDATION_FAILED` when it is longer than a message may be."""
    if overlong or len(line) > LONGEST_MESSAGE:
        raise ValidationError(f"The message has more than {LONGEST_MESSAGE:,} characters, so it was not sent")
    return line


def _read_chunk(descriptor: int, loop: asyncio.AbstractEventLoop, waiting: asyncio.Future[bytes]) -> None:
    data = b""
    try:
        data = os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that hung up, a descriptor that was closed: the input has ended
        pass

    def deliver() -> None:
        if not waiting.done():
            waiting.set_result(data)

    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return
