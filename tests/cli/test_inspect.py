"""`lousho inspect`: what an agent is made of, for a person and for programs, without a model, a call or a secret."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agent_files import write_files

if TYPE_CHECKING:
    from conftest import RunLousho

KEY = "sk-proj-0123456789abcdefghij"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="uses a POSIX shell")

DESK = {
    "desk/agent.json": json.dumps(
        {
            "name": "front-desk",
            "description": "Answers at the door.",
            "model": "mock/canned",
            "maxSteps": 4,
            "modelSettings": {"temperature": 0.2},
            "permissions": [{"tool": "ring", "action": "deny", "reason": "It is late."}],
        }
    ),
    "desk/instructions.md": "You sit at the front desk.\nBe brief.\n",
    "desk/tools/bells.py": '''
        from lousho import tool


        @tool(needs_approval=True)
        def ring(times: int) -> str:
            """Ring the bell. Nobody likes that."""
            raise SystemExit("called")


        @tool(timeout_ms=500)
        def look(place: str = "hall") -> str:
            """Look around."""
            raise SystemExit("called")
        ''',
    "desk/tools/notes.ts": "not a tool",
}

BUILT_AGENT = """
from lousho import create_agent
from lousho.testing import mock_model

agent = create_agent(provider=mock_model([]))
"""

FUNCTIONS = """
def boom(context):
    raise SystemExit("called")


agent = {{"name": "varying", {options}}}
"""


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.spec("BEY-26")
def test_the_page_shows_what_the_agent_is_made_of(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, DESK)

    done = run_lousho(["inspect", "desk"])

    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == f"""\
front-desk (directory {tmp_path / "desk"})
Answers at the door.

model       mock/canned (named in its files)
settings    temperature 0.2
prompt      36 characters in 2 lines, about 9 tokens; --prompt prints it
limits      4 steps, calls side by side without a limit, no time limit for tools, 50,000 characters a tool result
loop        guard on, repair of arguments on, nearest tool names on
store       memory
files       agent.json, instructions.md, tools/bells.py

tools: 2 (--tools shows their schemas)
  ring  needs approval  tools/bells.py:5   Ring the bell.
  look  runs            tools/bells.py:11  Look around.

permissions: the first that matches decides
  deny  ring  It is late.

notes
  tools/notes.ts was skipped: tools are Python files (.py)
"""
    )


@pytest.mark.spec("BEY-27")
def test_the_prompt_is_alone_on_stdout(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, DESK)

    done = run_lousho(["inspect", "desk", "--prompt"])

    assert (done.returncode, done.stdout) == (0, "You sit at the front desk.\nBe brief.\n")
    assert done.stderr == "note: tools/notes.ts was skipped: tools are Python files (.py)\n"


@pytest.mark.spec("BEY-27")
def test_the_tools_are_shown_as_the_model_sees_them(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, DESK)

    done = run_lousho(["inspect", "desk", "--tools"])

    ring, look = done.stdout.split("\n\n")
    assert ring.startswith("ring (needs approval, tools/bells.py:5)\nRing the bell. Nobody likes that.\n{\n")
    assert json.loads(ring.partition("that.\n")[2])["properties"] == {"times": {"type": "integer"}}
    assert look.startswith("look (runs, tools/bells.py:11)\nLook around.\n{\n")


@pytest.mark.spec("BEY-27", "BEY-28")
def test_json_is_the_description_of_the_agent_and_where_it_came_from(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, DESK)

    found = document(run_lousho(["inspect", "desk", "--json"]))
    program = (
        "import json; from lousho.loader.directory import load_agent_dir_sync as load;"
        "print(json.dumps(load('desk').describe_sync()))"
    )
    described = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )

    assert found["schemaVersion"] == 1
    assert found["agent"] == json.loads(described.stdout)
    assert found["target"] == {
        "kind": "directory",
        "path": str(tmp_path / "desk"),
        "description": "Answers at the door.",
        "files": ["agent.json", "instructions.md", "tools/bells.py"],
        "skipped": [{"path": "tools/notes.ts", "reason": "tools are Python files (.py)"}],
        "notes": [],
        "modelSource": "named in its files",
        "toolSources": {"ring": "tools/bells.py:5", "look": "tools/bells.py:11"},
    }
    ring, look = found["agent"]["tools"]
    assert (ring["needsApproval"], ring["timeoutMs"], look["timeoutMs"]) == (True, None, 500)


@pytest.mark.spec("BEY-26")
@pytest.mark.parametrize("flag", [[], ["--json"], ["--prompt"], ["--tools"]], ids=str)
def test_no_key_is_printed(run_lousho: RunLousho, tmp_path: Path, flag: list[str]) -> None:
    (tmp_path / "agent.py").write_text(
        f"""
from lousho import tool
from lousho.models.openai import OpenAIProvider


@tool
def look(key: str = "{KEY}") -> str:
    '''Look with {KEY}.'''
    return key


agent = {{
    "provider": OpenAIProvider(api_key="{KEY}"),
    "instructions": "The key is {KEY}.",
    "description": "Has {KEY}.",
    "version": "{KEY}",
    "tools": [look],
    "permissions": [{{"tool": "look", "action": "deny", "reason": "because of {KEY}"}}],
}}
""",
        encoding="utf-8",
    )

    done = run_lousho(["inspect", "agent.py", *flag], env={"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "plain-secret"})

    assert done.returncode == 0
    assert "[REDACTED]" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert "plain-secret" not in done.stdout + done.stderr


@pytest.mark.spec("BEY-28")
@pytest.mark.parametrize("flag", [[], ["--tools"], ["--json"]], ids=str)
def test_functions_of_the_run_are_shown_as_such_and_not_called(
    run_lousho: RunLousho, tmp_path: Path, flag: list[str]
) -> None:
    options = '"model": boom, "instructions": boom, "tools": boom'
    (tmp_path / "agent.py").write_text(FUNCTIONS.format(options=options), encoding="utf-8")

    done = run_lousho(["inspect", "agent.py", *flag])
    prompt = run_lousho(["inspect", "agent.py", "--prompt"])

    assert (done.returncode, done.stderr) == (0, "")
    if flag == ["--json"]:
        agent = document(done)["agent"]
        assert agent["perRun"] == ["model", "instructions", "tools"]
        assert [agent[name] for name in ("model", "provider", "instructions", "tools")] == [None] * 4
    else:
        assert done.stdout.count("chosen per run") == (1 if flag else 3)
    assert (prompt.returncode, prompt.stdout) == (1, "")
    assert "the prompt is chosen per run" in prompt.stderr


@pytest.mark.parametrize(
    ("files", "args", "env", "source", "model"),
    [
        pytest.param({}, ["--model", "mock/flag"], {}, "--model", "flag", id="the flag"),
        pytest.param(
            {}, [], {"LOUSHO_MODEL": "mock/env"}, "LOUSHO_MODEL, set in the environment", "env", id="variable"
        ),
        pytest.param({".env": "LOUSHO_MODEL=mock/env"}, [], {}, "LOUSHO_MODEL, set in .env", "env", id=".env"),
        pytest.param(
            {}, [], {"OPENAI_API_KEY": KEY}, "the default for OPENAI_API_KEY, set in the environment", None, id="a key"
        ),
        pytest.param({}, [], {}, "fallback: no model is named and no API key is set", "demo", id="nothing"),
        pytest.param({"bare/agent.json": '{"model": "mock/own"}'}, [], {}, "named in its files", "own", id="its files"),
        pytest.param(
            {"bare/agent.json": '{"model": "mock/own"}'}, ["--model", "mock/x"], {}, "--model", "x", id="flag over file"
        ),
    ],
)
def test_it_says_where_the_model_was_named(
    run_lousho: RunLousho,
    tmp_path: Path,
    files: dict[str, str],
    args: list[str],
    env: dict[str, str],
    source: str,
    model: str | None,
) -> None:
    write_files(tmp_path, {"bare/instructions.md": "Help.", **files})

    page = run_lousho(["inspect", "bare", *args], env=env)
    found = document(run_lousho(["inspect", "bare", "--json", *args], env=env))

    assert found["target"]["modelSource"] == source
    assert model is None or found["agent"]["model"] == model
    assert f"({source})" in page.stdout


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("agent = {'model': 'mock/own'}", "named in its code"),
        (
            "from lousho.testing import mock_model\nagent = {'provider': mock_model([])}",
            "a provider object in its code",
        ),
        (BUILT_AGENT, "a provider object in its code"),
    ],
    ids=["options", "provider", "built agent"],
)
def test_a_module_says_where_its_model_was_named(
    run_lousho: RunLousho, tmp_path: Path, module: str, source: str
) -> None:
    (tmp_path / "agent.py").write_text(f"{module}\n", encoding="utf-8")

    found = document(run_lousho(["inspect", "agent.py", "--json"]))

    assert (found["target"]["kind"], found["target"]["modelSource"]) == ("module", source)
    assert found["target"]["files"] == ["agent.py"]


@pytest.mark.spec("BEY-04")
def test_without_any_model_or_key_it_looks_through_the_demo_model_and_says_so(
    run_lousho: RunLousho, tmp_path: Path
) -> None:
    write_files(tmp_path, {"bare/instructions.md": "Help.", "named/agent.json": '{"model": "openai/gpt-4.1-mini"}'})

    views = [run_lousho(["inspect", "bare", *flag]) for flag in ([], ["--json"], ["--prompt"], ["--tools"])]
    named = run_lousho(["inspect", "named"])

    for done in views:
        assert done.returncode == 0
        assert done.stderr.startswith("note: No model is named and no API key is set, so this runs on mock/demo")
    assert views[2].stdout == "Help.\n"
    assert (named.returncode, named.stdout) == (1, "")
    assert "[LOUSHO_PROVIDER_MISSING_API_KEY] " in named.stderr


@pytest.mark.spec("CLI-26")
def test_a_spec_a_directory_and_a_module_are_told_apart(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "a.yaml": "name: spec\nprompt: Help.\nprovider: {type: mock, model: m}\n",
            "b/instructions.md": "Help.",
            "c.py": "agent = {'model': 'mock/m', 'name': 'module'}\n",
        },
    )

    kinds = {
        path: document(run_lousho(["inspect", path, "--json"]))["target"]["kind"] for path in ("a.yaml", "b", "c.py")
    }

    assert kinds == {"a.yaml": "spec", "b": "directory", "c.py": "module"}


@pytest.mark.parametrize("flags", [["--prompt", "--json"], ["--tools", "--prompt"], ["--json", "--tools"]])
def test_two_things_at_once_are_a_usage_error(run_lousho: RunLousho, flags: list[str]) -> None:
    done = run_lousho(["inspect", "agent.py", *flags])

    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr
    assert "usage: lousho inspect <" in done.stderr


@pytest.mark.spec("CLI-09", "CLI-27")
@pytest.mark.parametrize("flag", [[], ["--json"]], ids=str)
@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("missing.py", None, "LOUSHO_CONFIG_INVALID"),
        ("empty.py", "", "LOUSHO_CONFIG_INVALID"),
        ("broken.yaml", "name: [", "LOUSHO_SPEC_INVALID"),
        ("agent.txt", "hello", "LOUSHO_SPEC_UNSUPPORTED_FORMAT"),
    ],
)
def test_an_agent_that_cannot_load_is_exit_1_with_code_and_fix(
    run_lousho: RunLousho, tmp_path: Path, name: str, content: str | None, code: str, flag: list[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")

    done = run_lousho(["inspect", name, *flag])

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert f"\n[{code}] " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_agents_code_prints_does_not_reach_stdout(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, subprocess, sys\nprint('python')\nsys.stdout.flush()\nos.write(1, b'descriptor\\n')\n"
        "subprocess.run([sys.executable, '-c', 'print(1234)'])\nagent = {'model': 'mock/m'}\n",
        encoding="utf-8",
    )

    done = run_lousho(["inspect", "agent.py", "--json"])

    assert document(done)["target"]["kind"] == "module"
    assert done.stderr.split() == ["python", "descriptor", "1234"]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_console_that_lacks_characters_degrades_them_and_json_keeps_them(
    run_lousho: RunLousho, tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "agent.py").write_text(
        "agent = {'model': 'mock/m', 'name': '受付 🎉', 'instructions': 'Say “Grüße” → 日本\\x1b[31m'}\n",
        encoding="utf-8",
    )
    env = {"PYTHONIOENCODING": encoding}

    page, prompt, data = (
        run_lousho(["inspect", "agent.py", *flag], env=env) for flag in ([], ["--prompt"], ["--json"])
    )

    assert (page.returncode, prompt.returncode) == (0, 0)
    assert page.stdout.startswith("?? ? (module ")
    assert prompt.stdout.endswith(" -> ??\n")
    assert document(data)["agent"]["name"] == "受付 🎉"
    assert "\x1b" not in page.stdout + prompt.stdout


def test_a_wide_name_keeps_the_columns_of_the_tools_aligned(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from lousho import define_tool\n\n"
        "def work() -> str:\n    return ''\n\n"
        "tools = [define_tool(name=n, description=d, execute=work) for n, d in"
        " [('a', 'One.'), ('a_much_longer_name', '日本語の説明。')]]\n"
        "agent = {'model': 'mock/m', 'tools': tools}\n",
        encoding="utf-8",
    )

    done = run_lousho(["inspect", "agent.py"])

    rows = [line for line in done.stdout.splitlines() if "agent.py:3" in line]
    assert [row.index("agent.py:3") for row in rows] == [28, 28]
    assert rows[1].endswith("  日本語の説明。")


@POSIX
def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    write_files(tmp_path, DESK)
    command = f"({sys.executable} -m lousho_cli inspect desk; echo $? >&2) | true"

    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, timeout=30, check=False)

    assert done.stderr in (b"141\n", b"0\n")  # gone before, or after the page was in the pipe


@pytest.mark.spec("BEY-18")
def test_no_home_directory_is_no_problem(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, DESK)
    names = ("HOME", "USERPROFILE", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")

    done = run_lousho(["inspect", "desk"], env=dict.fromkeys(names))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_appear_in_a_pipe_only_when_forced(
    run_lousho: RunLousho, tmp_path: Path, env: dict[str, str], coloured: bool
) -> None:
    write_files(tmp_path, DESK)

    page, data = (run_lousho(["inspect", "desk", *flag], env=env) for flag in ([], ["--json"]))

    assert ("\x1b[" in page.stdout) is coloured
    assert document(data)["schemaVersion"] == 1


def test_the_permission_mode_of_an_agent_is_shown(run_lousho: RunLousho, tmp_path: Path):
    write_files(tmp_path, {"desk/agent.json": '{"model": "mock/canned", "permissionMode": "plan"}'})
    write_files(tmp_path, {"varies/agent.py": "config = {'model': 'mock/canned', 'permissionMode': lambda: 1 / 0}\n"})
    shown = run_lousho(["inspect", "desk"])
    assert shown.returncode == 0
    assert ["mode", "plan"] in [line.split() for line in shown.stdout.splitlines()]
    assert json.loads(run_lousho(["inspect", "desk", "--json"]).stdout)["agent"]["permissionMode"] == "plan"
    assert "chosen at each tool call" in run_lousho(["inspect", "varies"]).stdout
