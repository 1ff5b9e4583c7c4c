"""The record of what the gate decided about a call: an event, and a line for the application's own log.

Source: approvals page ("Permission policies").
"""

from __future__ import annotations

from typing import Any

from lousho.core.events import PermissionDecisionEvent
from lousho.policy.gate import Verdict
from lousho.policy.modes import PermissionMode
from lousho.runtime.arguments import copied
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.state import CallSlot


def audit(slot: CallSlot, verdict: Verdict, deps: RunDeps, mode: PermissionMode) -> None:
    """Report a verdict, where an agent has rules, somebody who asked to be told, or a mode other than `default`."""
    if mode == "default" and not deps.audits:
        return
    found = verdict.rule
    rule: dict[str, Any] | None = None
    if found is not None:
        rule = {"index": found.index}
        if found.rule.reason is not None:
            rule["reason"] = found.rule.reason
    event = PermissionDecisionEvent(
        tool_call_id=slot.tool_call_id,
        tool_name=slot.tool_name,
        decision=verdict.decision,
        rule=rule,
        reason=verdict.reason if verdict.action == "deny" and (found is None or verdict.mode) else None,
        mode=verdict.mode,
        args=None if deps.redact_content else copied(slot.args),
        at=timestamp_now(),
    )
    deps.emitter.emit(event)
    if deps.on_permission_decision is not None:
        entry = event.to_dict()
        for key in ("type", "runId", "seq", "timestamp", "v"):
            entry.pop(key, None)
        deps.emitter.tell(deps.on_permission_decision, entry, deps.principal)
