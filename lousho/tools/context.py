"""What a running tool may know about the run it is part of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lousho.core.cancel import CancelSignal
from lousho.core.events import AgentEvent
from lousho.core.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalInfo:
    """The human approval that let a call run."""

    id: str
    note: str | None = None
    by: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Given to every tool that asks for it, by a parameter with this annotation. Source: tools page.

    `tool_call_id` is the model's id of the call and stays the same when the call runs again after a crash, so it
    serves as an idempotency key. `messages` is the transcript before the call: no system prompt, not the calling
    turn. `abort_signal` fires when the run is aborted or the call is overdue.
    """

    tool_call_id: str
    tool_name: str
    abort_signal: CancelSignal
    messages: tuple[Message, ...] = ()
    run_id: str | None = None
    session_id: str | None = None
    principal: Mapping[str, Any] | None = None
    approval: ApprovalInfo | None = None
    arguments: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """The arguments as JSON, as the transcript has them; for the policies that come with the package."""
    report: Callable[[AgentEvent], None] | None = field(default=None, repr=False, compare=False)
    """Adds an event to the run's stream, while the call runs; for the tools that come with the package."""
    follow_ups: list[AgentEvent] = field(default_factory=lambda: [], repr=False, compare=False)
    """Events that come right after the call's `tool.done`, and not at all when it fails; for those tools too."""


ToolExecutionContext = ToolContext
