"""Messages and their parts: what a transcript is made of, in memory, in stores and on the wire.

Everything here is immutable, so a transcript can be shared, snapshotted and replayed without copying.
The stored form is camelCase JSON. Source: providers page ("Multimodal input"), agents page.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text inside a message with several parts."""

    type: ClassVar[Literal["text"]] = "text"
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form `{type, text}`."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image: an http(s) URL, a `data:` URL or the bytes."""

    type: ClassVar[Literal["image"]] = "image"
    image: str | bytes
    mime_type: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form `{type, image, mimeType?}`; bytes as `{"$bytes": base64}`."""
        return _drop_none({"type": "image", "image": _blob(self.image), "mimeType": self.mime_type})


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file the model should read: a URL or the bytes, with its media type."""

    type: ClassVar[Literal["file"]] = "file"
    data: str | bytes
    mime_type: str
    filename: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form `{type, data, mimeType, filename?}`; bytes as `{"$bytes": base64}`."""
        return _drop_none(
            {"type": "file", "data": _blob(self.data), "mimeType": self.mime_type, "filename": self.filename}
        )


ContentPart: TypeAlias = TextPart | ImagePart | FilePart
"""One part of a message that is more than text."""
Content: TypeAlias = "str | tuple[ContentPart, ...]"


@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """What a model thought before it answered, with the vendor's signature so that it can be sent back unchanged."""

    text: str
    signature: str | None = None
    redacted_data: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return `{text, signature?, redactedData?}`."""
        return _drop_none({"text": self.text, "signature": self.signature, "redactedData": self.redacted_data})


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The function a model wants called: its name and its arguments as the JSON text that was sent."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of a model turn."""

    type: ClassVar[Literal["function"]] = "function"
    id: str
    function: FunctionCall

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.name

    @property
    def arguments(self) -> str:
        """The arguments as JSON text."""
        return self.function.arguments

    def to_dict(self) -> dict[str, Any]:
        """Return `{id, type: 'function', function: {name, arguments}}`."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.function.name, "arguments": self.function.arguments},
        }


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript.

    `metadata` is ours alone: it is stored with the message and never sent to a provider. `is_error` marks the result
    of a failed tool call, `interrupted` an assistant message that was cut off by an abort.
    """

    role: Role
    content: Content = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    interrupted: bool = False
    reasoning: tuple[ReasoningBlock, ...] = ()
    metadata: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form: camelCase, without keys that have no value."""
        out: dict[str, Any] = {"role": self.role}
        out["content"] = self.content if isinstance(self.content, str) else [part.to_dict() for part in self.content]
        if self.tool_calls:
            out["toolCalls"] = [call.to_dict() for call in self.tool_calls]
        if self.tool_call_id is not None:
            out["toolCallId"] = self.tool_call_id
        if self.name is not None:
            out["name"] = self.name
        if self.is_error:
            out["isError"] = True
        if self.interrupted:
            out["interrupted"] = True
        if self.reasoning:
            out["reasoning"] = [block.to_dict() for block in self.reasoning]
        if self.metadata:
            out["metadata"] = dict(self.metadata)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Return the message of a stored form; unknown keys are ignored. Raises `LOUSHO_CONFIG_INVALID`."""
        if isinstance(data, Message):
            return data
        if not isinstance(data, Mapping) or data.get("role") not in ROLES:  # pyright: ignore[reportUnnecessaryIsInstance]
            got = data.get("role", data) if isinstance(data, Mapping) else data  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"A message needs a 'role' that is one of {', '.join(ROLES)}; got {shown(got)}.", field="messages"
            )
        content: Any = data.get("content", "")
        calls: Any = data.get("toolCalls") or data.get("tool_calls")
        reasoning: Any = data.get("reasoning")
        return cls(
            role=data["role"],
            content=content if isinstance(content, str) else _content(content),
            tool_calls=tuple([_tool_call(call) for call in _items(calls, "toolCalls")]) if calls else (),
            tool_call_id=_text_or_none(data.get("toolCallId", data.get("tool_call_id")), "toolCallId"),
            name=_text_or_none(data.get("name"), "name"),
            is_error=bool(data.get("isError", data.get("is_error", False))),
            interrupted=bool(data.get("interrupted", False)),
            reasoning=tuple([_reasoning(block) for block in _items(reasoning, "reasoning")]) if reasoning else (),
            metadata=_mapping_or_none(data.get("metadata")),
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        # The stored form is written above by hand because stores and other programs rely on it; a state tree that
        # holds messages is (de)serialised by pydantic around it.
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls.from_dict,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda message: message.to_dict()),
        )


MessageLike: TypeAlias = "Message | Mapping[str, Any]"
AgentInput: TypeAlias = "str | Sequence[ContentPart] | Sequence[MessageLike] | Sequence[Mapping[str, Any]]"


def text_of(message: MessageLike) -> str:
    """Return the text of a message: its string content, or its text parts joined. Source: agents page."""
    content = (message if isinstance(message, Message) else Message.from_dict(message)).content
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if isinstance(part, TextPart))


def coerce_input(value: AgentInput) -> list[Message]:
    """Return what a caller sends as messages: a text or a list of parts is one user message.

    Raises `LOUSHO_CONFIG_INVALID` for an empty list, or for anything that is neither text, parts nor messages.
    """
    if isinstance(value, str):
        return [Message("user", value)]
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"The input must be a text, a list of content parts or a list of messages; got {shown(value)}.",
            field="input",
        )
    items: list[Any] = list(value)
    if not items:
        raise ConfigurationError("The input is an empty list: there is nothing to send.", field="input")
    if all(_is_message(item) for item in items):
        return [Message.from_dict(item) for item in items]
    return [Message("user", tuple(_part(item) for item in items))]


def _is_message(value: Any) -> bool:
    return isinstance(value, Message) or (isinstance(value, Mapping) and "role" in value)


def _content(value: Any) -> Content:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return tuple(_part(part) for part in cast("Sequence[Any]", value))
    raise ConfigurationError(
        f"A message's content must be a text or a list of parts; got {shown(value)}.", field="content"
    )


def _part(value: Any) -> ContentPart:
    if isinstance(value, (TextPart, ImagePart, FilePart)):
        return value
    record: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    kind = record.get("type")
    try:
        if kind == "text":
            return TextPart(str(record["text"]))
        if kind == "image":
            mime_type = record.get("mimeType", record.get("mime_type"))
            return ImagePart(_unblob(record["image"]), _text_or_none(mime_type, "mimeType"))
        if kind == "file":
            mime_type = record.get("mimeType", record.get("mime_type"))
            if not mime_type:
                raise KeyError("mimeType")
            return FilePart(_unblob(record["data"]), str(mime_type), _text_or_none(record.get("filename"), "filename"))
    except KeyError as missing:
        raise ConfigurationError(f"A {kind} part lacks {missing.args[0]!r}.", field="content") from None
    raise ConfigurationError(
        f"A content part must have the type 'text', 'image' or 'file'; got {shown(value)}.", field="content"
    )


def _items(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return cast("Sequence[Any]", value)
    raise ConfigurationError(f"A message's {name!r} must be a list; got {shown(value)}.", field=name)


def _text_or_none(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ConfigurationError(f"A message's {name!r} must be a text; got {shown(value)}.", field=name)


def _mapping_or_none(value: Any) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return cast("Mapping[str, Any] | None", value)
    raise ConfigurationError(f"A message's 'metadata' must be an object; got {shown(value)}.", field="metadata")


def _tool_call(value: Any) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    try:
        function = value["function"]
        return ToolCall(str(value["id"]), FunctionCall(str(function["name"]), str(function.get("arguments") or "{}")))
    except (KeyError, TypeError, AttributeError):
        raise ConfigurationError(
            f"A tool call needs 'id' and 'function' with a 'name'; got {shown(value)}.", field="toolCalls"
        ) from None


def _reasoning(value: Any) -> ReasoningBlock:
    if isinstance(value, ReasoningBlock):
        return value
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"A reasoning block must be an object; got {shown(value)}.", field="reasoning")
    block = cast("Mapping[str, Any]", value)
    signature, redacted = (_text_or_none(block.get(name), name) for name in ("signature", "redactedData"))
    return ReasoningBlock(str(block.get("text", "")), signature, redacted)


def _blob(value: str | bytes) -> Any:
    return value if isinstance(value, str) else {"$bytes": base64.b64encode(value).decode("ascii")}


def _unblob(value: Any) -> str | bytes:
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", value))
    encoded: object = cast("Mapping[str, Any]", value).get("$bytes") if isinstance(value, Mapping) else None
    if isinstance(encoded, str):
        with suppress(ValueError):
            return base64.b64decode(encoded)
    raise ConfigurationError(
        f"The data of a part must be a text, bytes or {{'$bytes': <base64>}}; got {shown(value)}.", field="content"
    )


def _drop_none(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}
