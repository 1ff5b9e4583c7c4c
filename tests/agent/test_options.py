"""Options: unknown names, values that cannot be used, what is remembered and what a call may change."""

from __future__ import annotations

import math
from typing import Any

import pytest
from runs import call

from lousho import ConfigurationError, SDKError, create_agent, tool
from lousho.testing import mock_model


@tool
async def noop() -> str:
    """Do nothing."""
    return "ok"


@pytest.mark.spec("ERR-01", "ERR-21", "ERR-02")
def test_an_agent_without_a_model_says_what_to_do():
    with pytest.raises(ConfigurationError) as caught:
        create_agent(instructions="x")
    error = caught.value
    assert error.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
    assert error.docs.endswith("#lousho_config_missing_provider")
    assert "LOUSHO_MODEL" in error.hint
    assert str(error) == f"{error.detail}\n[{error.code}] {error.hint} ({error.docs})"
    assert "[LOUSHO_" not in error.detail


@pytest.mark.spec("ERR-20")
@pytest.mark.parametrize(
    ("options", "field", "said"),
    [
        pytest.param({"max_stpes": 3}, "max_stpes", "did you mean 'max_steps'?", id="a typo"),
        pytest.param({"system": "x"}, "system", "did you mean 'instructions'?", id="another SDK's word"),
        pytest.param({"max_output_tokens": 5}, "max_output_tokens", "model_settings.max_tokens", id="a setting"),
        pytest.param({"max_steps": 0}, "maxSteps", "at least 1", id="zero steps"),
        pytest.param({"max_steps": 1.5}, "maxSteps", "at least 1", id="half a step"),
        pytest.param({"max_steps": True}, "maxSteps", "at least 1", id="a bool for steps"),
        pytest.param({"tool_concurrency": -1}, "toolConcurrency", "unbounded", id="negative concurrency"),
        pytest.param({"tools": [noop, noop]}, "tools", "two tools are named 'noop'", id="a name twice"),
        pytest.param({"tools": [lambda: 1]}, "tools", "is not a tool", id="a bare function"),
        pytest.param({"tools": noop}, "tools", "must be a list", id="a lone tool"),
        pytest.param({"provider": "openai/x"}, "provider", "use model=", id="a text as provider"),
        pytest.param({"model_settings": {"temperature": 3}}, "modelSettings.temperature", "0 to 2", id="too hot"),
        pytest.param(
            {"model_settings": {"tempreture": 1}}, "modelSettings.tempreture", "temperature", id="a setting's typo"
        ),
        pytest.param(
            {"permissions": [{"tool": "x", "action": "maybe"}]}, "permissions.0", "allow, ask, deny", id="an action"
        ),
        pytest.param({"permissions": {"tool": "x"}}, "permissions", "list of rules", id="a lone rule"),
        pytest.param({"max_tool_result_chars": math.nan}, "maxToolResultChars", "above 0", id="not a number"),
        pytest.param({"on_event": 3}, "on_event", "function", id="a listener that is none"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_by_name(options, field, said):
    given: dict[str, Any] = {"provider": mock_model(["x"]), **options}
    with pytest.raises(ConfigurationError) as caught:
        create_agent(**given)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", field)
    assert said in caught.value.detail


@pytest.mark.spec("ERR-20")
async def test_an_empty_input_is_refused_before_the_model_is_called():
    model = mock_model(["x"])
    agent = create_agent(provider=model)
    for send in (agent.send, agent.session("s").send):
        with pytest.raises(ConfigurationError) as caught:
            await send([])
        assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", "input")
    with pytest.raises(ConfigurationError):
        agent.stream([])
    assert len(model.calls) == 0


@pytest.mark.spec("ERR-24")
def test_instructions_and_prompt_together_are_a_conflict():
    with pytest.raises(SDKError) as caught:
        create_agent(provider=mock_model(["x"]), instructions="a", prompt="b")
    assert caught.value.code == "LOUSHO_CONFIG_CONFLICTING_OPTIONS"


def test_an_option_that_is_none_counts_as_not_given():
    agent = create_agent(provider=mock_model(["x"]), instructions=None, something=None)
    assert (agent.name, agent.options.max_steps) == ("agent", 10)


async def test_settings_of_the_call_win_key_by_key_and_unset_ones_are_not_sent():
    model = mock_model(["a", "b"])
    agent = create_agent(provider=model, model_settings={"max_tokens": 1024, "temperature": 0.2}, tools=[noop])
    await agent.send("x", model_settings={"maxTokens": 256}, instructions="Answer in French.")
    sent = model.calls[0]
    assert (sent.max_tokens, sent.temperature, sent.top_p) == (256, 0.2, None)
    assert sent.messages[0].content == "You are a helpful assistant.\n\nAnswer in French."
    await agent.send("x")
    assert model.calls[1].max_tokens == 1024


async def test_max_steps_ends_the_run_with_a_text_that_says_so():
    model = mock_model([call("noop")], on_exhausted="repeat-last")
    agent = create_agent(provider=model, tools=[noop])
    result = await agent.send("go", max_steps=2)
    assert (result.finish_reason, result.steps, len(model.calls)) == ("max-steps", 2, 2)
    assert result.text == "Stopped after 2 steps: the step limit was reached before the task was finished."
    assert (await agent.send("go")).steps == 10


async def test_a_changed_copy_shares_the_sessions_and_leaves_the_agent_alone():
    first = create_agent(provider=mock_model(["One."]), name="a")
    await first.session("s").send("hi")
    second = first.with_options(provider=mock_model(["Two."]), name="b")
    result = await second.session("s").send("again")
    assert [message.role for message in result.messages] == ["user", "assistant", "user", "assistant"]
    assert (first.name, second.name) == ("a", "b")
    with pytest.raises(ConfigurationError, match="did you mean 'max_steps'"):
        first.with_options(max_step=1)


@pytest.mark.spec("HAZ-08")
def test_a_rule_for_a_tool_that_does_not_exist_warns_with_the_nearest_name(caplog):
    @tool
    async def write_file(path: str) -> str:
        """Write a file."""
        return path

    rules = [
        {"tool": "wirte_file", "action": "deny"},
        {"tool": ["write_file", "shell"], "action": "ask"},
        {"tool": "*", "action": "allow"},
    ]
    with caplog.at_level("WARNING", logger="lousho"):
        create_agent(provider=mock_model(["x"]), tools=[write_file], permissions=rules)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "permissions.0" in said[0]
    assert "did you mean 'write_file'?" in said[0]
    assert "'shell'" in said[1]
