"""What the tests of the testing tools share: a request, a place for a cassette, and a provider that plays chunks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lousho.core.messages import Message
from lousho.models.provider import FunctionDefinition, ModelChunk, ModelRequest, ModelResponse, ToolDefinition


def request_for(text: str, **fields: Any) -> ModelRequest:
    """A request with one user message; `tools` maps names to parameter schemas."""
    tools = [ToolDefinition(FunctionDefinition(name, "", schema)) for name, schema in fields.pop("tools", {}).items()]
    return ModelRequest(messages=fields.pop("messages", [Message("user", text)]), tools=tools, **fields)


class PlayedProvider:
    """A stand-in for a vendor: answers each call with the next of `replies`, raising those that are exceptions.

    A list of replies is a stream of chunks, in which a number is a pause in milliseconds.
    """

    def __init__(self, replies: Sequence[Any], *, name: str = "vendor", default_model: str | None = "model-1") -> None:
        self.name = name
        self.default_model = default_model
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)

    def _next(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        return self._replies[len(self.requests) - 1]

    async def generate(self, request: ModelRequest) -> ModelResponse:
        reply = self._next(request)
        if inspect.iscoroutinefunction(reply):
            reply = await reply(request)
        if isinstance(reply, BaseException):
            raise reply
        return ModelResponse(text=reply) if isinstance(reply, str) else reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        for chunk in self._next(request):
            if isinstance(chunk, BaseException):
                raise chunk
            if inspect.iscoroutinefunction(chunk):
                await chunk(request)
            elif isinstance(chunk, (int, float)):
                await asyncio.sleep(chunk / 1000)
            else:
                yield chunk

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return ["model-1"]


@pytest.fixture
def ask() -> Callable[..., ModelRequest]:
    """`ask("hi", temperature=0)`: a request."""
    return request_for


@pytest.fixture
def vendor() -> type[PlayedProvider]:
    """The class of a provider that plays what it is given."""
    return PlayedProvider


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """Where a cassette goes; the folder is not there yet."""
    return tmp_path / "__cassettes__" / "flow.json"
