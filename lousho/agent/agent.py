"""The agent: options that were checked once, and the ways to run them. Source: agents page."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Unpack
from weakref import WeakValueDictionary

from lousho.agent.approvals import Approvals
from lousho.agent.call_options import SendOptions, StreamOptions, given_options, take_throw_on_error
from lousho.agent.call_tools import NO_TOOLS_OF_CALL, tools_of_run
from lousho.agent.checkpoints import AgentCheckpoints
from lousho.agent.joining import TurnPolicy, check_turn_policy
from lousho.agent.models import AgentModels
from lousho.agent.options import (
    AgentOptions,
    DecisionListener,
    ModeListener,
    ToolErrorMessage,
    check_options,
)
from lousho.agent.per_run import PerRun
from lousho.agent.preparation import (
    CallOptions,
    RunChannel,
    dependencies,
    listeners_of,
    new_state,
)
from lousho.agent.run_config import Resolved, resolve_options
from lousho.agent.running import start_run, stream_blocking, tell_of_no_run
from lousho.agent.session import Session, check_session_id
from lousho.agent.tool_list import ToolsOption, without_question
from lousho.core.cancel import AbortError, CancelSignal
from lousho.core.checked_input import checked_input
from lousho.core.errors import ConfigurationError
from lousho.core.events import AgentEvent
from lousho.core.ids import new_id
from lousho.core.messages import AgentInput
from lousho.models.provider import LLMProvider
from lousho.policy.modes import (
    ModeGetter,
    PermissionMode,
    PermissionModeOption,
    checked_mode,
    default_mode,
    mode_getter,
)
from lousho.policy.permissions import PermissionRule
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.approver import Approver
from lousho.runtime.blocking import BlockingStream, run_blocking
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import Emitter, EventListener
from lousho.runtime.loop import drive
from lousho.runtime.racing import Aborted
from lousho.runtime.result import RunResult
from lousho.runtime.state import RunState
from lousho.stores.memory import memory_store
from lousho.stores.protocol import AgentStore, ApprovalStore
from lousho.tools.definition import Tool

_sessions_lock = threading.Lock()


def create_agent(
    *,
    model: PerRun[str] | None = None,
    provider: LLMProvider | None = None,
    instructions: PerRun[str] | None = None,
    prompt: PerRun[str] | None = None,
    name: str | None = None,
    description: str | None = None,
    tools: PerRun[ToolsOption] | None = None,
    max_steps: int | None = None,
    tool_concurrency: int | Literal["unbounded"] | None = None,
    model_settings: Mapping[str, Any] | None = None,
    permissions: Iterable[PermissionRule | Mapping[str, Any]] | None = None,
    on_permission_decision: DecisionListener | None = None,
    permission_mode: PermissionModeOption | None = None,
    on_permission_mode_change: ModeListener | None = None,
    store: AgentStore | None = None,
    approval_store: ApprovalStore | None = None,
    ask_question: bool | None = None,
    approval_ttl_ms: float | None = None,
    approve: Approver | None = None,
    on_event: EventListener | None = None,
    max_tool_result_chars: float | None = None,
    tool_error_message: ToolErrorMessage | None = None,
    tool_timeout_ms: float | None = None,
    tool_results: Mapping[str, Any] | None = None,
    loop_guard: bool | None = None,
    repair_arguments: bool | None = None,
    match_tool_names: bool | None = None,
    version: str | None = None,
    redact_content: bool | None = None,
    **unknown: Any,
) -> Agent:
    """Return an agent.

    `model` is a `provider/model` text; without it (and without `provider`) the environment decides: `LOUSHO_MODEL`,
    else the first provider whose key is set. `provider` is a provider object; with both, `model` is the bare model id
    it is asked for. `tools` are made with `@tool` or `define_tool()`. `model`, `instructions` and `tools` may each be a
    function of the run, sync or async, that takes a `RunConfigContext` and returns the value; it is called once a run,
    before the first model call. `max_steps` (default 10) bounds the model calls of a run. `permissions` are rules that
    allow, ask or deny tool calls, first match wins. `permission_mode` (`default`, `plan`, `acceptEdits` or `dontAsk`, or
    a function that is asked at every tool call) decides last. `approval_ttl_ms` is how long a pause stays decidable, in
    milliseconds (for ever by default); decided later, the call is denied. `approve(request)`, sync or async, decides
    such calls in code: `True`, `False`, a text (yes, with this note) or `'defer'` (a person decides); it gets an
    `ApprovalRequest`, and streams do not ask it.
    `tool_timeout_ms` bounds every call whose tool has no limit of its own, in milliseconds. `tool_results` is
    `{'spill_dir': folder, 'above_chars': n}`: longer results go to a file there that the model can page. `loop_guard`,
    `repair_arguments` and `match_tool_names` (all on) help a model that repeats a failing call, sends arguments that
    are almost JSON, or misspells a tool's name. `version` is a label on the run's events and spans.

    Raises `LOUSHO_CONFIG_INVALID` (unknown option or unusable value), `LOUSHO_CONFIG_CONFLICTING_OPTIONS`,
    `LOUSHO_CONFIG_MISSING_PROVIDER`, `LOUSHO_PROVIDER_SPEC_INVALID`, `LOUSHO_PROVIDER_UNKNOWN` and
    `LOUSHO_PROVIDER_MISSING_API_KEY`. Source: agents page.
    """
    given: dict[str, Any] = {
        "model": model,
        "provider": provider,
        "instructions": instructions,
        "prompt": prompt,
        "name": name,
        "description": description,
        "tools": tools,
        "max_steps": max_steps,
        "tool_concurrency": tool_concurrency,
        "model_settings": model_settings,
        "permissions": permissions,
        "on_permission_decision": on_permission_decision,
        "permission_mode": permission_mode,
        "on_permission_mode_change": on_permission_mode_change,
        "store": store,
        "approval_store": approval_store,
        "ask_question": ask_question,
        "approval_ttl_ms": approval_ttl_ms,
        "approve": approve,
        "on_event": on_event,
        "max_tool_result_chars": max_tool_result_chars,
        "tool_error_message": tool_error_message,
        "tool_timeout_ms": tool_timeout_ms,
        "tool_results": tool_results,
        "loop_guard": loop_guard,
        "repair_arguments": repair_arguments,
        "match_tool_names": match_tool_names,
        "version": version,
        "redact_content": redact_content,
    }
    return Agent(check_options({**given, **unknown}))


class Agent:
    """An agent, made by `create_agent()`. It has no state of its own beside its store: runs and sessions have."""

    def __init__(self, options: AgentOptions) -> None:
        self.options = options
        """What the agent was built from; `with_options()` builds a changed one."""
        self._models = AgentModels(options)
        self.store = memory_store() if options.store is None else options.store  # an empty store may count as false
        """Where sessions and paused runs are kept."""
        self._approval_store = self.store.approvals if options.approval_store is None else options.approval_store
        self._sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self.session_modes: dict[str, PermissionMode] = {}
        """The permission modes that sessions were given, by session id; they outlive the session objects."""
        self._own_mode: ModeGetter = mode_getter(options.permission_mode)
        self.approvals = Approvals(self)
        """Lists and decides what paused runs wait for."""

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.options.name

    @property
    def description(self) -> str | None:
        """What the agent does, in a sentence."""
        return self.options.description

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The agent's tools by name, without those that a function of the run chooses."""
        return self.options.own_tools

    @property
    def provider(self) -> LLMProvider:
        """The provider the agent asks; one that can only say so where each run chooses its own."""
        return self._models.own.provider

    @property
    def model(self) -> str | None:
        """The model id of the agent's requests; `None` when a function of the run chooses it."""
        return self._models.model

    @property
    def model_label(self) -> str:
        """The model in words, for people: `openai/gpt-4.1-mini`, or `chosen per run`."""
        return self._models.label

    @property
    def approval_store(self) -> ApprovalStore:
        """Where pauses are saved."""
        return self._approval_store

    def with_options(self, **changes: Any) -> Agent:
        """Return a new agent with some options changed; it shares this one's sessions and pauses.

        A changed `model` drops the provider object of this agent, and the other way round.
        Raises the same codes as `create_agent()`.
        """
        options = self.options.to_kwargs()
        options["store"] = self.store
        if changes.get("model") is not None:
            options.pop("provider")
        elif changes.get("provider") is not None:
            options.pop("model")
        if "prompt" in changes:
            options.pop("instructions")
        if self.options.ask_question and "tools" not in self.options.per_run:
            options["tools"] = without_question(self.options.own_tools)  # it is added again where it is still wanted
        return create_agent(**{**options, **changes})

    async def send(self, input: AgentInput, **options: Unpack[SendOptions]) -> RunResult:  # noqa: A002
        """Run the agent on `input` with an empty history and return the result.

        Options of the call: `signal`, `max_steps`, `model`, `instructions` (added to the agent's), `tools` (in place of
        the agent's), `extra_tools` (added to them), `model_settings` (win over the agent's key by key), `metadata`,
        `session_id`, `permission_mode` (in place of the agent's), `approval_ttl_ms`. A pause, an abort or a reached limit
        is a result: see `finish_reason`.

        Raises `LOUSHO_CONFIG_INVALID`, `LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE` (a `session_id` and a store that keeps
        no checkpoints), `LOUSHO_CONFIG_RESOLVER_FAILED`, and what the run failed with, its spend attached as `usage`.
        Source: agents page.
        """
        call = self.checked_call(given_options(options, SendOptions, "send"))
        state = new_state(self.options, checked_input(input), call)
        return await self.run_state(state, call, RunChannel.silent(call))

    def stream(self, input: AgentInput, **options: Unpack[StreamOptions]) -> AgentRun:  # noqa: A002
        """Start a run on `input` and return it: iterate it for events, await its `result`.

        Options as for `send()`, checked here and now. A failed run raises at the end of the iteration unless
        `throw_on_error=False`. Must be called inside a running event loop. Source: agents page.
        """
        given = given_options(options, StreamOptions, "stream")
        throw_on_error = take_throw_on_error(given)
        call = self.checked_call(given)
        state = new_state(self.options, checked_input(input), call)

        async def start(channel: RunChannel) -> RunResult:
            return await self.run_state(state, call, channel)

        return start_run(state.run_id, self.options, call.signal, start, throw_on_error=throw_on_error)

    def send_sync(self, input: AgentInput, **options: Unpack[SendOptions]) -> RunResult:  # noqa: A002
        """Blocking twin of `send()`, with the same options."""
        return run_blocking(self.send(input, **options))

    def stream_sync(self, input: AgentInput, **options: Unpack[StreamOptions]) -> BlockingStream[AgentEvent]:  # noqa: A002
        """Blocking twin of `stream()`: yields the run's events; closing the iterator early aborts the run."""
        return stream_blocking(lambda: self.stream(input, **options))

    def session(
        self,
        id: str | None = None,  # noqa: A002 - the documented name
        *,
        turn_policy: TurnPolicy | None = None,
        permission_mode: PermissionMode | None = None,
    ) -> Session:
        """Return the session with this id (a new one gets a generated id); its turns share one transcript.

        Ids are 1 to 128 letters, digits, `_` or `-`, else `LOUSHO_SESSION_ID_INVALID`. `turn_policy` says what a turn
        does that is asked for while another one runs: `'wait'` (the default), or join it, as `run.enqueue()` (`'queue'`)
        or `run.steer()` (`'steer'`) does; else `LOUSHO_CONFIG_INVALID`. `permission_mode` is the session's mode in place
        of the agent's; for a session that has another one already it is a switch, as `set_permission_mode()` makes it.
        Source: agents page, sessions page, permission modes page.
        """
        mode = None if permission_mode is None else checked_mode(permission_mode)
        session_id = new_id("session") if id is None else check_session_id(id)
        policy = None if turn_policy is None else check_turn_policy(turn_policy)
        with _sessions_lock:  # two of one id would each take turns of their own
            session = self._sessions.get(session_id)
            if session is None:
                session = self._sessions[session_id] = Session(self, session_id)
                if mode is not None:
                    self.session_modes.setdefault(session_id, mode)
            if policy is not None:
                session.turn_policy = policy
        if mode is not None:
            session.set_permission_mode(mode)
        return session

    def mode_of_session(self, session_id: str) -> PermissionMode:
        """Return the permission mode of a session now: its own, else the agent's."""
        return self.session_modes.get(session_id) or self._own_mode()

    def _mode_of(self, state: RunState, call: CallOptions) -> ModeGetter:
        if call.permission_mode is not None:
            return mode_getter(call.permission_mode)
        if state.session_id is not None:
            return partial(self.mode_of_session, state.session_id)
        return self._own_mode

    async def describe(
        self,
        *,
        input: AgentInput | None = None,  # noqa: A002
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        signal: CancelSignal | None = None,
    ) -> dict[str, Any]:
        """Return what the agent is made of, as JSON values; no model is asked, and what looks like a key is left out.

        `{name, description, version, model, provider, instructions, permissionMode ("depends" when it is a function that was
        not asked), tools: [{name, displayName, description, inputSchema,
        needsApproval (true, false or "depends"), timeoutMs, concurrent, annotations, kind}], permissions: [{action, tools,
        pattern?, reason, conditional, ttlMs}], limits: {maxSteps, toolConcurrency, toolTimeoutMs, maxToolResultChars,
        approvalTtlMs}, modelSettings, loop: {guard, repairArguments, matchToolNames}, toolResults: {spillDir, aboveChars},
        store, approvalStore, askQuestion, perRun}`. Prompt and tools are those a run would send.

        `perRun` names the options that are functions of the run. They are not called, and what they would give is `None`;
        with `input`, `session_id` or `metadata` the description is that of such a run, and they are called for it. That
        raises `LOUSHO_CONFIG_INVALID`, `LOUSHO_SESSION_ID_INVALID`, `LOUSHO_CONFIG_RESOLVER_FAILED`, and the reason of
        `signal` when it is aborted meanwhile. Source: agents page.
        """
        from lousho.agent.describe import description_of

        call = CallOptions.check(metadata=metadata, signal=signal)
        if session_id is not None:
            check_session_id(session_id)
        state = new_state(self.options, checked_input("" if input is None else input), call, session_id=session_id)
        channel = RunChannel.silent(call)
        of_a_run = not (input is None and session_id is None and metadata is None)
        try:
            resolved = await self._resolve(state, call, channel.signal) if of_a_run else Resolved()
        except Aborted as stop:
            raise stop.reason or AbortError("The description was aborted.") from None
        finally:
            channel.signal.detach()
        unasked = not of_a_run and not isinstance(self.options.permission_mode, str)
        deps = self.run_dependencies(state, call, channel, resolved, default_mode if unasked else None)
        return description_of(self, deps, unknown=() if of_a_run else self.options.per_run)

    def describe_sync(
        self,
        *,
        input: AgentInput | None = None,  # noqa: A002
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        signal: CancelSignal | None = None,
    ) -> dict[str, Any]:
        """Blocking twin of `describe()`."""
        return run_blocking(self.describe(input=input, session_id=session_id, metadata=metadata, signal=signal))

    async def ready(self) -> None:
        """Connect what the agent needs before its first run; nothing yet is connected late."""

    async def close(self) -> None:
        """Release what the agent holds, such as the provider's connections."""
        await self._models.aclose()

    def checked_call(self, given: Mapping[str, Any]) -> CallOptions:
        """Return the options of one call, checked against this agent, before anything is run.

        Raises `LOUSHO_CONFIG_INVALID`, the codes of a model that cannot be asked, and for a `session_id`
        `LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE`.
        """
        if not given:
            return CallOptions()
        options = dict(given)
        session_id = options.pop("session_id", None)
        call = CallOptions.check(**options)
        if session_id is not None:
            raise _no_checkpoints(check_session_id(session_id))
        if call.model is not None:
            self._models.choose(call.model)
        if call.tools.given and "tools" not in self.options.per_run:
            tools_of_run(self.options.own_tools, call.tools, None)
        return call

    def run_state(self, state: RunState, call: CallOptions, channel: RunChannel) -> Awaitable[RunResult]:
        """Run `state` to its end or its next pause, the options that are functions called first."""
        option = call.permission_mode or self.options.permission_mode
        if not self.options.per_run and isinstance(option, str):
            return drive(state, self.run_dependencies(state, call, channel))
        return self._resolve_and_run(state, call, channel)

    async def _resolve_and_run(self, state: RunState, call: CallOptions, channel: RunChannel) -> RunResult:
        try:
            deps = await self.resolved_dependencies(state, call, channel)
        except BaseException as error:
            emitter = Emitter(state.run_id, listeners_of(self.options, channel))
            tell_of_no_run(emitter, self.options, error)
            channel.signal.detach()
            raise
        return await drive(state, deps)

    async def resolved_dependencies(self, state: RunState, call: CallOptions, channel: RunChannel) -> RunDeps:
        """Return what one run works with, the options that are functions called for it.

        Raises `LOUSHO_CONFIG_RESOLVER_FAILED`. An abort that comes meanwhile is left to the run, which ends with it.
        """
        if not self.options.per_run:
            return self.run_dependencies(state, call, channel)
        try:
            resolved = await self._resolve(state, call, channel.signal)
        except Aborted:
            # It ends before it takes any tool, so a name that only a function could give is no mistake of the call.
            resolved, call = Resolved(), replace(call, tools=NO_TOOLS_OF_CALL)
        return self.run_dependencies(state, call, channel, resolved)

    def _resolve(self, state: RunState, call: CallOptions, signal: CancelSignal) -> Awaitable[Resolved]:
        return resolve_options(self.options, self._models, state, call, signal)

    def run_dependencies(
        self,
        state: RunState,
        call: CallOptions,
        channel: RunChannel,
        resolved: Resolved | None = None,
        mode: ModeGetter | None = None,
    ) -> RunDeps:
        """Return what one run of this agent works with; `resolved` has what functions chose for it.

        `mode` gives the permission mode in place of that of the call, the session or the agent.
        """
        chosen = self._models.own if state.chosen_model is None else self._models.choose(state.chosen_model)
        own = self.options.own_tools if resolved is None or resolved.tools is None else resolved.tools
        tools = tools_of_run(own, call.tools, state.call_tools)
        sessions = self.store.sessions if state.session_id is not None else None
        return dependencies(
            self.options,
            chosen.provider,
            chosen.model,
            call,
            channel,
            run_id=state.run_id,
            checkpointer=AgentCheckpoints(self._approval_store, sessions, tools),
            permission_mode=self._mode_of(state, call) if mode is None else mode,
            instructions=None if resolved is None else resolved.instructions,
            tools=tools,
            approval_ttl_ms=state.approval_ttl_ms,
        )

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, model={self.model_label if self._models.varies else self.model!r})"


def _no_checkpoints(session_id: str) -> ConfigurationError:
    return ConfigurationError(
        f"session_id={session_id!r} saves the run step by step, and the agent's store keeps no checkpoints: this version"
        f" has no store that does. For a conversation use agent.session({session_id!r}).",
        field="sessionId",
        code="LOUSHO_CONFIG_MISSING_CHECKPOINT_STORE",
    )
