"""What a model reads when a call failed: one JSON shape for every kind of failure. Source: tools page ("Errors")."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from lousho.core.errors import TOOL_ERROR_NAMES, bare_message, kind_of_tool_error
from lousho.core.events import error_name
from lousho.core.json_values import dump_json

ToolErrorKind: TypeAlias = Literal[
    "execution",
    "validation",
    "not-found",
    "rejected",
    "not-run",
    "mcp",
    "sandbox",
    "denied",
    "cancelled",
    "interrupted",
]

LONGEST_MESSAGE = 2_000
_TRUNCATED = "... (truncated)"


def cap_message(message: str) -> str:
    """Return `message`, cut at 2,000 characters with a marker."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return message[: LONGEST_MESSAGE - len(_TRUNCATED)] + _TRUNCATED


def tool_error_result(
    *,
    tool_name: str,
    error: BaseException | str,
    kind: str | None = None,
    tool_call_id: str | None = None,
    details: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the result a failed call gives the model: `{error, toolName, message, kind, ...details}`.

    `error` is the exception, or a text. `kind` defaults to the exception's own `tool_error_kind`, else `execution`.
    The stack never shows and the message is capped at 2,000 characters.
    """
    if isinstance(error, BaseException):
        kind = kind or kind_of_tool_error(error)
        name, message = error_name(error), bare_message(error)
    else:
        kind = kind or "execution"
        name, message = TOOL_ERROR_NAMES.get(kind, TOOL_ERROR_NAMES["execution"]), error
    result: dict[str, Any] = {"error": name, "toolName": tool_name, "message": cap_message(message), "kind": kind}
    if details:
        result.update({key: value for key, value in details.items() if value is not None})
    return result


def error_text(result: dict[str, Any]) -> str:
    """Return a failed call's result as the text of its message."""
    return dump_json(result)
