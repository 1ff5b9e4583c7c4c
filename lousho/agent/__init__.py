"""What users import: `create_agent`, and the agent, session and approvals it gives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lousho.agent.agent import Agent as Agent
    from lousho.agent.agent import create_agent as create_agent
    from lousho.agent.approvals import Approvals as Approvals
    from lousho.agent.approvals import PendingApproval as PendingApproval
    from lousho.agent.options import AgentOptions as AgentOptions
    from lousho.agent.options import CreateAgentBase as CreateAgentBase
    from lousho.agent.per_run import PerRun as PerRun
    from lousho.agent.per_run import RunConfigContext as RunConfigContext
    from lousho.agent.session import Session as Session

_HOME = {
    "Agent": "lousho.agent.agent",
    "AgentOptions": "lousho.agent.options",
    "Approvals": "lousho.agent.approvals",
    "CreateAgentBase": "lousho.agent.options",
    "PendingApproval": "lousho.agent.approvals",
    "PerRun": "lousho.agent.per_run",
    "RunConfigContext": "lousho.agent.per_run",
    "Session": "lousho.agent.session",
    "create_agent": "lousho.agent.agent",
}

__all__ = [
    "Agent",
    "AgentOptions",
    "Approvals",
    "CreateAgentBase",
    "PendingApproval",
    "PerRun",
    "RunConfigContext",
    "Session",
    "create_agent",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.agent' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))
