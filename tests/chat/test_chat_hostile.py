"""Input that is far too large, streams nobody reads, code that prints past Python: the chat goes on, stdout stays clean."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_scripts import Talk, call

from lousho import create_agent, tool
from lousho.testing import mock_model
from lousho_cli.chat.lines import LONGEST_MESSAGE
from lousho_cli.chat.repl import run_chat_repl

CHAT = [sys.executable, "-m", "lousho_cli", "chat"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="descriptors and signals of POSIX")

PRINTER = """
import os, subprocess
from lousho import tool
from lousho.testing import mock_model

print("loading")
os.write(1, b"raw loading\\n")

@tool
def shout() -> str:
    "Print in every way."
    print("python")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"], check=True)
    return "shouted"

agent = {"tools": [shout], "provider": mock_model([{"tool_calls": [{"name": "shout"}]}, "Done."])}
"""


@tool(needs_approval=True)
def send(to: str) -> str:
    """Send it."""
    return f"sent to {to}"


class FullDisk(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


async def test_an_answer_of_thousands_of_digits_is_taken_as_words(talk: Talk) -> None:
    digits = "9" * 5_000
    question = call("ask_question", question="Where to?", options=["Lisbon", "Porto"])

    talked = await talk([question, "Noted.", "Hello."], ["go", digits, f"/last {digits}", "hi"], ask_question=True)

    assert digits in talked.last_result
    assert "error: /last takes a number" in talked.text
    assert "Hello." in talked.lines


async def test_an_answer_that_is_too_long_rejects_the_call_and_the_chat_goes_on(talk: Talk) -> None:
    lines = ["go", "y" * (LONGEST_MESSAGE + 1), "hi"]

    talked = await talk([call("send", to="sam"), "Not sent.", "Hello."], lines, tools=[send])

    assert "LOUSHO_VALIDATION_FAILED" in talked.text
    assert "sent to sam" not in talked.text
    assert ("Not sent." in talked.lines, "Hello." in talked.lines, talked.code) == (True, True, 0)


async def test_an_agent_that_cannot_take_a_decision_fails_the_turn_and_not_the_chat(talk: Talk) -> None:
    class Approvals:
        def stream_resolve(self, **decision: Any) -> Any:
            raise LookupError("the decision came too late")

    class Late:
        approvals = Approvals()

        def __init__(self, agent: Any) -> None:
            self.session, self.close = agent.session, agent.close

    model = mock_model([call("send", to="sam"), "Hello."])
    talked = await talk(
        [], ["go", "y", "/new", "hi"], create=lambda _: Late(create_agent(provider=model, tools=[send]))
    )

    assert "error: LookupError: the decision came too late" in talked.lines
    assert talked.lines[-2] == "Hello."


async def test_talk_that_cannot_be_written_leaves_the_words_alone() -> None:
    output = io.StringIO()
    model = mock_model([call("send", to="sam"), "Not sent.", "Hello."])

    code = await run_chat_repl(
        ["go", "n", "hi"], output, lambda _: create_agent(provider=model, tools=[send]), talk=FullDisk()
    )

    assert (code, output.getvalue()) == (0, "Not sent.\nHello.\n")


@POSIX
def test_what_an_agent_prints_in_any_way_stays_out_of_a_piped_stdout(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PRINTER, encoding="utf-8")

    done = subprocess.run(
        [*CHAT, "agent.py"], cwd=tmp_path, input="go\n", capture_output=True, encoding="utf-8", timeout=30, check=False
    )

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert {"loading", "raw loading", "python", "descriptor", "child"} <= set(done.stderr.splitlines())


@POSIX
def test_with_stdout_closed_what_a_tool_prints_reaches_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(PRINTER, encoding="utf-8")

    done = subprocess.run(
        ["sh", "-c", f"echo go | {' '.join(CHAT)} agent.py >&-"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert "-> shouted" in done.stderr


@POSIX
def test_a_second_signal_to_end_breaks_off_a_chat_whose_loop_is_blocked(project: Path) -> None:
    with subprocess.Popen(
        [*CHAT, "agent.py"], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as chat:
        assert chat.stdin is not None
        assert chat.stderr is not None
        chat.stdin.write(b"blocking\n")
        chat.stdin.flush()
        while not (project / "blocked").exists():  # the blocked loop shows nothing by then
            assert chat.poll() is None
            os.sched_yield()
        chat.send_signal(signal.SIGTERM)
        chat.send_signal(signal.SIGHUP)  # another one, because two of a kind may become one
        assert b"Traceback" not in chat.stderr.read()

    assert chat.returncode in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
