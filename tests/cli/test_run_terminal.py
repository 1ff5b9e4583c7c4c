"""`lousho run` at a terminal: the person who waits sees what happens, and Ctrl-C and Ctrl-D do what they do everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from one_turn_agent import one_turn_agent

if sys.platform == "win32":
    pytest.skip("uses pseudo-terminals", allow_module_level=True)

from pty_screen import PtyScreen, lousho


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return one_turn_agent(tmp_path / "project")


class OpenRun(Protocol):
    def __call__(self, *args: str) -> PtyScreen: ...


@pytest.fixture
def at_terminal(project: Path) -> Iterator[OpenRun]:
    """`at_terminal("agent.py", "hi")`: that run at a terminal of its own; `at_terminal("sh", "-c", ...)`: a shell line."""
    opened: list[PtyScreen] = []

    def start(*args: str) -> PtyScreen:
        command = list(args) if args[0] == "sh" else lousho("run", *args)
        screen = PtyScreen(command, project)
        opened.append(screen)
        return screen

    yield start
    for screen in opened:
        screen.close()


def piped(*args: str) -> list[str]:
    """A shell line in which RUN stands for `lousho run`."""
    return ["sh", "-c", " ".join(args).replace("RUN", " ".join(lousho("run")))]


@pytest.mark.spec("BEY-20")
def test_at_a_terminal_calls_and_words_show_as_they_happen(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "look cats")

    assert screen.wait_for_exit() == 0
    assert screen.rows == [
        "Let me look.",
        '[lookup] {"q":"cats"}',
        "  -> found cats",
        "Done: found cats.",
        "[usage] ~32 in / ~14 out tokens",
    ]


def test_words_are_on_the_screen_before_the_run_has_ended(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "drone")

    screen.wait_for("^It goes on and on$")
    screen.send("\x03")

    assert screen.wait_for_exit() == 130
    assert screen.rows == ["It goes on and on^C", "aborted", "[usage] 0 in / 0 out tokens"]


@pytest.mark.spec("BEY-20")
def test_an_answer_that_is_piped_is_alone_while_the_terminal_shows_the_calls(
    at_terminal: OpenRun, project: Path
) -> None:
    screen = at_terminal(*piped("RUN agent.py 'look cats' > answer.txt"))

    assert screen.wait_for_exit() == 0
    assert (project / "answer.txt").read_text(encoding="utf-8") == "Done: found cats.\n"
    assert screen.rows == ['[lookup] {"q":"cats"}', "  -> found cats", "[usage] ~32 in / ~14 out tokens"]


def test_what_tools_print_stands_between_the_lines_of_the_view(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "shout hey")

    assert screen.wait_for_exit() == 0
    assert screen.rows[:5] == ['[shout] {"q":"hey"}', "printed hey", "descriptor", "child", "  -> shouted"]
    assert screen.rows[5] == "Done: shouted."


@pytest.mark.spec("BEY-23")
def test_a_run_that_waits_says_so_below_what_was_said(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "mixed")

    assert screen.wait_for_exit() == 3
    assert screen.rows[:5] == [
        "One question.",
        'waiting: send_email({"to":"sam"}) needs approval',
        "waiting: the agent asks: Where to?",
        "  1. Lisbon",
        "  2. Porto",
    ]


def test_without_a_prompt_and_a_pipe_it_is_a_usage_error_at_once(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py")

    assert screen.wait_for_exit() == 2
    assert screen.text.startswith("error: there is no prompt.")


@pytest.mark.spec("BEY-20")
def test_a_dash_reads_what_is_typed_until_ctrl_d(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "-")

    screen.wait_for("^reading from stdin; Ctrl-D on an empty line ends it$")
    screen.send("first line\r")
    screen.send("second line\r")
    screen.wait_for("^second line$")
    screen.send("\x04")

    assert screen.wait_for_exit() == 0
    assert "You said first line\nsecond line." in screen.text


def test_a_terminal_beside_an_argument_is_not_read(at_terminal: OpenRun) -> None:
    screen = at_terminal("agent.py", "hello")

    assert screen.wait_for_exit() == 0
    assert screen.rows[0] == "You said hello."


def test_colours_mark_the_talk_and_never_the_words(at_terminal: OpenRun) -> None:
    coloured = at_terminal("agent.py", "look cats")
    coloured.wait_for_exit()
    plain = at_terminal(*piped("NO_COLOR=1 RUN agent.py 'look cats'"))
    plain.wait_for_exit()

    assert '\x1b[2m[lookup] {"q":"cats"}\x1b[0m' in coloured.raw
    assert "\nDone: found cats.\r\n" in coloured.raw
    assert "\x1b[" not in plain.raw
