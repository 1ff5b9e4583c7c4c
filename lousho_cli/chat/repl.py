"""The loop of the chat: read a line, do what it says, until somebody leaves.

It needs no terminal: lines come from anywhere, text goes to any stream, and the agent is whatever the factory builds.
Source: CLI page, "lousho chat".
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Iterable
from contextlib import suppress
from typing import Any, TextIO

from lousho.core.errors import SDKError
from lousho.core.ids import new_id
from lousho_cli.chat.conversation import Conversation
from lousho_cli.chat.face import ChatAgent, CreateAgent
from lousho_cli.chat.lines import EndOfInput, Interrupted, Lines, ScriptedLines
from lousho_cli.chat.screen import Screen
from lousho_cli.chat.slash import parse, run_command
from lousho_cli.errors import FAILED, INTERRUPTED

CLOSE_SECONDS = 5.0
SLOW_STOP_SECONDS = 1.0


async def run_chat_repl(
    input: Iterable[str] | AsyncIterable[str],  # noqa: A002 - the documented name
    output: TextIO,
    create_agent: CreateAgent,
    *,
    talk: TextIO | None = None,
    session_id: str | None = None,
) -> int:
    """Talk to an agent until `input` ends or `/quit` is read; return the exit code: 1 when the last turn failed, else 0.

    Each line of `input` (a list, a text stream, an async iterable) is one turn, a command, or the answer to the approval
    or question that is open. `create_agent(model)` builds the agent: `model` is `None` at first and `provider/model`
    for `/model`; it may be async. The agents are closed at the end. With `talk`, `output` gets the agent's words alone
    and everything else goes there. `session_id` opens that session instead of a new `chat-<id>`.

    Failed turns are shown and the conversation goes on; only what `create_agent(None)` raises, and
    `LOUSHO_SESSION_ID_INVALID`, are raised. Source: CLI page, "lousho chat".
    """
    screen = Screen(output, talk)
    return await ChatRepl(ScriptedLines(input, screen), screen, create_agent, session_id=session_id).run()


class ChatRepl:
    """One chat, from its first line to the exit code."""

    def __init__(
        self, lines: Lines, screen: Screen, create_agent: CreateAgent, *, session_id: str | None = None
    ) -> None:
        self.lines = lines
        self.screen = screen
        self.conversation: Conversation
        self._create_agent = create_agent
        self._session_id = session_id or new_id("chat")
        self._failed = False
        self._leaving: int | None = None
        self._turn: asyncio.Task[bool] | None = None
        self._presses = 0

    @property
    def turns(self) -> int:
        """How many turns there were."""
        return self.conversation.turns if hasattr(self, "conversation") else 0

    async def run(self) -> int:
        """Talk until somebody leaves; return the exit code."""
        agent = await self._build(None)
        try:
            self.conversation = Conversation(agent, agent.session(self._session_id), self.lines, self.screen)
            code = await self._read_and_do()
        finally:
            await self._close(self.conversation.agent if hasattr(self, "conversation") else agent)
        return code

    def leave(self, code: int | None = None) -> None:
        """End the chat after the running turn; without a code, the last turn decides it."""
        self._leaving = self._last_code() if code is None else code

    def interrupt(self) -> None:
        """Act on Ctrl-C: leave an open prompt, stop the running turn, on the second press leave the turn behind."""
        if not self.lines.interactive:
            self.leave(INTERRUPTED)
        if self.lines.interrupt() or self._turn is None:
            return
        self._presses += 1
        if self._presses > 1:
            self._turn.cancel()
            return
        self.conversation.stop()
        self.lines.unsend()
        asyncio.get_running_loop().call_later(SLOW_STOP_SECONDS, self._say_that_it_stops, self._turn)

    def terminate(self, code: int) -> None:
        """Leave at once, from wherever the chat is, with `code`."""
        self.leave(code)
        if self._turn is not None:
            self.conversation.stop()
        self.lines.interrupt()

    def open_session(self, session_id: str | None) -> None:
        """Go on in another session, a new one unless an id is given."""
        self.conversation.session = self.conversation.agent.session(session_id or new_id("chat"))

    def model_name(self) -> str | None:
        """The current model as `provider/model`, when the agent tells."""
        agent: Any = self.conversation.agent
        provider = getattr(getattr(agent, "provider", None), "name", None)
        return "/".join(part for part in (provider, getattr(agent, "model", None)) if part) or None

    async def switch_model(self, model: str) -> bool:
        """Rebuild the agent on `model` and go on in the same session; a failure keeps the current one."""
        before = self.conversation.agent
        try:
            agent = await self._build(model)
            session = agent.session(self.conversation.session.id)
        except Exception as error:  # noqa: BLE001 - a module of the user may raise anything while it is rebuilt
            self.conversation.complain(error)
            self.screen.line(f"the model stays {self.model_name() or 'as it was'}", "dim")
            return False
        self.conversation.agent, self.conversation.session = agent, session
        if agent is not before:
            await self._close(before)
        self.screen.line(f"model {self.model_name() or model}", "dim")
        return True

    async def _read_and_do(self) -> int:
        warned = False
        while self._leaving is None:
            try:
                text = await self.lines.message()
            except EndOfInput:
                break
            except Interrupted as stop:
                if self._leaving is not None:
                    break
                if warned and not stop.draft.strip():
                    return INTERRUPTED
                warned = not stop.draft.strip()
                if warned:
                    self.screen.line("press Ctrl-C again or Ctrl-D to leave", "dim")
                continue
            except SDKError as error:  # a message that is too long
                self.conversation.complain(error)
                self._failed = True
                continue
            warned = False
            await self._do(text)
        return self._last_code() if self._leaving is None else self._leaving

    async def _do(self, text: str) -> None:
        """Run a command or a turn; the exit code depends on whether the last thing that was done failed."""
        if not text.strip():
            return
        command = parse(text)
        if command is None:
            self._failed = not await self._run_turn(text[1:] if text.startswith("//") else text)
            return
        try:
            done = await run_command(self, *command)
        except Exception as error:  # noqa: BLE001 - e.g. a session that waits for a decision cannot be cleared
            self.conversation.complain(error)
            done = False
        self._failed = self._failed or not done

    async def _run_turn(self, text: str) -> bool:
        self._presses = 0
        turn = self._turn = asyncio.ensure_future(self.conversation.take(text))
        try:
            await asyncio.wait([turn])
        except asyncio.CancelledError:
            self.conversation.stop()
            await asyncio.wait([turn], timeout=CLOSE_SECONDS)
            raise
        finally:
            self._turn = None
            if not turn.done():
                turn.cancel()
        if turn.cancelled():
            self.screen.line("left behind", "dim")
            return True
        return turn.result()

    def _say_that_it_stops(self, turn: asyncio.Task[bool]) -> None:
        if not turn.done() and self._turn is turn:
            self.screen.line("stopping; press Ctrl-C again to leave the turn behind", "dim")

    def _last_code(self) -> int:
        return FAILED if self._failed and not self.lines.interactive else 0

    async def _build(self, model: str | None) -> ChatAgent:
        built = self._create_agent(model)
        return await built if inspect.isawaitable(built) else built

    async def _close(self, agent: ChatAgent) -> None:
        with suppress(Exception):  # the answer was given; what a server says while it is shut down changes nothing
            await asyncio.wait_for(agent.close(), CLOSE_SECONDS)
