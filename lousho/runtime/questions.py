"""What a call that is a question to the user asks, as records and events show it. Source: approvals page."""

from __future__ import annotations

from lousho.runtime.arguments import copied
from lousho.runtime.state import CallSlot
from lousho.tools.definition import Tool


def question_of(slot: CallSlot, tool: Tool | None) -> dict[str, object] | None:
    """Return `{text, options?, allowFreeText?}` when the call is a question to the user, else `None`."""
    if tool is None or tool.pause_kind != "question":
        return None
    args = slot.args or {}
    question: dict[str, object] = {"text": str(args.get("question", ""))}
    if args.get("options"):
        question["options"] = copied(args["options"])
    if "allowFreeText" in args:
        question["allowFreeText"] = args["allowFreeText"]
    return question
