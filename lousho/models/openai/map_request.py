"""A model request, written as OpenAI's Chat Completions API wants it.

Every OpenAI-compatible server gets the same, so only fields that all of them know are sent, and only when set.
Source: providers page; https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from lousho.core.messages import FilePart, ImagePart, Message, TextPart, text_of
from lousho.models.media import file_media, image_media
from lousho.models.provider import ModelRequest, ToolDefinition

_REASONING_MODEL = re.compile(r"^(?:o\d|gpt-(?:[5-9]|\d\d))", re.IGNORECASE)
_NO_CHAT = re.compile(r"-chat\b", re.IGNORECASE)

NoteFor = Callable[..., "str | None"]
"""`HttpProvider.file_note_for`: the text to send instead of a file, or `None` to send it."""


def is_reasoning_model(model: str) -> bool:
    """Return whether OpenAI refuses `max_tokens` and sampling settings for `model`: the o-series, gpt-5 and later."""
    return bool(_REASONING_MODEL.match(model)) and not _NO_CHAT.search(model)


def chat_body(
    request: ModelRequest, model: str, *, stream: bool, note_for: NoteFor, warn: Callable[[str, str], None]
) -> dict[str, Any]:
    """Return the body of `POST /chat/completions`. Raises what `note_for` raises for a file that cannot be sent."""
    body: dict[str, Any] = {"model": model, "messages": [_message(message, note_for) for message in request.messages]}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    reasons = is_reasoning_model(model)
    if request.max_tokens is not None:
        body["max_completion_tokens" if reasons else "max_tokens"] = request.max_tokens
    for key in ("temperature", "top_p", "frequency_penalty", "presence_penalty", "stop"):
        value = getattr(request, key)
        if value is None:
            continue
        if reasons:
            warn(f"{key} {model}", f"the model {model} does not take {key}; it is not sent.")
        else:
            body[key] = value
    if request.seed is not None:
        body["seed"] = request.seed
    if request.response_format is not None:
        body["response_format"] = _response_format(request.response_format)
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return body


def _message(message: Message, note_for: NoteFor) -> dict[str, Any]:
    if message.role == "user" and not isinstance(message.content, str):
        return {"role": "user", "content": [_part(part, note_for) for part in message.content]}
    text = text_of(message)
    if message.role == "tool":
        if message.is_error and not _shows_error(text):
            text = f"Error: {text}"
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": text}
    if message.role == "assistant" and message.tool_calls:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": message.role, "content": text}


def _part(part: TextPart | ImagePart | FilePart, note_for: NoteFor) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": image_media(part).data_url}}
    note = note_for(part)
    if note is None:
        media = file_media(part)
        if media.url is not None:
            note = note_for(part, problem="files are sent as bytes; this one is a URL. Download it first")
        else:
            name = part.filename or f"file.{media.mime_type.rpartition('/')[2] or 'bin'}"
            return {"type": "file", "file": {"filename": name, "file_data": media.data_url}}
    return {"type": "text", "text": note}


def _shows_error(text: str) -> bool:
    """Return whether a failed tool's result says by itself that it failed; the API has no field for it."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return text.lower().startswith("error")
    return isinstance(value, Mapping) and "error" in value


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    sent = tool.to_dict()
    parameters = sent["function"]["parameters"]
    if "type" not in parameters:
        sent["function"]["parameters"] = {"type": "object", "properties": {}, **parameters}
    return sent


def _response_format(wanted: Mapping[str, Any]) -> dict[str, Any]:
    schema = wanted.get("schema")
    if schema is None:
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {"name": str(wanted.get("name") or "response"), "schema": schema, "strict": False},
    }
