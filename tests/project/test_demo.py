"""`make demo`, as it runs for a newcomer: in a pipe, on a terminal, and without anything left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def demo(project_root: Path, folder: Path, sent: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(project_root / "tools/demo.py")],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        input=sent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )


@pytest.mark.spec("BEY-01")
def test_it_scaffolds_asks_one_question_with_a_tool_call_and_answers_the_lines_on_stdin(
    project_root: Path, tmp_path: Path
):
    done = demo(project_root, tmp_path, "List my notes\n")
    assert done.returncode == 0, done.stdout
    scaffold, question, chat = done.stdout.split("\n$ ")[1:]
    assert scaffold.startswith("lousho init notes-agent --template tools")
    assert "[add_note] " in question
    assert "water the plants on Friday" in question
    assert "  -> " in question
    assert "[list_notes] " in chat
    assert "water the plants on Friday" in chat
    assert "Next:" not in scaffold  # it would lead into a folder that is gone by then
    assert chat.rstrip().endswith("lousho chat my-agent")
    assert "lousho init my-agent" in chat
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("BEY-01")
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_demo_ends_well_when_nobody_types_anything(project_root: Path, tmp_path: Path):
    before = sorted(project_root.iterdir())
    venv = Path(sys.prefix)
    command = ["make", "-s", "demo", "-o", f"{venv}/.ready-run", f"VENV={venv}", f"PY={sys.executable}"]
    done = subprocess.run(
        command,
        cwd=project_root,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert '[add_note] {"text":"water the plants on Friday"}' in done.stdout
    assert (list(tmp_path.iterdir()), sorted(project_root.iterdir())) == ([], before)


@pytest.mark.spec("BEY-01")
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is needed")
def test_on_a_terminal_it_opens_the_chat_and_leaves_with_quit_and_no_history(project_root: Path, tmp_path: Path):
    import pexpect

    state, scratch = tmp_path / "state", tmp_path / "scratch"
    scratch.mkdir()
    child = pexpect.spawn(
        sys.executable,
        [str(project_root / "tools/demo.py")],
        cwd=str(tmp_path),
        env={
            **os.environ,
            "TMPDIR": str(scratch),
            "XDG_STATE_HOME": str(state),
            "PROMPT_TOOLKIT_NO_CPR": "1",
        },
        encoding="utf-8",
        timeout=40,
        dimensions=(40, 120),
    )
    try:
        child.expect("Now you:")
        child.expect("lousho chat notes-agent")
        child.sendline("List my notes")
        child.expect("list_notes")
        child.sendline("/quit")
        child.expect(pexpect.EOF)
    finally:
        child.close()
    assert child.exitstatus == 0
    assert not state.exists()
    assert list(scratch.iterdir()) == []
