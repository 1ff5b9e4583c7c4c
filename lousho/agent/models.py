"""The models an agent asks: its own, and those that a function or a call chose, kept so that connections are reused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import NamedTuple

from lousho.agent.options import AgentOptions
from lousho.core.errors import ConfigurationError
from lousho.models.call import assemble
from lousho.models.provider import LLMProvider, ModelChunk, ModelRequest, ModelResponse
from lousho.models.resolve import default_model_from_environment, missing_model_error, resolve_provider
from lousho.runtime.model_output import default_model, provider_name

MOST_KEPT_MODELS = 64
"""How many chosen models an agent keeps; the one chosen longest ago is built anew when it is chosen again."""
CHOSEN_PER_RUN = "chosen per run"


class ChosenModel(NamedTuple):
    """Whom to ask, and for which model id; `None`: the provider's default."""

    provider: LLMProvider
    model: str | None


class AgentModels:
    """The models of one agent. Several event loops and threads may share it."""

    def __init__(self, options: AgentOptions) -> None:
        self._given = None if options.provider is None else assemble(options.provider)
        self._chosen: dict[str, LLMProvider] = {}
        self._lock = threading.Lock()
        self.varies = "model" in options.per_run
        """Whether a function chooses the model of each run."""
        self.own = self._own(options)
        """The agent's own; asking it fails when a function chooses and none has chosen yet."""

    def _own(self, options: AgentOptions) -> ChosenModel:
        model = options.model
        if self._given is not None:
            return ChosenModel(self._given, model if isinstance(model, str) else None)
        if callable(model):
            return ChosenModel(_NotChosenYet(), None)
        text = model or default_model_from_environment()
        if text is None:
            raise missing_model_error()
        return ChosenModel(self._resolved(text), None)

    @property
    def model(self) -> str | None:
        """The model id of the agent's requests; `None` when the provider tells none, or a function chooses."""
        return None if self.varies else self.own.model or default_model(self.own.provider)

    @property
    def label(self) -> str:
        """The model in words: `openai/gpt-4.1-mini`, `chosen per run`, `mock (chosen per run)`."""
        name = provider_name(self.own.provider)
        if self.varies:
            return CHOSEN_PER_RUN if self._given is None else f"{name} ({CHOSEN_PER_RUN})"
        return f"{name}/{self.model}" if self.model else name

    def choose(self, name: str) -> ChosenModel:
        """Return a model by its name: `provider/model`, or the bare id where the agent has a provider object.

        Raises `LOUSHO_PROVIDER_SPEC_INVALID`, `LOUSHO_PROVIDER_UNKNOWN` and `LOUSHO_PROVIDER_MISSING_API_KEY`.
        """
        if self._given is not None:
            return ChosenModel(self._given, name)
        return ChosenModel(self._resolved(name), None)

    def _resolved(self, text: str) -> LLMProvider:
        with self._lock:
            provider = self._chosen.pop(text, None) or assemble(resolve_provider(text))
            self._chosen[text] = provider  # the newest comes last
            if len(self._chosen) > MOST_KEPT_MODELS:
                self._chosen.pop(next(iter(self._chosen)))  # a run that still asks it keeps it alive
        return provider

    async def aclose(self) -> None:
        """Release the connections of all of them. Raises the first failure after all were tried."""
        with self._lock:
            providers = {id(provider): provider for provider in (self.own.provider, *self._chosen.values())}
        closers = [close for one in providers.values() if (close := getattr(one, "aclose", None)) is not None]
        outcomes = await asyncio.gather(*(close() for close in closers), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


class _NotChosenYet:
    """Stands for the provider of an agent whose model is chosen per run. It is never asked in a run."""

    name = CHOSEN_PER_RUN
    default_model = None

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Raise `LOUSHO_CONFIG_INVALID`."""
        raise _not_chosen()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Raise `LOUSHO_CONFIG_INVALID`."""
        raise _not_chosen()
        yield

    def supports_tools(self, model: str | None = None) -> bool:
        """Say yes: nothing else is known."""
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        """Say yes: nothing else is known."""
        return True

    async def get_models(self) -> list[str]:
        """Return no models: there is nobody to ask."""
        return []


def _not_chosen() -> ConfigurationError:
    return ConfigurationError(
        "The model of this agent is chosen per run: ask the agent, not its provider.", field="model"
    )
