"""From a path on the command line to an agent: what decides, what a model flag changes, what is said when it fails."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_files import tool_source, write_files

from lousho import ConfigurationError, SDKError
from lousho.loader.target import load_target
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]

SPEC = {"name": "from-spec", "prompt": "Help.", "provider": {"type": "mock", "model": "m"}}
SPEC_YAML = "name: from-spec\nprompt: Help.\nprovider: {type: mock, model: m}\n"
BUILT = "from lousho import create_agent\nagent = create_agent(model='mock/m', name='from-built')\n"

KINDS = {
    "agent.yaml": (SPEC_YAML, "from-spec"),
    "agent.yml": (SPEC_YAML, "from-spec"),
    "agent.json": (json.dumps(SPEC), "from-spec"),
    "AGENT.YAML": (SPEC_YAML, "from-spec"),
    "built.py": (BUILT, "from-built"),
    "options.py": ("agent = {'model': 'mock/m', 'name': 'from-options'}\n", "from-options"),
    "one.py": ("settings = {'model': 'mock/m', 'name': 'from-one'}\n", "from-one"),
}

NO_AGENTS = {
    "notes.txt": "x",
    "agent.ts": "x",
    "Makefile": "x",
    "empty.py": "x = 1\n",
    "docs/a.md": "x",
    "bot/instructions.md": "x",
}


def write_all(folder: Path) -> dict[str, str]:
    """Write a target of every kind; return path to agent name."""
    write_files(folder, {name: text for name, (text, _) in KINDS.items()})
    write_files(folder / "from-directory", {"agent.yaml": "model: mock/m\n", "instructions.md": "Help."})
    return {**{name: agent for name, (_, agent) in KINDS.items()}, "from-directory": "from-directory"}


@pytest.mark.spec("CLI-25", "CLI-26")
def test_every_kind_of_path_loads_by_what_it_is(tmp_path: Path):
    wanted = write_all(tmp_path)
    targets = {path: load_target(path, command="chat", cwd=tmp_path) for path in wanted}
    assert {path: target.agent.name for path, target in targets.items()} == wanted
    kinds = {path: target.kind for path, target in targets.items()}
    assert {kinds[name] for name in ("agent.yaml", "agent.yml", "agent.json", "AGENT.YAML")} == {"spec"}
    assert {kinds[name] for name in ("built.py", "options.py", "one.py")} == {"module"}
    assert kinds["from-directory"] == "directory"
    assert all(target.path == tmp_path / path for path, target in targets.items())


@pytest.mark.spec("CLI-25", "CLI-26")
@pytest.mark.parametrize("path", [*KINDS, "from-directory"])
def test_chat_and_doctor_take_every_kind(tmp_path: Path, run_lousho: Any, path: str):
    write_all(tmp_path)
    chat = run_lousho(["chat", path], input="hello\n")
    assert (chat.returncode, "canned reply" in chat.stdout) == (0, True), chat.stderr
    doctor = run_lousho(["doctor", path, "--json"])
    assert doctor.returncode == 0, doctor.stdout
    assert KINDS.get(path, ("", "from-directory"))[1] in doctor.stdout


@pytest.mark.spec("CLI-27")
@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        pytest.param("notes.txt", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", "'notes.txt' is not something an agent can be loaded from. Give a spec file", id="another extension"),
        pytest.param("gone.txt", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", "and there is no such file", id="another extension that is not there"),
        pytest.param("agent.ts", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", "Agent modules are Python files: write it as a .py file", id="a module of another language"),
        pytest.param("Makefile", "LOUSHO_SPEC_UNSUPPORTED_FORMAT", "'Makefile' is not something", id="no extension"),
        pytest.param("gone", "LOUSHO_CONFIG_INVALID", "lousho chat: 'gone' does not exist", id="a missing directory"),
        pytest.param("gone.py", "LOUSHO_CONFIG_INVALID", "lousho chat: 'gone.py' does not exist", id="a missing module"),
        pytest.param("empty.py", "LOUSHO_CONFIG_INVALID", "lousho chat: 'empty.py' defines no agent. Write agent =", id="a module without an agent"),
        pytest.param("gone.yaml", "LOUSHO_SPEC_NOT_FOUND", "there is no file 'gone.yaml'", id="a missing spec"),
        pytest.param("gone.json", "LOUSHO_SPEC_NOT_FOUND", "there is no file 'gone.json'", id="a missing json spec"),
        pytest.param("docs", "LOUSHO_AGENT_DIR_INVALID", "'docs' is not an agent directory", id="another directory"),
        pytest.param(".", "LOUSHO_AGENT_DIR_INVALID", "Did you mean 'bot'?", id="the folder above an agent"),
    ],
)  # fmt: skip
def test_a_path_that_gives_no_agent_is_a_coded_error_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: str, says: str
):
    monkeypatch.chdir(write_files(tmp_path, NO_AGENTS))
    if path == ".":
        (tmp_path / "agent.ts").unlink()
    with pytest.raises(SDKError) as caught:
        load_target(path, command="chat")
    assert (caught.value.code, says in caught.value.detail) == (code, True), caught.value.detail


@pytest.mark.spec("CLI-27")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("notes.txt", "LOUSHO_SPEC_UNSUPPORTED_FORMAT"),
        ("gone", "LOUSHO_CONFIG_INVALID"),
        ("empty.py", "LOUSHO_CONFIG_INVALID"),
        ("gone.yaml", "LOUSHO_SPEC_NOT_FOUND"),
    ],
)
def test_chat_says_why_a_path_gives_no_agent(tmp_path: Path, run_lousho: Any, path: str, code: str):
    write_files(tmp_path, NO_AGENTS)
    done = run_lousho(["chat", path], input="hi\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"[{code}]" in done.stderr
    assert f"'{path}'" in done.stderr
    assert ("lousho chat: " in done.stderr) is (code != "LOUSHO_SPEC_NOT_FOUND")
    assert re.search(rf"^\[{code}\] \S.+", done.stderr, re.MULTILINE)  # what to do about it
    assert "Traceback" not in done.stderr


@pytest.mark.spec("CLI-27")
def test_the_running_command_is_named(tmp_path: Path):
    for command in ("chat", "dev", "doctor"):
        with pytest.raises(ConfigurationError) as caught:
            load_target(tmp_path / "gone", command=command)
        assert caught.value.detail.startswith(f"lousho {command}: ")


@pytest.mark.spec("CLI-56")
def test_a_model_flag_overrides_all_but_a_built_agent(tmp_path: Path):
    wanted = write_all(tmp_path)
    found = {path: load_target(tmp_path / path, command="chat", model="mock/other") for path in wanted}
    models = {path: (target.agent.provider.name, target.agent.model) for path, target in found.items()}
    assert models.pop("built.py") == ("mock", "m")
    assert set(models.values()) == {("mock", "other")}
    assert found["built.py"].notes == ["The module's agent is already built, so it keeps its model mock/m."]
    assert all(not target.notes for path, target in found.items() if path != "built.py")


@pytest.mark.spec("CLI-56")
def test_the_prefix_of_the_model_flag_picks_the_provider(tmp_path: Path, run_lousho: Any):
    write_all(tmp_path)
    done = run_lousho(["chat", "agent.yaml", "--model", "openai/gpt-4.1-mini"], input="hi\n")
    assert (done.returncode, "[LOUSHO_PROVIDER_MISSING_API_KEY]" in done.stderr) == (1, True)
    assert "OPENAI_API_KEY is not set" in done.stderr
    done = run_lousho(["chat", "from-directory", "--model", "openrouter/openai/gpt-4.1-mini"], input="hi\n")
    assert (done.returncode, "'openrouter'" in done.stderr) == (1, True)
    done = run_lousho(["chat", "built.py", "--model", "openai/gpt-4.1-mini"], input="hi\n")
    assert (done.returncode, "canned reply" in done.stdout) == (0, True)
    assert "keeps its model mock/m" in done.stderr


def test_a_model_of_the_options_is_replaced_even_where_they_give_a_provider(tmp_path: Path):
    write_files(tmp_path, {"a.py": "from lousho.testing import mock_model\nagent = {'provider': mock_model(['x'])}\n"})
    assert load_target(tmp_path / "a.py", command="chat", model="mock/other").agent.model == "other"


@pytest.mark.spec("BEY-04")
@pytest.mark.parametrize("command", ["chat", "dev", "inspect"])
@pytest.mark.parametrize("path", ["desk", "a.py"])
def test_looking_around_without_a_model_or_a_key_runs_on_the_demo_model(tmp_path: Path, command: str, path: str):
    write_files(
        tmp_path, {"desk/instructions.md": "x", "desk/instructions/demo.md": "y", "a.py": "agent = {'name': 'a'}\n"}
    )
    target = load_target(tmp_path / path, command=command)
    assert (target.agent.provider.name, target.agent.options.model) == ("mock", "mock/demo")
    (note,) = target.notes
    assert "runs on mock/demo" in note
    assert "--model openai/gpt-4.1-mini" in note
    if path == "desk":
        assert target.agent.options.instructions == "x\n\ny"


@pytest.mark.parametrize("command", ["run", "eval", "doctor", "acp"])
def test_other_commands_never_fall_back_by_themselves(agent_folder: AgentFolder, command: str):
    with pytest.raises(SDKError) as caught:
        load_target(agent_folder({"instructions.md": "x"}), command=command)
    assert caught.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"


@pytest.mark.spec("BEY-04")
def test_a_model_that_is_named_anywhere_is_never_replaced_by_the_demo_model(
    agent_folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
):
    folder = agent_folder({"agent.json": '{"model": "openai/gpt-4.1-mini"}'})
    with pytest.raises(SDKError) as caught:
        load_target(folder, command="chat")
    assert caught.value.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    monkeypatch.setenv("LOUSHO_MODEL", "anthropic/claude-sonnet-4-5")
    with pytest.raises(SDKError) as caught:
        load_target(agent_folder({"instructions.md": "x"}, "other"), command="chat")
    assert (caught.value.code, "ANTHROPIC_API_KEY" in str(caught.value)) == ("LOUSHO_PROVIDER_MISSING_API_KEY", True)
    monkeypatch.setenv("LOUSHO_MODEL", "mock/from-environment")
    target = load_target(agent_folder({"instructions.md": "x"}, "third"), command="chat")
    assert (target.agent.model, target.notes) == ("from-environment", [])


@pytest.mark.parametrize("path", [*KINDS, "from-directory"])
async def test_rebuilding_on_another_model_keeps_the_conversation(tmp_path: Path, path: str):
    write_all(tmp_path)
    target = load_target(tmp_path / path, command="chat")
    session = target.agent.session("s1")
    await session.send("first")
    agent = target.rebuild(model="mock/second")
    assert (target.agent is agent, agent.model) == (True, "second")
    again = agent.session("s1")
    await again.send("second")
    assert [str(message.content) for message in again.messages if message.role == "user"] == ["first", "second"]


@pytest.mark.parametrize("path", [*KINDS, "from-directory"])
def test_a_rebuild_that_fails_keeps_the_agent(tmp_path: Path, path: str):
    write_all(tmp_path)
    target = load_target(tmp_path / path, command="chat")
    before = target.agent
    for model in ("openai/gpt-4.1-mini", "nope", "nope/x"):
        with pytest.raises(SDKError):
            target.rebuild(model=model)
    assert target.agent is before
    target.rebuild(model="mock/ok")
    assert target.rebuild(max_steps=3).model == "ok"
    assert target.agent.options.max_steps == 3


def test_a_rebuilt_directory_takes_the_instructions_of_the_new_family(agent_folder: AgentFolder):
    folder = agent_folder(
        {"agent.json": '{"model": "mock/a"}', "instructions.md": "B.", "instructions/zed.md": "Z.", "tools/t.py": tool_source("t")}
    )  # fmt: skip
    target = load_target(folder, command="chat")
    assert target.agent.options.instructions == "B."
    assert target.rebuild(model="mock/zed-2").options.instructions == "B.\n\nZ."
    assert list(target.agent.tools) == ["t"]


def test_overrides_reach_every_kind(tmp_path: Path):
    wanted = write_all(tmp_path)
    for path in wanted:
        target = load_target(tmp_path / path, command="chat", overrides={"max_steps": 2, "ask_question": True})
        assert (target.agent.options.max_steps, list(target.agent.tools)) == (2, ["ask_question"])
        model = mock_model(["scripted"])
        if path != "built.py":
            target = load_target(tmp_path / path, command="chat", provider=model)
            assert target.agent.send_sync("x").text == "scripted"


def test_what_a_directory_skipped_is_noted(agent_folder: AgentFolder):
    folder = agent_folder({"agent.json": '{"model": "mock/m"}', "instructions.md": "Help.", "skills/a.md": "x"})
    assert load_target(folder, command="chat").notes == ["skills/ was skipped: this version does not load skills"]


def test_a_directory_that_says_nothing_about_its_agent_is_noted(agent_folder: AgentFolder):
    bare = agent_folder({"agent.json": '{"model": "mock/m"}'}, name="bare")
    told = agent_folder({"agent.json": '{"model": "mock/m", "instructions": "Help."}'}, name="told")

    (note,) = load_target(bare, command="chat").notes
    assert "has no instructions.md" in note
    assert load_target(told, command="chat").notes == []


def test_the_config_of_a_directory_given_as_a_spec_points_to_the_directory(agent_folder: AgentFolder):
    folder = agent_folder({"agent.yaml": "model: mock/m\n", "instructions.md": "x"})
    with pytest.raises(ConfigurationError) as caught:
        load_target(folder / "agent.yaml", command="chat")
    assert caught.value.code == "LOUSHO_SPEC_INVALID"
    assert f"to load that, pass '{folder}'" in caught.value.detail


@pytest.mark.parametrize("suffix", [".yaml", ".json", ".py", ""])
def test_paths_that_are_no_files_are_sentences(tmp_path: Path, suffix: str):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / f"a pipe{suffix}")
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    for path in (
        tmp_path / f"a pipe{suffix}",
        tmp_path / f"loop{suffix}",
        f"{tmp_path}/a\0b{suffix}",
        f"x{'y' * 300}{suffix}",
    ):
        with pytest.raises(SDKError) as caught:
            load_target(path, command="chat")
        assert caught.value.detail


def test_an_empty_path_is_the_working_directory(agent_folder: AgentFolder):
    folder = agent_folder({"agent.json": '{"model": "mock/m"}'}, "here")
    assert load_target("", command="chat", cwd=folder).agent.name == "here"
