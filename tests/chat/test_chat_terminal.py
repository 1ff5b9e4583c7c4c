"""The chat at a real terminal: what is on the screen, and what the keys do."""

from __future__ import annotations

import signal
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pty_screen import PtyScreen, lousho

OpenTerminal = Callable[..., PtyScreen]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

CTRL_C, CTRL_D, CTRL_R, UP, ALT_ENTER = "\x03", "\x04", "\x12", "\x1b[A", "\x1b\r"


def paste(text: str) -> str:
    """What a terminal sends for pasted text."""
    return f"\x1b[200~{text}\x1b[201~"


@pytest.mark.spec("CLI-50", "CLI-51")
def test_the_screen_looks_as_documented(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("look up cats\r")
    screen.wait_for(r"^\[usage\] .*\n>$")
    screen.send("email the report to sam\r")
    screen.wait_for(r"\[y/N\]$")
    screen.send("y\r")
    screen.wait_for(r"Done: sent\.\n\[usage\] .*\n>$")

    assert [row for row in screen.rows if not row.startswith("[usage]")] == [
        "> look up cats",
        '[lookup] {"q":"cats"}',
        "  -> found cats",
        "Done: found cats.",
        "> email the report to sam",
        'Approve send_email({"to":"sam@example.com"})? [y/N] y',
        "  -> sent",
        "Done: sent.",
        ">",
    ]
    assert '\x1b[2m[lookup] {"q":"cats"}\x1b[0m' in screen.raw


def test_without_colours_nothing_is_coloured(terminal: OpenTerminal) -> None:
    screen = terminal(env={"NO_COLOR": "1"})
    screen.send("look up cats\r")
    screen.wait_for(r"^\[usage\]")

    assert "\x1b[2m" not in screen.raw
    assert "\x1b[3" not in screen.raw


@pytest.mark.spec("BEY-09")
def test_ctrl_c_stops_the_turn_keeps_its_text_and_brings_the_prompt_back(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("drone\r")
    screen.wait_for("It goes on and on")
    screen.send(CTRL_C)
    screen.wait_for_prompt()
    screen.send("said what\r")
    screen.wait_for(r"drone \| It goes on and on \(interrupted\)")

    assert screen.rows[:3] == ["> drone", "It goes on and on", "aborted"]
    assert "drone | It goes on and on (interrupted)" in screen.rows


@pytest.mark.parametrize("tool", ["forever", "stuck"])
def test_ctrl_c_does_not_wait_for_a_tool_that_never_ends(terminal: OpenTerminal, tool: str) -> None:
    screen = terminal()
    screen.send(f"{tool}\r")
    screen.wait_for(rf"^\[{tool}\] ")
    screen.send(CTRL_C)
    screen.wait_for(r"aborted\n\[usage\] .*\n>$")
    screen.send("hello\r")
    screen.wait_for(r"You said hello\.\n.*\n>$")
    screen.send(CTRL_D)

    assert screen.wait_for_exit() == 0


def test_a_tool_that_blocks_everything_can_be_left_with_three_presses(terminal: OpenTerminal, project: Path) -> None:
    screen = terminal()
    screen.send("blocking\r")
    screen.wait_for((project / "blocked").exists)
    for _ in range(3):
        screen.send(CTRL_C)
        screen.wait_for_quiet()

    assert screen.wait_for_exit() == 130
    assert "Traceback" not in screen.text


def test_ctrl_c_at_an_empty_prompt_asks_once_and_leaves_the_second_time(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send(CTRL_C)
    screen.wait_for(r"^press Ctrl-C again or Ctrl-D to leave\n>$")
    screen.send(CTRL_C)

    assert screen.wait_for_exit() == 130


def test_ctrl_c_with_a_draft_drops_the_draft_and_does_not_count(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("half a th")
    screen.wait_for("half a th")
    screen.send(CTRL_C)
    screen.wait_for(r"half a th\n>$")
    screen.send(CTRL_C)
    screen.wait_for("press Ctrl-C again")
    screen.send("hello\r")
    screen.wait_for(r"^\[usage\] .*\n>$")
    screen.send(CTRL_C)
    screen.wait_for(r"(?s)You said hello.*press Ctrl-C again")
    screen.send(CTRL_D)

    assert screen.wait_for_exit() == 0


@pytest.mark.spec("CLI-55", "BEY-09")
def test_ctrl_d_leaves_an_empty_prompt_and_eats_no_text(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send(f"hello{CTRL_D}\r")
    screen.wait_for("You said hello")
    screen.wait_for_prompt()
    screen.send(CTRL_D)

    assert screen.wait_for_exit() == 0
    assert screen.rows[-1] == "this session was in memory and ends here"


def test_the_exit_code_at_a_terminal_is_0_also_after_a_failed_turn(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("fail\r")
    screen.wait_for("error: the model is asleep")
    screen.wait_for_prompt()
    screen.send("/quit\r")

    assert screen.wait_for_exit() == 0


@pytest.mark.parametrize("how", ["ctrl-d", "ctrl-c", "sigterm", "sigterm in a turn"])
def test_the_terminal_is_as_it_was_after_every_way_to_leave(terminal: OpenTerminal, how: str) -> None:
    screen = terminal()
    assert not screen.modes_restored()
    if how == "ctrl-d":
        screen.send(CTRL_D)
    elif how == "ctrl-c":
        screen.send(CTRL_C)
        screen.wait_for("press Ctrl-C again")
        screen.send(CTRL_C)
    elif how == "sigterm":
        screen.signal(signal.SIGTERM)
    else:
        screen.send("forever\r")
        screen.wait_for(r"^\[forever\] ")
        screen.signal(signal.SIGTERM)
    screen.wait_for(screen.modes_restored)
    code = screen.wait_for_exit()

    assert code == {"ctrl-d": 0, "ctrl-c": 130}.get(how, 143)


@pytest.mark.spec("BEY-09")
def test_a_pasted_text_of_many_lines_is_one_message_sent_by_enter(terminal: OpenTerminal) -> None:
    screen = terminal(rows=260)
    text = "".join(f"line {number}\twith a tab\n" for number in range(200))
    screen.send(paste(f"measure {text}"))
    screen.wait_for("line 199")
    assert "usage" not in screen.text
    screen.send("\r")
    screen.wait_for(r"^\[usage\]")

    assert f"{len(text)} characters, 200 newlines, 200 tabs" in screen.text
    assert screen.text.count("[usage]") == 1


@pytest.mark.parametrize("keys", [f"one{ALT_ENTER}two", "one\\\rtwo"])
def test_a_message_can_have_several_lines(terminal: OpenTerminal, keys: str) -> None:
    screen = terminal()
    screen.send(f"echo {keys}\r")
    screen.wait_for(r"^\[usage\]")

    assert screen.rows[:3] == ["> echo one", "  two", "'echo one\\ntwo'"]


@pytest.mark.spec("BEY-10")
def test_a_line_typed_while_the_agent_works_is_no_answer_to_an_approval(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("email-later\r")
    screen.wait_for(lambda: screen.cursor == (1, 0))
    screen.send("y\rhello")  # typed before the question is there
    screen.wait_for(r"\[y/N\]$")
    screen.send("n\r")
    screen.wait_for("You said y")
    screen.wait_for(r"^> hello$")

    assert "  -> error: " in screen.text
    assert "  -> sent" not in screen.text
    assert screen.text.index("-> error:") < screen.text.index("> y")


def test_what_was_typed_before_ctrl_c_is_offered_and_not_sent(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("forever\r")
    screen.wait_for(r"^\[forever\] ")
    screen.send("delete all\rreally all\r")
    screen.send(CTRL_C)
    screen.wait_for(r"^> delete all\n  really all$")
    screen.send("\r")
    screen.wait_for("You said delete all\nreally all.")

    assert screen.text.count("You said") == 1


def test_ctrl_c_at_an_approval_rejects_it_and_frees_the_session(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("email sam\r")
    screen.wait_for(r"\[y/N\]$")
    screen.send(CTRL_C)
    screen.wait_for(r"^aborted\n>$")
    screen.send("hello\r")
    screen.wait_for("You said hello")

    assert "-> sent" not in screen.text


def test_ctrl_c_at_the_second_approval_keeps_the_first_call_from_running(terminal: OpenTerminal, project: Path) -> None:
    screen = terminal()
    screen.send("both\r")
    screen.wait_for(r'^Approve send_email\({"to":"sam"}\)\? \[y/N\]$')
    screen.send("y\r")
    screen.wait_for(r'^Approve send_email\({"to":"kim"}\)\? \[y/N\]$')
    screen.send(CTRL_C)
    screen.wait_for(r"^aborted\n>$")
    screen.send("hello\r")
    screen.wait_for("You said hello")

    assert not (project / "sent.txt").exists()


def test_what_is_printed_late_stands_above_the_prompt(terminal: OpenTerminal, project: Path) -> None:
    screen = terminal()
    screen.send("announce\r")
    screen.wait_for(r"^\[usage\] .*\n>$")
    screen.send("half a")
    screen.wait_for("half a$")
    (project / "news").touch()
    screen.wait_for("late news\n> half a$")
    screen.send(" message\r")

    screen.wait_for(r"You said half a message\.")


def test_a_question_is_asked_again_after_an_empty_answer(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("ask me\r")
    screen.wait_for(r"^Answer \(1-2, or your own words\):$")
    screen.send("\r")
    screen.wait_for(r"words\):\nAnswer \(1-2, or your own words\):$")
    screen.send("1\r")
    screen.wait_for('Done: {"answer":"Lisbon","option":0}')


def test_what_a_tool_prints_has_a_line_of_its_own(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("shout hey\r")
    screen.wait_for(r"^\[usage\]")

    assert screen.rows[1:5] == ['[shout] {"q":"hey"}', "printed hey", "  -> shouted", "Done: shouted."]


@pytest.mark.spec("BEY-09")
def test_old_messages_come_back_in_the_next_chat_except_those_with_a_leading_space(
    terminal: OpenTerminal, clean_env: Path
) -> None:
    first = terminal()
    for typed in ("hello world", " my password is hunter2", "good night"):
        first.send(f"{typed}\r")
        first.wait_for(f"You said {typed.strip() if typed[0] != ' ' else typed}")
        first.wait_for_prompt()
    first.send(CTRL_D)
    assert first.wait_for_exit() == 0

    second = terminal()
    second.send(UP + UP)
    second.wait_for(r"^> hello world$")
    second.send(CTRL_C)
    second.wait_for(r"hello world\n>$")
    second.send(f"{CTRL_R}night")
    second.wait_for("good night")

    (file,) = clean_env.rglob("*.history")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "hunter2" not in file.read_text(encoding="utf-8")


def test_a_history_that_cannot_be_kept_is_a_note_and_not_a_crash(terminal: OpenTerminal, clean_env: Path) -> None:
    (clean_env / ".local").write_text("in the way", encoding="utf-8")

    screen = terminal()
    screen.send("hello\r")
    screen.wait_for("You said hello")
    screen.send("again\r")
    screen.wait_for("You said again")

    assert screen.text.count("note: ") == 1
    assert screen.rows[0].startswith("note: what you type is not kept: ")


def test_resizing_during_a_reply_leaves_the_screen_whole(terminal: OpenTerminal) -> None:
    screen = terminal()
    screen.send("count\r")
    screen.wait_for("word5 ")
    screen.resize(40, 40)
    screen.wait_for(r"^\[usage\]")
    screen.wait_for_prompt()
    screen.send("hello\r")
    screen.wait_for(r"^You said hello\.$")

    assert " ".join(screen.text.split()).count("word59") == 1


def test_forty_columns_are_enough(terminal: OpenTerminal) -> None:
    screen = terminal(columns=40)
    screen.send("email sam\r")
    screen.wait_for(r"\[y/N\]$")
    screen.send("y\r")
    screen.wait_for(r"Done: sent\.\n\[usage\] .*\n>$")
    assert screen.rows[1:4] == ['Approve send_email({"to":"sam@example.co', 'm"})? [y/N] y', "  -> sent"]
    screen.send("/help\r")
    screen.wait_for(r"^//word\n    send /word to the agent\n>$")


def test_a_terminal_that_can_do_nothing_still_talks(plain_terminal: PtyScreen) -> None:
    screen = plain_terminal
    screen.send("hello\r")
    screen.wait_for(r"You said hello\.\n.*\n>$")
    screen.send(CTRL_C)
    screen.wait_for(r"press Ctrl-C again or Ctrl-D to leave\n>$")
    screen.send("again\r")
    screen.wait_for(r"You said again\.\n.*\n>$")
    screen.send(CTRL_D)

    assert screen.wait_for_exit() == 0
    assert "\x1b" not in screen.raw
    assert screen.rows[:2] == ["> hello", "You said hello."]


@pytest.mark.spec("BEY-10")
def test_there_too_a_line_typed_early_is_no_answer_to_an_approval(plain_terminal: PtyScreen) -> None:
    screen = plain_terminal
    screen.send("email-later\r")
    screen.wait_for(lambda: screen.cursor == (1, 0))
    screen.send("y\r")
    screen.wait_for(r"\[y/N\]$")
    screen.send("n\r")
    screen.wait_for(r"You said y\.")

    assert "  -> sent" not in screen.text
    assert "  -> error: " in screen.text


@pytest.fixture
def plain_terminal(project: Path) -> Iterator[PtyScreen]:
    """The chat on a terminal without any abilities, at its first prompt."""
    screen = PtyScreen(lousho("chat", "agent.py"), project, env={"TERM": "dumb"})
    screen.wait_for(r"^>$")
    yield screen
    screen.close()


@pytest.mark.parametrize("when", ["at the prompt", "in a turn"])
def test_the_chat_ends_when_its_terminal_is_closed(terminal: OpenTerminal, when: str) -> None:
    screen = terminal()
    if when == "in a turn":
        screen.send("forever\r")
        screen.wait_for(r"^\[forever\] ")

    assert screen.hang_up() != 0
