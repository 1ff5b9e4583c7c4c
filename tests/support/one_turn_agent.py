"""An agent for the tests of commands that run it once: what it does, the first word of the prompt says."""

from __future__ import annotations

from pathlib import Path

AGENT = '''
"""Does what the first word of a message says."""
import asyncio
import os
import pathlib
import subprocess
import sys
import threading
import time

from lousho import create_agent, tool
from lousho.models.provider import Finish, TextDelta
from lousho.testing import mock_model


@tool
def lookup(q: str) -> str:
    """Look something up. Anything."""
    return f"found {q}"


@tool
def shout(q: str) -> str:
    """Print in every way there is."""
    print(f"printed {q}")
    sys.stdout.flush()
    os.write(1, b"descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return "shouted"


@tool(needs_approval=True)
def send_email(to: str) -> str:
    """Send the report."""
    with open("sent.txt", "a") as file:
        file.write(to + "\\n")
    return f"sent to {to}"


@tool
async def forever() -> str:
    """Never return."""
    pathlib.Path("begun").touch()
    await asyncio.Event().wait()


@tool
def stuck() -> str:
    """Never return, in a thread that nothing can stop."""
    pathlib.Path("begun").touch()
    threading.Event().wait()


@tool
async def blocking() -> str:
    """Block the event loop, which no tool should."""
    pathlib.Path("begun").touch()
    time.sleep(600)


@tool
async def stubborn() -> str:
    """Never return, whatever is asked of it."""
    pathlib.Path("begun").touch()
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


def reply(request):
    last = request.messages[-1]
    word, rest = (*last.content.split(None, 1), "", "")[:2]
    if word == "loop" or request.messages[1].content == "loop":
        return {"tool_calls": [{"name": "lookup", "args": {"q": str(len(request.messages))}}]}
    if last.role == "tool":
        return f"Done: {last.content}."
    if word == "look":
        return {"text": "Let me look.", "tool_calls": [{"name": "lookup", "args": {"q": rest}}]}
    if word == "email":
        return {"tool_calls": [{"name": "send_email", "args": {"to": rest}}]}
    if word == "both":
        return {"tool_calls": [{"name": "send_email", "args": {"to": to}} for to in ("sam", "kim")]}
    if word in ("ask", "mixed"):
        question = {"name": "ask_question", "args": {"question": "Where to?", "options": ["Lisbon", "Porto"]}}
        gated = [{"name": "send_email", "args": {"to": "sam"}}] if word == "mixed" else []
        return {"text": "One question.", "tool_calls": [*gated, question]}
    if word in ("forever", "stuck", "blocking", "stubborn"):
        return {"text": "I begin.", "tool_calls": [{"name": word}]}
    if word == "shout":
        return {"tool_calls": [{"name": "shout", "args": {"q": rest}}]}
    if word == "fail":
        return {"error": "the model is asleep"}
    if word in ("length", "content_filter", "other"):
        return {"text": "Half an ans", "finish_reason": word}
    if word == "silent":
        return ""
    if word == "count":
        return f"{len(last.content)} characters"
    if word == "repr":
        return repr(last.content)
    return f"You said {last.content}."


class Talker:
    """The scripted model, and replies that only a stop, or a failure, cuts short."""

    name = "mock"
    default_model = "talker"

    def __init__(self):
        self.script = mock_model([reply], on_exhausted="repeat-last")

    async def generate(self, request):
        return await self.script.generate(request)

    async def stream(self, request):
        said = request.messages[-1].content
        if said in ("drone", "break"):
            yield TextDelta("It goes on")
            yield TextDelta(" and on")
            if said == "break":
                raise OSError("the line is dead")
            pathlib.Path("begun").touch()
            await asyncio.Event().wait()
        if said == "stutter":
            for number in range(100_000):
                yield TextDelta(f"word{number} ")
                await asyncio.sleep(0)
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
    provider=Talker(),
    tools=[lookup, shout, send_email, forever, stuck, blocking, stubborn],
    ask_question=True,
    max_steps=3,
)
'''


def one_turn_agent(folder: Path) -> Path:
    """Write the agent as `agent.py` into `folder` and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    return folder
