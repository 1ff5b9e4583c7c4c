"""Three agent directories, written anew for every run, are loaded and driven by the demo model."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import MOST_PAUSES, same_calls
from made_up import NOW, SEED, Case, agents_for
from written_agents import calls_in, write_directory

from lousho.agent import Agent
from lousho.loader.directory import load_agent_dir
from lousho.models.demo import DemoProvider
from lousho.runtime.result import RunResult


@pytest.mark.spec("BEY-03")
@pytest.mark.parametrize("number", range(3), ids=["plain", "nested", "troubled"])
async def test_a_written_directory_is_driven(number: int, tmp_path: Path):
    made = agents_for(SEED)[number]
    log = tmp_path / "calls.jsonl"
    folder = write_directory(made, tmp_path / "made-up agent", log)
    for case in made.cases:
        agent = await load_agent_dir(folder, provider=DemoProvider(clock=lambda: NOW), ask_question=made.ask_question)
        session = agent.session()
        answers = list(case.answers)
        for said, expected in case.turns:
            result = await _settled(agent, case, answers, await session.send(said))
            told = f"LOUSHO_TEST_DEMO_SEED={SEED}, {case.label}: {said!r}\n{result.text}"
            assert result.finish_reason == "stop", told
            calls = calls_in(log)
            assert same_calls(calls, expected), f"{told}\ncalled {calls}\nnot {expected}"
        await agent.close()


async def _settled(agent: Agent, case: Case, answers: list[str], result: RunResult) -> RunResult:
    for _ in range(MOST_PAUSES):
        if result.finish_reason != "awaiting-approval":
            break
        (pending,) = await agent.approvals.list()
        if pending.kind == "question":
            result = await agent.approvals.answer(id=pending.id, answer=answers.pop(0))
        else:
            result = await agent.approvals.resolve(id=pending.id, approved=bool(case.approve))
    return result


@pytest.mark.spec("BEY-03")
def test_a_written_directory_talks_in_the_terminal(tmp_path: Path, run_lousho):
    made = agents_for(SEED)[0]
    log = tmp_path / "calls.jsonl"
    folder = write_directory(made, tmp_path / "made-up agent", log)
    case = next(case for case in made.cases if case.label == "one name in a natural sentence")
    ((said, expected),) = case.turns
    done = run_lousho(["chat", folder], input=f"{said}\nwhat can you do?\n")
    assert done.returncode == 0, done.stderr
    assert calls_in(log) == expected
    assert "I am the built-in demo model" in done.stdout
    assert case.says[0] in done.stdout
