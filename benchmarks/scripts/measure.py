"""The same measurement for every framework: two-step runs one after another, 300 at once, and 200 calls in one step."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

RUNS = 300
CALLS = 200
"""Tool calls of the one step that asks for many."""
AT_ONCE = 300
QUESTION = "What is 1 plus 2?"
MANY = "Add many numbers."
"""The question that models answer with `CALLS` calls."""
ANSWER = "It is 3."


async def _measure(send: Callable[[str], Awaitable[str]]) -> dict[str, float]:
    for _ in range(20):
        assert await send(QUESTION) == ANSWER
    best = 0.0
    for _ in range(3):
        gc.collect()
        started = time.perf_counter()
        for _ in range(RUNS):
            await send(QUESTION)
        best = max(best, RUNS / (time.perf_counter() - started))
    together = 0.0
    for _ in range(3):
        gc.collect()
        started = time.perf_counter()
        answers = await asyncio.gather(*(send(QUESTION) for _ in range(AT_ONCE)))
        together = max(together, AT_ONCE / (time.perf_counter() - started))
        assert set(answers) == {ANSWER}
    side_by_side = 0.0
    for _ in range(5):
        gc.collect()
        started = time.perf_counter()
        assert await send(MANY) == ANSWER
        side_by_side = max(side_by_side, CALLS / (time.perf_counter() - started))
    return {"sequential": best, "concurrent": together, "calls": side_by_side}


def calls_for(question: str) -> int:
    """Return how many calls a model asks for."""
    return CALLS if question == MANY else 1


def report(distribution: str, send: Callable[[str], Awaitable[str]]) -> None:
    """Measure `send` and print one JSON line: runs per second, one after another and 300 at once."""
    figures = asyncio.run(_measure(send))
    print(json.dumps({"name": distribution, "version": version(distribution), **figures}))
