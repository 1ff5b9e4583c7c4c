"""Tools: typed Python functions that a model can call."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lousho.tools.builtin import ask_question_tool as ask_question_tool
    from lousho.tools.builtin import current_date_tool as current_date_tool
    from lousho.tools.builtin import day_name_tool as day_name_tool
    from lousho.tools.context import ApprovalInfo as ApprovalInfo
    from lousho.tools.context import ToolContext as ToolContext
    from lousho.tools.context import ToolExecutionContext as ToolExecutionContext
    from lousho.tools.definition import Tool as Tool
    from lousho.tools.definition import define_tool as define_tool
    from lousho.tools.definition import tool as tool
    from lousho.tools.errors import tool_error_result as tool_error_result

_HOME = {
    "ApprovalInfo": "lousho.tools.context",
    "Tool": "lousho.tools.definition",
    "ToolContext": "lousho.tools.context",
    "ToolExecutionContext": "lousho.tools.context",
    "ask_question_tool": "lousho.tools.builtin",
    "current_date_tool": "lousho.tools.builtin",
    "day_name_tool": "lousho.tools.builtin",
    "define_tool": "lousho.tools.definition",
    "tool": "lousho.tools.definition",
    "tool_error_result": "lousho.tools.errors",
}

__all__ = [
    "ApprovalInfo",
    "Tool",
    "ToolContext",
    "ToolExecutionContext",
    "ask_question_tool",
    "current_date_tool",
    "day_name_tool",
    "define_tool",
    "tool",
    "tool_error_result",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.tools' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))
