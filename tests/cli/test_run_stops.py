"""What stops a `lousho run`: a time limit, a signal, a reader that leaves. Nothing that was said is lost, and nothing hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from one_turn_agent import one_turn_agent

from lousho.testing import check_event_order

if TYPE_CHECKING:
    from conftest import RunLousho

RUN = [sys.executable, "-m", "lousho_cli", "run", "agent.py"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and shells")
PATIENCE = 30.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return one_turn_agent(tmp_path / "project")


@contextmanager
def running(project: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """A run that has got to where only a stop ends it."""
    with subprocess.Popen(
        [*RUN, *arguments],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        until = time.monotonic() + PATIENCE
        while not (project / "begun").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            os.sched_yield()
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.spec("BEY-25")
@pytest.mark.parametrize(
    ("prompt", "said"), [("drone", "It goes on and on"), ("forever", "I begin."), ("stuck", "I begin.")]
)
def test_a_time_limit_stops_the_run_and_keeps_what_was_said(
    run_lousho: RunLousho, project: Path, prompt: str, said: str
) -> None:
    text = run_lousho(["run", "agent.py", prompt, "--timeout", "0.3"], cwd=project)
    document = run_lousho(["run", "agent.py", prompt, "--timeout=0.3", "--output=json"], cwd=project)

    parsed = json.loads(document.stdout)
    assert (text.returncode, document.returncode) == (1, 1)
    assert text.stdout == (f"{parsed['text']}\n" if parsed["text"] else "")
    assert said in [message["content"] for message in parsed["messages"]]
    assert text.stderr.startswith("error: The run did not finish within 0.3 seconds (--timeout)\n")
    assert "\n[LOUSHO_OPERATION_TIMEOUT] " in text.stderr
    assert (parsed["finishReason"], parsed["abortReason"]["name"]) == ("aborted", "TimeoutError")
    assert parsed["error"]["code"] == "LOUSHO_OPERATION_TIMEOUT"


@pytest.mark.spec("BEY-25")
def test_a_time_limit_that_is_kept_changes_nothing(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "hello", "--timeout", "60"], cwd=project)

    assert (done.returncode, done.stdout, done.stderr) == (0, "You said hello.\n", "")


@pytest.mark.parametrize("prompt", ["blocking", "stubborn"])
def test_code_that_nothing_can_stop_does_not_outlast_the_time_limit_for_long(
    run_lousho: RunLousho, project: Path, prompt: str
) -> None:
    done = run_lousho(["run", "agent.py", prompt, "--timeout", "0.3", "--output", "stream-json"], cwd=project)

    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert (events[-1]["type"], events[-1]["finishReason"]) == ("run.done", "aborted")
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert "did not finish within 0.3 seconds" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spec("BEY-22")
@POSIX
@pytest.mark.parametrize(
    ("number", "code", "says"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "terminated\n")]
)
def test_a_signal_stops_the_run_and_what_was_said_is_on_stdout(
    project: Path, number: signal.Signals, code: int, says: str
) -> None:
    with running(project, "drone") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (code, "It goes on and on\n", says)


@POSIX
def test_a_signal_leaves_whole_json(project: Path) -> None:
    with running(project, "drone", "--output", "json") as process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)

    document = json.loads(out)
    assert process.returncode == 130
    assert (document["finishReason"], document["text"]) == ("aborted", "It goes on and on")
    assert document["messages"][-1]["interrupted"] is True
    assert "error" not in document


@POSIX
@pytest.mark.parametrize("prompt", ["forever", "stuck"])
def test_ctrl_c_ends_a_run_whose_tool_does_not_end(project: Path, prompt: str) -> None:
    with running(project, prompt) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, err) == (130, "I begin.\n", "interrupted\n")


@POSIX
@pytest.mark.parametrize("presses", [1, 2])
def test_a_tool_that_refuses_to_end_keeps_the_program_for_a_moment_or_until_the_second_ctrl_c(
    project: Path, presses: int
) -> None:
    with running(project, "stubborn") as process:
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        if presses == 2:
            process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out, said, err) == (130, "I begin.\n", "interrupted\n", "")
    assert presses == 1 or time.monotonic() - started < 2.5


@POSIX
def test_the_third_ctrl_c_ends_a_run_that_blocks_the_program(project: Path) -> None:
    with running(project, "blocking", "--output", "stream-json") as process:
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)

    events = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, err) == (130, "interrupted\n")
    assert (events[-1]["type"], events[-1]["finishReason"]) == ("run.done", "aborted")


@POSIX
def test_ctrl_c_ends_the_reading_of_stdin(project: Path) -> None:
    with subprocess.Popen(
        RUN, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "reading from stdin\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 130
        assert process.stderr.read() == ""


@pytest.mark.spec("BEY-20")
def test_a_silent_stdin_is_announced_and_then_read(project: Path) -> None:
    with subprocess.Popen(
        RUN, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "reading from stdin\n"
        out, err = process.communicate("late\n", timeout=PATIENCE)

    assert (process.returncode, out, err) == (0, "You said late.\n", "")


def test_beside_an_argument_a_stdin_that_stays_silent_is_given_up(project: Path) -> None:
    with subprocess.Popen(
        [*RUN, "hello"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.wait(timeout=PATIENCE) == 0  # nobody has written to its stdin, or closed it
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read().splitlines()

    assert out == "You said hello.\n"
    assert err == [
        f"reading from stdin, at most 5 seconds if it stays silent; < {os.devnull} skips it",
        "note: stdin was silent for 5 seconds and is left out",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who is at the other end of a pipe")
def test_a_program_of_the_same_pipeline_is_waited_for_however_long_it_is_silent(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"(sleep 7; echo late) | {' '.join(RUN)} hello"],
        cwd=project,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "You said hello\n\nlate.\n")
    assert done.stderr == "reading from stdin\n"


@POSIX
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_a_reader_that_has_left_is_no_error(project: Path, output: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*RUN, "hello", "--output", output],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


@POSIX
def test_a_reader_that_leaves_in_the_middle_ends_the_run(project: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"({' '.join(RUN)} stutter --output stream-json; echo $? >&2) </dev/null | head -n 3"],
        cwd=project,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    events = [json.loads(line) for line in done.stdout.splitlines()]
    check_event_order(events, complete=False)
    assert [event["type"] for event in events] == ["run.start", "step.start", "text.delta"]
    assert done.stderr == b"141\n"
