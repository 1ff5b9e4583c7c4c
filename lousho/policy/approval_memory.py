"""Ready-made answers to "ask a person?", and the memory that two of them have: the transcript itself.

The result of a call that a person approved carries `metadata.approval`, `{by, args, remember?}`, where `args`
stands for the arguments. So the memory is kept wherever the transcript is, and gone where that is gone.
Source: approvals page ("Approve, deny or ask", "Don't ask again, approve with edits").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from lousho.core.errors import ConfigurationError
from lousho.core.json_values import JsonObject, to_json_value
from lousho.core.redact import shown
from lousho.tools.context import ToolContext

DecidedBy: TypeAlias = Literal["human", "callback"]


def always() -> bool:
    """Return a `needs_approval` that asks before every call: `True`."""
    return True


def never() -> bool:
    """Return a `needs_approval` that asks before none: `False`."""
    return False


class Once:
    """A `needs_approval` that asks until a person has said yes; made by `once()`."""

    def __init__(self, per: Literal["tool", "args"]) -> None:
        self.per = per

    def __call__(self, args: Any, context: ToolContext | None = None, /) -> Literal["ask", "approve"]:
        """Return `'ask'` or `'approve'`. Called by hand, the context alone is enough."""
        if context is None and isinstance(args, ToolContext):
            context = args
        if context is None:
            raise ConfigurationError("once() needs the context of the call: ask(args, ctx).", field="needs_approval")
        given = args if context.arguments is None else context.arguments
        wanted = args_key(given) if self.per == "args" else None
        for approval in _approvals(context):
            if approval.get("by") == "human" and wanted in (None, approval.get("args")):
                return "approve"
        return "ask"

    def __repr__(self) -> str:
        return "once()" if self.per == "tool" else "once(per='args')"


def once(*, per: Literal["tool", "args"] = "tool") -> Once:
    """Return a `needs_approval` that asks before the first call of the tool in a session.

    Once a person has approved a call, later ones run; a no is not remembered, nor is what an `approve` function says.
    `per='args'` remembers the arguments, too: a call with others asks again. Without a session every `send()` is a
    transcript of its own. Raises `LOUSHO_CONFIG_INVALID`. Source: approvals page.
    """
    if per not in ("tool", "args"):
        raise ConfigurationError(f"once: per must be 'tool' or 'args'; got {shown(per)}.", field="needs_approval")
    return Once(per)


def is_remembered(args: Mapping[str, Any], context: ToolContext) -> bool:
    """Whether a person approved this very call for the rest of the session."""
    marked = [approval for approval in _approvals(context) if approval.get("remember") == "session"]
    return bool(marked) and args_key(args) in [approval.get("args") for approval in marked]


def approval_note(by: DecidedBy, args: Mapping[str, Any], *, remember: bool) -> JsonObject:
    """Return what the transcript remembers of an approved call."""
    note: JsonObject = {"by": by, "args": args_key(args)}
    if remember:
        note["remember"] = "session"
    return note


def args_key(args: object) -> str:
    """Return a short text that is the same for equal arguments, whatever the order of their keys."""
    text = json.dumps(to_json_value(args), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _approvals(context: ToolContext) -> Iterator[Mapping[str, Any]]:
    for message in reversed(context.messages):
        if message.role == "tool" and message.name == context.tool_name and message.metadata is not None:
            approval = message.metadata.get("approval")
            if isinstance(approval, Mapping):
                yield approval
