"""Which model a chat talks to when nothing, or not everything, is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_files import write_files

from lousho import ConfigurationError, create_agent

if TYPE_CHECKING:
    from conftest import RunLousho

FILES = {
    "nothing/instructions.md": "Help.",
    "named/instructions.md": "Help.",
    "named/agent.json": json.dumps({"model": "openai/gpt-4.1-mini"}),
    "options.py": "agent = {'name': 'a'}\n",
    "named.py": "agent = {'name': 'a', 'model': 'anthropic/claude-sonnet-4-5'}\n",
    "named.yaml": "name: a\nprompt: Help.\nprovider: {type: openai, model: gpt-4.1-mini}\n",
}


@pytest.mark.spec("BEY-04")
@pytest.mark.parametrize("path", ["nothing", "options.py"])
def test_without_any_model_or_key_the_demo_model_answers_and_stderr_says_so(
    run_lousho: RunLousho, tmp_path: Path, path: str
) -> None:
    write_files(tmp_path, FILES)

    done = run_lousho(["chat", path], input="hi\n/model\n")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != ""
    assert "note: No model is named and no API key is set, so this runs on mock/demo" in done.stderr
    assert "mock/demo" in done.stderr.partition("[usage]")[2]


@pytest.mark.spec("BEY-04")
@pytest.mark.parametrize(
    ("path", "flag", "env", "wants"),
    [
        pytest.param("named", [], {}, "OPENAI_API_KEY", id="a directory"),
        pytest.param("named.py", [], {}, "ANTHROPIC_API_KEY", id="a module"),
        pytest.param("named.yaml", [], {}, "OPENAI_API_KEY", id="a spec"),
        pytest.param("nothing", ["--model", "anthropic/claude-sonnet-4-5"], {}, "ANTHROPIC_API_KEY", id="the flag"),
        pytest.param("nothing", [], {"LOUSHO_MODEL": "openai/gpt-4.1-mini"}, "OPENAI_API_KEY", id="the variable"),
        pytest.param("named", [], {"ANTHROPIC_API_KEY": "k-12345"}, "OPENAI_API_KEY", id="with another vendor's key"),
    ],
)
def test_a_model_that_is_named_anywhere_is_never_replaced(
    run_lousho: RunLousho, tmp_path: Path, path: str, flag: list[str], env: dict[str, str], wants: str
) -> None:
    write_files(tmp_path, FILES)

    done = run_lousho(["chat", path, *flag], input="hi\n", env=env)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{wants} is not set" in done.stderr
    assert "[LOUSHO_PROVIDER_MISSING_API_KEY] " in done.stderr
    assert "runs on mock/demo" not in done.stderr


@pytest.mark.spec("BEY-04")
def test_a_key_alone_picks_its_vendor_and_not_the_demo_model(run_lousho: RunLousho, tmp_path: Path) -> None:
    write_files(tmp_path, FILES)

    done = run_lousho(["chat", "nothing"], input="/model\n", env={"ANTHROPIC_API_KEY": "k-12345"})

    assert "anthropic/claude" in done.stderr
    assert "mock/demo" not in done.stderr


@pytest.mark.spec("BEY-04")
def test_in_code_an_agent_without_a_model_is_an_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_agent(instructions="Help.")

    assert caught.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
