"""A model request from a plain mapping, for calling a provider by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from lousho.core.errors import ConfigurationError
from lousho.core.messages import Message
from lousho.models.provider import FunctionDefinition, ModelRequest, ToolDefinition

_NAMES: dict[str, str] = {}


def request_of(value: ModelRequest | Mapping[str, Any]) -> ModelRequest:
    """Return `value` as a `ModelRequest`: keys in snake_case or camelCase, messages and tools as their wire forms.

    `tools` entries are `{type: 'function', function: {name, description, parameters}}`. Raises `LOUSHO_CONFIG_INVALID`.
    """
    if isinstance(value, ModelRequest):
        return value
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"A model request is a ModelRequest or a mapping with 'messages'; got {type(value).__name__}.",
            field="request",
        )
    names = _NAMES or _fill_names()
    keys: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(str(key))
        if name is None:
            from lousho.core.suggest import unknown_key_message

            raise ConfigurationError(f"{unknown_key_message(str(key), names, noun='field of a model request')}.")
        keys[name] = item
    keys["messages"] = [Message.from_dict(message) for message in keys.get("messages") or ()]
    keys["tools"] = [_tool(tool) for tool in keys.get("tools") or ()]
    return ModelRequest(**keys)


def _fill_names() -> dict[str, str]:
    for entry in fields(ModelRequest):
        head, *rest = entry.name.split("_")
        _NAMES[entry.name] = entry.name
        _NAMES[head + "".join(part.capitalize() for part in rest)] = entry.name
    return _NAMES


def _tool(value: Any) -> ToolDefinition:
    if isinstance(value, ToolDefinition):
        return value
    try:
        function = cast("Mapping[str, Any]", value)["function"]
        return ToolDefinition(
            FunctionDefinition(
                str(function["name"]), str(function.get("description") or ""), function.get("parameters") or {}
            )
        )
    except (KeyError, TypeError, AttributeError):
        raise ConfigurationError(
            "A tool of a model request is {type: 'function', function: {name, description, parameters}}.", field="tools"
        ) from None
