"""From an agent and a call's own options to a run: its first state and what it works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lousho.agent.call_tools import NO_TOOLS_OF_CALL, CallToolsOption, ToolsOfCall
from lousho.agent.model_settings import check_model_settings
from lousho.agent.options import AgentOptions, check_max_steps, check_ttl_ms
from lousho.agent.tool_list import ToolsOption
from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.ids import new_id
from lousho.core.json_values import clean_text, to_json_value
from lousho.core.messages import Message
from lousho.core.redact import shown
from lousho.models.provider import LLMProvider
from lousho.policy.modes import PLAN_PARAGRAPH, ModeGetter, PermissionModeOption, checked_mode_option
from lousho.runtime.deps import Checkpointer, RunDeps
from lousho.runtime.emitter import Emitter, EventListener
from lousho.runtime.inbox import InputQueue
from lousho.runtime.state import RunState
from lousho.tools.definition import Tool


@dataclass(slots=True, kw_only=True)
class CallOptions:
    """The options of one `send()` or `stream()`."""

    signal: CancelSignal | None = None
    max_steps: int | None = None
    instructions: str | None = None
    model_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: dict[str, Any] | None = None
    model: str | None = None
    """`provider/model`, or the bare id of an agent with a provider object; `None`: the agent's."""
    tools: ToolsOfCall = NO_TOOLS_OF_CALL
    permission_mode: PermissionModeOption | None = None
    approval_ttl_ms: float | None = None

    @classmethod
    def check(
        cls,
        *,
        signal: CancelSignal | None = None,
        max_steps: int | None = None,
        instructions: str | None = None,
        model_settings: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        model: str | None = None,
        tools: CallToolsOption | None = None,
        extra_tools: ToolsOption | None = None,
        permission_mode: PermissionModeOption | None = None,
        approval_ttl_ms: float | None = None,
    ) -> CallOptions:
        """Return the options, checked before any model call. Raises `LOUSHO_CONFIG_INVALID`."""
        if model is not None and not (isinstance(model, str) and model.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"model must be a text; got {shown(model)}.", field="model")
        if instructions is not None and not isinstance(instructions, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"instructions must be a text; got {shown(instructions)}.", field="instructions")
        if metadata is not None and not isinstance(metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"metadata must be a mapping; got {shown(metadata)}.", field="metadata")
        if signal is not None and not isinstance(signal, CancelSignal):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"signal must be a CancelSignal; got {shown(signal)}.", field="signal")
        if approval_ttl_ms is not None:
            check_ttl_ms(approval_ttl_ms)
        return cls(
            signal=signal,
            approval_ttl_ms=approval_ttl_ms,
            max_steps=None if max_steps is None else check_max_steps(max_steps),
            instructions=None if instructions is None else clean_text(instructions),
            model_settings=check_model_settings(model_settings),
            metadata=None if metadata is None else cast("dict[str, Any]", to_json_value(metadata)),
            model=None if model is None else clean_text(model),
            tools=NO_TOOLS_OF_CALL if tools is None and extra_tools is None else ToolsOfCall.check(tools, extra_tools),
            permission_mode=None if permission_mode is None else checked_mode_option(permission_mode),
        )


@dataclass(slots=True, kw_only=True)
class RunChannel:
    """Where a run's events go and what stops it."""

    signal: CancelSignal
    listeners: tuple[EventListener, ...] = ()
    backlog: Callable[[], int] | None = None
    inbox: InputQueue | None = None
    """Where input comes in while the run goes on; `None`: nowhere."""
    decides: bool = False
    """Whether the agent's `approve` function is asked; a stream ends at the pause."""

    @classmethod
    def silent(cls, call: CallOptions, inbox: InputQueue | None = None) -> RunChannel:
        """Return the channel of a run that nobody streams."""
        signal = CancelSignal() if call.signal is None else CancelSignal.any(call.signal)
        return cls(signal=signal, inbox=inbox, decides=True)


def new_state(
    options: AgentOptions,
    given: Sequence[Message],
    call: CallOptions,
    *,
    run_id: str | None = None,
    history: Sequence[Message] = (),
    session_id: str | None = None,
    session_revision: int = 0,
) -> RunState:
    """Return the first state of a run that answers `given`, which was checked, after `history`."""
    messages = [*history, *given]
    return RunState(
        run_id=run_id or new_id("run"),
        agent_name=options.name,
        session_id=session_id,
        session_revision=session_revision,
        messages=messages,
        turn_start=len(history),
        metadata=call.metadata,
        chosen_model=call.model,
        call_tools=call.tools.remembered(),
        approval_ttl_ms=call.approval_ttl_ms,
        input=list(given) if options.per_run else None,
    )


def dependencies(
    options: AgentOptions,
    provider: LLMProvider,
    model: str | None,
    call: CallOptions,
    channel: RunChannel,
    *,
    run_id: str,
    checkpointer: Checkpointer,
    permission_mode: ModeGetter,
    instructions: str | None = None,
    tools: Mapping[str, Tool] | None = None,
    approval_ttl_ms: float | None = None,
) -> RunDeps:
    """Return what a run of this agent works with. `instructions` and `tools` are what functions chose for this run.

    A run that begins or goes on in plan mode is told so in its system prompt, which then stays as it is.
    """
    heard = listeners_of(options, channel)
    if instructions is None:
        instructions = options.instructions if isinstance(options.instructions, str) else ""
    if call.instructions:
        instructions = f"{instructions}\n\n{call.instructions}" if instructions else call.instructions
    note = PLAN_PARAGRAPH if permission_mode() == "plan" else None
    if note is not None:
        instructions = f"{instructions}\n\n{note}" if instructions else note
    concurrency = options.tool_concurrency
    return RunDeps(
        provider=provider,
        model=model,
        instructions=instructions,
        tools=options.own_tools if tools is None else tools,
        settings={**options.model_settings, **call.model_settings},
        max_steps=call.max_steps or options.max_steps,
        emitter=Emitter(run_id, heard, channel.backlog),
        signal=channel.signal,
        checkpointer=checkpointer,
        tool_concurrency=None if concurrency == "unbounded" else concurrency,
        rules=options.permissions,
        on_permission_decision=options.on_permission_decision,
        permission_mode=permission_mode,
        prompt_note=note,
        redact_content=options.redact_content,
        approval_ttl_ms=options.approval_ttl_ms if approval_ttl_ms is None else approval_ttl_ms,
        approve=options.approve if channel.decides else None,
        max_tool_result_chars=options.max_tool_result_chars,
        tool_error_message=options.tool_error_message,
        tool_timeout_ms=options.tool_timeout_ms,
        spill=options.tool_results,
        loop_guard=options.loop_guard,
        repair_arguments=options.repair_arguments,
        match_tool_names=options.match_tool_names,
        agent_version=options.version,
        stream_model_calls=bool(heard),
        inbox=channel.inbox,
    )


def listeners_of(options: AgentOptions, channel: RunChannel) -> tuple[EventListener, ...]:
    """Return who hears the events of a run: the agent's listener, then those of the channel."""
    return channel.listeners if options.on_event is None else (options.on_event, *channel.listeners)


def check_tools_of(state: RunState, options: AgentOptions, tools: Mapping[str, Tool] | None = None) -> None:
    """Refuse to continue a run without the tools it needs: those it waits on, and those that its call brought.

    `tools` are those of the continuation, by default the agent's. Raises `LOUSHO_RESUME_TOOL_MISSING`.
    """
    known = options.own_tools if tools is None else tools
    missing = sorted({slot.tool_name for slot in state.batch if slot.status != "settled"} - set(known))
    of_call = [] if state.call_tools is None else sorted(set(state.call_tools.names) - set(known))
    if of_call:
        raise SDKError(
            f"The call that started the paused run brought {', '.join(of_call)}: pass the same tools= and extra_tools="
            " with the decision.",
            code="LOUSHO_RESUME_TOOL_MISSING",
        )
    if missing:
        raise SDKError(
            f"The paused run waits on {', '.join(missing)}, which the agent {options.name!r} does not have.",
            code="LOUSHO_RESUME_TOOL_MISSING",
        )
