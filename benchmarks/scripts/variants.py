"""What a listener and a blocking tool cost: the same two-step run of Lousho in several variants."""

from __future__ import annotations

import asyncio
import gc
import json
import time

from loop_lousho import InProcess

from lousho import Agent, create_agent, tool

RUNS = 1_000
heard = 0


def listen(_: object) -> None:
    global heard
    heard += 1


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(name="add")
def blocking_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


VARIANTS: dict[str, Agent] = {
    "bare": create_agent(provider=InProcess(), tools=[add], loop_guard=False),
    "guarded": create_agent(provider=InProcess(), tools=[add]),
    "listener": create_agent(provider=InProcess(), tools=[add], on_event=listen),
    "blocking": create_agent(provider=InProcess(), tools=[blocking_add]),
    "timed": create_agent(provider=InProcess(), tools=[add], tool_timeout_ms=60_000),
}


async def main() -> None:
    """Print one JSON line: microseconds of a step for each variant, the best of several rounds taken in turn."""
    best = dict.fromkeys(VARIANTS, float("inf"))
    for _ in range(5):
        for name, agent in VARIANTS.items():
            await agent.send("warm up")
            gc.collect()
            started = time.perf_counter()
            for _ in range(RUNS):
                await agent.send("What is 1 plus 2?")
            best[name] = min(best[name], (time.perf_counter() - started) / RUNS / 2 * 1e6)
    print(json.dumps(best))


if __name__ == "__main__":
    asyncio.run(main())
