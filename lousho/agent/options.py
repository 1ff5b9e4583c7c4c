"""Every option of `create_agent()`, checked in one place and remembered, so that an agent can be rebuilt.

Source: agents page ("`createAgent()` options").
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, cast

from lousho.agent.model_settings import check_model_settings, is_whole
from lousho.agent.per_run import PerRun, RunConfigContext, check_function, is_per_run
from lousho.agent.store_options import check_approval_store, check_store
from lousho.agent.tool_list import ToolsOption, checked_tools, with_question
from lousho.core.errors import ConfigurationError
from lousho.core.json_values import clean_text
from lousho.core.redact import shown
from lousho.core.suggest import did_you_mean, unknown_key_message
from lousho.models.provider import LLMProvider
from lousho.policy.modes import PermissionModeChange, PermissionModeOption, checked_mode_option
from lousho.policy.permissions import LONGEST_TTL_MS, PermissionRule, permission_rules
from lousho.runtime.approver import Approver
from lousho.runtime.deps import SpillOptions, ToolErrorInfo
from lousho.runtime.emitter import EventListener
from lousho.stores.protocol import AgentStore, ApprovalStore
from lousho.tools.definition import Tool

ToolsFunction: TypeAlias = "Callable[[RunConfigContext], ToolsOption | Awaitable[ToolsOption]]"
DecisionListener: TypeAlias = "Callable[[Mapping[str, Any], Mapping[str, Any] | None], object]"
ModeListener: TypeAlias = "Callable[[PermissionModeChange], object]"
ToolErrorMessage: TypeAlias = "Callable[[BaseException, ToolErrorInfo], str]"

_log = logging.getLogger("lousho.agent")

DEFAULT_INSTRUCTIONS = "You are a helpful assistant."
DEFAULT_MAX_STEPS = 10
DEFAULT_MAX_TOOL_RESULT_CHARS = 50_000
PER_RUN_OPTIONS = ("model", "instructions", "tools")
"""The options that may be functions of the run."""
_SWITCHES = ("ask_question", "loop_guard", "repair_arguments", "match_tool_names", "redact_content")
SHORTEST_SPILL_CHARS = 1_000
"""Below this the note that stands for a spilled result would be longer than the result."""

OPTION_ALIASES = {
    "system": "instructions",
    "system_prompt": "instructions",
    "max_turns": "max_steps",
    "max_iterations": "max_steps",
    "max_tokens": "model_settings.max_tokens",
    "max_output_tokens": "model_settings.max_tokens",
    "maxOutputTokens": "model_settings.max_tokens",
    "temperature": "model_settings.temperature",
    "top_p": "model_settings.top_p",
    "functions": "tools",
    "llm": "provider",
    "mode": "permission_mode",
    "permissionMode": "permission_mode",
}


class CreateAgentBase(TypedDict, total=False):
    """The options two agents may share: `create_agent(**shared, model=...)`."""

    name: str | None
    description: str | None
    tools: PerRun[ToolsOption] | None
    max_steps: int | None
    tool_concurrency: int | Literal["unbounded"] | None
    model_settings: Mapping[str, Any] | None
    permissions: Iterable[PermissionRule | Mapping[str, Any]] | None
    on_permission_decision: DecisionListener | None
    permission_mode: PermissionModeOption | None
    on_permission_mode_change: ModeListener | None
    store: AgentStore | None
    approval_store: ApprovalStore | None
    ask_question: bool | None
    approval_ttl_ms: float | None
    approve: Approver | None
    on_event: EventListener | None
    max_tool_result_chars: float | None
    tool_error_message: ToolErrorMessage | None
    tool_timeout_ms: float | None
    tool_results: Mapping[str, Any] | None
    loop_guard: bool | None
    repair_arguments: bool | None
    match_tool_names: bool | None
    version: str | None
    redact_content: bool | None


@dataclass(slots=True, kw_only=True)
class AgentOptions:
    """The checked options of an agent."""

    model: PerRun[str] | None = None
    provider: LLMProvider | None = field(default=None, repr=False)  # its text may hold a key
    instructions: PerRun[str] = DEFAULT_INSTRUCTIONS
    name: str = "agent"
    description: str | None = None
    tools: dict[str, Tool] | ToolsFunction = field(default_factory=dict)
    max_steps: int = DEFAULT_MAX_STEPS
    tool_concurrency: int | Literal["unbounded"] = "unbounded"
    model_settings: dict[str, Any] = field(default_factory=dict)
    permissions: tuple[PermissionRule, ...] = ()
    on_permission_decision: DecisionListener | None = None
    permission_mode: PermissionModeOption = "default"
    on_permission_mode_change: ModeListener | None = None
    store: AgentStore | None = None
    approval_store: ApprovalStore | None = None
    ask_question: bool = False
    approval_ttl_ms: float | None = None
    approve: Approver | None = None
    on_event: EventListener | None = None
    max_tool_result_chars: float = DEFAULT_MAX_TOOL_RESULT_CHARS
    tool_error_message: ToolErrorMessage | None = None
    tool_timeout_ms: float | None = None
    tool_results: SpillOptions | None = None
    loop_guard: bool = True
    repair_arguments: bool = True
    match_tool_names: bool = True
    version: str | None = None
    redact_content: bool = False
    per_run: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The options that were given as functions of the run, by name."""

    def __post_init__(self) -> None:
        self.per_run = tuple(name for name in PER_RUN_OPTIONS if is_per_run(getattr(self, name)))

    def to_kwargs(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `create_agent()`."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @property
    def own_tools(self) -> dict[str, Tool]:
        """The tools that are known before any run: without those that a function chooses."""
        if isinstance(self.tools, dict):
            return cast("dict[str, Tool]", self.tools)
        return with_question({}, ask_question=self.ask_question)


KNOWN_OPTIONS: tuple[str, ...] = (*(f.name for f in fields(AgentOptions) if f.init), "prompt")


def check_options(given: Mapping[str, Any]) -> AgentOptions:
    """Return the options of `create_agent(**given)`; a `None` counts as not given.

    Raises `LOUSHO_CONFIG_INVALID` for an unknown name (with a suggestion) or an unusable value, and
    `LOUSHO_CONFIG_CONFLICTING_OPTIONS` when `instructions` and its alias `prompt` are both given.
    """
    values = {key: value for key, value in given.items() if value is not None}
    for key in values:
        if key not in KNOWN_OPTIONS:
            raise ConfigurationError(
                f"create_agent: {unknown_key_message(key, KNOWN_OPTIONS, aliases=OPTION_ALIASES)}.", field=key
            )
    if "prompt" in values:
        if "instructions" in values:
            raise ConfigurationError(
                "create_agent: 'instructions' and 'prompt' mean the same; keep 'instructions'.",
                field="prompt",
                code="LOUSHO_CONFIG_CONFLICTING_OPTIONS",
            )
        values["instructions"] = values.pop("prompt")
    _check_texts(values)
    if "max_steps" in values:
        check_max_steps(values["max_steps"])
    _check_concurrency(values.get("tool_concurrency", "unbounded"))
    _check_result_chars(values.get("max_tool_result_chars", DEFAULT_MAX_TOOL_RESULT_CHARS))
    _check_callables(values)
    if "store" in values:
        check_store(values["store"], "create_agent")
    if "approval_store" in values:
        check_approval_store(values["approval_store"], "create_agent")
    if "approval_ttl_ms" in values:
        check_ttl_ms(values["approval_ttl_ms"])
    if "tool_timeout_ms" in values:
        check_timeout_ms(values["tool_timeout_ms"])
    if "tool_results" in values:
        values["tool_results"] = spill_options(values["tool_results"])
    for key in _SWITCHES:
        if not isinstance(values.get(key, True), bool):
            raise ConfigurationError(f"create_agent: {key} must be True or False; got {shown(values[key])}.", field=key)
    values["model_settings"] = check_model_settings(values.get("model_settings"))
    values["permissions"] = permission_rules(values.get("permissions"))
    if is_per_run(values.get("tools")):
        check_function("tools", values["tools"])
    else:
        tools = checked_tools(values.get("tools", ()), where="create_agent")
        values["tools"] = with_question(tools, ask_question=values.get("ask_question", False))
        _warn_of_rules_without_tool(values["permissions"], values["tools"])
    return AgentOptions(**values)


def _check_texts(values: dict[str, Any]) -> None:
    """Check the texts, and take out what neither a store nor an event could hold."""
    for key in ("instructions", "name", "description", "model", "version"):
        value = values.get(key, "")
        if key in PER_RUN_OPTIONS and is_per_run(value):
            check_function(key, value)
        elif not isinstance(value, str):
            or_function = " or a function of the run" if key in PER_RUN_OPTIONS else ""
            raise ConfigurationError(f"create_agent: {key} must be a text{or_function}; got {shown(value)}.", field=key)
        elif key in values:
            values[key] = clean_text(value)


def _warn_of_rules_without_tool(rules: Iterable[PermissionRule], tools: Mapping[str, Tool]) -> None:
    """Say loudly when a rule names a tool the agent does not have: a `deny` that guards nothing is a trap."""
    for index, rule in enumerate(rules):
        names = (rule.tool,) if isinstance(rule.tool, str) else rule.tool
        for name in names if isinstance(names, tuple) else ():
            if name != "*" and name not in tools:
                _log.warning(
                    "permissions.%d: the agent has no tool %r, so this %r rule does nothing%s.",
                    index,
                    name,
                    rule.action,
                    did_you_mean(name, tools),
                )


def check_max_steps(value: Any) -> int:
    """Return `value` if it is a whole number of at least 1. Raises `LOUSHO_CONFIG_INVALID`."""
    if not is_whole(value, 1):
        raise ConfigurationError(
            f"max_steps must be a whole number of at least 1; got {shown(value)}.", field="maxSteps"
        )
    return value


def check_ttl_ms(value: Any) -> None:
    """Refuse what is no time to live: a number of milliseconds above 0, at most 100 years."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST_TTL_MS:
        raise ConfigurationError(
            f"approval_ttl_ms must be a number of milliseconds above 0, at most 100 years; got {shown(value)}.",
            field="approvalTtlMs",
        )


def check_timeout_ms(value: Any) -> None:
    """Refuse what is no time limit: a number of milliseconds above 0, at most 100 years."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LONGEST_TTL_MS:
        raise ConfigurationError(
            f"tool_timeout_ms must be a number of milliseconds above 0, at most 100 years; got {shown(value)}.",
            field="toolTimeoutMs",
        )


def spill_options(given: Any) -> SpillOptions:
    """Return `tool_results={'spill_dir': ..., 'above_chars': ...}` as checked options. Raises `LOUSHO_CONFIG_INVALID`."""
    if isinstance(given, SpillOptions):
        return given
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"tool_results must be a mapping with 'spill_dir' and 'above_chars'; got {shown(given)}.",
            field="toolResults",
        )
    options = cast("Mapping[str, Any]", given)
    known = ("spill_dir", "above_chars")
    for key in options:
        if key not in known:
            raise ConfigurationError(f"tool_results: {unknown_key_message(key, known)}.", field="toolResults")
    directory, above = options.get("spill_dir"), options.get("above_chars", DEFAULT_MAX_TOOL_RESULT_CHARS)
    place = os.fspath(cast("str", directory)) if isinstance(directory, (str, os.PathLike)) else None
    if not isinstance(place, str) or not place.strip() or "\0" in place:
        raise ConfigurationError(
            f"tool_results: 'spill_dir' must be the path of a folder; got {shown(directory)}.", field="toolResults"
        )
    if not is_whole(above, SHORTEST_SPILL_CHARS):
        raise ConfigurationError(
            f"tool_results: 'above_chars' must be a whole number of at least {SHORTEST_SPILL_CHARS}; got {shown(above)}.",
            field="toolResults",
        )
    return SpillOptions(directory=Path(place), above_chars=cast("int", above))


def _check_concurrency(value: Any) -> None:
    if value == "unbounded":
        return
    if not is_whole(value, 1):
        raise ConfigurationError(
            f"tool_concurrency must be a whole number of at least 1, or 'unbounded'; got {shown(value)}.",
            field="toolConcurrency",
        )


def _check_result_chars(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ConfigurationError(
            f"max_tool_result_chars must be a number above 0 (math.inf for no cap); got {shown(value)}.",
            field="maxToolResultChars",
        )


def _check_callables(values: Mapping[str, Any]) -> None:
    for key in ("on_event", "on_permission_decision", "on_permission_mode_change", "tool_error_message"):
        if key in values and not callable(values[key]):
            raise ConfigurationError(f"create_agent: {key} must be a function.", field=key)
        if key in values and _is_async(values[key]):
            raise ConfigurationError(
                f"create_agent: {key} is called without waiting, so it must be a plain function, not an async one; "
                "start a task in it for what has to be awaited.",
                field=key,
            )
    if "permission_mode" in values:
        checked_mode_option(values["permission_mode"], "create_agent: ")
    if not callable(values.get("approve", len)):
        raise ConfigurationError("create_agent: approve must be a function of the request.", field="approve")
    provider = values.get("provider")
    if provider is not None and (isinstance(provider, str) or not callable(getattr(provider, "generate", None))):
        raise ConfigurationError(
            f"create_agent: provider must be a provider object with generate() and stream(); got {shown(provider)}. "
            "For a 'provider/model' text use model=.",
            field="provider",
        )


def _is_async(function: Any) -> bool:
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)
