"""`lousho run`: where the prompt comes from, what goes where, and what a script can tell by the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_files import write_files
from one_turn_agent import one_turn_agent

if TYPE_CHECKING:
    from conftest import RunLousho

RUN = [sys.executable, "-m", "lousho_cli", "run", "agent.py"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="uses a POSIX shell")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return one_turn_agent(tmp_path / "project")


@pytest.mark.spec("BEY-20", "BEY-21")
def test_stdout_has_the_answer_alone_without_what_led_to_it(run_lousho: RunLousho, project: Path) -> None:
    said = run_lousho(["run", "agent.py", "hello there"], cwd=project)
    looked = run_lousho(["run", "agent.py", "look cats", "--output", "text"], cwd=project)

    assert (said.returncode, said.stdout, said.stderr) == (0, "You said hello there.\n", "")
    assert (looked.returncode, looked.stdout, looked.stderr) == (0, "Done: found cats.\n", "")


@pytest.mark.spec("BEY-20")
@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        pytest.param(["one"], "", "one", id="the argument"),
        pytest.param([], "from the pipe\n", "from the pipe", id="stdin without an argument"),
        pytest.param(["-"], "from the pipe\n", "from the pipe", id="stdin for a dash"),
        pytest.param(["Review this"], "+ a\n- b\n", "Review this\n\n+ a\n- b", id="the argument, then stdin"),
        pytest.param(["Review this"], " \n\n", "Review this", id="an argument and nothing but blanks"),
        pytest.param(["--", "-5 degrees"], "", "-5 degrees", id="a prompt that begins with a dash"),
        pytest.param(["--", "--yes"], "", "--yes", id="a prompt that looks like a flag"),
        pytest.param([], "  indented\r\n\r\nlast\r\n\r\n", "  indented\n\nlast", id="line breaks of Windows"),
        pytest.param([], "\ufeffmarked", "marked", id="a byte order mark"),
        pytest.param([], "日本語 🎉", "日本語 🎉", id="any language"),
    ],
)
def test_the_prompt_is_the_argument_or_stdin_or_both(
    run_lousho: RunLousho, project: Path, arguments: list[str], stdin: str, prompt: str
) -> None:
    done = run_lousho(["run", "agent.py", "--output=json", *arguments], input=stdin, cwd=project)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["messages"][0] == {"role": "user", "content": prompt}


@pytest.mark.spec("BEY-22")
@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        pytest.param([""], "", "the prompt is empty", id="an empty argument"),
        pytest.param(["  \n"], "", "the prompt is empty", id="a blank argument"),
        pytest.param([], "", "the prompt is empty", id="nothing on stdin"),
        pytest.param(["-"], " \n", "the prompt is empty", id="blanks on stdin"),
        pytest.param(["hi", "there"], "", "unexpected argument 'there'", id="a prompt without quotes"),
        pytest.param(["-5 degrees"], "", "unknown flag -5 degrees. Put -- before a prompt", id="a dash without --"),
        pytest.param(["hi", "--output", "jsn"], "", "Did you mean json?", id="an output that does not exist"),
        pytest.param(["hi", "--timeout", "30s"], "", "'30s' is not a number of seconds", id="a unit"),
        pytest.param(["hi", "--timeout=0"], "", "'0' is not a number of seconds above 0", id="no time at all"),
        pytest.param(["hi", "--timeout=-1"], "", "'-1' is not a number of seconds above 0", id="negative time"),
        pytest.param(["hi", "--timeout=nan"], "", "'nan' is not a number of seconds", id="no number"),
        pytest.param(["hi", "--timeout=1e9"], "", "above 0 and up to 10,000,000", id="more time than there is"),
        pytest.param(["hi", "--timeout=inf"], "", "'inf' is not a number of seconds", id="endless time"),
        pytest.param(["hi", "-y"], "", "unknown flag -y", id="a short flag"),
        pytest.param(["hi", "--max-cost", "1"], "", "unknown flag --max-cost", id="a flag to come"),
        pytest.param(["hi", "--modle", "a/b"], "", "Did you mean --model?", id="a misspelt flag"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error(
    run_lousho: RunLousho, project: Path, arguments: list[str], stdin: str, says: str
) -> None:
    done = run_lousho(["run", "agent.py", *arguments], input=stdin, cwd=project)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "[LOUSHO_CONFIG_INVALID] usage: lousho run <" in done.stderr


@pytest.mark.spec("BEY-22")
@pytest.mark.parametrize(
    ("prompt", "code", "stdout", "stderr"),
    [
        pytest.param("hello", 0, "You said hello.\n", "", id="finished"),
        pytest.param("other", 0, "Half an ans\n", "", id="finished for a reason without a name"),
        pytest.param("silent", 0, "", "", id="finished without a word"),
        pytest.param("fail", 1, "", "error: the model is asleep\n[LOUSHO_PROVIDER_REQUEST_FAILED] ", id="failed"),
        pytest.param("break", 1, "It goes on and on\n", "error: the line is dead", id="failed half-way"),
        pytest.param("length", 1, "Half an ans\n", "stopped: the reply reached its token limit", id="cut off"),
        pytest.param("content_filter", 1, "Half an ans\n", "stopped: the provider's content filter", id="filtered"),
        pytest.param("loop", 1, "Stopped after 3 steps: ", "stopped: the run used up its steps", id="out of steps"),
        pytest.param("email sam", 3, "", "waiting: send_email(", id="waits for an approval"),
        pytest.param("ask", 3, "", "waiting: the agent asks: Where to?", id="waits for an answer"),
    ],
)
def test_the_exit_code_says_how_it_ended_and_stderr_why(
    run_lousho: RunLousho, project: Path, prompt: str, code: int, stdout: str, stderr: str
) -> None:
    done = run_lousho(["run", "agent.py", prompt], cwd=project)

    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(stdout)
    assert stdout.endswith("\n") is (done.stdout == stdout != "")
    assert done.stderr.startswith(stderr)
    assert (done.stderr == "") is (code == 0)
    assert "Traceback" not in done.stderr


@pytest.mark.spec("BEY-23")
def test_a_run_that_waits_names_every_call_with_all_of_its_arguments(run_lousho: RunLousho, project: Path) -> None:
    long = "x" * 20_000

    done = run_lousho(["run", "agent.py"], input=f"email {long}", cwd=project)
    both = run_lousho(["run", "agent.py", "both"], cwd=project)

    assert (done.returncode, both.returncode) == (3, 3)
    assert f'waiting: send_email({{"to":"{long}"}}) needs approval\n' in done.stderr
    assert [line for line in both.stderr.splitlines() if line.startswith("waiting: ")] == [
        'waiting: send_email({"to":"sam"}) needs approval',
        'waiting: send_email({"to":"kim"}) needs approval',
    ]
    assert "What is named above has not run; other calls of the same step have." in both.stderr
    assert "Without a store the pause ends with this command." in both.stderr
    assert "lousho chat agent.py" in both.stderr
    assert "--yes" in both.stderr
    assert not (project / "sent.txt").exists()


@pytest.mark.spec("BEY-24")
def test_yes_approves_each_call_and_names_it(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "both", "--yes"], cwd=project)

    assert (done.returncode, done.stdout) == (0, "Done: sent to kim.\n")
    assert done.stderr.splitlines() == [
        'approved by --yes: send_email({"to":"sam"})',
        'approved by --yes: send_email({"to":"kim"})',
    ]
    assert sorted((project / "sent.txt").read_text(encoding="utf-8").split()) == ["kim", "sam"]


@pytest.mark.spec("BEY-24")
@pytest.mark.parametrize("prompt", ["ask", "mixed"])
def test_yes_answers_no_question_and_runs_nothing_beside_one(run_lousho: RunLousho, project: Path, prompt: str) -> None:
    done = run_lousho(["run", "agent.py", prompt, "--yes"], input="Lisbon\n", cwd=project)

    assert done.returncode == 3
    assert "waiting: the agent asks: Where to?\n  1. Lisbon\n  2. Porto\n" in done.stderr
    assert ('waiting: send_email({"to":"sam"}) needs approval\n' in done.stderr) is (prompt == "mixed")
    assert "approved" not in done.stderr
    assert "lousho chat agent.py" in done.stderr
    assert not (project / "sent.txt").exists()


@pytest.mark.spec("BEY-25")
def test_the_model_flag_replaces_the_model_for_this_run(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"named/instructions.md": "Help.", "named/agent.json": json.dumps({"model": "openai/gpt-4.1-mini"})},
    )

    plain = run_lousho(["run", "named", "hi"])
    other = run_lousho(["run", "named", "hi", "--model", "mock/canned", "--output", "json"])

    assert (plain.returncode, plain.stdout) == (1, "")
    assert "[LOUSHO_PROVIDER_MISSING_API_KEY] " in plain.stderr
    assert "--model mock/demo" in plain.stderr
    assert other.returncode == 0
    assert list(json.loads(other.stdout)["usage"]["byModel"]) == ["mock/canned"]


@pytest.mark.spec("BEY-25")
@pytest.mark.parametrize("path", ["bare", "options.py"])
def test_without_a_model_and_a_key_it_is_an_error_and_never_the_demo_model(
    run_lousho: RunLousho, tmp_path: Path, path: str
) -> None:
    write_files(tmp_path, {"bare/instructions.md": "Help.", "options.py": "agent = {'name': 'a'}\n"})

    done = run_lousho(["run", path, "hi"])
    named = run_lousho(["run", path, "hi", "--model", "mock/demo"])

    assert (done.returncode, done.stdout) == (1, "")
    assert "[LOUSHO_CONFIG_MISSING_PROVIDER] " in done.stderr
    assert "--model mock/demo" in done.stderr
    assert (named.returncode, named.stdout.strip() != "", named.stderr) == (0, True, "")


@pytest.mark.spec("BEY-20")
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_nothing_that_code_of_the_agent_prints_reaches_stdout(
    run_lousho: RunLousho, project: Path, output: str
) -> None:
    with (project / "agent.py").open("a", encoding="utf-8") as file:
        file.write("\nprint('at import')\n")

    done = run_lousho(["run", "agent.py", "shout hey", "--output", output], cwd=project)

    assert done.returncode == 0
    for printed in ("at import", "printed hey", "descriptor", "child"):
        assert printed in done.stderr
        assert printed not in done.stdout
    if output == "text":
        assert done.stdout == "Done: shouted.\n"
    elif output == "json":
        assert json.loads(done.stdout)["text"] == "Done: shouted."
    else:
        assert [json.loads(line)["v"] for line in done.stdout.splitlines()] == [1] * done.stdout.count("\n")


@pytest.mark.spec("CLI-09", "CLI-27")
@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        pytest.param("missing.py", None, "LOUSHO_CONFIG_INVALID", id="not there"),
        pytest.param("missing.yaml", None, "LOUSHO_SPEC_NOT_FOUND", id="a spec that is not there"),
        pytest.param("broken.py", "def (:\n", "LOUSHO_CONFIG_INVALID", id="not Python"),
        pytest.param("empty.py", "", "LOUSHO_CONFIG_INVALID", id="no agent in it"),
        pytest.param("agent.txt", "hello", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", id="another format"),
    ],
)
def test_an_agent_that_cannot_load_is_exit_1_with_code_and_fix(
    run_lousho: RunLousho, tmp_path: Path, name: str, content: str | None, code: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")

    done = run_lousho(["run", name, "hi"])

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert f"\n[{code}] " in done.stderr
    assert "Traceback" not in done.stderr
    assert code != "LOUSHO_CONFIG_INVALID" or "lousho run: " in done.stderr or name == "broken.py"


def test_variables_come_from_dotenv_unless_they_are_set(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            ".env": "\ufeffFROM_FILE=file\nSET=file\nwhat is this\n",
            "agent.py": (
                "import os\nfrom lousho.testing import mock_model\n"
                "config = {'provider': mock_model([os.environ['FROM_FILE'] + ' ' + os.environ['SET']])}\n"
            ),
        },
    )

    done = run_lousho(["run", "agent.py", "hi"], env={"SET": "environment"})

    assert (done.returncode, done.stdout) == (0, "file environment\n")
    assert done.stderr.startswith("note: ")
    assert "line 3 could not be understood" in done.stderr


def test_more_than_ten_megabytes_on_stdin_are_refused(run_lousho: RunLousho, project: Path) -> None:
    fits = run_lousho(["run", "agent.py"], input=b"count" + b" x" * 4_999_997, cwd=project)
    over = run_lousho(["run", "agent.py"], input=b"count" + b" x" * 5_000_000, cwd=project)

    assert (fits.returncode, fits.stdout) == (0, "9999999 characters\n")
    assert (over.returncode, over.stdout) == (2, "")
    assert over.stderr.startswith("error: stdin has more than the 10 MB that a prompt may have")
    assert "\n[LOUSHO_CONFIG_INVALID] usage: lousho run <" in over.stderr


@pytest.mark.parametrize("prompt", ["", "  "])
def test_an_empty_prompt_is_a_document_where_one_is_asked_for(
    run_lousho: RunLousho, project: Path, prompt: str
) -> None:
    done = run_lousho(["run", "agent.py", prompt, "--output", "json"], cwd=project)

    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"] == "the prompt is empty"


def test_an_empty_prompt_is_told_before_a_model_that_is_missing(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, {"bare/instructions.md": "Help."})

    empty = run_lousho(["run", "bare"], input="")
    asked = run_lousho(["run", "bare"], input="hello")

    assert (empty.returncode, asked.returncode) == (2, 1)
    assert empty.stderr.startswith("error: the prompt is empty: stdin held no text")
    assert "[LOUSHO_CONFIG_MISSING_PROVIDER] " in asked.stderr


def test_bytes_that_are_no_text_are_replaced_and_told(run_lousho: RunLousho, project: Path) -> None:
    done = run_lousho(["run", "agent.py", "-"], input=b"repr \xff\xfe ok", cwd=project)

    assert (done.returncode, done.stdout) == (0, "'repr \ufffd\ufffd ok'\n")
    assert "note: stdin is not utf-8 text" in done.stderr


@POSIX
@pytest.mark.parametrize(
    ("closed", "code", "stdout"),
    [("<&-", 0, b"You said hello.\n"), (">&- </dev/null", 0, b""), ("2>&- </dev/null", 0, b"You said hello.\n")],
)
def test_closed_standard_streams_are_no_failure(project: Path, closed: str, code: int, stdout: bytes) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *RUN, "hello"],
        cwd=project,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, stdout, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="uses /dev/full")
@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_an_answer_that_a_full_disk_loses_is_a_failure(project: Path, output: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [*RUN, "hello", "--output", output],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: No space left on device",
        "Free some space and run the command again.",
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_a_console_that_lacks_characters_degrades_them(run_lousho: RunLousho, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "wide.py").write_text(
        "from lousho.testing import mock_model\nconfig = {'provider': mock_model(['“Grüße” → 🎉 日本'])}\n",
        encoding="utf-8",
    )

    text, document = (
        run_lousho(["run", "wide.py", "hi", "--output", output], env={"PYTHONIOENCODING": encoding})
        for output in ("text", "json")
    )

    assert (text.returncode, document.returncode) == (0, 0)
    assert "-> ? ??" in text.stdout
    assert json.loads(document.stdout)["text"] == "“Grüße” → 🎉 日本"
    assert "Traceback" not in text.stderr + document.stderr


@pytest.mark.spec("BEY-18")
def test_no_home_directory_is_no_problem(run_lousho: RunLousho, project: Path) -> None:
    names = ("HOME", "USERPROFILE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")

    done = run_lousho(["run", "agent.py", "hello"], cwd=project, env=dict.fromkeys(names))

    assert (done.returncode, done.stdout, done.stderr) == (0, "You said hello.\n", "")


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_are_on_stderr_only_and_only_when_forced(
    run_lousho: RunLousho, project: Path, env: dict[str, str], coloured: bool
) -> None:
    done = run_lousho(["run", "agent.py", "ask"], cwd=project, env=env)

    assert done.returncode == 3
    assert ("\x1b[" in done.stderr) is coloured
    assert "\x1b" not in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a directory that somebody stands in")
def test_a_working_directory_that_is_gone_is_a_sentence(project: Path, tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = [sys.executable, "-m", "lousho_cli", "run", str(project / "agent.py"), "hello"]

    done = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(b"error: the current directory does not exist any more\n")


def test_a_failed_tool_shows_its_traceback_only_when_asked_for(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from lousho import tool\nfrom lousho.testing import mock_model\n\n@tool\ndef fall() -> str:\n"
        "    '''Fall.'''\n    raise RuntimeError('over the edge')\n\n"
        "agent = {'provider': mock_model([{'tool_calls': [{'name': 'fall'}]}, 'Ouch.']), 'tools': [fall]}\n",
        encoding="utf-8",
    )

    quiet = run_lousho(["run", "agent.py", "hi"])
    loud = run_lousho(["run", "agent.py", "hi"], env={"LOUSHO_DEBUG": "1"})

    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "Ouch.\n", "")
    assert (loud.returncode, loud.stdout) == (0, "Ouch.\n")
    assert "RuntimeError: over the edge" in loud.stderr
