"""Agent directories: what each file becomes, and what is said when one is wrong."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from agent_files import tool_source
from runs import call

from lousho import (
    ConfigurationError,
    create_agent,
    load_agent_dir,
    load_agent_dir_sync,
    resolve_agent_dir,
    resolve_agent_dir_sync,
    tool,
)
from lousho.runtime.deps import SpillOptions
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]


def refused(folder: Path, **overrides: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_agent_dir_sync(folder, **{"provider": mock_model([]), **overrides})
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"
    return caught.value.detail


@pytest.mark.spec("DIR-01")
async def test_a_directory_is_an_agent_that_answers(agent_folder: AgentFolder):
    folder = agent_folder({"instructions.md": "You help.", "tools/look.py": tool_source("look", "seen")})
    model = mock_model([call("look"), "It is there."])
    agent = await load_agent_dir(folder, provider=model)
    result = await agent.send("Look!")
    assert (type(agent), result.text) == (type(create_agent(provider=model)), "It is there.")
    assert [message.content for message in model.calls[1].messages] == ["You help.", "Look!", "", "seen"]


@pytest.mark.spec("DIR-01")
def test_the_blocking_twin_gives_the_same_and_the_code_runs_unconfined_as_documented(
    agent_folder: AgentFolder, tmp_path: Path, project_root: Path
):
    code = f"import pathlib\npathlib.Path({str(tmp_path / 'proof')!r}).write_text('ran', encoding='utf-8')\n"
    folder = agent_folder({"tools/look.py": code + tool_source("look")})
    agent = load_agent_dir_sync(str(folder), provider=mock_model(["hi"]))
    assert (agent.send_sync("x").text, list(agent.tools)) == ("hi", ["look"])
    assert (tmp_path / "proof").read_text(encoding="utf-8") == "ran"
    page = (project_root / "docs/agent-directories.md").read_text(encoding="utf-8")
    assert re.search(r"all the rights of\s+your process", page)


@pytest.mark.spec("DIR-03")
@pytest.mark.parametrize("second", ["agent.yaml", "agent.yml", "agent.py", "agent.ts"])
def test_two_config_files_are_one_too_many(agent_folder: AgentFolder, second: str):
    said = refused(agent_folder({"agent.json": '{"model": "mock/x"}', second: ""}))
    assert "agent.json" in said
    assert second in said


@pytest.mark.spec("DIR-04")
def test_tool_files_are_read_in_sorted_order(agent_folder: AgentFolder):
    names = ["zebra", "apple", "mango", "Apple", "apple2", "_hidden"]
    folder = agent_folder({f"tools/{name}.py": tool_source(f"t_{name}") for name in names})
    wanted = ["t_Apple", "t_apple", "t_apple2", "t_mango", "t_zebra"]
    assert resolve_agent_dir_sync(folder).manifest.tools == wanted
    assert list(load_agent_dir_sync(folder, provider=mock_model([])).tools) == wanted


@pytest.mark.spec("DIR-05", "ERR-89")
@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({"instructions.md": " \n"}, "instructions.md' is empty", id="empty instructions"),
        pytest.param({"instructions.md": "x", "instructions/mock.md": ""}, "mock.md' is empty", id="empty family"),
        pytest.param({"agent.yaml": "# nothing\n"}, "agent.yaml' is empty", id="empty yaml"),
        pytest.param({"agent.json": ""}, "agent.json' is empty", id="empty json"),
        pytest.param({"agent.yaml": "a: [1\n"}, "agent.yaml:2:1: ", id="broken yaml"),
        pytest.param({"agent.json": '{"maxSteps": 1\n"x"}'}, "agent.json:2:1: expected ','", id="broken json"),
        pytest.param({"agent.json": "[]"}, "agent.json:1:1: must be a mapping, not a list", id="a list as config"),
        pytest.param({"agent.yaml": b"name: \xff\n"}, "agent.yaml' is not UTF-8", id="not utf-8"),
        pytest.param({"agent.py": "x = (1\n"}, "agent.py:1:5: SyntaxError: '(' was never closed", id="broken python"),
        pytest.param({"agent.py": "x = 1\n"}, "agent.py' defines no options", id="no options"),
        pytest.param({"tools/x.py": "def f(:\n"}, "x.py:1:7: SyntaxError", id="broken tool"),
        pytest.param({"tools/x.py": "\n\n1 / 0\n"}, "x.py:3: ZeroDivisionError", id="a tool that raises"),
        pytest.param({"tools/x.py": "def f(): ...\n"}, "x.py' defines no tool. Put @tool above f()", id="no tool"),
        pytest.param({"tools/x.py": ""}, "x.py' defines no tool", id="an empty tool file"),
        pytest.param({"tools/x.py": b"\x00\x01"}, "x.py", id="a binary tool file"),
        pytest.param({"tools": "x"}, "tools' must be a directory", id="tools is a file"),
        pytest.param({"README.md": "x"}, "is not an agent directory: it has no config file", id="nothing usable"),
        pytest.param({"README.md": "x"}, "To start a project: lousho init my-agent", id="how to start"),
    ],
)
def test_what_is_wrong_with_a_directory_is_said_with_its_file(agent_folder: AgentFolder, files: Any, says: str):
    assert says in refused(agent_folder(files))


@pytest.mark.spec("DIR-05", "ERR-89")
def test_a_directory_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "loop").symlink_to("loop")
    assert "there is no directory" in refused(tmp_path / "gone")
    assert "file' is a file, not an agent directory" in refused(tmp_path / "file")
    assert "loop' cannot be read: Too many levels" in refused(tmp_path / "loop")
    assert "cannot be read" in refused(Path(f"{tmp_path}/a\0b"))


@pytest.mark.spec("DIR-05")
@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("import not_there_at_all\n", "x.py:1: there is no module 'not_there_at_all'", id="a package"),
        pytest.param("import not_there_at_all\n", "Install it with: pip install not_there_at_all", id="how to install"),
        pytest.param("\nimport cv2.gone\n", "x.py:2: there is no module 'cv2'. Install it with: pip install opencv-", id="other name"),
        pytest.param("from ..lib.gone import y\n", "there is no module 'lib' in ", id="a missing file of one's own"),
        pytest.param("from ....gone import y\n", "a relative import reaches outside ", id="outside"),
        pytest.param("from lousho import nothing_such\n", "cannot import name 'nothing_such' from 'lousho'", id="a name"),
        pytest.param("import sys\nsys.exit(3)\n", "x.py:2: the file calls sys.exit(3) while it is loaded", id="exit"),
        pytest.param("raise SystemExit\n", "the file calls sys.exit() while it is loaded", id="a bare exit"),
        pytest.param("from lousho import define_tool\ndefine_tool(name='a b', description='x', execute=len, input={'type': 'object'})\n",
                     "x.py:2: The tool name 'a b' does not fit", id="a tool that cannot be"),
        pytest.param("raise ExceptionGroup('many', [OSError('x')])\n", "x.py:1: ExceptionGroup: many", id="a group"),
        pytest.param("open('/not/there', encoding='utf-8')\n", "No such file or directory: /not/there", id="a file"),
    ],
)  # fmt: skip
def test_an_import_that_fails_says_where_and_what_to_do(agent_folder: AgentFolder, source: str, says: str):
    assert says in refused(agent_folder({"tools/x.py": source}))


def test_the_place_of_a_failure_is_the_last_line_of_the_users_own_code(agent_folder: AgentFolder):
    folder = agent_folder(
        {"tools/x.py": "from ..lib import parse\n\nparse('{')\n", "lib.py": "import json\n\n\ndef parse(x):\n    json.loads(x)\n"}
    )  # fmt: skip
    assert refused(folder).startswith(f"{folder / 'lib.py'}:5: JSONDecodeError")


def test_ctrl_c_while_a_file_is_loaded_is_not_swallowed(agent_folder: AgentFolder):
    folder = agent_folder({"tools/x.py": "raise KeyboardInterrupt\n"})
    with pytest.raises(KeyboardInterrupt):
        load_agent_dir_sync(folder, provider=mock_model([]))


def test_a_missing_key_keeps_its_own_code(agent_folder: AgentFolder):
    source = "from lousho import resolve_provider\nconfig = {'provider': resolve_provider('openai/gpt-4.1-mini')}\n"
    with pytest.raises(ConfigurationError) as caught:
        resolve_agent_dir_sync(agent_folder({"agent.py": source}))
    assert caught.value.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    assert "OPENAI_API_KEY" in caught.value.detail


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({"inner/agent.json": "{}", "inner2/instructions.md": "x"}, "Did you mean '{}/inner', '{}/inner2'?", id="one level down"),
        pytest.param({"skills/a/SKILL.md": "x"}, "is not an agent directory", id="only what is skipped"),
    ],
)  # fmt: skip
def test_a_directory_without_an_agent_points_to_one(agent_folder: AgentFolder, files: Any, says: str):
    folder = agent_folder(files)
    assert says.replace("{}", str(folder)) in refused(folder)


@pytest.mark.spec("DIR-06")
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        pytest.param("agent.json", '{"modle": "mock/x"}', "agent.json:1:2: unknown key 'modle' (did you mean 'model'?)", id="json"),
        pytest.param("agent.yaml", "modle: mock/x\n", "agent.yaml:1:1: unknown key 'modle' (did you mean 'model'?)", id="yaml"),
        pytest.param("agent.py", "config = {'modle': 'mock/x', 'model': 'mock/y'}", "agent.py: unknown key 'modle' (did you mean 'model'?)", id="py"),
        pytest.param("agent.json", '{"max_steps": 3}', "unknown key 'max_steps' (did you mean 'maxSteps'?)", id="snake case in a data file"),
        pytest.param("agent.json", '{"system": "x"}', "unknown key 'system' (did you mean 'instructions'?)", id="another system's name"),
        pytest.param("agent.json", '{"tools": []}', "unknown key 'tools' (a file in tools/)", id="what is a folder"),
        pytest.param("agent.json", '{"zzz": 1, "maxStep": 1}', "unknown keys 'zzz', 'maxStep' (did you mean 'maxSteps'?)", id="several"),
        pytest.param("agent.yaml", "prompt: x\nprovider: {type: mock, model: m}\n", "This looks like a spec file", id="a spec"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_an_error_with_a_suggestion(agent_folder: AgentFolder, name: str, text: str, says: str):
    assert says in refused(agent_folder({name: text}))


@pytest.mark.spec("DIR-07", "DIR-08")
@pytest.mark.parametrize("name", ["desk", "my agent ü", "agent.v2"])
def test_the_name_is_the_directory_and_the_description_stays_in_the_manifest(agent_folder: AgentFolder, name: str):
    folder = agent_folder({"agent.json": '{"description": "Sorts mail"}'}, name)
    resolved = resolve_agent_dir_sync(folder)
    assert (resolved.config["name"], resolved.manifest.name) == (name, name)
    assert (resolved.manifest.description, "description" in resolved.config) == ("Sorts mail", False)
    agent = load_agent_dir_sync(folder, provider=mock_model([]))
    assert (agent.name, agent.description) == (name, None)


@pytest.mark.spec("DIR-07")
def test_a_name_in_the_config_is_taken(agent_folder: AgentFolder):
    assert resolve_agent_dir_sync(agent_folder({"agent.yml": "name: other\n"})).config["name"] == "other"


def test_the_name_of_the_working_directory_is_its_own(agent_folder: AgentFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(agent_folder({"instructions.md": "x"}, "here"))
    assert resolve_agent_dir_sync(".").config["name"] == "here"


@pytest.mark.spec("DIR-09")
def test_the_prefix_of_the_model_picks_the_provider(agent_folder: AgentFolder, monkeypatch: pytest.MonkeyPatch):
    folder = agent_folder({"agent.json": '{"model": "mock/m-1"}'})
    agent = load_agent_dir_sync(folder)
    assert (agent.provider.name, agent.model) == ("mock", "m-1")
    monkeypatch.setenv("OPENAI_API_KEY", "k-12345")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-12345")
    for vendor in ("openai", "anthropic"):
        folder = agent_folder({"agent.yaml": f"model: {vendor}/m-2\n"}, vendor)
        agent = load_agent_dir_sync(folder)
        assert (agent.provider.name, agent.model) == (vendor, "m-2")
    with pytest.raises(ConfigurationError) as caught:
        load_agent_dir_sync(agent_folder({"agent.json": '{"model": "openrouter/openai/gpt-4.1-mini"}'}))
    assert caught.value.code == "LOUSHO_PROVIDER_UNKNOWN"
    assert "openrouter" in caught.value.detail


@pytest.mark.spec("DIR-09")
def test_a_provider_object_may_stand_in_a_code_config_only(agent_folder: AgentFolder):
    said = refused(agent_folder({"agent.json": '{"provider": "mock"}'}))
    assert "agent.json:1:2: 'provider': a provider object can only stand in agent.py" in said
    source = "from lousho.testing import mock_model\nconfig = {'provider': mock_model(['from code'])}\n"
    folder = agent_folder({"agent.py": source}, "coded")
    assert load_agent_dir_sync(folder).send_sync("x").text == "from code"


@pytest.mark.spec("DIR-10")
def test_instructions_come_from_the_key_or_the_file_but_not_both(agent_folder: AgentFolder):
    by_key = agent_folder({"agent.json": '{"instructions": "By key."}'}, "a")
    by_file = agent_folder({"instructions.md": "\n\nBy file.\n\n- one\n\n"}, "b")
    both = agent_folder({"agent.json": '{"instructions": "x"}', "instructions.md": "y"}, "c")
    assert resolve_agent_dir_sync(by_key).config["instructions"] == "By key."
    assert resolve_agent_dir_sync(by_file).config["instructions"] == "By file.\n\n- one"
    assert "has instructions twice" in refused(both)


@pytest.mark.spec("DIR-11")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agent.json", '{"maxSteps": 4, "toolConcurrency": 2, "modelSettings": {"maxTokens": 9, "topP": 0.5}}'),
        ("agent.yaml", "maxSteps: 4\ntoolConcurrency: 2\nmodelSettings: {maxTokens: 9, topP: 0.5}\n"),
        ("agent.py", "config = dict(maxSteps=4, toolConcurrency=2, modelSettings=dict(maxTokens=9, topP=0.5))\n"),
        ("agent.py", "agent = dict(max_steps=4, tool_concurrency=2, model_settings=dict(max_tokens=9, top_p=0.5))\n"),
    ],
    ids=["json", "yaml", "camelCase in code", "snake_case in code"],
)
async def test_settings_reach_the_agent_as_they_are(agent_folder: AgentFolder, name: str, text: str):
    model = mock_model(["hi"])
    agent = await load_agent_dir(agent_folder({name: text}), provider=model)
    await agent.send("x")
    assert (agent.options.max_steps, agent.options.tool_concurrency) == (4, 2)
    assert (model.calls[0].max_tokens, model.calls[0].top_p) == (9, 0.5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"maxSteps": true}', "agent.json:1:2: 'maxSteps': must be a whole number of at least 1, not true"),
        ('{"maxSteps": 0}', "'maxSteps': must be a whole number of at least 1, not 0"),
        ('{"toolConcurrency": "2"}', "'toolConcurrency': must be a whole number of at least 1, not '2'"),
        ('{"model": 4}', "'model': must be a text, not a number; put it in quotes"),
        ('{"name": ""}', "'name': must not be empty"),
        ('{"modelSettings": []}', "'modelSettings': must be a mapping, not a list"),
        (
            '{"modelSettings": {"temperature": 3}}',
            "agent.json:1:20: 'modelSettings.temperature': temperature must be a",
        ),
        ('{"modelSettings": {"maxOutputTokens": 3}}', "did you mean 'max_tokens'"),
        ('{"modelSettings": {"max_tokens": 3}}', "files write camelCase (did you mean 'maxTokens'?)"),
        ('{"approvalTtlMs": 0}', "'approvalTtlMs': must be a number of milliseconds above 0, not 0"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_place(agent_folder: AgentFolder, text: str, says: str):
    assert says in refused(agent_folder({"agent.json": text}))


def test_nulls_count_as_not_given(agent_folder: AgentFolder):
    config = resolve_agent_dir_sync(agent_folder({"agent.yaml": "model:\nmaxSteps: null\nhooks: ~\n"})).config
    assert config == {"name": "desk", "tools": []}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("projectInstructions", "true"),
        ("compaction", "true"),
        ("hooks", '"hooks.py"'),
        ("approve", '"approve.py"'),
        ("limits", '{"maxCostUsd": 1}'),
        ("retry", "false"),
        ("output", "{}"),
        ("store", '{"dir": ".lousho"}'),
        ("guardrails", '["pii"]'),
    ],
)
def test_a_key_that_would_do_nothing_is_refused(agent_folder: AgentFolder, key: str, value: str):
    said = refused(agent_folder({"agent.json": f'{{"{key}": {value}}}'}))
    assert f"agent.json:1:2: '{key}': this version does not support" in said


def test_a_key_that_says_what_holds_anyway_is_fine(agent_folder: AgentFolder):
    text = '{"projectInstructions": false, "compaction": false, "limits": {}, "hooks": []}'
    assert resolve_agent_dir_sync(agent_folder({"agent.json": text})).config == {"name": "desk", "tools": []}


@pytest.mark.parametrize("name", ["hooks.py", "approve.py", "hooks.ts", "lousho-registry.json"])
def test_a_file_that_would_guard_nothing_is_refused(agent_folder: AgentFolder, name: str):
    assert f"{name}': this version does not " in refused(agent_folder({"instructions.md": "x", name: "raise OSError"}))


def test_guards_can_be_taken_away_in_code_and_are_then_not_run(agent_folder: AgentFolder):
    folder = agent_folder(
        {"agent.json": '{"hooks": "hooks.py", "approve": "approve.py"}', "hooks.py": "1 / 0", "approve.py": "1 / 0"}
    )
    agent = load_agent_dir_sync(folder, provider=mock_model(["hi"]), hooks=None, approve=None)
    assert agent.send_sync("x").text == "hi"
    assert "approve" in refused(folder, hooks=None)


def test_what_would_only_add_is_skipped_and_named(agent_folder: AgentFolder):
    folder = agent_folder(
        {
            "instructions.md": "x",
            "skills/a/SKILL.md": "x",
            "subagents/b/agent.json": "{}",
            "schedules/c.py": "x",
            "channels/d.py": "x",
            "memory/e.py": "x",
            "auth.py": "x",
            "tools/old.ts": "x",
            "instruction.md": "x",
            "tool/x.py": "x",
            "README.md": "x",
            ".env": "A=b",
            "data/x.csv": "x",
        }
    )
    (folder / "skills_empty").mkdir()
    skipped = {part.path: part.reason for part in resolve_agent_dir_sync(folder).manifest.skipped}
    assert skipped == {
        "auth.py": "this version serves no routes that it could guard",
        "channels/": "this version does not serve channels",
        "instruction.md": "it is not part of an agent directory (did you mean 'instructions.md'?)",
        "memory/": "this version has no memory slots",
        "schedules/": "this version does not run schedules",
        "skills/": "this version does not load skills",
        "subagents/": "this version does not run sub-agents",
        "tool": "it is not part of an agent directory (did you mean 'tools/'?)",
        "tools/old.ts": "tools are Python files (.py)",
    }


@pytest.mark.parametrize("name", ["agent.ts", "agent.toml", "agent.mjs"])
def test_a_config_in_another_language_is_not_passed_over(agent_folder: AgentFolder, name: str):
    said = refused(agent_folder({name: "x", "instructions.md": "x"}))
    assert f"{name}' cannot be read: a config file is agent.py, agent.json, agent.yaml or agent.yml" in said


@pytest.mark.spec("DIR-20")
@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("openai/gpt-4o-mini", "Base.\n\nFor openai."),
        ("openrouter/openai/gpt-4o-mini", "Base.\n\nFor openai."),
        ("anthropic/claude-sonnet-4-5", "Base.\n\nFor claude."),
        ("mock/gpt-claude", "Base.\n\nFor claude."),
        ("ollama/llama3", "Base."),
    ],
)
def test_the_first_family_file_that_fits_the_model_is_appended(agent_folder: AgentFolder, model: str, wanted: str):
    folder = agent_folder(
        {
            "instructions.md": "Base.\n",
            "instructions/openai.md": "For openai.\n",
            "instructions/gpt-.md": "For gpt.\n",
            "instructions/claude.md": "For claude.\n",
            "instructions/notes.txt": "Not a family.",
        }
    )
    if model.startswith("open"):
        (folder / "instructions/gpt-.md").unlink()
    (folder / "agent.json").write_text(f'{{"model": "{model}"}}', encoding="utf-8")
    assert resolve_agent_dir_sync(folder).config["instructions"] == wanted
    (folder / "agent.json").unlink()
    assert resolve_agent_dir_sync(folder, model=model).config["instructions"] == wanted


@pytest.mark.spec("DIR-20")
def test_the_family_of_a_provider_object_and_of_the_environment(
    agent_folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
):
    folder = agent_folder({"instructions.md": "Base.", "instructions/mock.md": "M.", "instructions/openai.md": "O."})
    assert resolve_agent_dir_sync(folder, provider=mock_model([])).config["instructions"] == "Base.\n\nM."
    assert resolve_agent_dir_sync(folder).config["instructions"] == "Base."
    monkeypatch.setenv("LOUSHO_MODEL", "openai/gpt-4.1-mini")
    assert resolve_agent_dir_sync(folder).config["instructions"] == "Base.\n\nO."


@pytest.mark.spec("DIR-37")
async def test_resolving_gives_the_options_and_a_manifest(agent_folder: AgentFolder):
    folder = agent_folder(
        {
            "agent.yaml": "description: Sorts mail\nmodel: mock/m\nmaxSteps: 3\n",
            "instructions.md": "Sort.",
            "tools/sort.py": "from ..lib import helper\n" + tool_source("sort"),
            "lib/helper.py": "x = 1\n",
        }
    )
    resolved = await resolve_agent_dir(folder)
    assert {**resolved.config, "tools": [one.name for one in resolved.config["tools"]]} == {
        "name": "desk",
        "model": "mock/m",
        "instructions": "Sort.",
        "max_steps": 3,
        "tools": ["sort"],
    }
    manifest = resolved.manifest
    assert (manifest.name, manifest.tools, manifest.description) == ("desk", ["sort"], "Sorts mail")
    assert (manifest.skills, manifest.subagents, manifest.channels, manifest.schedules) == ([], [], [], [])
    assert (manifest.memory, manifest.registry, manifest.skipped) == ([], None, [])
    names = ["agent.yaml", "instructions.md", "lib/helper.py", "tools/sort.py"]
    assert manifest.files == [folder / name for name in names]
    options: dict[str, Any] = {**resolved.config, "provider": mock_model([call("sort"), "ok"]), "model": None}
    agent = create_agent(**options)
    assert (agent.options.max_steps, (await agent.send("x")).text) == (3, "ok")


@pytest.mark.spec("DIR-39")
async def test_every_override_wins_over_the_files_and_reaches_the_agent(agent_folder: AgentFolder):
    folder = agent_folder(
        {
            "agent.json": """{"name": "a", "model": "mock/a", "maxSteps": 9, "toolConcurrency": 9,
                              "modelSettings": {"seed": 9}, "permissions": [{"tool": "*", "action": "deny"}]}""",
            "instructions.md": "By file.",
        }
    )
    events: list[str] = []
    decisions: list[str] = []
    model = mock_model([call("other"), "done"])

    @tool
    def other() -> str:
        """Another tool."""
        return "x" * 100

    agent = await load_agent_dir(
        folder,
        name="b",
        description="Another",
        provider=model,
        instructions="By code.",
        max_steps=2,
        tool_concurrency=1,
        model_settings={"seed": 1},
        permissions=[{"tool": "other", "action": "allow"}],
        tools=[other],
        on_event=lambda event: events.append(event.type),
        on_permission_decision=lambda entry, _principal: decisions.append(entry["decision"]),
        max_tool_result_chars=60,
        ask_question=True,
        redact_content=False,
    )
    result = await agent.send("x")
    assert (agent.name, agent.description, result.text, decisions) == ("b", "Another", "done", ["allow"])
    assert (agent.options.max_steps, agent.options.tool_concurrency, model.calls[0].seed) == (2, 1, 1)
    assert (model.calls[0].messages[0].content, list(agent.tools)) == ("By code.", ["other", "ask_question"])
    assert len(str(result.messages[-2].content)) < 100
    assert events[-1] == "run.done"


@pytest.mark.spec("DIR-39")
def test_there_is_no_option_of_an_agent_that_an_override_does_not_reach(agent_folder: AgentFolder):
    """Options that come later belong here too: the last line fails until they are."""

    @tool
    def other() -> str:
        """Another tool."""
        return "x"

    stores = create_agent(provider=mock_model([]))
    values: dict[str, Any] = {
        "model": "mock/mini",
        "provider": mock_model([]),
        "instructions": "By code.",
        "prompt": "By code.",
        "name": "b",
        "description": "Another",
        "tools": [other],
        "max_steps": 2,
        "tool_concurrency": 1,
        "model_settings": {"seed": 1},
        "permissions": [{"tool": "other", "action": "allow"}],
        "on_permission_decision": lambda _entry, _principal: None,
        "permission_mode": "plan",
        "on_permission_mode_change": lambda _change: None,
        "store": stores.store,
        "approval_store": stores.approval_store,
        "ask_question": True,
        "approval_ttl_ms": 500,
        "approve": lambda _request: True,
        "on_event": lambda _event: None,
        "max_tool_result_chars": 60,
        "tool_error_message": lambda _error, _info: "no",
        "tool_timeout_ms": 250,
        "tool_results": SpillOptions(directory=Path("results"), above_chars=2_000),
        "loop_guard": False,
        "repair_arguments": False,
        "match_tool_names": False,
        "version": "2",
        "redact_content": False,
    }
    text = """{"name": "a", "model": "mock/a", "maxSteps": 9, "toolConcurrency": 9, "approvalTtlMs": 9,
               "modelSettings": {"seed": 9}, "permissions": [{"tool": "*", "action": "deny"}], "toolTimeoutMs": 9,
               "toolResults": {"spillDir": "files"}, "permissionMode": "dontAsk", "loopGuard": true, "repairArguments": true,
               "matchToolNames": true, "version": "1"}"""
    folder = agent_folder({"agent.json": text, "instructions.md": "By file."})
    bare = {"agent.json": '{"model": "mock/a"}'}
    for name, value in values.items():
        config = resolve_agent_dir_sync(folder, **{name: value}).config
        assert config[name] is value, name
        given: dict[str, Any] = {"name": "bare", name: value}
        made: dict[str, Any] = given if name == "provider" else {"model": "mock/a", **given}
        agent = load_agent_dir_sync(agent_folder(bare, f"bare-{name}"), **given)
        assert comparable(agent.options) == comparable(create_agent(**made).options), name
    parameters = inspect.signature(create_agent).parameters.values()
    assert {one.name for one in parameters if one.kind is one.KEYWORD_ONLY} == set(values)


def comparable(options: Any) -> dict[str, Any]:
    """The options that do not differ between two agents of the same options."""
    made_anew = ("provider", "tools")
    own = {key: getattr(options, key) for key in options.__dataclass_fields__}
    return {key: value for key, value in own.items() if key not in made_anew}


@pytest.mark.spec("DIR-39")
def test_an_override_that_no_agent_knows_is_refused_with_a_suggestion(agent_folder: AgentFolder):
    folder = agent_folder({"instructions.md": "x"})
    with pytest.raises(ConfigurationError) as caught:
        load_agent_dir_sync(folder, provider=mock_model([]), max_step=3)
    assert (caught.value.code, "'max_steps'" in caught.value.detail) == ("LOUSHO_CONFIG_INVALID", True)


@pytest.mark.spec("DIR-40")
def test_overriding_tools_replaces_them_and_overriding_the_provider_drops_the_model(agent_folder: AgentFolder):
    folder = agent_folder({"agent.json": '{"model": "openai/gpt-4o-mini"}', "tools/a.py": tool_source("a")})
    model = mock_model(["hi"])

    @tool
    def b() -> str:
        """B."""
        return "b"

    resolved = resolve_agent_dir_sync(folder, provider=model, tools=[b])
    assert (resolved.manifest.tools, resolved.config["tools"]) == (["a"], [b])
    assert "model" not in resolved.config
    assert load_agent_dir_sync(folder, provider=model).send_sync("x").text == "hi"
    assert model.calls[0].model in (None, "mock-model")
    assert resolve_agent_dir_sync(folder, provider=model, model="mini").config["model"] == "mini"


@pytest.mark.spec("DIR-42")
def test_a_tool_file_can_be_imported_from_code_as_it_is(agent_folder: AgentFolder):
    folder = agent_folder({"tools/look.py": tool_source("look", "seen")}, "desk")
    program = "import sys; sys.path.insert(0, sys.argv[1]); from tools.look import look; print(look.name, look())"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "look seen\n"


@pytest.mark.spec("DIR-42")
def test_the_options_can_be_printed_and_pasted(agent_folder: AgentFolder):
    folder = agent_folder({"agent.yaml": "model: mock/m\nmaxSteps: 3\nmodelSettings: {stop: [END]}\n"})
    config = resolve_agent_dir_sync(folder).config
    pasted = eval(repr(config), {})
    assert pasted == config
    assert create_agent(**pasted).options == create_agent(**config).options


@pytest.mark.spec("DIR-14")
@pytest.mark.parametrize(
    ("agents", "rules", "expires"),
    [
        pytest.param(0.001, None, True, id="the agent's time"),
        pytest.param(60_000, None, False, id="the agent's time has not come"),
        pytest.param(0.001, 60_000, False, id="a longer time of the rule"),
        pytest.param(60_000, 0.001, True, id="a shorter time of the rule"),
    ],
)
async def test_an_approval_expires_after_the_agents_time_unless_a_rule_has_its_own(
    agent_folder: AgentFolder, agents: float, rules: float | None, expires: bool
):
    rule = {"tool": "open_door", "action": "ask", **({} if rules is None else {"ttlMs": rules})}
    config = json.dumps({"approvalTtlMs": agents, "permissions": [rule]})
    model = mock_model([call("open_door"), "Well."])
    agent = await load_agent_dir(
        agent_folder({"agent.json": config, "tools/door.py": tool_source("open_door", "opened")}), provider=model
    )
    paused = await agent.send("open")
    (pending,) = await agent.approvals.list()
    while expires and datetime.now(UTC) <= datetime.fromisoformat(str(pending.expires_at)) + timedelta(milliseconds=1):
        await asyncio.sleep(0)
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    told = str(model.calls[1].messages[-1].content)
    assert ("Approval of 'open_door' expired before it was decided" in told, told == "opened") == (expires, not expires)


@pytest.mark.spec("DIR-14")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("agent.json", '{"approvalTtlMs": 0}', id="zero"),
        pytest.param("agent.json", '{"approvalTtlMs": -1}', id="negative"),
        pytest.param("agent.json", '{"approvalTtlMs": "60000"}', id="a text"),
        pytest.param("agent.yaml", "approvalTtlMs: true\n", id="a boolean"),
        pytest.param("agent.yaml", "approvalTtlMs: .inf\n", id="without an end"),
        pytest.param("agent.yaml", "approvalTtlMs: .nan\n", id="not a number"),
        pytest.param("agent.py", "config = {'approval_ttl_ms': float('inf')}\n", id="without an end, in code"),
    ],
)
def test_a_time_to_decide_that_is_none_is_refused(agent_folder: AgentFolder, name: str, text: str):
    said = refused(agent_folder({name: text}))
    assert re.search("approval_?ttl_?ms", said, re.IGNORECASE)
    assert "above 0" in said


def test_a_folder_inside_an_agent_directory_leads_to_it(agent_folder: AgentFolder):
    folder = agent_folder({"instructions.md": "x", "docs/a.md": "x"})
    assert f"did you mean '{folder}'?" in refused(folder / "docs")


@pytest.mark.spec("DIR-12")
@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits", "dontAsk"])
@pytest.mark.parametrize("file", ["agent.json", "agent.yaml", "agent.py"])
async def test_a_directory_sets_the_permission_mode(agent_folder: AgentFolder, mode: str, file: str):
    text = {
        "agent.json": f'{{"permissionMode": "{mode}"}}',
        "agent.yaml": f"permissionMode: {mode}\n",
        "agent.py": f"config = {{'permission_mode': {mode!r}}}\n",
    }[file]
    agent = load_agent_dir_sync(agent_folder({file: text, "instructions.md": "x"}), provider=mock_model(["hi"]))
    assert agent.session("s").permission_mode == mode
    assert (await agent.describe())["permissionMode"] == mode


@pytest.mark.spec("DIR-12")
def test_a_code_config_may_give_a_function_for_the_permission_mode(agent_folder: AgentFolder):
    code = "modes = ['plan']\nconfig = {'permissionMode': lambda: modes[-1]}\n"
    agent = load_agent_dir_sync(agent_folder({"agent.py": code, "instructions.md": "x"}), provider=mock_model(["hi"]))
    assert agent.session("s").permission_mode == "plan"


@pytest.mark.spec("DIR-12", "PMODE-24")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"permissionMode": "yolo"}', "agent.json:1:2: 'permissionMode': must be one of default, plan, acceptEdits,"),
        ('{"permissionMode": "acceptEdit"}', "(did you mean 'acceptEdits'?)"),
        ('{"permissionMode": 1}', "'permissionMode': must be one of"),
        ('{"permissionMode": ["plan"]}', "'permissionMode': must be one of"),
    ],
)
def test_a_bad_permission_mode_of_a_directory_is_named_with_its_place(agent_folder: AgentFolder, text: str, says: str):
    assert says in refused(agent_folder({"agent.json": text}))
