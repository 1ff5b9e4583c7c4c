"""What an agent is made of, as JSON: what the model would be told, and the rules and limits around it. No model is asked.

Source: agents page ("Looking inside").
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from lousho.core.json_values import clean_text, to_json_value
from lousho.core.redact import redact
from lousho.core.usage import camel_case
from lousho.models.resolve import keys_in_environment
from lousho.policy.modes import default_mode
from lousho.policy.permissions import PermissionRule
from lousho.runtime.deps import RunDeps
from lousho.runtime.model_output import default_model, provider_name
from lousho.tools.definition import Tool

if TYPE_CHECKING:
    from lousho.agent.agent import Agent


def description_of(agent: Agent, deps: RunDeps, *, unknown: Collection[str] = ()) -> dict[str, Any]:
    """Return the description of an agent for the run that `deps` was made for. What looks like a key is blacked out.

    `unknown` are the options that functions choose and that were not asked; they are `None`.
    """
    options = agent.options
    spill = deps.spill
    asked = isinstance(options.permission_mode, str) or deps.permission_mode is not default_mode
    described: dict[str, Any] = {
        "name": agent.name,
        "description": agent.description,
        "version": options.version,
        "model": deps.model or default_model(deps.provider),
        "provider": provider_name(deps.provider),
        "instructions": deps.instructions,
        "tools": [_tool(tool, deps) for tool in deps.tools.values()],
        "permissionMode": deps.permission_mode() if asked else "depends",
        "permissions": [_rule(rule) for rule in deps.rules],
        "limits": {
            "maxSteps": deps.max_steps,
            "toolConcurrency": options.tool_concurrency,
            "toolTimeoutMs": deps.tool_timeout_ms,
            "maxToolResultChars": _finite(deps.max_tool_result_chars),
            "approvalTtlMs": deps.approval_ttl_ms,
        },
        "modelSettings": {camel_case(key): value for key, value in deps.settings.items()},
        "loop": {
            "guard": deps.loop_guard,
            "repairArguments": deps.repair_arguments,
            "matchToolNames": deps.match_tool_names,
        },
        "toolResults": None if spill is None else {"spillDir": str(spill.directory), "aboveChars": spill.above_chars},
        "store": _store_name(agent.store.sessions),
        "approvalStore": _store_name(agent.approval_store),
        "askQuestion": options.ask_question,
        "perRun": list(options.per_run),
    }
    if "model" in unknown and options.provider is None:
        described["provider"] = None
    return _without_secrets(described | dict.fromkeys(unknown))


def _tool(tool: Tool, deps: RunDeps) -> dict[str, Any]:
    function = tool.definition.function
    timeout_ms = deps.tool_timeout_ms if tool.timeout_ms is None else tool.timeout_ms
    return {
        "name": function.name,
        "displayName": tool.display_name,
        "description": function.description,
        "inputSchema": function.parameters,
        "needsApproval": tool.needs_approval if isinstance(tool.needs_approval, bool) else "depends",
        "timeoutMs": _finite(timeout_ms),
        "concurrent": tool.concurrent,
        "annotations": tool.annotations,
        "kind": tool.pause_kind or "function",
    }


def _rule(rule: PermissionRule) -> dict[str, Any]:
    """Return a rule; `tools` are names, or `pattern` is what is searched in them."""
    described: dict[str, Any] = {"action": rule.action}
    if isinstance(rule.tool, re.Pattern):
        described |= {"tools": [], "pattern": rule.tool.pattern}
    else:
        described["tools"] = [rule.tool] if isinstance(rule.tool, str) else list(rule.tool)
    described |= {"reason": rule.reason, "conditional": rule.when is not None, "ttlMs": rule.ttl_ms}
    return described


def _finite(number: float | None) -> float | None:
    """Return `None` for what has no end: JSON has no word for it."""
    return None if number == math.inf else number


def _store_name(store: object) -> str:
    from lousho.stores.memory import writes_at_once

    return "memory" if writes_at_once(store) else type(store).__name__


def _without_secrets(described: dict[str, Any]) -> dict[str, Any]:
    secrets = keys_in_environment()

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redact(clean_text(value), secrets)
        if isinstance(value, Mapping):
            return {clean(str(key)): clean(item) for key, item in cast("Mapping[Any, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            return [clean(item) for item in cast("list[Any]", value)]
        return to_json_value(value)

    return {key: clean(value) for key, value in described.items()}
