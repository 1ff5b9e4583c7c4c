"""Version 1 spec files: what they may hold, and what is said of what they may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs import call

from lousho import AgentSpec, ConfigurationError, SDKError, load_spec, spec_to_agent
from lousho.testing import mock_model

SUPPORT: dict[str, Any] = {
    "name": "support-bot",
    "prompt": "You are a friendly support agent.",
    "provider": {"type": "mock", "model": "mock-1"},
    "tools": ["current-date"],
}
SUPPORT_YAML = """\
name: support-bot
prompt: You are a friendly support agent.
provider:
  type: mock
  model: mock-1
tools:
  - current-date
"""


def spec(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**SUPPORT, **changes}.items() if value is not None}


def refusal(data: dict[str, Any]) -> SDKError:
    with pytest.raises(SDKError) as caught:
        spec_to_agent(data)
    return caught.value


@pytest.mark.spec("QS-16")
async def test_a_dict_a_yaml_file_and_a_json_file_make_the_same_agent(tmp_path: Path):
    (tmp_path / "agent.yaml").write_text(SUPPORT_YAML, encoding="utf-8")
    (tmp_path / "agent.json").write_text(json.dumps(SUPPORT), encoding="utf-8")
    specs = [AgentSpec.model_validate(SUPPORT), load_spec(tmp_path / "agent.yaml"), load_spec(tmp_path / "agent.json")]
    assert specs[0] == specs[1] == specs[2]
    for one in specs:
        model = mock_model([call("current_date"), "Today."])
        agent = spec_to_agent(one, provider=model)
        result = await agent.send("Which day is it?")
        assert (agent.name, list(agent.tools), result.text) == ("support-bot", ["current_date"], "Today.")
        assert model.calls[0].messages[0].content == "You are a friendly support agent."
    assert (await spec_to_agent(specs[0]).send("Hello!")).text


@pytest.mark.spec("QS-16")
def test_a_dict_that_is_no_spec_does_not_validate():
    from pydantic import ValidationError

    with pytest.raises(ValidationError):
        AgentSpec.model_validate({"name": "support-bot"})


def test_the_model_of_the_file_is_the_model_of_every_call():
    assert spec_to_agent(spec(provider={"type": "mock", "model": "mock-7"})).options.model == "mock/mock-7"


@pytest.mark.spec("ERR-36")
def test_every_problem_is_listed_with_its_path_and_likely_typos(tmp_path: Path):
    file = tmp_path / "agent.yaml"
    file.write_text("name: 7\npromt: Hi\nprovider: {type: opnai, model: ''}\ntools: http\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_spec(file)
    assert caught.value.code == "LOUSHO_SPEC_INVALID"
    assert caught.value.detail == (
        f"load_spec: '{file}' failed validation - "
        "'name': must be a text, not a number; put it in quotes (line 1, column 1); "
        "'prompt': missing required field 'prompt'; "
        "'provider.type': must be one of openai, anthropic, ollama, openrouter, mock, not 'opnai' "
        "(did you mean 'openai'?) (line 3, column 12); "
        "'provider.model': must not be empty (line 3, column 25); "
        "'tools': must be a list, not a text (line 4, column 1); "
        "unknown field 'promt' (did you mean 'prompt'?) (line 2, column 1)"
    )


@pytest.mark.parametrize("missing", ["name", "prompt", "provider"])
def test_each_required_field_is_missed(missing: str):
    error = refusal(spec(**{missing: None}))
    assert (error.code, f"'{missing}': missing required field '{missing}'" in error.detail) == (
        "LOUSHO_SPEC_INVALID",
        True,
    )


@pytest.mark.parametrize("missing", ["type", "model"])
def test_both_parts_of_the_provider_are_required(missing: str):
    provider = {key: value for key, value in SUPPORT["provider"].items() if key != missing}
    assert f"'provider.{missing}': missing required field" in refusal(spec(provider=provider)).detail


@pytest.mark.spec("ERR-36")
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        pytest.param("a.yaml", "name: x\nprompt: a: b\n", "a.yaml:2:10: mapping values are not allowed", id="a colon"),
        pytest.param("a.yaml", "name: x\n\tprompt: y\n", "a.yaml:2:1: a tab indents this line", id="a tab"),
        pytest.param("a.yaml", "name: x\nname: y\n", "a.yaml:2:1: duplicate key 'name' (first on line 1)", id="twice"),
        pytest.param("a.yml", "name: [x\n", "a.yml:2:1: ", id="an open list"),
        pytest.param("a.json", '{"name": "x",\n "name": "y"}', "a.json:2:2: duplicate key 'name'", id="twice in JSON"),
        pytest.param("a.json", '{"name": "x",}', "a.json:1:13: a comma before '}'", id="a comma too many"),
        pytest.param("a.json", "{'name': 'x'}", "a.json:1:2: expected a key in double quotes", id="single quotes"),
        pytest.param("a.json", '{"name": // who\n"x"}', "JSON has no comments", id="a comment"),
        pytest.param("a.yaml", "", "is empty", id="nothing"),
        pytest.param("a.json", " \n", "is empty", id="nothing in JSON"),
        pytest.param("a.yaml", "- name: x\n", "must be a mapping of fields, not a list", id="a list"),
    ],
)
def test_text_that_does_not_parse_says_where(tmp_path: Path, name: str, text: str, says: str):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_spec(tmp_path / name)
    assert (caught.value.code, says in caught.value.detail) == ("LOUSHO_SPEC_INVALID", True), caught.value.detail


@pytest.mark.spec("ERR-37")
def test_a_likely_typo_in_a_valid_spec_is_an_error_and_other_unknown_fields_are_ignored(tmp_path: Path):
    error = refusal(spec(tools=None, tool=["current-date"]))
    assert error.code == "LOUSHO_SPEC_UNKNOWN_FIELD"
    assert "unknown field 'tool' (did you mean 'tools'?)" in error.detail
    assert spec_to_agent(spec(colour="blue", **{"$schema": "x"})).name == "support-bot"


@pytest.mark.spec("ERR-37")
@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        pytest.param({"requiresApproval": True}, "policy.requiresApproval", id="a rule one level too high"),
        pytest.param({"guardrails": ["pii"]}, "policy.guardrails", id="guardrails too"),
        pytest.param({"policy": {"requireApproval": True}}, "policy.requiresApproval", id="a misspelt rule"),
    ],
)
def test_a_rule_that_would_silently_guard_nothing_is_an_error(changes: dict[str, Any], meant: str):
    error = refusal(spec(**changes))
    assert (error.code, f"(did you mean '{meant}'?)" in error.detail) == ("LOUSHO_SPEC_UNKNOWN_FIELD", True)


@pytest.mark.spec("ERR-35")
def test_a_spec_that_is_not_there(tmp_path: Path, run_lousho: Any):
    with pytest.raises(ConfigurationError) as caught:
        load_spec(tmp_path / "agent.yaml")
    assert (caught.value.code, "agent.yaml" in caught.value.detail) == ("LOUSHO_SPEC_NOT_FOUND", True)
    done = run_lousho(["chat", "missing.yaml"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no file 'missing.yaml'" in done.stderr
    assert "[LOUSHO_SPEC_NOT_FOUND] Check the path in the message" in done.stderr


@pytest.mark.spec("ERR-38")
@pytest.mark.parametrize("name", ["agent.toml", "agent", "agent.yaml.bak"])
def test_a_spec_with_another_extension(tmp_path: Path, name: str):
    (tmp_path / name).write_text(SUPPORT_YAML, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_spec(tmp_path / name)
    assert (caught.value.code, name in caught.value.detail) == ("LOUSHO_SPEC_UNSUPPORTED_FORMAT", True)
    assert ".yaml, .yml or .json" in caught.value.hint


@pytest.mark.spec("ERR-41")
@pytest.mark.parametrize("name", ["not-a-real-tool", "http_request", "web_fetch", "current_date"])
def test_a_tool_that_is_not_built_in_names_those_that_are(name: str):
    error = refusal(spec(tools=["day-name", name]))
    assert error.code == "LOUSHO_TOOL_NOT_FOUND"
    assert f"'tools.1': '{name}'" in error.detail
    assert "The built-in tools are current-date, day-name, http, web-fetch." in error.detail


@pytest.mark.spec("ERR-42")
@pytest.mark.parametrize(("name", "factory"), [("github", "create_github_tools"), ("jira", "create_jira_tools")])
def test_a_tool_that_needs_credentials_points_to_create_agent(name: str, factory: str):
    error = refusal(spec(tools=[name]))
    assert error.code == "LOUSHO_TOOL_NEEDS_CREDENTIALS"
    assert "create_agent()" in error.detail
    assert f"{factory}(...)" in error.detail


async def test_requires_approval_pauses_every_call_or_those_of_the_listed_tools():
    asks_all = spec_to_agent(spec(policy={"requiresApproval": True}), provider=mock_model([call("current_date"), "x"]))
    assert (await asks_all.send("Go")).finish_reason == "awaiting-approval"
    listed = spec(tools=["current-date", "day-name"], policy={"requiresApproval": ["current-date"]})
    agent = spec_to_agent(listed, provider=mock_model([call("day_name"), call("current_date"), "x"]))
    paused = await agent.send("Go")
    assert paused.finish_reason == "awaiting-approval"
    assert [one.tool_name for one in await agent.approvals.list()] == ["current_date"]
    assert (await agent.approvals.resolve(id=str(paused.approval_id), approved=True)).text == "x"


async def test_ask_question_adds_the_tool_and_the_answer_is_heard():
    data = spec(policy={"askQuestion": True, "requiresApproval": True})
    agent = spec_to_agent(data, provider=mock_model([call("ask_question", question="Which one?"), "The red one."]))
    paused = await agent.send("Go")
    assert paused.finish_reason == "awaiting-approval"
    assert (await agent.approvals.answer(id=str(paused.approval_id), answer="red")).text == "The red one."


def test_unknown_policy_keys_are_kept_with_the_spec(tmp_path: Path):
    file = tmp_path / "agent.yaml"
    file.write_text(SUPPORT_YAML + "policy:\n  sandbox: {level: 3}\n  askQuestion: true\n", encoding="utf-8")
    policy = load_spec(file).policy
    assert policy is not None
    assert policy.model_dump(by_alias=True, exclude_none=True) == {"sandbox": {"level": 3}, "askQuestion": True}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"policy": {"guardrails": ["pii"]}}, "policy.guardrails", id="guardrails"),
        pytest.param({"policy": {"limits": {"maxTokens": 5}}}, "policy.limits", id="limits"),
        pytest.param({"policy": {"compaction": True}}, "policy.compaction", id="compaction"),
        pytest.param({"policy": {"compaction": {}}}, "policy.compaction", id="compaction with its defaults"),
        pytest.param({"triggers": [{"type": "cron"}]}, "triggers", id="triggers"),
        pytest.param({"mcpServers": {"files": {"command": "npx"}}}, "mcpServers", id="MCP servers"),
        pytest.param({"version": 2}, "version", id="version 2"),
    ],
)
def test_what_could_only_be_ignored_is_refused_by_name(changes: dict[str, Any], field: str):
    error = refusal(spec(**changes))
    assert error.code == "LOUSHO_SPEC_UNSUPPORTED"
    assert f"'{field}'" in error.detail


def test_declarations_that_ask_for_nothing_are_fine():
    policy = {"guardrails": [], "limits": {}, "compaction": False, "askQuestion": False, "requiresApproval": []}
    agent = spec_to_agent(spec(policy=policy, triggers=[], mcpServers={}, version=1))
    assert (list(agent.tools), agent.options.permissions) == (["current_date"], ())


def test_overrides_win_over_the_spec():
    model = mock_model(["hi"])
    agent = spec_to_agent(spec(), provider=model, name="other", prompt="Be brief.", max_steps=2)
    assert (agent.name, agent.options.instructions, agent.options.max_steps) == ("other", "Be brief.", 2)
    assert spec_to_agent(spec(), model="mock/other").options.model == "mock/other"


def test_a_spec_that_names_a_model_without_its_key_says_which_variable():
    error = refusal(spec(provider={"type": "openai", "model": "gpt-4.1-mini"}))
    assert error.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    assert "OPENAI_API_KEY" in error.detail
    assert "--model mock/demo" in error.detail
