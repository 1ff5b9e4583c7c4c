"""The executor API: an agent as plain data, run with parts that are handed over call by call.

`create_agent()` is the usual way in and runs the same loop. Names are resolved on first use.
Source: executor-api page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lousho.agent.builder import AgentBuilder, AgentConfig
    from lousho.agent.executor import (
        AgentExecutor,
        resume_after_approval,
        resume_after_approval_sync,
        stream_resume_after_approval,
        stream_resume_after_approval_sync,
    )
    from lousho.agent.executor_options import ExecuteOptions, ResumeExecuteOptions, StreamExecuteOptions
    from lousho.tools.registry import ToolRegistry

_HOME = {
    "AgentBuilder": "lousho.agent.builder",
    "AgentConfig": "lousho.agent.builder",
    "AgentExecutor": "lousho.agent.executor",
    "ExecuteOptions": "lousho.agent.executor_options",
    "ResumeExecuteOptions": "lousho.agent.executor_options",
    "StreamExecuteOptions": "lousho.agent.executor_options",
    "ToolRegistry": "lousho.tools.registry",
    "resume_after_approval": "lousho.agent.executor",
    "resume_after_approval_sync": "lousho.agent.executor",
    "stream_resume_after_approval": "lousho.agent.executor",
    "stream_resume_after_approval_sync": "lousho.agent.executor",
}

__all__ = [
    "AgentBuilder",
    "AgentConfig",
    "AgentExecutor",
    "ExecuteOptions",
    "ResumeExecuteOptions",
    "StreamExecuteOptions",
    "ToolRegistry",
    "resume_after_approval",
    "resume_after_approval_sync",
    "stream_resume_after_approval",
    "stream_resume_after_approval_sync",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.executor' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))


def __dir__() -> list[str]:
    return __all__
