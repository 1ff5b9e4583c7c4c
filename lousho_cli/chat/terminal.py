"""Lines from a person at a terminal: an editor with history, and a keyboard that is never lost.

Between two prompts the terminal neither echoes nor waits for Enter; keys pressed while the agent works are kept and
played into the next prompt for a message, never into a question that appeared after them. When the chat ends, in any
way, the terminal is as it was.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.shortcuts import CompleteStyle

from lousho.core.console_text import display_width, safe_text
from lousho_cli.chat.history import PrivateHistory
from lousho_cli.chat.lines import EndOfInput, Interrupted, checked
from lousho_cli.chat.screen import Screen

PROMPT = "> "
PLACEHOLDER = "your message, or /help"

_ENTER = (Keys.ControlM, Keys.ControlJ)
_ESCAPE = KeyPress(Keys.Escape, "\x1b")


class TerminalLines:
    """The keyboard of a terminal, for the time between `__enter__` and `__exit__`, inside a running event loop."""

    interactive = True
    echoes = True

    def __init__(
        self, screen: Screen, stdin: TextIO, stdout: TextIO, history: History, commands: Iterable[str] = ()
    ) -> None:
        self._screen = screen
        self._stdin = stdin
        self._input: Input = create_input(stdin)
        self._output: Output = _output(stdout)
        self._history = history
        self._completer = WordCompleter([f"/{name}" for name in commands], sentence=True)
        self._kept: list[KeyPress] = []
        self._stack = ExitStack()
        self._listening: ExitStack | None = None
        self._session: PromptSession[str] | None = None
        self._current: PromptSession[str] | None = None
        self._greeted = False
        self._late = ""
        """What was printed during a prompt and has no line end yet."""

    def __enter__(self) -> TerminalLines:
        self._stack.enter_context(quiet_terminal(self._stdin))
        self._stack.enter_context(create_app_session(input=self._input, output=self._output))
        self._session = self._editor()
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_listening()
        self._stack.close()

    async def message(self) -> str:
        """Return what is typed next. Enter sends; Alt+Enter, or a backslash before Enter, starts a new line."""
        assert self._session is not None
        self._screen.fresh_line()
        self._stop_listening()
        while self._kept and self._kept[-1].key is Keys.Escape:  # it would turn the next key into a command
            self._kept.pop()
        store_typeahead(self._input, self._kept)
        self._kept = []
        placeholder = None if self._greeted else FormattedText([("fg:ansibrightblack", PLACEHOLDER)])
        self._greeted = True
        self._session.placeholder = placeholder
        text = await self._prompt(self._session, PROMPT)
        if isinstance(self._history, PrivateHistory) and self._history.problem is not None:
            self._screen.line(f"note: {self._history.problem}", "dim")
            self._history = self._session.history = InMemoryHistory()
        return checked(text)

    async def answer(self, question: str) -> str:
        """Put a question. What was typed before it appeared is kept for the next message."""
        head, last = last_row(safe_text(question, self._screen.talk.encoding), self._screen.width)
        if head:
            self._screen.line(head)
        self._screen.fresh_line()
        self._stop_listening()
        self._keep_keys()
        return await self._prompt(
            PromptSession(
                input=self._input, output=self._output, interrupt_exception=Interrupted, eof_exception=EndOfInput
            ),
            last,
        )

    def interrupt(self) -> bool:
        """Leave the open prompt, as Ctrl-C does."""
        if self._current is None or not self._current.app.is_running:
            return False
        self._current.app.exit(exception=Interrupted())
        return True

    def unsend(self) -> None:
        """Turn each Enter that was typed ahead into a new line: somebody who stops a turn wants to look first."""
        self._keep_keys()
        while self._kept and self._kept[-1].key in _ENTER:
            self._kept.pop()
        self._kept = [
            key for pressed in self._kept for key in ((_ESCAPE, pressed) if pressed.key in _ENTER else (pressed,))
        ]

    async def _prompt(self, session: PromptSession[str], message: str) -> str:
        self._current = session
        self._late = ""
        loop = asyncio.get_running_loop()
        self._screen.divert = lambda text: self._print_above(text, session, loop)
        try:
            return await session.prompt_async(message, handle_sigint=False, set_exception_handler=False)
        except Interrupted:
            raise Interrupted(session.default_buffer.text) from None
        except EOFError:
            raise EndOfInput from None
        finally:
            self._current = None
            with self._screen.lock:
                self._screen.divert = None
                if self._late:
                    self._screen.printed(self._late)
            self._kept += get_typeahead(self._input)
            self._listen()

    def _print_above(self, text: str, session: PromptSession[str], loop: asyncio.AbstractEventLoop) -> bool:
        """Print whole lines above the open prompt; called from any thread, with the screen's lock held."""
        lines, end, self._late = (self._late + text).rpartition("\n")

        def show() -> None:
            if session.app.is_running and self._screen.divert is not None:
                run_in_terminal(lambda: self._screen.write_raw(lines + end))
            else:
                self._screen.printed(lines + end)

        if end:
            context = session.app.context
            loop.call_soon_threadsafe(show, context=None if context is None else context.copy())
        return True

    def _listen(self) -> None:
        """Collect keys while nobody prompts for them."""
        if self._listening is not None or self._input.closed:
            return
        self._listening = ExitStack()
        try:
            self._listening.enter_context(self._input.attach(self._keep_keys))
        except EOFError:
            self._listening = None
            return
        self._output.enable_bracketed_paste()  # a paste stays one message, also when it comes early
        self._output.flush()

    def _stop_listening(self) -> None:
        if self._listening is None:
            return
        self._keep_keys()
        self._kept += self._input.flush_keys()
        self._listening.close()
        self._listening = None
        self._output.disable_bracketed_paste()
        self._output.flush()

    def _keep_keys(self) -> None:
        while keys := self._input.read_keys():
            self._kept += keys

    def _editor(self) -> PromptSession[str]:
        return PromptSession(
            input=self._input,
            output=self._output,
            history=self._history,
            completer=self._completer,
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=editor_keys(),
            multiline=True,
            prompt_continuation="  ",
            enable_suspend=True,
            enable_open_in_editor=True,
            interrupt_exception=Interrupted,
            eof_exception=EndOfInput,
        )


def editor_keys() -> KeyBindings:
    """Return the keys that differ from a plain editor: what sends, and what starts a new line."""
    keys = KeyBindings()
    writing = has_focus(DEFAULT_BUFFER)

    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        document = buffer.document
        if document.is_cursor_at_the_end and document.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    keys.add("enter", filter=writing)(send)
    keys.add("escape", "enter", filter=writing)(new_line)
    keys.add("escape", "c-j", filter=writing)(new_line)
    return keys


def last_row(text: str, width: int) -> tuple[str, str]:
    """Split a question into the rows above and the last row, as a terminal of `width` columns would wrap it.

    The editor can only redraw a prompt that starts at the left edge, and must not redraw a screenful of arguments.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        row = ""
        columns = 0
        for character in line:
            wide = 1 if character.isascii() else display_width(character)
            if columns + wide > width:
                rows.append(row)
                row, columns = "", 0
            row += character
            columns += wide
        rows.append(row)
    return "\n".join(rows[:-1]), rows[-1]


@contextmanager
def quiet_terminal(stdin: TextIO) -> Generator[None]:
    """Neither echo keys nor wait for Enter, but let Ctrl-C and Ctrl-Z act; restore everything at the end."""
    if sys.platform == "win32":
        yield
        return
    import termios

    descriptor = stdin.fileno()
    try:
        before: list[Any] = termios.tcgetattr(descriptor)
    except termios.error:
        yield
        return
    # With NOFLSH, Ctrl-C does not throw away what was typed before it.
    local = before[3] & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH
    quiet = [*before[:3], local, *before[4:6], list(before[6])]
    quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0

    def apply(state: list[Any]) -> None:
        try:
            termios.tcsetattr(descriptor, termios.TCSANOW, state)
        except termios.error:  # the terminal is gone
            return

    apply(quiet)
    try:
        with after_stop(lambda: apply(quiet)):
            yield
    finally:
        apply(before)


@contextmanager
def after_stop(again: Callable[[], None]) -> Generator[None]:
    """Call `again` when the process is continued after Ctrl-Z: the shell gives the terminal back in its own state."""
    if sys.platform == "win32":
        yield
        return
    import signal

    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGCONT, again)
    except (ValueError, RuntimeError):  # not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGCONT)


def _output(stdout: TextIO) -> Output:
    output = create_output(stdout)
    if hasattr(output, "enable_cpr"):
        # Asking the terminal where its cursor is would put the reply among the keys of the person.
        output.enable_cpr = False  # pyright: ignore[reportAttributeAccessIssue]
    return output
