"""Command lines of chance, places that do not exist, agents that print: an exit code, a sentence, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lousho_cli.console import Console
from lousho_cli.main import main

if TYPE_CHECKING:
    from conftest import RunLousho

WORDS = st.one_of(
    st.sampled_from(
        [
            "--model",
            "--model=",
            "--model=-x",
            "--session",
            "--session=a b",
            "--json",
            "--ping=1",
            "-h",
            "--help",
            "--",
            "-",
        ]
    ),
    st.sampled_from(
        [
            "chat",
            "doctor",
            "help",
            "version",
            "init",
            "run",
            "inspect",
            "--timeout",
            "--output=text",
            "--prompt",
            "-y",
            "-p",
            "--yes",
            "--port",
            "nope.yaml",
            "nope.txt",
        ]
    ),
    st.text(st.characters(exclude_characters="\0"), max_size=20),
)


def run(*words: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["chat", "run", "inspect", "help", "version", "init", "frob"]), st.lists(WORDS, max_size=5))
def test_any_command_line_ends_with_a_known_code_and_no_traceback(verb: str, words: list[str]) -> None:
    # A flag that does not exist keeps every `init` from being a right one, which would write files and install.
    arguments = [*(word for word in words if word != "--"), "--frob"] if verb == "init" else words

    code, out, err = run(verb, *arguments)

    assert code in (0, 1, 2)
    assert "Traceback" not in err
    assert "unexpected" not in err or "unexpected argument" in err
    assert (code == 0) == (err == "")
    assert code == 0 or out == ""
    assert verb != "init" or code == 2 or "-h" in words or "--help" in words
    assert code != 2 or "usage: " in err or verb == "init"


def test_a_home_directory_that_is_not_known_is_a_usage_error() -> None:
    for words in (["~no-such-person/x"], ["x", "--sdk-path=~no-such-person/x"]):
        code, _, err = run("init", "--yes", "--no-install", *words)
        assert (code, "names a home directory that is not known" in err) == (2, True)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a directory that somebody stands in")
def test_a_working_directory_that_was_deleted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "agent.py").write_text("agent = {'model': 'mock/demo'}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    agent = str(tmp_path / "agent.py")
    for words in (
        ["doctor", "--json"],
        ["chat", agent],
        ["run", agent, "hello"],
        ["inspect", agent],
        ["init", "x", "--yes", "--no-install"],
    ):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert err.startswith("error: the current directory does not exist any more\n")
    made = tmp_path / "made"
    code, out, _ = run("init", str(made), "--yes", "--no-install", "--no-git", "--provider", "mock")
    assert code == 0
    assert f"  cd {str(made).lstrip('/')}" in out or f"  cd {made}" in out


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_project_that_cannot_be_written_leaves_links_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine", encoding="utf-8")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "README.md").symlink_to("../mine.md")
    (tmp_path / "x" / "tests").write_text("a file where a folder should be", encoding="utf-8")

    code, _, err = run("init", str(tmp_path / "x"), "--yes", "--no-install", "--no-git", "--force")

    assert (code, err.startswith("error: Not a directory")) == (1, True)
    assert {path.name for path in (tmp_path / "x").iterdir()} == {"README.md", "tests"}
    assert (tmp_path / "x" / "README.md").readlink() == Path("../mine.md")


@pytest.mark.skipif(os.name == "nt", reason="echo is no program there")
def test_doctor_json_is_one_document_also_when_the_agent_prints(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, subprocess\nprint('python')\nos.write(1, b'descriptor\\n')\nsubprocess.run(['echo', 'child'])\n"
        "agent = {'model': 'mock/demo'}\n",
        encoding="utf-8",
    )

    done = run_lousho(["doctor", "--json", str(tmp_path / "agent.py")])

    assert json.loads(done.stdout)["agent"]["kind"] == "module"
    assert set(done.stderr.split()) == {"python", "descriptor", "child"}


def test_a_stdout_that_an_agent_closed_is_no_failure() -> None:
    closed = io.StringIO()
    closed.close()

    Console(stdout=closed).flush()

    assert closed.closed


@pytest.mark.parametrize("variable", ["LOUSHO_MODEL", "OPENAI_BASE_URL"])
def test_a_key_in_the_wrong_variable_is_not_shown(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "sk-proj-0123456789abcdefghij"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv(variable, key)
    (tmp_path / "agent.py").write_text("agent = {'instructions': 'x'}\n", encoding="utf-8")

    for words in (
        ["doctor", "agent.py"],
        ["doctor", "--json"],
        ["chat", "agent.py"],
        ["run", "agent.py", "hello"],
        ["inspect", "agent.py"],
        ["inspect", "agent.py", "--json"],
    ):
        code, out, err = run(*words)
        assert code == 1 or words == ["doctor", "--json"]
        assert key not in out + err
