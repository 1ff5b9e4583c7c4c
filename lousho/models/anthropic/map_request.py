"""A model request, written as Anthropic's Messages API wants it.

The API has stricter rules than our transcript: the system prompt is a field of its own, user and assistant take turns,
the results of a turn's tool calls open the very next user turn, and no text may be empty.
Source: providers page; https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from lousho.core.messages import FilePart, ImagePart, Message, TextPart, text_of
from lousho.models.media import file_media, image_media
from lousho.models.provider import ModelRequest, ToolDefinition

DEFAULT_MAX_TOKENS = 4096
"""The API requires a limit; this one is sent when the request has none."""

_BAD_ID = re.compile(r"[^a-zA-Z0-9_-]")

NoteFor = Callable[..., "str | None"]
"""`HttpProvider.file_note_for`: the text to send instead of a file, or `None` to send it."""

Block = dict[str, Any]


def messages_body(
    request: ModelRequest, model: str, *, stream: bool, note_for: NoteFor, warn: Callable[[str, str], None]
) -> dict[str, Any]:
    """Return the body of `POST /v1/messages`. Raises what `note_for` raises for a file that cannot be sent."""
    lead = 0
    while lead < len(request.messages) and request.messages[lead].role == "system":
        lead += 1
    system = "\n\n".join(text for message in request.messages[:lead] if (text := text_of(message).strip()))
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": turns_of(request.messages[lead:], note_for),
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
    elif called := _names_called(request.messages):
        # The API refuses a conversation with tool calls in it, unless it is told of tools.
        body["tools"] = [_gone(name) for name in called]
        body["tool_choice"] = {"type": "none"}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop_sequences"] = request.stop
    for key in ("seed", "frequency_penalty", "presence_penalty"):
        if getattr(request, key) is not None:
            warn(key, f"the Messages API has no {key}; it is not sent.")
    if stream:
        body["stream"] = True
    return body


def turns_of(messages: list[Message], note_for: NoteFor) -> list[Block]:
    """Return messages as alternating turns: neighbours of one role are joined, tool results come first in a turn."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, note_for)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    for role, blocks in turns:
        if role == "user":
            blocks.sort(key=lambda block: block["type"] != "tool_result")
    if turns and turns[-1][0] == "assistant":
        _without_trailing_space(turns[-1][1])
    return [{"role": role, "content": blocks} for role, blocks in turns if blocks]


def _blocks(message: Message, note_for: NoteFor) -> list[Block]:
    if message.role == "tool":
        return [_result(message)]
    if message.role == "assistant":
        return _assistant(message)
    if message.role == "system":
        # Only the head of a conversation has a field for it; later ones keep their place inside the conversation.
        text = text_of(message).strip()
        return [{"type": "text", "text": f"<system>\n{text}\n</system>"}] if text else []
    if isinstance(message.content, str):
        return _text(message.content)
    return [block for part in message.content for block in _part(part, note_for)]


def _assistant(message: Message) -> list[Block]:
    blocks: list[Block] = []
    if message.tool_calls:
        # Thinking that led to tool calls goes back unchanged and first; without its signature it is refused.
        for thought in message.reasoning:
            if thought.redacted_data:
                blocks.append({"type": "redacted_thinking", "data": thought.redacted_data})
            elif thought.signature:
                blocks.append({"type": "thinking", "thinking": thought.text, "signature": thought.signature})
    blocks += _text(text_of(message))
    for call in message.tool_calls:
        blocks.append(
            {"type": "tool_use", "id": _legal_id(call.id), "name": call.name, "input": _input_of(call.arguments)}
        )
    return blocks


def _result(message: Message) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": _legal_id(message.tool_call_id or "")}
    text = text_of(message)
    if text:
        block["content"] = text
    if message.is_error:
        block["is_error"] = True
    return block


def _part(part: TextPart | ImagePart | FilePart, note_for: NoteFor) -> list[Block]:
    if isinstance(part, TextPart):
        return _text(part.text)
    if isinstance(part, ImagePart):
        media = image_media(part)
        if media.url is not None:
            return [{"type": "image", "source": {"type": "url", "url": media.url}}]
        return [{"type": "image", "source": {"type": "base64", "media_type": media.mime_type, "data": media.base64}}]
    note = note_for(part)
    if note is None:
        source = _document_source(part)
        if source is not None:
            return [{"type": "document", "source": source, **({"title": part.filename} if part.filename else {})}]
        note = note_for(part, problem="text files are sent as bytes; this one is a URL. Download it first")
    return _text(note or "")


def _document_source(part: FilePart) -> Block | None:
    media = file_media(part)
    if media.mime_type == "text/plain":
        if media.url is not None:
            return None
        return {"type": "text", "media_type": "text/plain", "data": media.data.decode("utf-8", "replace")}
    if media.url is not None:
        return {"type": "url", "url": media.url}
    return {"type": "base64", "media_type": media.mime_type, "data": media.base64}


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _without_trailing_space(blocks: list[Block]) -> None:
    """Trim the end of a final assistant turn, which the API refuses to continue after white space."""
    if blocks[-1]["type"] == "text":
        blocks[-1]["text"] = blocks[-1]["text"].rstrip()


def _input_of(arguments: str) -> Block:
    if not arguments.strip():
        return {}
    try:
        value: Any = json.loads(arguments)
    except ValueError:
        value = None
    # What a model once wrote wrongly must still be shown to it as it was.
    return cast("Block", value) if isinstance(value, dict) else {"invalid_arguments": arguments}


def _legal_id(call_id: str) -> str:
    """Return an id with the characters the API takes, for transcripts that began on another vendor."""
    return _BAD_ID.sub("_", call_id)


def _tool(tool: ToolDefinition) -> Block:
    function = tool.function
    parameters = dict(function.parameters)
    if "type" not in parameters:
        parameters = cast("Block", {"type": "object", "properties": {}}) | parameters
    block: Block = {"name": function.name, "input_schema": parameters}
    if function.description:
        block["description"] = function.description
    return block


def _names_called(messages: list[Message]) -> list[str]:
    """Return the names of the tools that a conversation has calls of, each once."""
    return list(dict.fromkeys(call.name for message in messages for call in message.tool_calls))


def _gone(name: str) -> Block:
    """Return what stands for a tool that was called before and is not offered now."""
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, "description": "Not available now."}


def _tool_choice(choice: Any) -> Block:
    if isinstance(choice, Mapping):
        function = cast("Mapping[str, Any]", cast("Mapping[str, Any]", choice).get("function") or {})
        return {"type": "tool", "name": function.get("name")}
    return {"type": "any" if choice == "required" else str(choice)}
