"""Runs Python programs of their own for tests: to their end, interrupted at a line they print, or in another interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PRELUDE = """
import asyncio, os, signal, sys, threading
from lousho import CancelSignal, ToolContext, create_agent, tool
from lousho.testing import check_event_order, mock_model

def call(*names, **args):
    return {"tool_calls": [{"name": name, "args": args} for name in names]}

def shown(result):
    return [message.content for message in result.messages]
"""
QUIET = ("-W", "ignore::DeprecationWarning")
"""For programs that fork: newer Pythons warn when a process with threads does."""
FORKED = """
@tool
def blocking() -> str:
    "Use a thread."
    return "thread"

@tool
async def awaited() -> str:
    "Use the loop."
    return "loop"

def answer(request):
    return call("blocking", "awaited") if request.messages[-1].role == "user" else "Done."

agent = create_agent(provider=mock_model([answer], on_exhausted="repeat-last"), tools=[blocking, awaited])

def use(name):
    texts = [agent.send_sync("go").text, list(agent.stream_sync("go"))[-1].text, agent.session(name).send_sync("go").text]
    assert texts == ["Done."] * 3, texts
    assert asyncio.run(agent.send("go")).text == "Done."
    return name
"""
"""Goes on from the prelude: an agent, and `use(name)`, which asks it in some blocking ways."""
BOUND = 30.0
"""Seconds after which a program that hangs is killed."""


@dataclass
class Ended:
    """What came of a program."""

    lines: list[str]
    errors: str
    code: int
    seconds_after_interrupt: float = 0.0


def run_program(
    body: str,
    *,
    interrupt_at: str | None = None,
    interrupts: int = 1,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program, killing it when it does not end by itself; `interrupt_at` sends it Ctrl-C when it prints that line."""
    with subprocess.Popen(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(body)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
    ) as process:
        timer = threading.Timer(BOUND, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            shown = ""
            while interrupt_at is not None and (line := process.stdout.readline()):
                shown += line
                if line.strip() == interrupt_at:
                    break
            began = time.monotonic()
            for _ in range(interrupts if interrupt_at is not None else 0):
                os.kill(process.pid, signal.SIGINT)
            shown += process.stdout.read()
            errors = process.stderr.read()
            return Ended(shown.splitlines(), errors, process.wait(), time.monotonic() - began)
        finally:
            timer.cancel()
