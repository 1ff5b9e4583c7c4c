"""The model providers a new project can start on, and the one it starts on when nobody says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StarterProvider:
    """What the files of a new project need to know about a provider."""

    name: str
    model: str
    """The model the project names, as `provider/model`."""
    key_variable: str | None
    """The environment variable with the key; None where none is needed."""
    keys_page: str | None = None
    """Where a person gets a key."""


PROVIDERS: Mapping[str, StarterProvider] = {
    provider.name: provider
    for provider in (
        StarterProvider("openai", "openai/gpt-4.1-mini", "OPENAI_API_KEY", "https://platform.openai.com/api-keys"),
        StarterProvider(
            "anthropic",
            "anthropic/claude-sonnet-4-5",
            "ANTHROPIC_API_KEY",
            "https://console.anthropic.com/settings/keys",
        ),
        StarterProvider("mock", "mock/demo", None),
    )
}


def default_provider(env: Mapping[str, str]) -> str:
    """Return the first provider whose key is set in `env`, else `openai`. Source: installation page."""
    for provider in PROVIDERS.values():
        if provider.key_variable is not None and env.get(provider.key_variable):
            return provider.name
    return "openai"
