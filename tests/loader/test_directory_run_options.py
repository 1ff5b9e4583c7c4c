"""Options about the run in the files of a directory and in modules: limits, help for the model, functions of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import collect

from lousho import SDKError, load_agent_dir, load_agent_dir_sync
from lousho.loader.target import load_target
from lousho.testing import mock_model

AgentFolder = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "agent.yaml",
            "toolTimeoutMs: 250\ntoolResults: {spillDir: results, aboveChars: 2000}\nloopGuard: false\n"
            "repairArguments: false\nmatchToolNames: false\nversion: '2.1'\n",
            id="yaml",
        ),
        pytest.param(
            "agent.py",
            "config = dict(tool_timeout_ms=250, tool_results=dict(spill_dir='results', above_chars=2000),"
            " loop_guard=False, repair_arguments=False, match_tool_names=False, version='2.1')\n",
            id="snake_case in code",
        ),
    ],
)
async def test_the_options_of_the_loop_stand_in_files_too(agent_folder: AgentFolder, name: str, text: str):
    agent = await load_agent_dir(agent_folder({name: text}), provider=mock_model(["hi"]))
    described = await agent.describe()
    assert described["limits"]["toolTimeoutMs"] == 250
    assert described["toolResults"] == {"spillDir": "results", "aboveChars": 2000}
    assert described["loop"] == {"guard": False, "repairArguments": False, "matchToolNames": False}
    events = await collect(agent.stream("x"))
    assert events[0].to_dict()["version"] == "2.1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"toolTimeoutMs": 0}', "agent.json:1:2: 'toolTimeoutMs': must be a number of milliseconds above 0, not 0"),
        ('{"loopGuard": "no"}', "'loopGuard': must be true or false, not 'no'"),
        ('{"version": 2}', "'version': must be a text, not a number; put it in quotes"),
        ('{"toolResults": "results"}', "'toolResults': must be a mapping, not a text"),
        ('{"toolResults": {"spilDir": "x"}}', "'toolResults.spilDir': is not a known key (did you mean 'spillDir'?)"),
        ('{"toolResults": {"spill_dir": "x"}}', "(did you mean 'spillDir'?)"),
        ('{"toolResults": {"spillDir": ""}}', "'toolResults': 'spill_dir' must be the path of a folder"),
        ('{"toolResults": {"spillDir": "x", "aboveChars": 5}}', "must be a whole number of at least 1000; got 5"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(agent_folder: AgentFolder, text: str, says: str):
    with pytest.raises(SDKError) as caught:
        load_agent_dir_sync(agent_folder({"agent.json": text}), provider=mock_model(["x"]))
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"
    assert says in caught.value.detail


FUNCTIONS = """
def model(ctx):
    return "mock/" + ctx.metadata["size"]

async def instructions(ctx):
    return f"You work for {ctx.metadata['tenant']}."

config = {"model": model, "instructions": instructions}
"""


async def test_model_and_instructions_of_agent_py_may_be_functions_of_the_run(agent_folder: AgentFolder):
    folder = agent_folder({"agent.py": FUNCTIONS, "instructions/mini.md": "Never asked for: the model is not known."})
    agent = await load_agent_dir(folder)
    described = await agent.describe(metadata={"size": "mini", "tenant": "Acme"})
    assert (described["provider"], described["model"]) == ("mock", "mini")
    assert described["instructions"] == "You work for Acme."
    assert (await agent.send("hi", metadata={"size": "mini", "tenant": "Acme"})).finish_reason == "stop"


def test_instructions_that_are_a_function_do_not_go_with_those_of_a_family(agent_folder: AgentFolder):
    text = "config = {'model': 'mock/mini', 'instructions': lambda ctx: 'x'}\n"
    with pytest.raises(SDKError, match="Keep one of them") as caught:
        load_agent_dir_sync(agent_folder({"agent.py": text, "instructions/mini.md": "Be brief."}))
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"


def test_a_target_whose_agent_chooses_its_model_says_so_and_can_be_put_on_another(tmp_path: Path):
    module = tmp_path / "desk.py"
    module.write_text(
        "from lousho import create_agent\nagent = create_agent(model=lambda ctx: 'mock/' + ctx.metadata['size'])\n",
        encoding="utf-8",
    )
    target = load_target(module, command="run", model="mock/other")
    assert target.notes == ["The module's agent is already built, so it keeps its model chosen per run."]
    assert (target.rebuild(model="mock/fixed").model, target.agent.model_label) == ("fixed", "mock/fixed")
    target.unload()


def test_doctor_says_what_is_chosen_per_run_and_calls_no_function(run_lousho: Callable[..., Any], tmp_path: Path):
    module = tmp_path / "desk.py"
    module.write_text(
        "from lousho import create_agent, deny\n"
        "def never(ctx):\n    raise SystemExit('called')\n"
        "agent = create_agent(model=never, tools=never, permissions=[deny('refund')])\n",
        encoding="utf-8",
    )
    said = run_lousho(["doctor", module]).stdout
    assert "chosen per run, by a function of the agent" in said
    assert "guards nothing" not in said
