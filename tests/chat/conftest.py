"""Talking to real agents whose model is scripted: in this process, as a command, and at a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from chat_scripts import Talk, Talked
from pty_screen import PtyScreen, lousho

from lousho import create_agent
from lousho.testing import mock_model
from lousho_cli.chat.repl import run_chat_repl


@pytest.fixture
def talk() -> Talk:
    """`await talk(script, lines, tools=[...])`: run the chat over scripted lines and a scripted model.

    `apart` gives the output and the talk a stream each; `create` is the agent factory to use instead.
    """

    async def run(
        script: Sequence[Any],
        lines: Iterable[str],
        *,
        apart: bool = False,
        session_id: str | None = None,
        create: Callable[[str | None], Any] | None = None,
        **options: Any,
    ) -> Talked:
        model = mock_model(script)
        output, beside = io.StringIO(), io.StringIO()
        code = await run_chat_repl(
            lines,
            output,
            create or (lambda other: create_agent(provider=model, **options)),
            talk=beside if apart else None,
            session_id=session_id,
        )
        return Talked(code, output.getvalue(), beside.getvalue(), model)

    return run


AGENT = '''
"""An agent whose model does what the first word of a message says."""
import asyncio
import pathlib
import threading
import time

from lousho import create_agent, tool
from lousho.models.provider import Finish, ModelResponse, TextDelta
from lousho.testing import mock_model


@tool
def lookup(q: str) -> str:
    """Look something up."""
    return f"found {q}"


@tool
def shout(q: str) -> str:
    """Print, without ending the line."""
    print(f"printed {q}", end="")
    return "shouted"


@tool(needs_approval=True)
def send_email(to: str) -> str:
    """Send the report."""
    with open("sent.txt", "a") as file:
        file.write(to)
    return "sent"


@tool
def announce() -> str:
    """Print when nobody expects it: once the file `news` is there."""

    def wait():
        while not pathlib.Path("news").exists():
            time.sleep(0.01)
        print("late news")

    threading.Thread(target=wait, daemon=True).start()
    return "later"


@tool
async def forever() -> str:
    """Never return."""
    await asyncio.Event().wait()


@tool
def stuck() -> str:
    """Never return, in a thread that nothing can stop."""
    threading.Event().wait()


@tool
async def blocking() -> str:
    """Block the event loop, which no tool should."""
    pathlib.Path("blocked").touch()
    time.sleep(600)


def reply(request):
    last = request.messages[-1]
    word, _, rest = last.content.partition(" ")
    if last.role == "tool":
        return f"Done: {last.content}."
    if word == "look":
        return {"tool_calls": [{"name": "lookup", "args": {"q": rest.removeprefix("up ")}}]}
    if word == "email":
        return {"tool_calls": [{"name": "send_email", "args": {"to": "sam@example.com"}}]}
    if word == "email-later":
        return {"tool_calls": [{"name": "send_email", "args": {"to": "sam@example.com"}}], "delay_ms": 1500}
    if word == "ask":
        return {"tool_calls": [{"name": "ask_question", "args": {"question": "Where to?", "options": ["Lisbon", "Porto"]}}]}
    if word == "both":
        return {"tool_calls": [{"name": "send_email", "args": {"to": to}} for to in ("sam", "kim")]}
    if word in ("forever", "stuck", "blocking", "announce"):
        return {"tool_calls": [{"name": word}]}
    if word == "shout":
        return {"tool_calls": [{"name": "shout", "args": {"q": rest}}]}
    if word == "fail":
        return {"error": "the model is asleep"}
    if word == "echo":
        return repr(last.content)
    if word == "measure":
        return f"{len(rest)} characters, {rest.count(chr(10))} newlines, {rest.count(chr(9))} tabs"
    if word == "said":
        return " | ".join(m.content + (" (interrupted)" if m.interrupted else "") for m in request.messages[1:-1])
    return f"You said {last.content}."


class Talker:
    """The scripted model, and one reply that is cut short only by an abort."""

    name = "mock"
    default_model = "talker"

    def __init__(self):
        self.script = mock_model([reply], on_exhausted="repeat-last")

    async def generate(self, request):
        return await self.script.generate(request)

    async def stream(self, request):
        if request.messages[-1].content == "drone":
            yield TextDelta("It goes on")
            yield TextDelta(" and on")
            await asyncio.Event().wait()
        if request.messages[-1].content == "count":
            for number in range(60):
                yield TextDelta(f"word{number} ")
                await asyncio.sleep(0.02)
            yield Finish("stop")
            return
        async for chunk in self.script.stream(request):
            yield chunk

    def supports_tools(self, model=None):
        return True

    def supports_streaming(self, model=None):
        return True

    async def get_models(self):
        return []


agent = create_agent(
    provider=Talker(), tools=[lookup, shout, send_email, announce, forever, stuck, blocking], ask_question=True
)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an agent module, `agent.py`."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    return folder


class OpenTerminal(Protocol):
    def __call__(
        self, *args: str, env: Mapping[str, str] | None = None, rows: int = 40, columns: int = 80
    ) -> PtyScreen: ...


@pytest.fixture
def terminal(project: Path) -> Iterator[OpenTerminal]:
    """`terminal()`: the chat with that agent at a terminal of its own, at its first prompt."""
    opened: list[PtyScreen] = []

    def start(*args: str, env: Mapping[str, str] | None = None, rows: int = 40, columns: int = 80) -> PtyScreen:
        screen = PtyScreen(lousho("chat", "agent.py", *args), project, env=env, rows=rows, columns=columns)
        opened.append(screen)
        screen.wait_for_prompt()
        return screen

    yield start
    for screen in opened:
        screen.close()
