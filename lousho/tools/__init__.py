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
    from lousho.tools.web.http_request import create_http_tool as create_http_tool
    from lousho.tools.web.http_request import http_tool as http_tool
    from lousho.tools.web.web_fetch import create_web_fetch_tool as create_web_fetch_tool
    from lousho.tools.web.web_fetch import web_fetch_tool as web_fetch_tool

_HOME = {
    "ApprovalInfo": "lousho.tools.context",
    "Tool": "lousho.tools.definition",
    "ToolContext": "lousho.tools.context",
    "ToolExecutionContext": "lousho.tools.context",
    "ask_question_tool": "lousho.tools.builtin",
    "create_http_tool": "lousho.tools.web.http_request",
    "create_web_fetch_tool": "lousho.tools.web.web_fetch",
    "current_date_tool": "lousho.tools.builtin",
    "day_name_tool": "lousho.tools.builtin",
    "define_tool": "lousho.tools.definition",
    "http_tool": "lousho.tools.web.http_request",
    "tool": "lousho.tools.definition",
    "tool_error_result": "lousho.tools.errors",
    "web_fetch_tool": "lousho.tools.web.web_fetch",
}

__all__ = [
    "ApprovalInfo",
    "Tool",
    "ToolContext",
    "ToolExecutionContext",
    "ask_question_tool",
    "create_http_tool",
    "create_web_fetch_tool",
    "current_date_tool",
    "day_name_tool",
    "define_tool",
    "http_tool",
    "tool",
    "tool_error_result",
    "web_fetch_tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.tools' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))
