"""What a model reads when a call failed: one JSON shape for every kind of failure. Source: tools page ("Errors")."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from lousho.core.errors import TOOL_ERROR_NAMES, ToolArgumentsValidationError, bare_message, kind_of_tool_error
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
_log = logging.getLogger("lousho.tools")


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
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the result a failed call gives the model: `{error, toolName, message, kind, ...details}`.

    `error` is the exception, or a text. `kind` defaults to the exception's own `tool_error_kind`, else `execution`.
    The message is capped at 2,000 characters and the stack never shows; with `tool_call_id` it goes to the debug log,
    under that id, which is not part of the result. What `details` has beyond the four fields is added, without what is
    `None`; the `issues` of a `ToolArgumentsValidationError` come by themselves. Source: tools page ("Errors").
    """
    extra = dict(details or {})
    if isinstance(error, BaseException):
        kind = kind or kind_of_tool_error(error)
        name, message = error_name(error), bare_message(error)
        if isinstance(error, ToolArgumentsValidationError):
            extra.setdefault("issues", [issue.to_dict() for issue in error.issues])
        if tool_call_id is not None:
            _log.debug("tool %s failed (call %s)", tool_name, tool_call_id, exc_info=error)
    else:
        kind = kind or "execution"
        name, message = TOOL_ERROR_NAMES.get(kind, TOOL_ERROR_NAMES["execution"]), f"{error}"
    result: dict[str, Any] = {"error": name, "toolName": tool_name, "message": cap_message(message), "kind": kind}
    result.update({key: value for key, value in extra.items() if value is not None and key not in result})
    return result


def error_text(result: dict[str, Any]) -> str:
    """Return a failed call's result as the text of its message."""
    return dump_json(result)
