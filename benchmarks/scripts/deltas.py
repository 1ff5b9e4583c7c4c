"""100,000 streamed text deltas: what an event costs, and that memory does not grow with them."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import AsyncIterator

from lousho import ModelChunk, ModelRequest, ModelResponse, create_agent
from lousho.models.provider import Finish, TextDelta

DELTAS = 100_000


class Chatty:
    """Streams many short pieces."""

    name = "chatty"
    default_model = "chatty-1"

    def __init__(self, pieces: int) -> None:
        self._pieces = pieces

    async def stream(self, _: ModelRequest) -> AsyncIterator[ModelChunk]:
        piece = TextDelta("word ")
        for _ in range(self._pieces):
            yield piece
        yield Finish("stop")

    async def generate(self, _: ModelRequest) -> ModelResponse:
        return ModelResponse(text="word " * self._pieces)

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


async def read(pieces: int) -> int:
    count = 0
    async for event in create_agent(provider=Chatty(pieces)).stream("go"):
        count += event.type == "text.delta"
    return count


def peak(pieces: int) -> int:
    """Return the most bytes that were in use while reading, beside the text itself."""
    tracemalloc.start()
    asyncio.run(read(pieces))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


asyncio.run(read(1000))
started = time.perf_counter()
assert asyncio.run(read(DELTAS)) == DELTAS
elapsed = time.perf_counter() - started
print(
    json.dumps(
        {
            "deltas": DELTAS,
            "microseconds_per_event": elapsed / DELTAS * 1e6,
            "peak_bytes_10k": peak(10_000),
            "peak_bytes_100k": peak(100_000),
        }
    )
)
