"""What a run comes back with. Source: agents page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lousho.core.messages import Message, ToolCall
from lousho.core.usage import RunUsage, StepUsage
from lousho.runtime.state import RunFinishReason, RunState


@dataclass(slots=True, kw_only=True)
class RunResult:
    """A finished, paused or stopped run. An early stop is a result: look at `finish_reason`.

    `messages` is the transcript without the system prompt, `tool_calls` every call of the run in order, `usage` what
    it spent. `approval_id` and `approval_ids` are set while it waits for a person. Source: agents page.
    """

    run_id: str
    text: str
    finish_reason: RunFinishReason
    messages: list[Message]
    tool_calls: list[ToolCall]
    usage: RunUsage
    step_usage: list[StepUsage]
    steps: int
    agent_name: str
    session_id: str | None = None
    approval_id: str | None = None
    approval_ids: list[str] = field(default_factory=list)
    tool_errors: int | None = None
    """How many of the run's calls failed; `None` when none did."""
    reasoning: str | None = None
    """What the model thought before its final answer, as text; the blocks are on the message."""
    abort_reason: dict[str, str] | None = None
    """`{name, message}` of what aborted the run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form: camelCase, without keys that have no value."""
        out: dict[str, Any] = {
            "runId": self.run_id,
            "text": self.text,
            "finishReason": self.finish_reason,
            "messages": [message.to_dict() for message in self.messages],
            "toolCalls": [call.to_dict() for call in self.tool_calls],
            "usage": self.usage.to_dict(),
            "stepUsage": [usage.to_dict() for usage in self.step_usage],
            "steps": self.steps,
            "agentName": self.agent_name,
        }
        optional: dict[str, Any] = {
            "sessionId": self.session_id,
            "approvalId": self.approval_id,
            "approvalIds": self.approval_ids or None,
            "toolErrors": self.tool_errors,
            "reasoning": self.reasoning,
            "abortReason": self.abort_reason,
        }
        out.update({key: value for key, value in optional.items() if value is not None})
        return out


def result_of(state: RunState) -> RunResult:
    """Return the result of a run that has ended or paused."""
    turn = state.new_messages
    approval_ids = [slot.approval_id for slot in state.waiting() if slot.approval_id is not None]
    last = next((message for message in reversed(turn) if message.role == "assistant"), None)
    return RunResult(
        run_id=state.run_id,
        text=state.text,
        finish_reason=state.finish_reason or "other",
        messages=list(state.messages),
        tool_calls=[call for message in turn for call in message.tool_calls],
        usage=state.usage,
        step_usage=list(state.step_usage),
        steps=state.step,
        agent_name=state.agent_name,
        session_id=state.session_id,
        approval_id=approval_ids[0] if approval_ids else None,
        approval_ids=approval_ids,
        tool_errors=state.tool_errors or None,
        reasoning="\n\n".join(block.text for block in last.reasoning) or None if last is not None else None,
        abort_reason=state.abort_reason,
    )
