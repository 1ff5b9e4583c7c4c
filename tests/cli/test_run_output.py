"""`lousho run --output json` and `--output stream-json`: what programs read, also when the run failed or never began."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from one_turn_agent import one_turn_agent

from lousho.testing import check_event_order

if TYPE_CHECKING:
    from conftest import RunLousho

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return one_turn_agent(tmp_path / "project")


def lines_of(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.spec("BEY-21")
def test_json_is_one_document_with_the_whole_result(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "look cats", "--output", "json"], cwd=project)

    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert next(iter(document)) == "schemaVersion"
    assert document["schemaVersion"] == 1
    assert (document["text"], document["finishReason"], document["steps"]) == ("Done: found cats.", "stop", 2)
    assert [message["role"] for message in document["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [call["function"]["name"] for call in document["toolCalls"]] == ["lookup"]
    assert document["usage"]["modelCalls"] == len(document["stepUsage"]) == 2
    assert document["agentName"] == "agent"
    assert document["runId"]
    assert not {"error", "waiting"} & set(document)


@pytest.mark.spec("BEY-21")
def test_stream_json_is_every_event_of_the_run_in_order(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "look cats", "--output", "stream-json"], cwd=project)

    events = lines_of(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    check_event_order(events)
    assert (events[0]["type"], events[-1]["type"]) == ("run.start", "run.done")
    assert (events[-1]["text"], events[-1]["finishReason"]) == ("Done: found cats.", "stop")
    assert [event["args"] for event in events if event["type"] == "tool.start"] == [{"q": "cats"}]


@pytest.mark.spec("BEY-21")
@POSIX
def test_stream_json_writes_each_event_as_soon_as_it_happens(project: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "lousho_cli", "run", "agent.py", "drone", "--output", "stream-json"],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        events = [json.loads(process.stdout.readline()) for _ in range(4)]  # the run itself does not end
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)

    events += lines_of(rest)
    assert [event["type"] for event in events[:4]] == ["run.start", "step.start", "text.delta", "text.delta"]
    check_event_order(events)
    assert (events[-1]["type"], events[-1]["finishReason"]) == ("run.done", "aborted")
    assert events[-1]["text"] == "It goes on and on"
    assert process.returncode == 130


@pytest.mark.spec("BEY-21", "BEY-24")
def test_a_run_that_yes_lets_go_on_ends_with_the_stream_of_its_continuation(
    run_lousho: RunLousho, project: Path
) -> None:
    done = run_lousho(["run", "agent.py", "both", "--yes", "--output", "stream-json"], cwd=project)
    whole = run_lousho(["run", "agent.py", "both", "--yes", "--output", "json"], cwd=project)

    paused, continued = (list(group) for _, group in groupby(lines_of(done.stdout), lambda event: event["runId"]))
    check_event_order(paused)
    check_event_order(continued, resumed=True)
    assert paused[-1]["finishReason"] == "awaiting-approval"
    assert (continued[-1]["type"], continued[-1]["finishReason"]) == ("run.done", "stop")
    document = json.loads(whole.stdout)
    assert (document["finishReason"], len(document["toolCalls"])) == ("stop", 2)
    assert document["usage"]["modelCalls"] == 2  # before the pause and after it


@pytest.mark.spec("BEY-23")
def test_json_of_a_run_that_waits_has_what_it_waits_for(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "mixed", "--output", "json"], cwd=project)

    document = json.loads(done.stdout)
    assert (done.returncode, document["finishReason"]) == (3, "awaiting-approval")
    assert [request["approvalId"] for request in document["waiting"]] == document["approvalIds"]
    email, question = document["waiting"]
    assert (email["toolName"], email["args"]) == ("send_email", {"to": "sam"})
    assert (question["kind"], question["question"]["options"]) == ("question", ["Lisbon", "Porto"])
    assert "waiting: send_email" in done.stderr


@pytest.mark.parametrize(
    ("prompt", "text", "code"),
    [
        pytest.param("fail", "", "LOUSHO_PROVIDER_REQUEST_FAILED", id="at once"),
        pytest.param("break", "It goes on and on", "LOUSHO_PROVIDER_REQUEST_FAILED", id="half-way"),
    ],
)
def test_a_run_that_fails_is_json_too(run_lousho: RunLousho, project: Path, prompt: str, text: str, code: str) -> None:
    done = run_lousho(["run", "agent.py", prompt, "--output", "json"], cwd=project)
    streamed = run_lousho(["run", "agent.py", prompt, "--output", "stream-json"], cwd=project)

    document = json.loads(done.stdout)
    assert (done.returncode, streamed.returncode) == (1, 1)
    assert (document["schemaVersion"], document["finishReason"], document["text"]) == (1, "error", text)
    assert document["error"]["code"] == code
    assert document["error"]["message"] in done.stderr
    assert document["error"]["hint"] in done.stderr
    assert f"[{code}]" in done.stderr
    events = lines_of(streamed.stdout)
    check_event_order(events)
    assert [event["type"] for event in events[-2:]] == ["error", "run.done"]
    assert events[-2]["error"]["message"] == document["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        pytest.param(["missing.yaml", "hi"], "LOUSHO_SPEC_NOT_FOUND", 1, id="an agent that is not there"),
        pytest.param(["bare", "hi"], "LOUSHO_CONFIG_MISSING_PROVIDER", 1, id="no model"),
        pytest.param(["agent.py"], "LOUSHO_CONFIG_INVALID", 2, id="nothing on stdin"),
    ],
)
def test_a_run_that_never_began_is_one_json_object_with_the_error(
    run_lousho: RunLousho, project: Path, arguments: list[str], code: str, exit_code: int
) -> None:
    (project / "bare").mkdir()
    (project / "bare" / "instructions.md").write_text("Help.", encoding="utf-8")

    document, line = (
        run_lousho(["run", *arguments, "--output", output], cwd=project) for output in ("json", "stream-json")
    )

    assert (document.returncode, line.returncode) == (exit_code, exit_code)
    error = json.loads(document.stdout)["error"]
    assert error["code"] == code
    assert error["message"] in document.stderr
    assert error["hint"]
    assert lines_of(line.stdout) == [{"type": "error", "v": 1, "error": error}]


def test_an_error_that_is_none_of_ours_has_no_code(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from lousho import create_agent\nfrom lousho.testing import mock_model\n"
        "agent = create_agent(provider=mock_model(['hi']))\n\n\ndef ready():\n    raise KeyError('tea pot')\n\n\n"
        "agent.ready = ready\n",
        encoding="utf-8",
    )

    done = run_lousho(["run", "agent.py", "hi", "--output", "json"])

    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == {"name": "KeyError", "message": "'tea pot'", "code": None, "hint": None}
    assert done.stderr == "error: KeyError: 'tea pot'\n"


def test_a_usage_error_writes_nothing_to_stdout(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "hi", "--output", "json", "--timeout", "soon"], cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
