"""An agent with one tool, its answer streamed. Runs without a key: a canned model calls the tool that you name."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from lousho import create_agent, create_mock_provider, tool


@tool
def current_time() -> dict[str, str]:
    """Tell the time in UTC."""
    return {"time": datetime.now(UTC).strftime("%H:%M")}


async def main() -> None:
    agent = create_agent(
        instructions="You tell people the time.",
        provider=create_mock_provider(responses=["One moment.", "You have the time above."]),
        tools=[current_time],
    )
    run = agent.stream("Please call current_time for me")
    async for event in run:
        if event.type == "text.delta":
            print(event.text, end="", flush=True)
        elif event.type == "text.done":
            print()
        elif event.type == "tool.done":
            print(f"[{event.tool_name}] {event.result}")
    result = await run.result
    print(f"({result.finish_reason}, {result.steps} steps)")


asyncio.run(main())
