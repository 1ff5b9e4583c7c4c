"""`lousho chat`, put together: load the agent, find out who is typing, talk, leave everything as it was."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lousho_cli.chat.face import CreateAgent
from lousho_cli.chat.lines import Lines, PipedLines
from lousho_cli.chat.repl import ChatRepl
from lousho_cli.chat.screen import Screen
from lousho_cli.chat.signals import signals_to
from lousho_cli.chat.slash import COMMANDS
from lousho_cli.console import Console, is_terminal
from lousho_cli.errors import UsageError, debugging

if TYPE_CHECKING:
    from lousho.agent.agent import Agent


def talk(path: str, *, model: str | None, session_id: str | None, console: Console) -> int:
    """Load the agent at `path`, talk to it, return the exit code. Only the agent's words go to stdout.

    Raises `UsageError` for a session id that cannot be one, and what loading the agent raises.
    """
    from lousho.core.errors import SDKError

    if session_id is not None:
        from lousho.agent.session import check_session_id

        try:
            check_session_id(session_id)
        except SDKError as error:
            raise UsageError(error.detail, code=error.code) from error
    with console.apart_from_prints() as apart:
        return _load_and_talk(path, model, session_id, apart)


def _load_and_talk(path: str, model: str | None, session_id: str | None, console: Console) -> int:
    from lousho.loader.dotenv import load_dotenv_file, unread_dotenv_note
    from lousho.loader.target import load_target

    dotenv = load_dotenv_file(Path.cwd())
    unread = unread_dotenv_note(path)
    for note in (*dotenv.notes, *([unread] if unread is not None else [])):
        console.tell(f"note: {note}", "dim")  # before the load, which may fail for want of what the file sets
    target = load_target(path, command="chat", model=model)
    for note in target.notes:
        console.tell(f"note: {note}", "dim")

    def create_agent(other_model: str | None) -> Agent:
        if other_model is None:
            return target.agent
        return target.rebuild(model=other_model, store=target.agent.store)  # the conversation is in the store

    return asyncio.run(_talk(Path(path), create_agent, session_id, console))


async def _talk(path: Path, create_agent: CreateAgent, session_id: str | None, console: Console) -> int:
    screen = Screen(*_streams(console))
    with ExitStack() as stack:
        lines = _lines(path, screen, console, stack)
        repl = ChatRepl(lines, screen, create_agent, session_id=session_id)
        stack.enter_context(signals_to(repl.interrupt, repl.terminate))
        stack.enter_context(screen.catching_prints())
        if debugging():
            _show_log(screen, stack)
        code = await repl.run()
    if lines.interactive and repl.turns:
        console.tell("this session was in memory and ends here", "dim")
    return code


def _streams(console: Console) -> tuple[TextIO, TextIO | None]:
    """Return where the agent's words go, and where the talk goes unless both ends are a terminal."""
    stdout: TextIO | None = console.stdout
    stderr: TextIO | None = console.stderr
    if stdout is not None and is_terminal(stdout) and is_terminal(console.stdin):
        return stdout, None
    return stdout or _nowhere(), stderr or _nowhere()


def _lines(path: Path, screen: Screen, console: Console, stack: ExitStack) -> Lines:
    """Return who types: an editor on a terminal, plain lines anywhere else."""
    shown = next((stream for stream in (console.stdout, console.stderr) if is_terminal(stream)), None)
    if not is_terminal(console.stdin):
        return PipedLines(console.stdin, screen)
    if shown is None or os.environ.get("TERM") == "dumb":
        return PipedLines(console.stdin, screen, interactive=True)

    from lousho_cli.chat.history import open_history
    from lousho_cli.chat.terminal import TerminalLines

    history = open_history(path, lambda note: console.tell(f"note: {note}", "dim"))
    return stack.enter_context(TerminalLines(screen, console.stdin, shown, history, commands=list(COMMANDS)))


class _LogLines(logging.Handler):
    """Writes log records where the agent's own prints go, which keeps them out of its words."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.printed(f"{self.format(record)}\n")


def _show_log(screen: Screen, stack: ExitStack) -> None:
    """Show what the runtime logs, above all the traceback of a failed tool, until the chat ends."""
    log, handler = logging.getLogger("lousho.runtime"), _LogLines(screen)
    stack.callback(log.setLevel, log.level)
    stack.callback(log.removeHandler, handler)
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")
