"""Small things that every test of a tool needs. Source: testing page, hazards page."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError
from lousho.core.messages import Message, MessageLike, text_of
from lousho.core.suggest import unknown_key_message
from lousho.tools.context import ToolContext


def tool_context(**overrides: Any) -> ToolContext:
    """Return a context to call a tool with, outside of any run: id `call_1`, name `tool`, a signal that is not aborted.

    `overrides` set its fields, for example `tool_context(session_id="s-1", messages=(...))`. A new field of the context
    has its default here, so tests keep working. Raises `LOUSHO_CONFIG_INVALID` for a field that does not exist.
    Source: testing page.
    """
    known = {one.name for one in fields(ToolContext)}
    for name in overrides:
        if name not in known:
            raise ConfigurationError(f"{unknown_key_message(name, known, noun='field of a tool context')}.", field=name)
    values: dict[str, Any] = {"tool_call_id": "call_1", "tool_name": "tool", "abort_signal": CancelSignal()}
    return ToolContext(**{**values, **overrides})


def tool_message_value(message: MessageLike) -> Any:
    """Return what a tool gave back, from the message the model reads: its JSON value, or the text when it is none.

    `message` is one of `result.messages` or of a recorded request, with the role `tool`. Raises
    `LOUSHO_CONFIG_INVALID` for a message of another role. Source: testing page.
    """
    read = message if isinstance(message, Message) else Message.from_dict(message)
    if read.role != "tool":
        raise ConfigurationError(
            f"tool_message_value() takes a message with the role 'tool'; this one has the role '{read.role}'.",
            field="message",
        )
    text = text_of(read)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
