"""Small helpers for tests that run agents: collecting a stream, and providers that stop at a chosen point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from lousho import AgentRun
from lousho.core.events import AgentEvent
from lousho.models.provider import Finish, ModelChunk, ModelRequest, ModelResponse, TextDelta, ToolCallChunk
from lousho.testing import check_event_order

WAIT = 5.0
"""Seconds any single wait in a test may take."""


async def collect(run: AgentRun) -> list[Any]:
    """Return all events of a run, their order checked."""
    events: list[Any] = []

    async def read() -> None:
        async for event in run:
            events.append(event)

    await asyncio.wait_for(read(), WAIT)
    check_event_order(events)
    return events


def types(events: Sequence[AgentEvent]) -> list[str]:
    """Return the types of events, repeated text deltas as one."""
    names: list[str] = []
    for event in events:
        if event.type != "text.delta" or not names or names[-1] != "text.delta":
            names.append(event.type)
    return names


def of_type(events: Sequence[AgentEvent], *wanted: str) -> list[Any]:
    """Return the events of some types."""
    return [event for event in events if event.type in wanted]


class ChunkProvider:
    """A provider whose every turn is a function from the request to an async iterator of chunks."""

    name = "chunks"
    default_model = "chunks-1"

    def __init__(self, *turns: Callable[[ModelRequest], AsyncIterator[ModelChunk]]) -> None:
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.requests.append(request)
        return self._turns.pop(0)(request)

    async def generate(self, request: ModelRequest) -> ModelResponse:
        response = ModelResponse()
        async for chunk in self.stream(request):
            if isinstance(chunk, TextDelta):
                response.text += chunk.text
            elif isinstance(chunk, ToolCallChunk):
                response.tool_calls = (*response.tool_calls, chunk.tool_call)
            elif isinstance(chunk, Finish):
                response.finish_reason, response.usage = chunk.finish_reason, chunk.usage
        return response

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


def call(name: str, /, **args: Any) -> dict[str, Any]:
    """Return a scripted turn with one tool call."""
    return {"tool_calls": [{"name": name, "args": args}]}


def calls(*pairs: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a scripted turn with several tool calls."""
    return {"tool_calls": [{"name": name, "args": args} for name, args in pairs]}
