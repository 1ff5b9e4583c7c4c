"""The options of the executor: which there are, which belong elsewhere, and which of them a paused run takes along.

Source: executor-api page.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, TypedDict, cast

from lousho.agent.builder import AgentConfig
from lousho.agent.model_settings import check_model_settings, is_whole
from lousho.agent.options import OPTION_ALIASES, AgentOptions, DecisionListener, ToolErrorMessage, check_options
from lousho.agent.store_options import check_approval_store
from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.events import ToolDoneEvent, ToolErrorEvent, ToolStartEvent
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message
from lousho.core.usage import camel_case
from lousho.models.provider import LLMProvider, ModelRequest, ModelResponse
from lousho.policy.permissions import PermissionRule
from lousho.runtime.deps import Observers, SpillOptions
from lousho.runtime.emitter import EventListener
from lousho.runtime.inbox import InputQueue
from lousho.stores.protocol import ApprovalStore
from lousho.tools.definition import Tool
from lousho.tools.registry import ToolRegistry


class ResumeExecuteOptions(TypedDict, total=False):
    """The options of a run, which `resume_after_approval()` takes, too; `None` counts as not given."""

    max_steps: int | None
    """Bounds the model calls of the run, those before a pause included (default 10)."""
    temperature: float | None
    """The same as `model_settings={'temperature': ...}`."""
    max_tokens: int | None
    """The most tokens one model call may write; the same as `model_settings={'max_tokens': ...}`."""
    model_settings: Mapping[str, Any] | None
    """Sampling settings; they win over the agent's, key by key."""
    signal: CancelSignal | None
    """Stops the run."""
    tool_concurrency: int | Literal["unbounded"] | None
    """How many tool calls of one step run at once; `'unbounded'` by default."""
    on_agent_event: EventListener | None
    """Called with every event of the run, as it happens."""
    stream_model_calls: bool | None
    """`False`: a run with a listener asks the model for whole steps. The streaming calls take no notice of it."""
    on_llm_request: Callable[[ModelRequest], object] | None
    """Called with every model request."""
    on_llm_response: Callable[[ModelResponse], object] | None
    """Called with every model response."""
    on_tool_call: Callable[[ToolStartEvent], object] | None
    """Called with every tool call."""
    on_tool_result: Callable[[ToolDoneEvent | ToolErrorEvent], object] | None
    """Called with every result of a tool call, errors included."""
    permissions: Iterable[PermissionRule | Mapping[str, Any]] | None
    """Rules that allow, ask or deny tool calls; the first match wins."""
    on_permission_decision: DecisionListener | None
    """Called with every decision on a tool call."""
    approval_ttl_ms: float | None
    """How long a pause stays decidable, in milliseconds; for ever by default."""
    max_tool_result_chars: float | None
    """How many characters of a tool's result the model reads (default 50,000)."""
    tool_error_message: ToolErrorMessage | None
    """Writes what the model reads of a tool's error."""
    tool_timeout_ms: float | None
    """Bounds every tool call whose tool has no limit of its own, in milliseconds."""
    tool_results: Mapping[str, Any] | None
    """`{'spill_dir': folder, 'above_chars': n}`: longer results go to a file that the model can page."""
    loop_guard: bool | None
    """Whether a model that repeats one failing call is stopped (default `True`)."""
    repair_arguments: bool | None
    """Whether arguments that are almost JSON are read all the same (default `True`)."""
    match_tool_names: bool | None
    """Whether a misspelled tool name is told the nearest one (default `True`)."""
    redact_content: bool | None
    """Whether permission decisions leave the arguments out."""


class ExecuteOptions(ResumeExecuteOptions, total=False):
    """What `AgentExecutor.execute()` takes beside `agent`, `input` and `provider`; `None` counts as not given."""

    tool_registry: ToolRegistry | None
    """Where the tools are that the agent names."""
    approval_store: ApprovalStore | None
    """Where a run that needs a person's decision is kept; without one, such a call fails the run."""
    session_id: str | None
    """Told to tools and kept with a pause; an undecided pause of the same id refuses further runs."""
    initial_steps: int | None
    """Steps that were taken before; they count against `max_steps`."""
    metadata: Mapping[str, Any] | None
    """Kept with the saved state of the run."""
    input_queue: InputQueue | None
    """Takes input while the run goes on; one queue serves one run."""


class StreamExecuteOptions(ExecuteOptions, total=False):
    """What `AgentExecutor.stream()` takes beside `agent`, `input` and `provider`."""

    throw_on_error: bool | None
    """`False` ends the iteration of a failed run normally."""


_RUN_ARGUMENTS = ("agent", "input", "provider")
_RESUME_ARGUMENTS = ("decision", "approval_store", "tool_registry", "provider", "id", "approved", "note", "agent")
OBSERVERS = ("on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result")
_OWN = frozenset(
    {
        *OBSERVERS,
        "approval_store",
        "initial_steps",
        "input_queue",
        "max_tokens",
        "metadata",
        "on_agent_event",
        "session_id",
        "signal",
        "stream_model_calls",
        "temperature",
        "throw_on_error",
        "tool_registry",
    }
)
"""Options that `create_agent()` does not have under this name, or is given otherwise."""
_KEPT = (
    "max_steps",
    "model_settings",
    "tool_concurrency",
    "approval_ttl_ms",
    "max_tool_result_chars",
    "tool_timeout_ms",
    "tool_results",
    "loop_guard",
    "repair_arguments",
    "match_tool_names",
    "redact_content",
)
"""Options of a run that its continuation keeps unless it is given others."""

NEEDED_OF_APPROVAL_STORES = ("save", "load", "claim")
"""What the executor needs of an approval store. With `list()` it also refuses a run under an id that waits."""

_OF_THE_AGENT = {
    "name": "set_name()",
    "description": "set_description()",
    "prompt": "set_prompt()",
    "instructions": "set_prompt()",
    "system": "set_prompt()",
    "system_prompt": "set_prompt()",
    "model": "set_model()",
    "tools": "add_tool()",
    "version": "set_version()",
}
_LATER = {
    "checkpoint_store": "runs saved step by step",
    "limits": "budgets",
    "exporter": "traces",
    "capture_content": "traces",
    "hooks": "hooks",
    "compaction": "compaction",
    "tool_search": "tool search",
    "guardrails": "guardrails",
    "output": "structured output",
    "reasoning": "reasoning options",
    "retry": "retries",
    "fallback": "fallback models",
    "rate_limit": "rate limits",
    "skills": "skills",
    "memory": "memory",
    "subagents": "sub-agents",
    "max_subagent_depth": "sub-agents",
    "handoffs": "handoffs",
    "max_handoffs": "handoffs",
    "sandbox": "sandboxes",
    "session_budget": "budgets",
    "business_state": "runs saved step by step",
    "on_agent_drift": "noticing a changed agent",
    "on_run_end": "a listener of the end alone; on_agent_event hears run.done",
    "permission_mode": "permission modes, which create_agent() has",
    "mcp_servers": "MCP servers",
    "approve": "approvals decided in code",
    "principal": "who the run acts for",
}
_ALIASES = {
    **OPTION_ALIASES,
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "on_event": "on_agent_event",
    "listener": "on_agent_event",
    "registry": "tool_registry",
    "tools_registry": "tool_registry",
    "store": "approval_store",
    "approvals": "approval_store",
    "abort_signal": "signal",
    "timeout": "signal",
    "llm": "provider",
}


@dataclass(slots=True, kw_only=True)
class ExecutorOptions:
    """The options of one run, checked."""

    where: str
    """The function they were given to, for messages."""
    given: dict[str, Any]
    """As they were given, those without a value left out."""
    observers: Observers = field(default_factory=Observers)

    @classmethod
    def check(cls, given: Mapping[str, Any], known: type, where: str) -> ExecutorOptions:
        """Return the options that have a value. Raises `LOUSHO_CONFIG_INVALID` for a name `known` does not have."""
        values = {key: value for key, value in given.items() if value is not None}
        names = known.__annotations__
        for key in values:
            if key not in names:
                arguments = _RESUME_ARGUMENTS if known is ResumeExecuteOptions else _RUN_ARGUMENTS
                raise ConfigurationError(f"{where}: {_not_an_option(key, [*arguments, *names])}.", field=key)
        _check_values(values, where)
        watching = {key: values[key] for key in OBSERVERS if key in values}
        return cls(where=where, given=values, observers=Observers(**watching))

    def for_agent(
        self, config: AgentConfig, tools: Mapping[str, Tool], provider: LLMProvider | None, kept: Mapping[str, Any]
    ) -> AgentOptions:
        """Return the options of the agent that runs: `kept` are those of the run that is continued.

        Raises `LOUSHO_CONFIG_INVALID` and `LOUSHO_CONFIG_CONFLICTING_OPTIONS`.
        """
        options = {**kept, **{key: value for key, value in self.given.items() if key not in _OWN}}
        settings = {**config.model_settings, **kept.get("model_settings", {}), **self._settings()}
        options |= {
            "name": config.name,
            "description": config.description,
            "instructions": config.prompt,
            "model": config.model,
            "version": config.version,
            "provider": provider,
            "tools": tools,
            "model_settings": settings,
            "on_event": self.given.get("on_agent_event"),
        }
        try:
            return check_options(options)
        except ConfigurationError as error:
            said = error.detail.replace("create_agent:", f"{self.where}:", 1).replace("on_event", "on_agent_event")
            raise ConfigurationError(said, field=error.field, code=error.code) from error

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = check_model_settings(self.given.get("model_settings"))
        for key in ("temperature", "max_tokens"):
            if key in self.given:
                if settings.get(key, self.given[key]) != self.given[key]:
                    raise ConfigurationError(
                        f"{self.where}: {key} and model_settings[{key!r}] differ; keep one.",
                        field=key,
                        code="LOUSHO_CONFIG_CONFLICTING_OPTIONS",
                    )
                settings[key] = self.given[key]
        return settings

    def to_keep(self, options: AgentOptions, before: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a continuation of this run needs, as JSON values with camelCase keys; `before` was kept already."""
        kept = {**before, **{key: self.given[key] for key in _KEPT if key in self.given}}
        kept["model_settings"] = options.model_settings
        return {camel_case(key): _storable(value) for key, value in kept.items() if value != {}}


def kept_options(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `to_keep()` kept as keyword arguments. Raises `LOUSHO_CHECKPOINT_CORRUPT`."""
    known = {camel_case(key): key for key in _KEPT}
    options = {known[key]: value for key, value in record.items() if key in known}
    if options.get("max_tool_result_chars") == "Infinity":
        options["max_tool_result_chars"] = math.inf
    try:
        check_options(options)
    except SDKError as error:
        raise corrupt_record(error) from error
    return options


def corrupt_record(cause: SDKError) -> SDKError:
    """Return the error of a saved run whose agent or options cannot be read."""
    said = cause.detail.removeprefix("create_agent: ")
    return SDKError(f"The saved run cannot be read: {said}", code="LOUSHO_CHECKPOINT_CORRUPT", cause=cause)


def _storable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _storable(one) for key, one in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, SpillOptions):
        return {"spill_dir": str(value.directory), "above_chars": value.above_chars}
    if isinstance(value, float) and math.isinf(value):
        return "Infinity"
    return str(value) if isinstance(value, PurePath) else value


def _not_an_option(key: str, known: list[str]) -> str:
    if key in _OF_THE_AGENT:
        return f"{key!r} belongs to the agent: AgentBuilder.{_OF_THE_AGENT[key]}"
    if key in _LATER:
        return f"{key!r} ({_LATER[key]}) is not available in this version"
    for other in (ExecuteOptions, StreamExecuteOptions):
        if key in other.__annotations__:
            return f"{key!r} is an option of AgentExecutor.execute() and stream(), not of this call"
    return unknown_key_message(key, known, aliases=_ALIASES)


def _check_values(values: Mapping[str, Any], where: str) -> None:
    for key in (*OBSERVERS, "on_agent_event"):
        function = values.get(key)
        if function is None:
            continue
        call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__ is no listener
        if not callable(function) or inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
            raise ConfigurationError(
                f"{where}: {key} must be a plain function; it is called without waiting. Got {shown(function)}.",
                field=key,
            )
    for key in ("stream_model_calls", "throw_on_error"):
        if not isinstance(values.get(key, True), bool):
            raise ConfigurationError(f"{where}: {key} must be True or False; got {shown(values[key])}.", field=key)
    steps = values.get("initial_steps", 0)
    if not is_whole(steps, 0):
        raise ConfigurationError(
            f"{where}: initial_steps must be a whole number of at least 0; got {shown(steps)}.", field="initial_steps"
        )
    inputs = values.get("input_queue")
    if inputs is not None and not isinstance(inputs, InputQueue):
        raise ConfigurationError(
            f"{where}: input_queue must be an InputQueue; got {shown(inputs)}.", field="input_queue"
        )
    check_registry(values.get("tool_registry"), where)
    store = values.get("approval_store")
    if store is not None:
        check_approval_store(store, where, NEEDED_OF_APPROVAL_STORES)


def check_registry(registry: object, where: str) -> None:
    """Refuse what is no registry. Raises `LOUSHO_CONFIG_INVALID`."""
    if registry is not None and not isinstance(registry, ToolRegistry):
        raise ConfigurationError(
            f"{where}: tool_registry must be a ToolRegistry; got {shown(registry)}.", field="tool_registry"
        )
