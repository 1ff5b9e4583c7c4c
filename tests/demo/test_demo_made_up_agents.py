"""The demo model drives agents nobody has seen: their vocabulary is made up anew for every run.

The seed of a run is printed with every failure; `LOUSHO_TEST_DEMO_SEED=<seed>` plays it again.
"""

from __future__ import annotations

import pytest
from driving import problems_of
from made_up import SEED, MadeUpAgent, agents_for
from made_up_deep import deep_agents_for
from made_up_natural import natural_agents_for
from sizes import sized

ROUNDS = sized(ci=3, soak=400)
KINDS = {
    "plain parameters": lambda seed: agents_for(seed)[0],
    "objects, lists and missing parameters": lambda seed: agents_for(seed)[1],
    "failures, refusals and results handed on": lambda seed: agents_for(seed)[2],
    "one noun and several verbs": lambda seed: natural_agents_for(seed)[0],
    "prepositions, units and small talk": lambda seed: natural_agents_for(seed)[1],
    "deep schemas and the model's own examples": lambda seed: deep_agents_for(seed)[0],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(sized(ci=60, soak=1800))
async def test_the_demo_model_drives_a_made_up_agent(kind: str):
    print(f"LOUSHO_TEST_DEMO_SEED={SEED}")
    for seed in range(SEED, SEED + ROUNDS):
        made: MadeUpAgent = KINDS[kind](seed)
        tools = {tool.name: list(tool.input_schema.get("properties", {})) for tool in made.tools}
        for case in made.cases:
            problems = await problems_of(made, case)
            told = "\n".join(problems)
            assert not problems, f"LOUSHO_TEST_DEMO_SEED={seed}, {kind}, {case.label}:\n{told}\ntools: {tools}"


def test_the_same_seed_makes_the_same_agents():
    first, second = (agents_for(SEED) + natural_agents_for(SEED) + deep_agents_for(SEED) for _ in range(2))
    assert [[case.turns for case in made.cases] for made in first] == [
        [case.turns for case in made.cases] for made in second
    ]
    assert [[tool.name for tool in made.tools] for made in first] == [
        [tool.name for tool in made.tools] for made in second
    ]
