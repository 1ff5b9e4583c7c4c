"""Tokens and money: what one model call reported, what a step used, what a run has spent in all.

`promptTokens` / `completionTokens` on the wire are aliases of `inputTokens` / `outputTokens`. Counts are tokens,
costs US dollars. Source: events page, models-and-cost page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from lousho.core.messages import Message

CHARS_PER_TOKEN = 4
TOKENS_PER_ATTACHMENT = 1000


def camel_case(name: str) -> str:
    """Return the wire and file name of an attribute: `input_tokens` is `inputTokens`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


STORED: dict[str, Any] = {"alias_generator": camel_case, "populate_by_name": True}
"""How pydantic writes a dataclass of ours into a store: camelCase keys."""


@dataclass(slots=True, kw_only=True)
class ModelUsage:
    """What a provider reported for one model call. A provider that reports nothing gives no `ModelUsage` at all."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    """The price the provider itself reported, in USD."""

    def to_dict(self) -> dict[str, Any]:
        """Return the camelCase form, without what was not reported."""
        out: dict[str, Any] = {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens}
        out["totalTokens"] = (
            self.total_tokens if self.total_tokens is not None else self.input_tokens + self.output_tokens
        )
        optional = {
            "cachedInputTokens": self.cached_input_tokens,
            "reasoningTokens": self.reasoning_tokens,
            "costUsd": self.cost_usd,
        }
        return out | {key: value for key, value in optional.items() if value is not None}


@dataclass(slots=True, kw_only=True)
class StepUsage:
    """The tokens of one model call, reported or estimated."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    estimated: bool = False
    """True when the provider reported nothing and the counts are an estimate."""
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_partial: bool = False
    """True when `cost_usd` leaves out a call whose price is not known."""

    def copied(self) -> StepUsage:
        """Return counts that share nothing with these."""
        return replace(self)

    @property
    def prompt_tokens(self) -> int:
        """Alias of `input_tokens`."""
        return self.input_tokens

    @property
    def completion_tokens(self) -> int:
        """Alias of `output_tokens`."""
        return self.output_tokens

    @classmethod
    def of_call(cls, reported: ModelUsage | None, *, estimated_input: int, estimated_output: int) -> StepUsage:
        """Return the usage of a call: the provider's figures when it gave any, else the estimate."""
        if reported is None:
            total = estimated_input + estimated_output
            return cls(input_tokens=estimated_input, output_tokens=estimated_output, total_tokens=total, estimated=True)
        total_tokens = reported.total_tokens
        return cls(
            input_tokens=reported.input_tokens,
            output_tokens=reported.output_tokens,
            total_tokens=total_tokens if total_tokens is not None else reported.input_tokens + reported.output_tokens,
            cached_input_tokens=reported.cached_input_tokens,
            reasoning_tokens=reported.reasoning_tokens,
            cost_usd=reported.cost_usd,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form of the events page."""
        out: dict[str, Any] = {
            "promptTokens": self.input_tokens,
            "completionTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "estimated": self.estimated,
        }
        if self.cached_input_tokens is not None:
            out["cachedInputTokens"] = self.cached_input_tokens
        if self.reasoning_tokens is not None:
            out["reasoningTokens"] = self.reasoning_tokens
        if self.cost_usd is not None:
            out["costUsd"] = self.cost_usd
        if self.cost_partial:
            out["costPartial"] = True
        return out


@dataclass(slots=True, kw_only=True)
class ModelSpend:
    """What one model of a run used."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the camelCase form."""
        out: dict[str, Any] = {
            "modelCalls": self.model_calls,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
        }
        if self.cost_usd is not None:
            out["costUsd"] = self.cost_usd
        return out


@dataclass(slots=True, kw_only=True)
class RunUsage(StepUsage):
    """What a whole run spent. `model_calls` counts its model calls, `by_model` splits it by `provider/model`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    model_calls: int = 0
    by_model: dict[str, ModelSpend] = field(default_factory=dict)
    hosted_tool_calls: dict[str, int] = field(default_factory=dict)

    def copied(self) -> RunUsage:
        """Return counts that share nothing with these."""
        by_model = {name: replace(spend) for name, spend in self.by_model.items()}
        return replace(self, by_model=by_model, hosted_tool_calls=dict(self.hosted_tool_calls))

    def add(self, step: StepUsage, model: str) -> None:
        """Count one model call of `model` into the run."""
        self.model_calls += 1
        self.input_tokens += step.input_tokens
        self.output_tokens += step.output_tokens
        self.total_tokens += step.total_tokens
        self.estimated = self.estimated or step.estimated
        if step.cached_input_tokens is not None:
            self.cached_input_tokens = (self.cached_input_tokens or 0) + step.cached_input_tokens
        if step.reasoning_tokens is not None:
            self.reasoning_tokens = (self.reasoning_tokens or 0) + step.reasoning_tokens
        spend = self.by_model.get(model)
        if spend is None:
            spend = self.by_model[model] = ModelSpend()
        spend.model_calls += 1
        spend.input_tokens += step.input_tokens
        spend.output_tokens += step.output_tokens
        spend.total_tokens += step.total_tokens
        if step.cost_usd is not None:
            spend.cost_usd = (spend.cost_usd or 0.0) + step.cost_usd
            self.cost_usd = (self.cost_usd or 0.0) + step.cost_usd
        priced = sum(1 for one in self.by_model.values() if one.cost_usd is not None)
        self.cost_partial = 0 < priced < len(self.by_model)

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form of `run.done`, plus `byModel`."""
        # Not super(): a dataclass with slots is a second class object, which a zero-argument super() does not know.
        out = StepUsage.to_dict(self)
        out["modelCalls"] = self.model_calls
        if self.hosted_tool_calls:
            out["hostedToolCalls"] = dict(self.hosted_tool_calls)
        if self.by_model:
            out["byModel"] = {model: spend.to_dict() for model, spend in self.by_model.items()}
        return out


def estimate_text_tokens(text: str) -> int:
    """Return a rough token count of `text`: four characters a token, rounded up."""
    return (len(text) + CHARS_PER_TOKEN - 1) // CHARS_PER_TOKEN


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return a rough token count of `messages`; an image or file counts 1,000. Source: providers page."""
    total = 0
    for message in messages:
        content = message.content
        if isinstance(content, str):
            total += estimate_text_tokens(content)
        else:
            for part in content:
                total += estimate_text_tokens(part.text) if part.type == "text" else TOKENS_PER_ATTACHMENT
        for call in message.tool_calls:
            total += estimate_text_tokens(call.function.name) + estimate_text_tokens(call.function.arguments)
    return total
