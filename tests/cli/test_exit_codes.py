"""How a command ends: its exit code, and words instead of a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunLousho

LOUSHO = [sys.executable, "-m", "lousho_cli"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc or /dev/full")


@pytest.mark.spec("CLI-09")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param([], 0, id="nothing at all"),
        pytest.param(["--help"], 0, id="help"),
        pytest.param(["doctor"], 0, id="doctor with warnings only"),
        pytest.param(["init", "--yes", "--no-install", "--no-git"], 0, id="init"),
        pytest.param(["chat", "mock.json"], 0, id="chat at the end of its input"),
        pytest.param(["run", "mock.json", "hello"], 0, id="run"),
        pytest.param(["inspect", "mock.json"], 0, id="inspect"),
        pytest.param(["chat", "broken.yaml"], 1, id="an agent that cannot load"),
        pytest.param(["run", "broken.yaml", "hello"], 1, id="run of an agent that cannot load"),
        pytest.param(["inspect", "broken.yaml"], 1, id="inspect of an agent that cannot load"),
        pytest.param(["chat", "missing.yaml"], 1, id="an agent that is not there"),
        pytest.param(["doctor", "broken.yaml"], 1, id="a failed check"),
        pytest.param(["doctor", "missing.yaml"], 1, id="a check of an agent that is not there"),
    ],
)
def test_success_is_0_and_a_failure_at_work_is_1(
    run_lousho: RunLousho, tmp_path: Path, args: list[str], code: int
) -> None:
    (tmp_path / "mock.json").write_text('{"name": "a", "prompt": "b", "provider": {"type": "mock", "model": "m"}}')
    (tmp_path / "broken.yaml").write_text("name: [unclosed\n")

    done = run_lousho(args)

    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.spec("CLI-09", "ERR-16")
def test_an_agent_that_cannot_load_is_reported_with_code_and_fix(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("name: [unclosed\n")

    done = run_lousho(["chat", "broken.yaml"])

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert "broken.yaml" in done.stderr
    assert "\n[LOUSHO_SPEC_INVALID] " in done.stderr


def test_a_traceback_is_shown_only_when_asked_for(run_lousho: RunLousho) -> None:
    quiet = run_lousho(["chat", "missing.yaml"])
    loud = run_lousho(["chat", "missing.yaml"], env={"LOUSHO_DEBUG": "1"})

    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr
    assert quiet.stderr.strip().splitlines()[-1] in loud.stderr


def test_a_reader_that_leaves_the_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*LOUSHO, "--help"], stdout=writer, stderr=subprocess.PIPE, timeout=30, check=False)
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


def test_an_error_that_nobody_reads_keeps_its_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*LOUSHO, "frob"], stdout=writer, stderr=writer, timeout=30, check=False)
    finally:
        os.close(writer)

    assert done.returncode == 2


@LINUX
def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run([*LOUSHO, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)

    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: No space left on device",
        "Free some space and run the command again.",
    ]


@pytest.mark.spec("BEY-18")
@LINUX
def test_a_directory_that_cannot_be_made_is_a_sentence(run_lousho: RunLousho) -> None:
    done = run_lousho(["init", "/proc/nowhere/agent", "--yes", "--no-install"])

    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "/proc/nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@LINUX
@pytest.mark.parametrize("args", [["--help"], ["doctor"], ["init", "x", "--yes", "--no-install"]])
def test_a_working_directory_that_is_gone_is_no_traceback(tmp_path: Path, args: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(gone), *LOUSHO, *args], capture_output=True, timeout=30, check=False
    )

    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell closes the streams")
def test_closed_standard_streams_are_no_traceback(tmp_path: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *LOUSHO, "init", "x", "--yes", "--no-install"],
        cwd=tmp_path,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "x" / "agent.py").exists()


@pytest.mark.spec("BEY-18")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["doctor"], 0),
        (["init", "--yes", "--no-install"], 0),
        (["frob"], 2),
        (["run", "missing.py", "hello"], 1),
        (["inspect", "missing.py"], 1),
    ],
)
def test_no_home_is_needed(run_lousho: RunLousho, args: list[str], code: int) -> None:
    names = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    without: dict[str, str | None] = dict.fromkeys(names)

    done = run_lousho(args, env=without)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("verb", ["chat", "run", "inspect"])
def test_a_console_without_the_characters_degrades(run_lousho: RunLousho, verb: str, encoding: str) -> None:
    prompt = ["hello"] if verb == "run" else []
    done = run_lousho([verb, "мой→агент.yaml", *prompt], env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})

    assert done.returncode == 1
    assert ".yaml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        pytest.param({}, False, id="a pipe"),
        pytest.param({"FORCE_COLOR": "1"}, True, id="forced"),
        pytest.param({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, id="NO_COLOR wins"),
        pytest.param({"FORCE_COLOR": "0"}, False, id="forced off"),
    ],
)
def test_colours_appear_in_a_pipe_only_when_forced(run_lousho: RunLousho, env: dict[str, str], coloured: bool) -> None:
    assert ("\x1b[" in run_lousho(["frob"], env=env).stderr) is coloured
    assert ("\x1b[" in run_lousho(["doctor"], env=env).stdout) is coloured
