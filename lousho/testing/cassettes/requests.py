"""What a cassette keeps of a model request, and what of it has to match.

A fixed set of fields: `model`, `messages` (role, content, tool calls), `tools` (name, parameters), `temperature`,
`maxTokens`. Nothing else of a request, and nothing of the HTTP call beneath it, is ever written. Images and files are
kept as a digest, or as their URL. Source: testing page ("What replay checks", "Redaction"), providers page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, TypeAlias, cast
from urllib.parse import unquote_to_bytes

from lousho.core.json_values import to_json_value
from lousho.core.messages import (
    ROLES,
    ContentPart,
    FilePart,
    FunctionCall,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
)
from lousho.models.provider import FunctionDefinition, ModelRequest, ToolDefinition
from lousho.testing.cassettes.redaction import Redact, redact_strings
from lousho.testing.cassettes.schemas import canonical_schema
from lousho.testing.cassettes.volatile import steady

RecordedRequest: TypeAlias = "dict[str, Any]"
Normalize: TypeAlias = "Callable[[ModelRequest], ModelRequest]"

_DIGEST = "sha256:"


def recorded_request(request: ModelRequest, model: str | None, redact: Redact) -> RecordedRequest:
    """Return the form of `request` that goes into the cassette; `model` is the one that answers it."""
    out: RecordedRequest = {"model": model, "messages": [_recorded_message(one, redact) for one in request.messages]}
    if request.tools:
        out["tools"] = [
            {
                "name": one.function.name,
                "parameters": _recorded_parameters(one.function.parameters, redact),
            }
            for one in request.tools
        ]
    if request.temperature is not None:
        out["temperature"] = to_json_value(request.temperature)
    if request.max_tokens is not None:
        out["maxTokens"] = to_json_value(request.max_tokens)
    return {key: value for key, value in out.items() if value is not None}


def request_from_recording(recorded: Mapping[str, Any]) -> ModelRequest:
    """Return the request a recorded form stands for, as far as it was kept. Images and files hold their digest."""
    return ModelRequest(
        model=_text_or_none(recorded.get("model")),
        messages=[_message_of(one) for one in _objects(recorded.get("messages"))],
        tools=[
            # Copies: what a caller's function changes in place must not reach the recording.
            ToolDefinition(FunctionDefinition(name, "", deepcopy(parameters)))
            for name, parameters in _tools_of(recorded).items()
        ],
        temperature=_number(recorded.get("temperature")),
        max_tokens=cast("int | None", _number(recorded.get("maxTokens", recorded.get("max_tokens")))),
    )


def comparable_request(recorded: Mapping[str, Any], default_model: str | None) -> dict[str, Any]:
    """Return what two requests are compared by: no ids, volatile values masked, tools by name, schemas by meaning."""
    out: dict[str, Any] = {
        "model": _text_or_none(recorded.get("model")) or default_model,
        "messages": [_comparable_message(one) for one in _objects(recorded.get("messages"))],
        "tools": {
            name: {"parameters": _canonical(json.dumps(parameters))} for name, parameters in _tools_of(recorded).items()
        },
        "temperature": recorded.get("temperature"),
        "maxTokens": recorded.get("maxTokens", recorded.get("max_tokens")),
    }
    return {key: value for key, value in out.items() if value is not None}


def _recorded_parameters(parameters: Mapping[str, Any], redact: Redact) -> Any:
    try:
        return _remembered_parameters(json.dumps(parameters), redact)
    except (TypeError, ValueError, RecursionError):  # not plain JSON: made so, at some cost
        return redact_strings(to_json_value(parameters), redact)


@lru_cache(maxsize=1024)
def _remembered_parameters(text: str, redact: Redact) -> Any:
    """Return a schema as it is written; a run sends the same ones with each of its calls. Never changed by anyone."""
    return redact_strings(to_json_value(cast("object", json.loads(text))), redact)


@lru_cache(maxsize=1024)
def _canonical(parameters: str) -> Any:
    """Return the canonical form of a schema, from its JSON text."""
    return canonical_schema(json.loads(parameters), steady)


def _recorded_message(message: Message, redact: Redact) -> dict[str, Any]:
    content = message.content
    out: dict[str, Any] = {"role": message.role}
    if isinstance(content, str):
        out["content"] = redact(cast("str", to_json_value(content)))
    else:
        out["content"] = [_recorded_part(part, redact) for part in content]
    if message.tool_calls:
        out["toolCalls"] = [
            {"name": call.name, "arguments": redact_strings(_arguments(call.arguments), redact)}
            for call in message.tool_calls
        ]
    return out


def _recorded_part(part: ContentPart, redact: Redact) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": redact(cast("str", to_json_value(part.text)))}
    out: dict[str, Any] = {"type": part.type}
    data = part.image if isinstance(part, ImagePart) else part.data
    digest = _digest_of(data)
    if digest is None:
        out["url"] = redact(str(data))
    else:
        out["digest"] = digest
    if part.mime_type is not None:
        out["mimeType"] = part.mime_type
    if isinstance(part, FilePart) and part.filename is not None:
        out["filename"] = redact(part.filename)
    return out


def _digest_of(data: str | bytes) -> str | None:
    """Return the digest of bytes or of a `data:` URL's bytes, or None for the URL of something elsewhere."""
    if isinstance(data, bytes):
        return _DIGEST + hashlib.sha256(data).hexdigest()
    if data.startswith(_DIGEST):
        return data
    if data[:5].lower() != "data:":
        return None
    head, _, body = data.partition(",")
    try:
        raw = base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except (binascii.Error, ValueError):
        raw = data.encode("utf-8", "replace")
    return _DIGEST + hashlib.sha256(raw).hexdigest()


def _arguments(text: Any) -> Any:
    """Return a call's arguments as the object they stand for, or as they are when they are not a JSON object."""
    if not isinstance(text, str):
        return text
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return to_json_value(cast("object", value)) if isinstance(value, dict) else text


def _comparable_message(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"name": name, "arguments": redact_strings(_arguments(arguments), steady)}
        for name, arguments in _calls_of(message)
    ]
    out: dict[str, Any] = {"role": message.get("role"), "content": _comparable_content(message.get("content"))}
    return {**out, "toolCalls": calls} if calls else out


def _comparable_content(content: object) -> Any:
    if not isinstance(content, list):
        return steady(content) if isinstance(content, str) else ""
    parts = _objects(cast("object", content))
    if all(part.get("type") == "text" for part in parts):
        return steady("".join(str(part.get("text", "")) for part in parts))
    return [
        {"type": "text", "text": steady(str(part.get("text", "")))}
        if part.get("type") == "text"
        else {key: part[key] for key in ("type", "digest", "url", "mimeType", "filename") if key in part}
        for part in parts
    ]


def _calls_of(message: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return name and arguments of each tool call, written flat or under `function`."""
    found: list[tuple[str, Any]] = []
    for call in _objects(message.get("toolCalls", message.get("tool_calls"))):
        inner = call.get("function")
        record = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else call
        found.append((str(record.get("name", "")), record.get("arguments", {})))
    return found


def _tools_of(recorded: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the parameters of each tool by its name, written flat or under `function`."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in _objects(recorded.get("tools")):
        inner = tool.get("function")
        record = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else tool
        parameters = record.get("parameters")
        found[str(record.get("name", ""))] = (
            cast("Mapping[str, Any]", parameters) if isinstance(parameters, Mapping) else {}
        )
    return found


def _message_of(recorded: Mapping[str, Any]) -> Message:
    role = recorded.get("role")
    content = recorded.get("content")
    return Message(
        role if role in ROLES else "user",
        tuple(_part_of(part) for part in _objects(cast("Any", content)))
        if isinstance(content, list)
        else (content if isinstance(content, str) else ""),
        tool_calls=tuple(
            ToolCall(
                f"call_{number}",
                FunctionCall(
                    name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                ),
            )
            for number, (name, arguments) in enumerate(_calls_of(recorded), start=1)
        ),
    )


def _part_of(part: Mapping[str, Any]) -> ContentPart:
    data = str(part.get("digest") or part.get("url") or "")
    mime_type = _text_or_none(part.get("mimeType"))
    if part.get("type") == "image":
        return ImagePart(data, mime_type)
    if part.get("type") == "file":
        return FilePart(data, mime_type or "", _text_or_none(part.get("filename")))
    return TextPart(str(part.get("text", "")))


def _objects(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | int | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
