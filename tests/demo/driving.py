"""Drives made-up agents through the real runtime and compares what was called."""

from __future__ import annotations

from typing import Any

from made_up import NOW, Call, Case, MadeUpAgent

from lousho.agent import create_agent
from lousho.models.demo import DemoProvider

MOST_PAUSES = 6


async def problems_of(made: MadeUpAgent, case: Case) -> list[str]:
    """Return what went wrong when a case was played, an empty list when nothing did."""
    agent = create_agent(
        provider=DemoProvider(clock=lambda: NOW),
        tools=made.tools,
        ask_question=made.ask_question or None,
        tool_concurrency=1,
    )
    session = agent.session()
    told: list[str] = []
    answers = list(case.answers)
    text = ""
    for said, expected in case.turns:
        made.log.clear()
        result = await session.send(said)
        for _ in range(MOST_PAUSES):
            if result.finish_reason != "awaiting-approval":
                break
            pending = (await agent.approvals.list())[0]
            if pending.kind == "question":
                if not answers:
                    return [f"asked through the tool: {pending.question}"]
                result = await agent.approvals.answer(id=pending.id, answer=answers.pop(0))
            else:
                result = await agent.approvals.resolve(id=pending.id, approved=bool(case.approve))
        text = result.text
        if result.finish_reason != "stop":
            told.append(f"{said!r} ended with {result.finish_reason}")
        if not same_calls(made.log, expected):
            told.append(f"{said!r}\n   called {made.log}\n   not    {expected}\n   and said {text!r}")
            break
    told.extend(f"the answer lacks {part!r}: {text!r}" for part in case.says if not told and part not in text)
    await agent.close()
    return told


def same_calls(made: list[Call], expected: list[Call]) -> bool:
    """Whether the calls are the expected ones, in order; `...` stands for any value."""
    return len(made) == len(expected) and all(
        name == wanted and _same(arguments, values)
        for (name, arguments), (wanted, values) in zip(made, expected, strict=True)
    )


def _same(left: Any, right: Any) -> bool:
    if right is ...:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return left == right
