"""A chat of which only one end is a terminal: the words go where they should, and the talk stays with the person."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pty_screen import PtyScreen, lousho

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal and a POSIX shell")

OpenShell = Callable[[str], PtyScreen]


@pytest.fixture
def shell(project: Path) -> Iterator[OpenShell]:
    """`shell("echo hello | {}")`: a command line at a terminal, with the chat in the place of `{}`."""
    opened: list[PtyScreen] = []

    def start(line: str) -> PtyScreen:
        screen = PtyScreen(["sh", "-c", line.replace("{}", shlex.join(lousho("chat", "agent.py")))], project)
        opened.append(screen)
        return screen

    yield start
    for screen in opened:
        screen.close()


@pytest.mark.spec("BEY-11")
def test_lines_from_a_pipe_are_answered_on_a_terminal(shell: OpenShell) -> None:
    screen = shell("printf 'hello\\nlook up cats\\n' | {}")

    assert screen.wait_for_exit() == 0
    assert [row for row in screen.rows if not row.startswith("[usage]")] == [
        "You said hello.",
        '[lookup] {"q":"cats"}',
        "  -> found cats",
        "Done: found cats.",
    ]


@pytest.mark.spec("BEY-11")
def test_a_person_talks_while_the_agents_words_alone_go_to_a_file(shell: OpenShell, project: Path) -> None:
    screen = shell("{} > words.txt")
    screen.wait_for_prompt()
    screen.send("look up cats\r")
    screen.wait_for(r"^\[usage\] .*\n>$")
    screen.send("email sam\r")
    screen.wait_for(r"\[y/N\]$")
    screen.send("y\r")
    screen.wait_for(r"-> sent\n(.*\n)*>$")
    screen.send("\x04")

    assert screen.wait_for_exit() == 0
    assert (project / "words.txt").read_text(encoding="utf-8") == "Done: found cats.\nDone: sent.\n"
    assert '[lookup] {"q":"cats"}' in screen.rows
