"""`lousho chat` as a command in a pipe: exit codes, what goes where, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunLousho

CHAT = [sys.executable, "-m", "lousho_cli", "chat", "agent.py"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and shells")


@pytest.mark.spec("CLI-50", "BEY-11")
def test_each_line_of_a_pipe_is_a_turn_and_stdout_has_the_agents_words_alone(
    run_lousho: RunLousho, project: Path
) -> None:
    done = run_lousho(["chat", "agent.py"], input="hello\nlook up cats\nsaid what\n", cwd=project)

    assert done.returncode == 0
    assert done.stdout.splitlines()[:2] == ["You said hello.", "Done: found cats."]
    assert done.stdout.splitlines()[2].startswith("hello | You said hello. | look up cats")
    assert '[lookup] {"q":"cats"}\n  -> found cats\n' in done.stderr
    assert done.stderr.count("[usage] ") == 3
    assert "\x1b" not in done.stdout + done.stderr
    assert "> " not in done.stderr.replace("-> ", "")


def test_the_end_of_the_input_ends_at_once(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["chat", "agent.py"], input="", cwd=project)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.spec("CLI-54")
@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param("hello\nfail\n", 1, id="the last turn failed"),
        pytest.param("fail\nhello\n", 0, id="a turn after the failure"),
        pytest.param("fail\n/quit\n", 1, id="quitting after a failure"),
        pytest.param("hello\n/modle x\n", 1, id="an unknown command"),
        pytest.param("/help\n/quit\n", 0, id="commands alone"),
    ],
)
def test_the_exit_code_is_1_when_the_last_turn_failed(
    run_lousho: RunLousho, project: Path, lines: str, code: int
) -> None:
    done = run_lousho(["chat", "agent.py"], input=lines, cwd=project)

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if "fail" in lines:
        assert "error: the model is asleep\n[LOUSHO_PROVIDER_REQUEST_FAILED] " in done.stderr


@pytest.mark.spec("CLI-51")
@pytest.mark.parametrize(("answer", "result"), [("y\n", "sent"), ("n\n", "error: "), ("", "error: ")])
def test_the_next_line_answers_an_approval_and_no_line_rejects_it(
    run_lousho: RunLousho, project: Path, answer: str, result: str
) -> None:
    done = run_lousho(["chat", "agent.py"], input=f"email sam\n{answer}", cwd=project)

    assert done.returncode == 0
    assert 'Approve send_email({"to":"sam@example.com"})? [y/N] ' in done.stderr
    assert f"  -> {result}" in done.stderr
    assert ("no answer: send_email is rejected" in done.stderr) is (answer == "")
    assert done.stdout.startswith("Done: ")


def test_what_a_tool_prints_does_not_reach_stdout(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["chat", "agent.py"], input="shout hey\n", cwd=project)

    assert done.stdout == "Done: shouted.\n"
    assert '[shout] {"q":"hey"}\nprinted hey\n  -> shouted\n' in done.stderr


@pytest.mark.spec("CLI-57")
@pytest.mark.parametrize("session_id", ["a b", "a/b", "x" * 129, "naïve", "../up"])
def test_a_session_id_that_cannot_be_one_is_a_usage_error(
    run_lousho: RunLousho, project: Path, session_id: str
) -> None:
    done = run_lousho(["chat", "agent.py", "--session", session_id], input="hello\n", cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
    assert "[LOUSHO_SESSION_ID_INVALID] " in done.stderr
    assert "usage: lousho chat " in done.stderr


@pytest.mark.spec("CLI-57")
def test_a_good_session_id_is_used(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["chat", "agent.py", "--session", "Support_1-x"], input="/clear\n", cwd=project)

    assert (done.returncode, done.stderr) == (0, "cleared session Support_1-x\n")


@pytest.mark.spec("CLI-56")
def test_a_built_agent_keeps_its_model_and_options_take_the_one_given(run_lousho: RunLousho, project: Path) -> None:
    (project / "options.py").write_text(
        "from lousho.testing import mock_model\nconfig = {'provider': mock_model(['from the module'])}\n",
        encoding="utf-8",
    )
    (project / "spec.json").write_text(
        '{"name": "s", "prompt": "p", "provider": {"type": "openai", "model": "m"}}', encoding="utf-8"
    )
    (project / "folder").mkdir()
    (project / "folder" / "instructions.md").write_text("Be brief.", encoding="utf-8")
    (project / "folder" / "agent.json").write_text('{"model": "openai/gpt-4.1-mini"}', encoding="utf-8")

    built, options, spec, folder = (
        run_lousho(["chat", path, "--model", "mock/canned"], input="hello\n/model\n", cwd=project)
        for path in ("agent.py", "options.py", "spec.json", "folder")
    )

    assert (built.stdout, built.returncode) == ("You said hello.\n", 0)
    assert "mock/talker" in built.stderr
    for done in (options, spec, folder):
        assert done.returncode == 0
        assert "from the module" not in done.stdout
        assert "mock/canned; change it with /model" in done.stderr


@pytest.mark.spec("CLI-55")
def test_model_continues_the_session_of_a_spec_on_another_model(run_lousho: RunLousho, project: Path) -> None:
    (project / "spec.json").write_text(
        '{"name": "s", "prompt": "p", "provider": {"type": "mock", "model": "one"}}', encoding="utf-8"
    )

    done = run_lousho(["chat", "spec.json"], input="hello\n/model mock/two\n/history\n/model nowhere/x\n", cwd=project)

    assert "model mock/two" in done.stderr
    assert "> hello\n" in done.stdout
    assert "[LOUSHO_PROVIDER_UNKNOWN] " in done.stderr
    assert "the model stays mock/two" in done.stderr


@pytest.mark.spec("CLI-11")
def test_variables_come_from_dotenv_unless_they_are_set(run_lousho: RunLousho, project: Path) -> None:
    (project / ".env").write_text("\ufeffFROM_FILE=file\nSET=file\n", encoding="utf-8")
    (project / "env_agent.py").write_text(
        "import os\nfrom lousho.testing import mock_model\n"
        "config = {'provider': mock_model([f\"{os.environ['FROM_FILE']} {os.environ['SET']}\"])}\n",
        encoding="utf-8",
    )

    done = run_lousho(["chat", "env_agent.py"], input="hello\n", cwd=project, env={"SET": "environment"})

    assert (done.returncode, done.stdout) == (0, "file environment\n")


@pytest.mark.spec("CLI-09")
@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        pytest.param("missing.py", None, "LOUSHO_CONFIG_INVALID", id="not there"),
        pytest.param("broken.py", "def (:\n", "LOUSHO_CONFIG_INVALID", id="not Python"),
        pytest.param("empty.py", "", "LOUSHO_CONFIG_INVALID", id="no agent in it"),
        pytest.param("agent.txt", "hello", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", id="another format"),
        pytest.param("broken.yaml", "name: [", "LOUSHO_SPEC_INVALID", id="a spec that is broken"),
    ],
)
def test_an_agent_that_cannot_load_is_exit_1_with_code_and_fix(
    run_lousho: RunLousho, project: Path, name: str, content: str | None, code: str
) -> None:
    if content is not None:
        (project / name).write_text(content, encoding="utf-8")

    done = run_lousho(["chat", name], input="hello\n", cwd=project)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"[{code}] " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spec("BEY-11")
@POSIX
def test_a_reader_that_leaves_ends_the_chat_without_a_word(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"yes hello | {' '.join(CHAT)} 2>stderr.txt | head -n 1"],
        cwd=project,
        capture_output=True,
        timeout=30,
        check=False,
    )

    errors = (project / "stderr.txt").read_text(encoding="utf-8")
    assert done.stdout == b"You said hello.\n"
    assert [line for line in errors.splitlines() if not line.startswith("[usage] ")] == []


def test_an_input_that_stays_silent_is_announced(project: Path) -> None:
    with subprocess.Popen(
        CHAT, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as chat:
        assert chat.stdin is not None
        assert chat.stderr is not None
        assert chat.stderr.readline() == "reading from stdin\n"
        out, err = chat.communicate("hello\n", timeout=30)

    assert (out, chat.returncode) == ("You said hello.\n", 0)
    assert "reading from stdin" not in err


@POSIX
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("when", ["while it reads", "in a turn"])
def test_a_signal_ends_a_piped_chat_with_its_code(project: Path, number: signal.Signals, code: int, when: str) -> None:
    with subprocess.Popen(
        CHAT, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as chat:
        assert chat.stdin is not None
        assert chat.stderr is not None
        assert chat.stdout is not None
        chat.stdin.write("hello\n" if when == "while it reads" else "forever\n")
        chat.stdin.flush()
        ready = "[usage]" if when == "while it reads" else "[forever]"
        assert chat.stderr.readline().startswith(ready)
        chat.send_signal(number)
        err = chat.stderr.read()

    assert chat.returncode == code
    assert "Traceback" not in err


@POSIX
def test_a_closed_stdin_is_the_end_of_the_input(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(CHAT)} <&-"], cwd=project, capture_output=True, timeout=30, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@POSIX
def test_a_closed_stdout_does_not_stop_the_chat(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"echo hello | {' '.join(CHAT)} >&-"], cwd=project, capture_output=True, timeout=30, check=False
    )

    assert done.returncode == 0
    assert done.stderr.startswith(b"[usage] ")


@pytest.mark.spec("BEY-12")
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_a_console_that_lacks_characters_degrades_them(run_lousho: RunLousho, project: Path, encoding: str) -> None:
    (project / "wide.py").write_text(
        "from lousho.testing import mock_model\nconfig = {'provider': mock_model(['“Grüße” → 🎉 日本'])}\n",
        encoding="utf-8",
    )

    done = run_lousho(["chat", "wide.py"], input="hello\n", cwd=project, env={"PYTHONIOENCODING": encoding})

    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "-> ? ??" in done.stdout


def test_bytes_that_are_no_text_and_a_byte_order_mark_are_taken(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["chat", "agent.py"], input=b"\xef\xbb\xbfecho one\r\necho \xff\xfe", cwd=project)

    assert done.returncode == 0
    assert done.stdout == "'echo one'\n'echo \ufffd\ufffd'\n"


def test_a_line_without_an_end_is_refused_in_bounded_memory(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["chat", "agent.py"], input="x" * 3_000_000 + "\nhello\n", cwd=project)

    assert (done.returncode, done.stdout) == (0, "You said hello.\n")
    assert "error: The message has more than 1,000,000 characters, so it was not sent" in done.stderr


def test_the_help_page_names_the_flags(run_lousho: RunLousho) -> None:
    done = run_lousho(["chat", "--help"])

    assert done.returncode == 0
    assert "--model provider/model" in done.stdout
    assert "--session id" in done.stdout


@pytest.mark.spec("BEY-18")
def test_no_home_directory_is_no_problem(run_lousho: RunLousho, project: Path) -> None:
    nothing: dict[str, str | None] = dict.fromkeys(
        ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    )

    done = run_lousho(["chat", "agent.py"], input="hello\n", cwd=project, env=nothing)

    assert (done.returncode, done.stdout) == (0, "You said hello.\n")
