"""`.env` in the working directory: what it sets, what wins over it, and that nothing in it stops a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agent_files import write_files
from hypothesis import given
from hypothesis import strategies as st

from lousho.diagnose.examine import examine
from lousho.loader.dotenv import load_dotenv_file, unread_dotenv_note

if TYPE_CHECKING:
    from conftest import RunLousho

PRINTS_KEY = """
import os

from lousho.testing import mock_model

agent = {"provider": mock_model([f"key={os.environ.get('SHOP_KEY')} mode={os.environ.get('SHOP_MODE')}"])}
"""


def loaded(folder: Path, data: bytes | str, **already: str) -> tuple[dict[str, str], Any]:
    (folder / ".env").write_bytes(data if isinstance(data, bytes) else data.encode())
    environ = dict(already)
    return environ, load_dotenv_file(folder, environ=environ)


@pytest.mark.spec("CLI-11")
@pytest.mark.parametrize("command", ["chat", "doctor"])
def test_a_command_reads_the_env_file_of_its_working_directory(tmp_path: Path, run_lousho: Any, command: str):
    write_files(
        tmp_path, {"agent.py": "import os\nassert os.environ['SHOP_KEY'] == 'k'\nagent = {'model': 'mock/m'}\n"}
    )
    write_files(tmp_path / "elsewhere", {})
    arguments = [command, str(tmp_path / "agent.py")]
    without = run_lousho(arguments, cwd=tmp_path / "elsewhere")
    assert (without.returncode, "SHOP_KEY" in without.stdout + without.stderr) == (1, True)
    (tmp_path / "elsewhere/.env").write_text("SHOP_KEY=k\n", encoding="utf-8")
    assert run_lousho(arguments, cwd=tmp_path / "elsewhere").returncode == 0


@pytest.mark.spec("CLI-11")
def test_a_variable_that_is_already_set_wins(tmp_path: Path, run_lousho: Any):
    write_files(tmp_path, {"agent.py": PRINTS_KEY, ".env": "SHOP_KEY=file\nSHOP_MODE='a b'\n"})
    done = run_lousho(["chat", "agent.py"], input="hi\n", env={"SHOP_KEY": "shell"})
    assert "key=shell mode=a b" in done.stdout
    assert "key=file mode=a b" in run_lousho(["chat", "agent.py"], input="hi\n").stdout


@pytest.mark.spec("CLI-11")
def test_no_env_file_is_no_error(tmp_path: Path, run_lousho: Any):
    write_files(tmp_path, {"agent.py": PRINTS_KEY})
    done = run_lousho(["chat", "agent.py"], input="hi\n")
    assert (done.returncode, "key=None" in done.stdout, ".env" in done.stderr) == (0, True, False)


@pytest.mark.spec("CLI-12")
def test_a_byte_order_mark_does_not_hide_the_first_variable(tmp_path: Path, run_lousho: Any):
    write_files(tmp_path, {"agent.py": PRINTS_KEY, ".env": b"\xef\xbb\xbfSHOP_KEY=first\r\nSHOP_MODE=second\r\n"})
    assert "key=first mode=second" in run_lousho(["chat", "agent.py"], input="hi\n").stdout


def test_it_says_which_variables_came_from_the_file_and_which_did_not(tmp_path: Path):
    environ, found = loaded(tmp_path, "A=1\nB=2\nexport C='x y'\nEMPTY=\nNOVALUE\n# D=4\n", B="0")
    assert environ == {"A": "1", "B": "0", "C": "x y", "EMPTY": ""}
    assert (found.path, found.names, found.shadowed) == (tmp_path / ".env", ("A", "C", "EMPTY"), ("B",))
    assert found.notes == ()


def test_an_empty_value_that_is_set_still_wins(tmp_path: Path):
    assert loaded(tmp_path, "A=1\n", A="")[0] == {"A": ""}


def test_values_are_taken_as_they_stand(tmp_path: Path):
    text = "A=a${HOME}$B\nB=\"two\\nlines\"\nC=pass#word\nD=x # note\nE='$x'\n"
    assert loaded(tmp_path, text)[0] == {"A": "a${HOME}$B", "B": "two\nlines", "C": "pass#word", "D": "x", "E": "$x"}


@pytest.mark.parametrize(
    ("data", "says", "values"),
    [
        pytest.param(b"A=1\n=2\nB=3\n", "line 2 could not be understood and was left out", {"A": "1", "B": "3"}, id="a line without a name"),
        pytest.param(b"A=1\n'B=3\n\nC=4\n", "could not be understood", {"A": "1", "C": "4"}, id="an open quote"),
        pytest.param(b"A=\x00\n", "line 1 could not be understood", {}, id="a null character"),
        pytest.param(b"A=\xff\n", "is not UTF-8 text (byte 0xff on line 1)", {}, id="not utf-8"),
        pytest.param("A=1\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8", {}, id="utf-16"),
        pytest.param(b"A=1\n" * 300_000, "is larger than 1,000,000 bytes", {}, id="too large"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_becomes_a_note_and_the_rest_holds(tmp_path: Path, data: bytes, says: str, values: Any):
    environ, found = loaded(tmp_path, data)
    assert (environ, says in found.notes[0]) == (values, True), found.notes


def test_a_note_never_shows_a_value(tmp_path: Path):
    _, found = loaded(tmp_path, "API_KEY=sk-1\n'SECRET=sk-2\n")
    assert "sk-" not in " ".join(found.notes)


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path):
    (tmp_path / ".env").mkdir()
    assert load_dotenv_file(tmp_path, environ={}).notes == ()
    (tmp_path / ".env").rmdir()
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / ".env")
    assert "is not a regular file" in load_dotenv_file(tmp_path, environ={}).notes[0]
    assert load_dotenv_file(tmp_path / "gone", environ={}).path is None


def test_without_arguments_it_fills_the_environment_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_files(tmp_path, {".env": "SHOP_KEY=k\n"})
    monkeypatch.chdir(tmp_path)
    assert (load_dotenv_file().names, os.environ["SHOP_KEY"]) == (("SHOP_KEY",), "k")


@given(st.binary(max_size=200))
def test_random_bytes_never_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    folder = tmp_path_factory.getbasetemp() / f"env-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    environ, found = loaded(folder, data)
    assert set(found.names) == set(environ)


class AsciiEnvironment(dict[str, str]):
    """An environment in a locale that has ASCII alone, as `os.environ` is there."""

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name.encode("ascii").decode(), value.encode("ascii").decode())


def test_a_value_that_the_locale_cannot_carry_is_a_note_and_the_rest_is_set(tmp_path: Path):
    (tmp_path / ".env").write_text("CITY=Zürich\nPLAIN=yes\n", encoding="utf-8")
    environ = AsciiEnvironment()

    loaded_file = load_dotenv_file(tmp_path, environ=environ)

    assert (dict(environ), loaded_file.names) == ({"PLAIN": "yes"}, ("PLAIN",))
    assert "CITY cannot be set" in loaded_file.notes[0]
    assert "Zürich" not in loaded_file.notes[0]


def test_a_file_beside_the_agent_that_is_not_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / ".env").write_text("A=1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    for path in ("desk", "desk/agent.yaml"):
        assert str(unread_dotenv_note(path)).startswith("'desk/.env' exists but only ./.env is read")
    monkeypatch.chdir(tmp_path / "desk")
    assert [unread_dotenv_note(path) for path in (".", "agent.yaml", "nowhere/x", "a\0b")] == [None] * 4


def test_chat_and_doctor_mention_a_file_that_is_not_read(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / ".env").write_text("OPENAI_API_KEY=sk-x\n", encoding="utf-8")
    (tmp_path / "desk" / "instructions.md").write_text("Help.", encoding="utf-8")

    told = run_lousho(["chat", "desk"]).stderr
    found = {check.id: check for check in examine("desk", env={}, cwd=tmp_path, encoding="utf-8").checks}

    assert "note: 'desk/.env' exists but only ./.env is read" in told
    assert (found["dotenv.unread"].status, "sk-x" in str(found)) == ("warn", False)
