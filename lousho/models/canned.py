"""Canned replies for demos and docs: no script, no key, no network.

It answers anything with the next of its replies, and calls a tool when the user names one, so an example shows a real
tool round trip without a model. A test wants `mock_model()` instead. Source: quickstart page.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

from lousho.core.errors import ConfigurationError
from lousho.core.ids import new_id
from lousho.core.messages import FunctionCall, Message, ToolCall, text_of
from lousho.models.chunks import chunks_of
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse, ToolDefinition
from lousho.models.requests import request_of

DEFAULT_RESPONSES = ("This is a canned reply of the mock provider; no model was called.",)


class MockLLMProvider:
    """A provider with canned replies, used in turn and then from the start again. Source: quickstart page.

    It calls a tool when the last message is the user's and contains the name of an offered tool as a word, with made-up
    values for the required arguments. The tool's result is then answered with the next reply.
    """

    def __init__(
        self, responses: Sequence[str] | None = None, *, name: str = "mock", default_model: str = "mock"
    ) -> None:
        texts = list(DEFAULT_RESPONSES if responses is None else responses)
        if isinstance(responses, str) or not texts or not all(isinstance(text, str) for text in texts):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                "create_mock_provider() takes responses as a list of at least one text.", field="responses"
            )
        self.name = name
        self.default_model = default_model
        self._responses = texts
        self._used = 0

    async def generate(self, request: ModelRequest | Mapping[str, Any]) -> ModelResponse:
        """Return the next reply, with a tool call when the user just named a tool."""
        wanted = request_of(request)
        text = self._responses[self._used % len(self._responses)]
        self._used += 1
        tool = _named_tool(wanted.messages, wanted.tools) if wanted.tool_choice != "none" else None
        if tool is None:
            return ModelResponse(text=text)
        arguments = json.dumps(sample_value(tool.function.parameters), ensure_ascii=False)
        call = ToolCall(new_id("call"), FunctionCall(tool.function.name, arguments))
        return ModelResponse(text=text, tool_calls=(call,), finish_reason="tool_calls")

    async def stream(self, request: ModelRequest | Mapping[str, Any]) -> AsyncIterator[ModelChunk]:
        """Return the same turn as `generate()`, word by word."""
        for chunk in chunks_of(await self.generate(request), by_words=True):
            yield chunk

    def supports_tools(self, model: str | None = None) -> bool:
        """True: tool calls are simulated."""
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        """True."""
        return True

    async def get_models(self) -> list[str]:
        """Return the one model there is."""
        return [self.default_model]


def create_mock_provider(
    responses: Sequence[str] | None = None, *, name: str = "mock", default_model: str = "mock"
) -> MockLLMProvider:
    """Return a provider with canned `responses`. Raises `LOUSHO_CONFIG_INVALID`. Source: quickstart page."""
    return MockLLMProvider(responses, name=name, default_model=default_model)


def _named_tool(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """Return the offered tool that the last message, if it is the user's, names first."""
    if not tools or not messages or messages[-1].role != "user":
        return None
    text = text_of(messages[-1])
    found: list[tuple[int, ToolDefinition]] = []
    for tool in tools:
        match = re.search(rf"(?<![\w-]){re.escape(tool.function.name)}(?![\w-])", text)
        if match:
            found.append((match.start(), tool))
    return min(found, key=lambda item: item[0])[1] if found else None


def sample_value(schema: Mapping[str, Any], *, depth: int = 0) -> Any:
    """Return a made-up value that a simple JSON Schema accepts: objects get their required fields only."""
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample_value(schema[key][0], depth=depth + 1)
    kinds = schema.get("type") or ("object" if "properties" in schema else "string")
    kind = cast("str", kinds if isinstance(kinds, str) else kinds[0])
    if kind == "object" and depth < 5:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        return {
            key: sample_value(properties[key], depth=depth + 1)
            for key in schema.get("required") or ()
            if key in properties
        }
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    samples: dict[str, Any] = {"object": {}, "array": [], "boolean": True, "null": None}
    return samples.get(kind, "example")
