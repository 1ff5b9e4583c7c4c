"""`lousho run`, put together: check the command line, load the agent, find the prompt, run it, say how it ended."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lousho_cli.console import Console
from lousho_cli.errors import INTERRUPTED, Terminated, UsageError, debugging
from lousho_cli.run.ending import Ended, explain
from lousho_cli.run.last_resort import breaking_off, leaving_on_ctrl_c
from lousho_cli.run.outputs import Output, View, outputs_of
from lousho_cli.run.prompt import NOTHING_ON_STDIN, STDIN, find_prompt, has_ended
from lousho_cli.run.turn import LEAVE_SECONDS, Turn
from lousho_cli.run.wanted import Wanted

if TYPE_CHECKING:
    from lousho.agent.agent import Agent
    from lousho.core.events import AgentEvent

GRACE_SECONDS = LEAVE_SECONDS + 2.0
"""How long after its time limit a program that code of the agent blocks is still given; then it is broken off."""
CLEAN_UP_SECONDS = 3.0
"""How long what the agent's code left running may take to end once the answer is written."""


def run_once(wanted: Wanted, console: Console) -> int:
    """Run an agent for one turn and return the exit code. Only what `wanted.mode` says goes to stdout.

    Raises `UsageError` for a prompt that is empty and what loading the agent raises; a run that fails is an exit code.
    """
    with console.apart_from_prints() as apart:
        outputs = outputs_of(wanted.mode, apart)
        try:
            agent, prompt = _agent_and_prompt(wanted, apart)
        except Exception as error:
            with suppress(OSError):  # nobody reads it: the error itself is still told
                for each in outputs:
                    each.failed(error)
            raise
        return _run(agent, prompt, wanted, outputs, apart)


def _agent_and_prompt(wanted: Wanted, console: Console) -> tuple[Agent, str]:
    """Load the agent, then find the prompt: a path that is wrong is told before anybody waits for stdin.

    Where only the model is missing, an empty prompt that can be known without waiting is told first.
    """
    if wanted.prompt is not None and not wanted.prompt.strip():
        raise UsageError("the prompt is empty")
    from lousho.core.errors import ConfigurationError
    from lousho.loader.dotenv import load_dotenv_file, unread_dotenv_note
    from lousho.loader.target import load_target

    dotenv = load_dotenv_file(Path.cwd())
    unread = unread_dotenv_note(wanted.path)
    for note in (*dotenv.notes, *([unread] if unread is not None else [])):
        console.tell(f"note: {note}", "dim")  # before the load, which may fail for want of what the file sets
    try:
        target = load_target(wanted.path, command="run", model=wanted.model)
    except ConfigurationError as error:
        if error.code == "LOUSHO_CONFIG_MISSING_PROVIDER" and wanted.prompt in (None, STDIN) and has_ended(console):
            raise UsageError(NOTHING_ON_STDIN) from error
        raise
    for note in target.notes:
        console.tell(f"note: {note}", "dim")
    return target.agent, find_prompt(wanted.prompt, console)


def _run(agent: Agent, prompt: str, wanted: Wanted, outputs: Sequence[Output], console: Console) -> int:
    """Run the turn in an event loop of its own and return the exit code."""

    def hear(event: AgentEvent) -> None:
        for each in outputs:
            each.event(event)

    def tell(text: str) -> None:
        console.tell(text, "dim")

    turn = Turn(agent, prompt, limit_s=wanted.limit_s, yes=wanted.yes, hear=hear, tell=tell)
    finish = Finish(wanted, outputs, console)

    with ExitStack() as stack:
        break_off_in = stack.enter_context(breaking_off(lambda: finish(turn.broken_off())))
        leave_on_ctrl_c = stack.enter_context(leaving_on_ctrl_c())
        for view in outputs:
            if isinstance(view, View):
                stack.enter_context(view.screen.catching_prints())
        if debugging():
            stack.enter_context(_log_to(console))

        async def run_and_finish() -> int:
            ended = await turn.run()
            leave_on_ctrl_c()
            code = finish(ended)
            break_off_in(CLEAN_UP_SECONDS)  # closing the loop waits for what the agent's code left in it
            return code

        if wanted.limit_s is not None:
            break_off_in(wanted.limit_s + GRACE_SECONDS)
        try:
            return asyncio.run(run_and_finish())
        except KeyboardInterrupt as stop:  # code of the agent blocked the program until it was broken off
            return finish(turn.broken_off(stop.exit_code if isinstance(stop, Terminated) else INTERRUPTED))


class Finish:
    """Writes the end of the run, once, whoever comes first: the run itself, or what breaks it off."""

    def __init__(self, wanted: Wanted, outputs: Sequence[Output], console: Console) -> None:
        self._wanted = wanted
        self._outputs = outputs
        self._console = console
        self._first = threading.Lock()
        self._code = 0

    def __call__(self, ended: Ended) -> int:
        """Write and explain the end; return the exit code."""
        if self._first.acquire(blocking=False):
            self._code = ended.exit_code
            for each in self._outputs:
                each.ended(ended)
            watched = any(isinstance(each, View) for each in self._outputs)
            explain(ended, self._wanted.path, self._console, yes=self._wanted.yes, watched=watched)
        return self._code


class _Log(logging.Handler):
    """Writes log records to stderr."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.say(self.format(record))


@contextmanager
def _log_to(console: Console) -> Generator[None]:
    """Show what the runtime logs, above all the traceback of a failed tool."""
    log, handler = logging.getLogger("lousho.runtime"), _Log(console)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
