"""Tools every agent can be given: the date, the day, and a question to the user. Source: tools page."""

from __future__ import annotations

from typing import Any

from lousho.core.errors import ToolExecutionError
from lousho.core.json_schema import schema_of
from lousho.tools.context import ToolContext
from lousho.tools.definition import Tool, define_tool

ASK_QUESTION = "ask_question"

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""Written out, as `strftime` speaks the language of the machine."""
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "The question, as the user should read it", "minLength": 1},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Answers to choose from",
            "maxItems": 50,
        },
        "allowFreeText": {
            "type": "boolean",
            "description": "Whether an answer outside the options is welcome",
            "default": True,
        },
    },
    "required": ["question"],
}


def _now(_arguments: dict[str, Any]) -> dict[str, str]:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    return {
        "date": now.date().isoformat(),
        "iso": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "timezone": "UTC",
    }


def _day(arguments: dict[str, Any]) -> dict[str, str]:
    from datetime import UTC, datetime

    text = arguments.get("date")
    try:
        day = datetime.fromisoformat(text.strip()).date() if text else datetime.now(UTC).date()
    except ValueError:
        raise ToolExecutionError(
            f"{text!r} is not a date: write it as YYYY-MM-DD.", tool_name="day_name", help_line=False
        ) from None
    return {"date": day.isoformat(), "day": _DAYS[day.weekday()]}


def _answer(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    """Turn the person's answer, which arrives as the approval's note, into the call's result."""
    answer = context.approval.note if context.approval is not None else None
    if not answer:
        raise ToolExecutionError("No answer was given.", tool_name=ASK_QUESTION, help_line=False)
    options: list[str] = arguments.get("options") or []
    lowered = [option.casefold() for option in options]
    if answer.strip().casefold() in lowered:
        index = lowered.index(answer.strip().casefold())
        return {"answer": options[index], "option": index}
    if options and arguments.get("allowFreeText") is False:
        raise ToolExecutionError(
            f"{answer!r} is not one of the options: {', '.join(options)}.", tool_name=ASK_QUESTION, help_line=False
        )
    return {"answer": answer}


current_date_tool: Tool = define_tool(
    name="current_date",
    description="Get the current date and time (ISO 8601, UTC)",
    input=_NO_ARGUMENTS,
    execute=_now,
    annotations={"readOnlyHint": True},
)
day_name_tool: Tool = define_tool(
    name="day_name",
    description="Get the day of the week of a date (today when none is given)",
    input={
        "type": "object",
        "properties": {"date": {"type": "string", "description": "A date as YYYY-MM-DD"}},
    },
    execute=_day,
    annotations={"readOnlyHint": True},
)


def ask_question_tool() -> Tool:
    """Return the tool with which a model asks the user a question; the run pauses until it is answered.

    Source: approvals page ("Asking the user a question").
    """
    return Tool(
        name=ASK_QUESTION,
        description="Ask the user a question and wait for the answer. Use it when something you need is missing.",
        execute=_answer,
        schema=schema_of(_QUESTION),
        needs_approval=True,
        pause_kind="question",
        annotations={"readOnlyHint": True},
    )
