"""Permission rules: an ordered list that says for a tool call `allow`, `ask` or `deny`; the first match decides.

Source: approvals page ("Permission policies").
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import unknown_key_message

PermissionAction: TypeAlias = Literal["allow", "ask", "deny"]
ToolMatcher: TypeAlias = "str | Sequence[str] | re.Pattern[str]"
ACTIONS: tuple[PermissionAction, ...] = ("allow", "ask", "deny")

LONGEST_TTL_MS = 100 * 365.25 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionContext:
    """What a rule's `when` may know beside the arguments."""

    tool_name: str
    tool_call_id: str
    session_id: str | None = None
    principal: Mapping[str, Any] | None = None


When: TypeAlias = "Callable[[Mapping[str, Any], PermissionContext], Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRule:
    """One rule. `tool` is a name, several names, `*` for all, or a compiled pattern searched in the name.

    `when(args, context)` narrows the rule to some calls; it may be async. `ttl_ms` (milliseconds) only goes with `ask`.
    """

    tool: str | tuple[str, ...] | re.Pattern[str]
    action: PermissionAction
    when: When | None = None
    reason: str | None = None
    ttl_ms: float | None = None

    def names(self, tool_name: str) -> bool:
        """Whether the rule is about this tool at all."""
        if isinstance(self.tool, str):
            return self.tool in ("*", tool_name)
        if isinstance(self.tool, re.Pattern):
            return self.tool.search(tool_name) is not None
        return tool_name in self.tool or "*" in self.tool

    async def matches(self, args: Mapping[str, Any], context: PermissionContext) -> bool:
        """Whether the rule decides this call."""
        if not self.names(context.tool_name):
            return False
        if self.when is None:
            return True
        answer = self.when(args, context)
        return bool(await answer if inspect.isawaitable(answer) else answer)


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The rule that decided, and its place in the list."""

    index: int
    rule: PermissionRule


async def first_match(
    rules: Sequence[PermissionRule], args: Mapping[str, Any], context: PermissionContext
) -> RuleMatch | None:
    """Return the first rule that matches the call, or `None`."""
    for index, rule in enumerate(rules):
        if await rule.matches(args, context):
            return RuleMatch(index, rule)
    return None


def allow(tools: ToolMatcher, *, when: When | None = None, reason: str | None = None) -> PermissionRule:
    """Return a rule that lets the calls run without asking."""
    return permission_rule({"tool": tools, "action": "allow", "when": when, "reason": reason})


def deny(tools: ToolMatcher, reason: str | None = None, *, when: When | None = None) -> PermissionRule:
    """Return a rule that refuses the calls; the model reads `reason`."""
    return permission_rule({"tool": tools, "action": "deny", "when": when, "reason": reason})


def ask(
    tools: ToolMatcher, *, ttl_ms: float | None = None, when: When | None = None, reason: str | None = None
) -> PermissionRule:
    """Return a rule that pauses the run for a decision on each of the calls."""
    return permission_rule({"tool": tools, "action": "ask", "when": when, "reason": reason, "ttl_ms": ttl_ms})


def permission_rules(values: Iterable[Any] | None) -> tuple[PermissionRule, ...]:
    """Return a list of rules, given as `PermissionRule`s or mappings. Raises `LOUSHO_CONFIG_INVALID`."""
    if values is None:
        return ()
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError("permissions must be a list of rules.", field="permissions")
    return tuple(permission_rule(value, f"permissions.{index}") for index, value in enumerate(values))


def permission_rule(value: Any, where: str = "permissions") -> PermissionRule:
    """Return the rule of `{tool, when?, action, reason?, ttl_ms?}`. Raises `LOUSHO_CONFIG_INVALID`."""
    if isinstance(value, PermissionRule):
        return value
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"'{where}': a rule is a mapping with 'tool' and 'action'.", field=where)
    rule = cast("Mapping[str, Any]", value)
    known = ("tool", "when", "action", "reason", "ttl_ms")
    for key in rule:
        if key not in (*known, "ttlMs"):
            raise ConfigurationError(f"'{where}': {unknown_key_message(key, known)}.", field=where)
    action = rule.get("action")
    if action not in ACTIONS:
        raise ConfigurationError(f"'{where}.action': must be one of {', '.join(ACTIONS)}; got {action!r}.", field=where)
    when = rule.get("when")
    if when is not None and not callable(when):
        raise ConfigurationError(f"'{where}.when': must be a function of (args, context).", field=where)
    ttl_ms = rule.get("ttl_ms", rule.get("ttlMs"))
    _check_ttl(ttl_ms, action, where)
    reason = rule.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise ConfigurationError(f"'{where}.reason': must be a text; got {reason!r}.", field=where)
    return PermissionRule(
        tool=_matcher(rule.get("tool"), where), action=action, when=when, reason=reason, ttl_ms=ttl_ms
    )


def _check_ttl(ttl_ms: Any, action: str, where: str) -> None:
    if ttl_ms is None:
        return
    if action != "ask":
        raise ConfigurationError(f"'{where}.ttlMs': only an 'ask' rule can expire.", field=where)
    if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, (int, float)) or not 0 < ttl_ms <= LONGEST_TTL_MS:
        raise ConfigurationError(
            f"'{where}.ttlMs': must be a number of milliseconds above 0, at most 100 years.", field=where
        )


def _matcher(tool: Any, where: str) -> str | tuple[str, ...] | re.Pattern[str]:
    if isinstance(tool, (str, re.Pattern)) and tool:
        return tool  # pyright: ignore[reportUnknownVariableType]
    if isinstance(tool, Sequence) and not isinstance(tool, (bytes, str)) and tool:
        names: list[Any] = list(cast("Sequence[Any]", tool))
        if all(isinstance(name, str) and name for name in names):
            return tuple(names)
    raise ConfigurationError(
        f"'{where}.tool': must be a tool name, a list of names, '*' or a compiled pattern; got {tool!r}.", field=where
    )
