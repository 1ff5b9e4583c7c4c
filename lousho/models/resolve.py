"""From a model string to a provider, and from the environment to a model string.

Every error here is one a person meets in the first five minutes, so each says what to type next.
Source: providers page, agents page ("Provider credentials").
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import nearest
from lousho.models.provider import LLMProvider
from lousho.models.registry import LLMProviderRegistry

__all__ = [
    "DEMO_MODEL",
    "KEY_VARIABLES",
    "LLMProviderRegistry",
    "default_model_from_environment",
    "missing_model_error",
    "resolve_provider",
    "split_model",
]

DEMO_MODEL = "mock/demo"
"""The model that needs no key."""

PREFIXES = ("openai", "anthropic", "google", "openrouter", "ollama", "pi", "mock")
"""Every prefix that has a meaning, whether or not this version can build it."""

KEY_VARIABLES: Mapping[str, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Provider to the variable with its key, for the providers of this version that need one."""

_FROM_ENVIRONMENT = (
    ("OPENAI_API_KEY", "openai/gpt-4.1-mini"),
    ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
    ("OPENROUTER_API_KEY", "openrouter/openai/gpt-4.1-mini"),
    ("OLLAMA_BASE_URL", "ollama/llama3"),
)
_INSTEAD = {
    "openrouter": (
        "OpenRouter speaks the OpenAI format: set OPENAI_BASE_URL=https://openrouter.ai/api/v1 and OPENAI_API_KEY to your"
        " OpenRouter key, and write 'openai/{model}'"
    ),
    "ollama": (
        "Ollama speaks the OpenAI format too: set OPENAI_BASE_URL=http://localhost:11434/v1 and OPENAI_API_KEY=any, and"
        " write 'openai/{model}'"
    ),
    "google": (
        "Gemini has an OpenAI-compatible endpoint: set"
        " OPENAI_BASE_URL=https://generativelanguage.googleapis.com/v1beta/openai and OPENAI_API_KEY to your Gemini key,"
        " and write 'openai/{model}'"
    ),
    "pi": "use 'openai/...' or 'anthropic/...' with that vendor's key",
}
_FAMILIES = (
    ("openai", ("gpt", "o1", "o3", "o4", "chatgpt")),
    ("anthropic", ("claude",)),
    ("google", ("gemini",)),
    ("ollama", ("llama", "qwen", "mistral", "gemma")),
)


def resolve_provider(model: str) -> LLMProvider:
    """Return the provider for a `provider/model` string, with its key from the environment.

    Only the first slash splits: `openrouter/openai/gpt-4.1-mini` names a model with a slash. A name added with
    `LLMProviderRegistry.register()` works too. Raises `LOUSHO_PROVIDER_SPEC_INVALID` for a string of another form
    and for a misspelt `mock/demo`, `LOUSHO_PROVIDER_UNKNOWN` for a provider this version does not have,
    `LOUSHO_PROVIDER_MISSING_API_KEY` when the provider's variable is not set. Source: providers page.
    """
    prefix, name = split_model(model)
    if not LLMProviderRegistry.has(prefix):
        raise unknown_provider_error(prefix, name)
    if prefix == "mock" and not LLMProviderRegistry.is_own(prefix):
        _refuse_misspelt_demo(name)
    variable = KEY_VARIABLES.get(prefix)
    if variable is not None and not LLMProviderRegistry.is_own(prefix) and not os.environ.get(variable, "").strip():
        raise _missing_key_error(prefix, name, variable)
    return LLMProviderRegistry.resolve(prefix, name)


def split_model(model: str) -> tuple[str, str]:
    """Return provider and model id of a model string. Raises `LOUSHO_PROVIDER_SPEC_INVALID`."""
    text = model.strip() if isinstance(model, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    prefix, slash, name = text.partition("/")
    if slash and prefix.strip() and name.strip() and text.split() == [text]:
        return prefix, name
    from lousho.models.errors import redact  # a key that was pasted into the wrong variable must not be shown

    shown = redact(repr(model) if len(repr(model)) <= 100 else f"{repr(model)[:97]}...")
    guess = _guessed(text)
    raise ConfigurationError(
        f"{shown} is not a model string: write provider and model with a slash between them, for example"
        f" 'openai/gpt-4.1-mini' or 'anthropic/claude-sonnet-4-5'.{guess}",
        field="model",
        code="LOUSHO_PROVIDER_SPEC_INVALID",
    )


def _refuse_misspelt_demo(name: str) -> None:
    """Raise for what was meant to be `mock/demo`; any other model of the mock is a name for its canned replies."""
    if name == "demo" or nearest(name, ["demo"]) is None:
        return
    raise ConfigurationError(
        f"'mock/{name}' looks like a misspelt '{DEMO_MODEL}'. Did you mean '{DEMO_MODEL}'? For canned replies choose"
        " another name after 'mock/'.",
        field="model",
        code="LOUSHO_PROVIDER_SPEC_INVALID",
    )


def default_model_from_environment(env: Mapping[str, str] | None = None) -> str | None:
    """Return the model that the environment asks for, or `None`.

    `LOUSHO_MODEL` as it is; else the default model of the first of `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`,
    `OPENROUTER_API_KEY`, `OLLAMA_BASE_URL` that is set. It may name a provider that this version does not have:
    resolving it then says so. Source: providers page, quickstart page.
    """
    values = os.environ if env is None else env
    named = values.get("LOUSHO_MODEL", "").strip()
    if named:
        return named
    return next((model for variable, model in _FROM_ENVIRONMENT if values.get(variable, "").strip()), None)


def keys_in_environment() -> list[str]:
    """Return the keys of providers that the environment has, for `lousho.core.redact.redact()`."""
    return [key for variable in KEY_VARIABLES.values() if (key := os.environ.get(variable, "").strip())]


def missing_model_error(subject: str = "create_agent()") -> ConfigurationError:
    """Return the error for an agent without a model: `LOUSHO_CONFIG_MISSING_PROVIDER`, with all the fixes.

    Source: errors page.
    """
    return ConfigurationError(
        f"{subject}: no model configured. Do one of the following: (1) pass a model: model='openai/gpt-4.1-mini';"
        " (2) pass a provider: provider=create_mock_provider(); (3) set LOUSHO_MODEL to a provider/model string;"
        " (4) set OPENAI_API_KEY or ANTHROPIC_API_KEY. To try it without a key, use the model mock/demo"
        " (--model mock/demo).",
        field="model",
        code="LOUSHO_CONFIG_MISSING_PROVIDER",
    )


def unknown_provider_error(prefix: str, model: str | None) -> ConfigurationError:
    """Return the error for a provider that cannot be built: a typo, a vendor without a prefix, or one to come."""
    rest = "" if model is None else f"/{model}"
    if prefix in PREFIXES:
        instead = _INSTEAD.get(prefix, "").format(model=model or "<model>")
        return _unknown(
            f"This version does not include the provider {prefix!r} of {prefix + rest!r} yet."
            f" Instead: {instead}. It has: {', '.join(LLMProviderRegistry.names())}."
        )
    close = nearest(prefix, [*LLMProviderRegistry.names(), *PREFIXES])
    hint = f" Did you mean '{close}{rest}'?" if close else ""
    later = [name for name in PREFIXES if not LLMProviderRegistry.has(name)]
    text = (
        f"Unknown provider {prefix!r} in {prefix + rest!r}.{hint}" if model else f"Unknown provider {prefix!r}.{hint}"
    )
    text += f" Supported prefixes: {', '.join(LLMProviderRegistry.names())}"
    text += f" (not in this version yet: {', '.join(later)})." if later else "."
    if close is None:
        text += (
            " A vendor with an OpenAI-compatible API works as 'openai/<model>' with OPENAI_BASE_URL set to its address and"
            " OPENAI_API_KEY to its key; for any other, pass an LLMProvider of your own as provider=, or register one"
            f" with LLMProviderRegistry.register({prefix!r}, factory)."
        )
    return _unknown(text)


def _unknown(message: str) -> ConfigurationError:
    return ConfigurationError(message, field="model", code="LOUSHO_PROVIDER_UNKNOWN")


def _missing_key_error(prefix: str, model: str, variable: str) -> ConfigurationError:
    local = ""
    if os.environ.get(variable.replace("_API_KEY", "_BASE_URL")):
        local = f" (the server at {variable.replace('_API_KEY', '_BASE_URL')} may ignore it: then set {variable}=any)"
    return ConfigurationError(
        f"{variable} is not set, and the model '{prefix}/{model}' needs it{local}. Set it in the environment or in a .env"
        " file, or pass a configured provider instance. To try an agent without a key: --model mock/demo.",
        field="model",
        code="LOUSHO_PROVIDER_MISSING_API_KEY",
    )


def _guessed(text: str) -> str:
    """Return ` Did you mean 'openai/gpt-4o'?` for a bare model id of a known family."""
    for prefix, beginnings in _FAMILIES:
        if text.lower().startswith(beginnings) and text.split() == [text]:
            return f" Did you mean '{prefix}/{text.rstrip('/')}'?"
    return ""
