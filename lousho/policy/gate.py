"""The one gate in front of every tool call: a function from a call to run, deny or ask.

Arguments have been validated when a call gets here. The checks stand in one order: permission rules, then the tool's
own `needs_approval` (both in `decide()`), then the permission mode (`under_mode()`). Hooks and guardrails join them.
Source: approvals page, permission modes page ("Order of evaluation").
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.policy.approval_memory import is_remembered
from lousho.policy.modes import DONT_ASK_REASON, PLAN_REASON, DecidingMode, PermissionMode, edits_files, reads_only
from lousho.policy.permissions import PermissionContext, PermissionRule, RuleMatch, first_match
from lousho.tools.context import ToolContext
from lousho.tools.definition import Tool

APPROVAL_EXPIRED_REASON: Final = "approval expired"
"""The reason in the audit entry of a pause that was decided too late. Source: approvals page."""
AuditDecision: TypeAlias = Literal["allow", "deny", "ask", "default"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of a call, and what the audit records of it."""

    action: Literal["run", "deny", "ask"]
    decision: AuditDecision = "default"
    reason: str | None = None
    rule: RuleMatch | None = None
    ttl_ms: float | None = None
    mode: DecidingMode | None = None
    """The permission mode, where it changed what the checks before it said."""


@dataclass(frozen=True, slots=True)
class Deny:
    """What a `needs_approval` function returns to refuse a call, with the reason the model reads."""

    reason: str | None = None


RUN = Verdict("run")


async def decide(
    tool: Tool, args: Mapping[str, Any], parsed: Any, context: ToolContext, rules: Sequence[PermissionRule]
) -> Verdict:
    """Return the verdict on a call whose arguments are valid.

    A deny rule ends it; then the tool's own refusal, which beats an `allow` rule; an `allow` rule replaces the tool's
    wish to ask; an `ask` rule pauses even where the tool would run. The tool is not asked about a call that a person
    approved for the session. An exception of a rule or of the tool's gate is
    the caller's to turn into the call's failure.
    """
    if not rules and tool.needs_approval is False:
        return RUN
    found = await first_match(
        rules,
        args,
        PermissionContext(
            tool_name=tool.name,
            tool_call_id=context.tool_call_id,
            session_id=context.session_id,
            principal=context.principal,
        ),
    )
    action = found.rule.action if found is not None else None
    if found is not None and action == "deny":
        return Verdict("deny", "deny", found.rule.reason, found)
    wish = False if is_remembered(args, context) else await _own_gate(tool, parsed, context)
    if isinstance(wish, Deny):
        return Verdict("deny", "deny", wish.reason)
    if found is not None and action == "allow":
        return Verdict("run", "allow", found.rule.reason, found)
    if found is not None:
        return Verdict("ask", "ask", found.rule.reason, found, found.rule.ttl_ms)
    return Verdict("ask" if wish else "run")


def under_mode(verdict: Verdict, tool: Tool, mode: PermissionMode) -> Verdict:
    """Return what is left of a verdict in a permission mode. A refusal stays one in every mode.

    `plan` refuses every tool that does not only read, also one that a rule allows or a person approved. `dontAsk`
    refuses what would wait, `acceptEdits` runs it where the tool edits files. The rule that matched stays on record.
    """
    if mode == "default" or verdict.action == "deny":
        return verdict
    if mode == "plan":
        return verdict if reads_only(tool) else _refused(verdict, PLAN_REASON, mode)
    if verdict.action != "ask":
        return verdict
    if mode == "dontAsk":
        return _refused(verdict, DONT_ASK_REASON, mode)
    if edits_files(tool):
        return replace(verdict, action="run", decision="allow", reason=None, ttl_ms=None, mode=mode)
    return verdict


def _refused(verdict: Verdict, reason: str, mode: DecidingMode) -> Verdict:
    return replace(verdict, action="deny", decision="deny", reason=reason, ttl_ms=None, mode=mode)


async def _own_gate(tool: Tool, parsed: Any, context: ToolContext) -> bool | Deny:
    answer = tool.asks_approval(parsed, context)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, (bool, Deny)):
        return answer
    if answer in ("ask", "approve"):
        return answer == "ask"
    if answer == "deny":
        return Deny()
    if isinstance(answer, Mapping) and "deny" in answer:
        reason = cast("Mapping[str, Any]", answer)["deny"]
        return Deny(reason=None if reason is None else str(reason))
    raise ConfigurationError(
        f"needs_approval of the tool {tool.name!r} returned {answer!r}; "
        "return True or 'ask', False or 'approve', 'deny', {'deny': reason} or Deny(reason).",
        field="needs_approval",
    )
