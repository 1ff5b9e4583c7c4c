"""What a caller says to an agent, as messages that any store can keep and any provider can be sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from lousho.core.errors import ConfigurationError
from lousho.core.json_values import clean_text, to_json_value
from lousho.core.messages import AgentInput, ContentPart, FilePart, ImagePart, Message, TextPart, coerce_input
from lousho.core.redact import shown


def checked_input(value: AgentInput) -> list[Message]:
    """Return the input as messages that can be stored and sent: what enters here may end up in any store.

    Raises `LOUSHO_CONFIG_INVALID`.
    """
    return [message if _is_plain(message) else _storable(message) for message in coerce_input(value)]


def _is_plain(message: Message) -> bool:
    content = message.content
    bare = not (message.tool_calls or message.reasoning or message.metadata is not None)
    return bare and message.role == "user" and isinstance(content, str) and content.isascii()


def _storable(message: Message) -> Message:
    """Return a message as a store would give it back, half surrogate pairs and values that JSON lacks replaced."""
    content = message.content
    try:
        wire = to_json_value(replace(message, content="").to_dict())
        rest = Message.from_dict(cast("dict[str, Any]", wire))
        if isinstance(content, str):
            return replace(rest, content=clean_text(content))
        return replace(rest, content=tuple([_storable_part(part) for part in content]))
    except (AttributeError, TypeError) as error:
        raise ConfigurationError(f"The input has a message that is not well formed: {error}.", field="input") from error


def _storable_part(part: object) -> ContentPart:
    if isinstance(part, TextPart):
        return TextPart(clean_text(part.text))
    if isinstance(part, (ImagePart, FilePart)):
        return part
    raise ConfigurationError(f"The input has a content part that is none: {shown(part)}.", field="input")
