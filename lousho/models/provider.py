"""What a model provider is: one request in, one response or one stream of chunks out.

Every vendor adapter, wrapper (retry, fallback, rate limit) and fake speaks exactly this vocabulary, so the run loop
never knows who answers. Source: providers page ("Custom providers"), agents page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from lousho.core.cancel import CancelSignal
from lousho.core.messages import Message, ReasoningBlock, ToolCall
from lousho.core.usage import ModelUsage

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]
FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "tool_calls", "content_filter", "error", "other")


def finish_reason_of(reason: str | None) -> FinishReason:
    """Return `reason` when it is one of ours, else `other`."""
    for known in FINISH_REASONS:
        if reason == known:
            return known
    return "other"


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A tool as the model sees it. `parameters` is a JSON Schema with an object at its root."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool offered with a request."""

    type: ClassVar[Literal["function"]] = "function"
    function: FunctionDefinition

    def to_dict(self) -> dict[str, Any]:
        """Return `{type: 'function', function: {name, description, parameters}}`."""
        function = self.function
        return {
            "type": "function",
            "function": {
                "name": function.name,
                "description": function.description,
                "parameters": dict(function.parameters),
            },
        }


ToolChoice: TypeAlias = 'Literal["auto", "required", "none"] | Mapping[str, Any]'


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One model call. What is `None` is not sent, so the vendor's own default applies."""

    messages: list[Message]
    """The whole conversation, the system prompt first."""
    tools: list[ToolDefinition] = field(default_factory=lambda: [])
    model: str | None = None
    """The model id without the provider's prefix; unset: the provider's `default_model`."""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: list[str] | None = None
    seed: int | None = None
    tool_choice: ToolChoice | None = None
    """Not sent on a call without tools."""
    response_format: Mapping[str, Any] | None = None
    """`{type: 'json', schema?}`: a hint that the reply should be JSON."""
    reasoning: Mapping[str, Any] | None = None
    signal: CancelSignal | None = None
    """Aborts the call. A provider that ignores it is abandoned by the run."""


@dataclass(frozen=True, slots=True)
class ServedBy:
    """Which provider and model really answered, where a wrapper may have switched."""

    provider: str
    model: str | None


@dataclass(slots=True, kw_only=True)
class ModelResponse:
    """A whole model turn."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: ModelUsage | None = None
    """`None` when the provider reported no counts; the run then estimates."""
    reasoning: tuple[ReasoningBlock, ...] = ()
    served_by: ServedBy | None = None
    raw_response: object = None
    """The vendor's own reply, for debugging. Never stored, never recorded."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    type: ClassVar[Literal["text-delta"]] = "text-delta"
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning text; the first one starts the reasoning."""

    type: ClassVar[Literal["reasoning-delta"]] = "reasoning-delta"
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """A reasoning block is complete; `block` is what must be sent back on the next call."""

    type: ClassVar[Literal["reasoning-end"]] = "reasoning-end"
    block: ReasoningBlock


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A whole tool call, assembled by the provider from whatever pieces the vendor sent."""

    type: ClassVar[Literal["tool-call"]] = "tool-call"
    tool_call: ToolCall


@dataclass(frozen=True, slots=True)
class Finish:
    """The last chunk of every complete stream. A stream that ends without one was cut off."""

    type: ClassVar[Literal["finish"]] = "finish"
    finish_reason: FinishReason
    usage: ModelUsage | None = None
    served_by: ServedBy | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error inside a stream, for providers that report one as a chunk; it fails the step."""

    type: ClassVar[Literal["error"]] = "error"
    error: BaseException


ModelChunk: TypeAlias = TextDelta | ReasoningDelta | ReasoningEnd | ToolCallChunk | Finish | Failure
"""What `LLMProvider.stream()` yields: pieces of text and reasoning, whole tool calls, and how the turn ended."""


@runtime_checkable
class LLMProvider(Protocol):
    """What an agent generates with. Implement it to bring your own backend.

    `generate()` and `stream()` raise `LLMProviderError` (or a subclass) for what the vendor refused or failed at,
    and stop early, raising the signal's reason, when `request.signal` is aborted.
    """

    @property
    def name(self) -> str:
        """The provider's name, e.g. `openai`."""
        ...

    @property
    def default_model(self) -> str | None:
        """The model id used when a request names none."""
        ...

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Return a whole model turn."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Return the model turn as chunks: text and reasoning deltas, then tool calls, then `Finish`."""
        ...

    def supports_tools(self, model: str | None = None) -> bool:
        """Whether the model takes tools."""
        ...

    def supports_streaming(self, model: str | None = None) -> bool:
        """Whether `stream()` may be used; otherwise the run calls `generate()`."""
        ...

    async def get_models(self) -> list[str]:
        """Return the model ids the backend offers, or an empty list where it cannot tell."""
        ...
