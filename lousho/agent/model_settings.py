"""Sampling settings: which there are, which values they take. Source: agents page ("Model settings")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message
from lousho.core.usage import camel_case

_PAST_64_BITS = 2**63


def _number(low: float, high: float) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            return f"must be a number from {low:g} to {high:g}"
        return None

    return check


def is_whole(value: Any, at_least: int) -> bool:
    """Whether `value` is a whole number from `at_least` on that fits into 64 bits, as every store and provider has them."""
    return isinstance(value, int) and not isinstance(value, bool) and at_least <= value < _PAST_64_BITS


def _max_tokens(value: Any) -> str | None:
    return None if is_whole(value, 1) else "must be a whole number of at least 1"


def _seed(value: Any) -> str | None:
    return None if is_whole(value, -_PAST_64_BITS) else "must be a whole number of at most 64 bits"


def _stop(value: Any) -> str | None:
    items = cast("list[Any]", value) if isinstance(value, (list, tuple)) else None
    return None if items is not None and all(isinstance(item, str) for item in items) else "must be a list of texts"


def _tool_choice(value: Any) -> str | None:
    if value in ("auto", "required", "none"):
        return None
    if isinstance(value, Mapping):
        choice = cast("Mapping[str, Any]", value)
        function = choice.get("function")
        if choice.get("type") == "function" and isinstance(function, Mapping) and "name" in function:
            return None
    return "must be 'auto', 'required', 'none' or {'type': 'function', 'function': {'name': ...}}"


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "max_tokens": _max_tokens,
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "frequency_penalty": _number(-2, 2),
    "presence_penalty": _number(-2, 2),
    "stop": _stop,
    "seed": _seed,
    "tool_choice": _tool_choice,
}
_SNAKE = {camel_case(name): name for name in _CHECKS}
_ALIASES = {
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop_sequences": "stop",
    "stopSequences": "stop",
}


def check_model_settings(settings: Any) -> dict[str, Any]:
    """Return the settings with snake_case keys; camelCase keys, as files have them, are taken too.

    Raises `LOUSHO_CONFIG_INVALID` for an unknown key or a value out of range; the error's `field` is the file's name
    for it, such as `modelSettings.temperature`. A `None` counts as not set.
    """
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise ConfigurationError("model_settings must be a mapping.", field="modelSettings")
    checked: dict[str, Any] = {}
    for given, value in cast("Mapping[str, Any]", settings).items():
        if value is None:
            continue
        name = _SNAKE.get(given, given)
        field = f"modelSettings.{camel_case(str(name))}"
        if name not in _CHECKS:
            raise ConfigurationError(
                f"model_settings: {unknown_key_message(given, list(_CHECKS), aliases=_ALIASES)}.", field=field
            )
        problem = _CHECKS[name](value)
        if problem is not None:
            raise ConfigurationError(f"model_settings: {name} {problem}; got {shown(value)}.", field=field)
        checked[name] = list(value) if name == "stop" else value
    return checked
