"""YAML as a person meets it: what a word in a config or spec file becomes in the agent, and how a mistake is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lousho import ConfigurationError, load_agent_dir_sync, load_spec
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]


@pytest.mark.spec("BEY-05")
@pytest.mark.parametrize("word", ["no", "on", "12:30", "012", "1_000", "2026-11-30", "1.2.3"])
def test_a_word_that_older_yaml_would_turn_into_something_else_stays_text(
    agent_folder: AgentFolder, tmp_path: Path, word: str
):
    folder = agent_folder({"agent.yaml": f"name: {word}\ninstructions: {word}\nmodelSettings: {{stop: [{word}]}}\n"})
    model = mock_model(["ok"])
    agent = load_agent_dir_sync(folder, provider=model)
    agent.send_sync("hi")
    assert (agent.name, model.calls[0].messages[0].content, model.calls[0].stop) == (word, word, (word,))

    spec = tmp_path / "spec.yaml"
    spec.write_text(f"name: {word}\nprompt: {word}\nprovider: {{type: mock, model: {word}}}\n", encoding="utf-8")
    loaded = load_spec(spec)
    assert (loaded.name, loaded.prompt, loaded.provider.model) == (word, word, word)


@pytest.mark.spec("BEY-05")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("model: mock/m\nmaxSteps: true\n", "agent.yaml:2:1: 'maxSteps': must be a whole number", id="true"),
        pytest.param("modelSettings:\n  temperature: false\n", "agent.yaml:2:3: 'modelSettings.temperature'", id="false"),
        pytest.param("maxSteps: yes\n", "agent.yaml:1:1: 'maxSteps': must be a whole number", id="yes"),
        pytest.param("maxSteps: 0o14\nname: 12\n", "agent.yaml:2:1: 'name': must be a text, not a number", id="a number"),
        pytest.param("name: a\nmodel: mock/m\nname: b\n", "agent.yaml:3:1: duplicate key 'name' (first on line 1)", id="a key twice"),
        pytest.param("modelSettings:\n  seed: 1\n  seed: 2\n", "agent.yaml:3:3: duplicate key 'seed'", id="twice inside"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_column(agent_folder: AgentFolder, text: str, says: str):
    folder = agent_folder({"agent.yaml": text, "instructions.md": "Help."})
    with pytest.raises(ConfigurationError) as caught:
        load_agent_dir_sync(folder, provider=mock_model([]))
    assert says in caught.value.detail


@pytest.mark.spec("BEY-05")
def test_a_spec_with_a_key_twice_is_refused_by_the_command_with_its_place(tmp_path: Path, run_lousho: Any):
    (tmp_path / "a.yaml").write_text("name: a\nprompt: b\nprompt: c\n", encoding="utf-8")
    done = run_lousho(["chat", "a.yaml"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "a.yaml:3:1: duplicate key 'prompt' (first on line 2)" in done.stderr
