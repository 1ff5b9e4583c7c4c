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
    from lousho.tools.descriptor import ToolDescriptor as ToolDescriptor
    from lousho.tools.descriptor import as_tool as as_tool
    from lousho.tools.errors import tool_error_result as tool_error_result
    from lousho.tools.registry import ToolRegistry as ToolRegistry
    from lousho.tools.todo import TodoStore as TodoStore
    from lousho.tools.todo import TodoTools as TodoTools
    from lousho.tools.todo import create_todo_tools as create_todo_tools
    from lousho.tools.todo_list import Todo as Todo
    from lousho.tools.todo_list import TodoCounts as TodoCounts
    from lousho.tools.tool_type import FunctionTool as FunctionTool
    from lousho.tools.web.http_request import create_http_tool as create_http_tool
    from lousho.tools.web.http_request import http_tool as http_tool
    from lousho.tools.web.web_fetch import create_web_fetch_tool as create_web_fetch_tool
    from lousho.tools.web.web_fetch import web_fetch_tool as web_fetch_tool

_HOME = {
    "ApprovalInfo": "lousho.tools.context",
    "FunctionTool": "lousho.tools.tool_type",
    "Todo": "lousho.tools.todo_list",
    "TodoCounts": "lousho.tools.todo_list",
    "TodoStore": "lousho.tools.todo",
    "TodoTools": "lousho.tools.todo",
    "Tool": "lousho.tools.definition",
    "ToolContext": "lousho.tools.context",
    "ToolDescriptor": "lousho.tools.descriptor",
    "ToolExecutionContext": "lousho.tools.context",
    "ToolRegistry": "lousho.tools.registry",
    "as_tool": "lousho.tools.descriptor",
    "ask_question_tool": "lousho.tools.builtin",
    "create_http_tool": "lousho.tools.web.http_request",
    "create_todo_tools": "lousho.tools.todo",
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
    "FunctionTool",
    "Todo",
    "TodoCounts",
    "TodoStore",
    "TodoTools",
    "Tool",
    "ToolContext",
    "ToolDescriptor",
    "ToolExecutionContext",
    "ToolRegistry",
    "as_tool",
    "ask_question_tool",
    "create_http_tool",
    "create_todo_tools",
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
