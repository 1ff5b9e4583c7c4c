"""Which providers there are, by name, and how each is made. Source: providers page ("Provider classes")."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import unknown_key_message
from lousho.models.provider import LLMProvider

ProviderFactory = Callable[..., LLMProvider]
"""Makes a provider from keyword options. A model string calls it with `default_model`, if it takes that."""

_ALIASES = {
    "url": "base_url",
    "endpoint": "base_url",
    "key": "api_key",
    "model": "default_model",
    "fetch": "transport",
    "http_client": "transport",
    "timeout_ms": "timeout",
}


def _openai(**options: Any) -> LLMProvider:
    from lousho.models.openai import OpenAIProvider

    return OpenAIProvider(**options)


def _anthropic(**options: Any) -> LLMProvider:
    from lousho.models.anthropic import AnthropicProvider

    return AnthropicProvider(**options)


def _mock(*, default_model: str = "mock", **options: Any) -> LLMProvider:
    if default_model == "demo" and not options:
        from lousho.models.demo import DemoProvider

        return DemoProvider()
    from lousho.models.canned import MockLLMProvider

    return MockLLMProvider(default_model=default_model, **options)


_BUILT_IN: dict[str, ProviderFactory] = {"openai": _openai, "anthropic": _anthropic, "mock": _mock}
_OPTIONS: dict[str, tuple[str, ...]] = {
    "openai": (
        "name",
        "base_url",
        "api_key",
        "api",
        "default_model",
        "timeout",
        "transport",
        "headers",
        "unsupported_files",
    ),
    "anthropic": (
        "name",
        "base_url",
        "api_key",
        "default_model",
        "timeout",
        "transport",
        "headers",
        "unsupported_files",
    ),
    "mock": ("name", "default_model", "responses"),
}


class LLMProviderRegistry:
    """The providers that model strings and `create()` know, by name. Source: providers page."""

    _factories: ClassVar[dict[str, ProviderFactory]] = dict(_BUILT_IN)
    _own: ClassVar[set[str]] = set()

    @classmethod
    def create(cls, name: str, /, **config: Any) -> LLMProvider:
        """Return a new provider of that name, built from its options.

        Raises `LOUSHO_PROVIDER_UNKNOWN` for a name nobody registered, `LOUSHO_CONFIG_INVALID` for an option the provider
        does not have, and what the provider itself raises.
        """
        factory = cls._factories.get(name)
        if factory is None:
            from lousho.models.resolve import unknown_provider_error

            raise unknown_provider_error(name, None)
        known = _options_of(name, factory, own=name in cls._own)
        for key in config:
            if known is not None and key not in known:
                raise ConfigurationError(
                    f"{unknown_key_message(key, known, _ALIASES, noun=f'option of the {name} provider')}.", field=key
                )
        return factory(**config)

    @classmethod
    def resolve(cls, name: str, model: str) -> LLMProvider:
        """Return a provider of that name whose default model is `model`; it finds its own credentials."""
        factory = cls._factories[name]
        known = _options_of(name, factory, own=name in cls._own)
        return factory(default_model=model) if known is None or "default_model" in known else factory()

    @classmethod
    def register(cls, name: str, factory: ProviderFactory) -> None:
        """Make `factory` the way to build `name`, in `create()` and in model strings. It replaces a built-in name too.

        Raises `LOUSHO_CONFIG_INVALID` for a name that no model string could hold.
        """
        if not isinstance(name, str) or not name or "/" in name or name.split() != [name] or not callable(factory):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"register() takes a name without slashes and spaces, and a function; got {name!r}.", field="name"
            )
        cls._factories[name] = factory
        cls._own.add(name)

    @classmethod
    def unregister(cls, name: str) -> None:
        """Forget what was registered as `name`; a built-in provider of that name is back then."""
        cls._own.discard(name)
        cls._factories.pop(name, None)
        if name in _BUILT_IN:
            cls._factories[name] = _BUILT_IN[name]

    @classmethod
    def has(cls, name: str) -> bool:
        """Return whether `name` can be built."""
        return name in cls._factories

    @classmethod
    def is_own(cls, name: str) -> bool:
        """Return whether `name` was registered from outside, which may replace a built-in name."""
        return name in cls._own

    @classmethod
    def names(cls) -> list[str]:
        """Return the names that can be built, in the order they were added."""
        return list(cls._factories)


def _options_of(name: str, factory: ProviderFactory, *, own: bool) -> tuple[str, ...] | None:
    """Return the options a factory takes, or `None` when it takes any."""
    if not own and name in _OPTIONS:
        return _OPTIONS[name]
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY)
