"""The agent: options that were checked once, and the ways to run them. Source: agents page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from lousho.agent.approvals import Approvals
from lousho.agent.checkpoints import AgentCheckpoints
from lousho.agent.options import (
    AgentOptions,
    DecisionListener,
    ToolErrorMessage,
    ToolsOption,
    check_options,
)
from lousho.agent.preparation import CallOptions, RunChannel, checked_input, dependencies, new_state
from lousho.agent.running import start_run
from lousho.agent.session import Session, check_session_id
from lousho.core.cancel import CancelSignal
from lousho.core.events import AgentEvent
from lousho.core.ids import new_id
from lousho.core.messages import AgentInput
from lousho.models.call import assemble
from lousho.models.provider import LLMProvider
from lousho.models.resolve import default_model_from_environment, missing_model_error, resolve_provider
from lousho.policy.permissions import PermissionRule
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.blocking import BlockingStream, iterate_blocking, run_blocking
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import EventListener
from lousho.runtime.loop import drive
from lousho.runtime.model_output import default_model
from lousho.runtime.result import RunResult
from lousho.runtime.state import RunState
from lousho.stores.memory import memory_store
from lousho.stores.protocol import AgentStore, ApprovalStore
from lousho.tools.definition import Tool


def create_agent(
    *,
    model: str | None = None,
    provider: LLMProvider | None = None,
    instructions: str | None = None,
    prompt: str | None = None,
    name: str | None = None,
    description: str | None = None,
    tools: ToolsOption | None = None,
    max_steps: int | None = None,
    tool_concurrency: int | Literal["unbounded"] | None = None,
    model_settings: Mapping[str, Any] | None = None,
    permissions: Iterable[PermissionRule | Mapping[str, Any]] | None = None,
    on_permission_decision: DecisionListener | None = None,
    store: AgentStore | None = None,
    approval_store: ApprovalStore | None = None,
    ask_question: bool | None = None,
    approval_ttl_ms: float | None = None,
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
    it is asked for. `tools` are made with `@tool` or `define_tool()`. `max_steps` (default 10) bounds the model calls
    of a run. `permissions` are rules that allow, ask or deny tool calls, first match wins. `approval_ttl_ms` is how long
    a pause stays decidable, in milliseconds (for ever by default); decided later, the call is denied.
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
        "store": store,
        "approval_store": approval_store,
        "ask_question": ask_question,
        "approval_ttl_ms": approval_ttl_ms,
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
        self._provider, self._model = _provider_of(options)
        self.store = options.store or memory_store()
        """Where sessions and paused runs are kept."""
        self._approval_store = options.approval_store or self.store.approvals
        self._sessions: dict[str, Session] = {}
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
        """The agent's tools by name."""
        return self.options.tools

    @property
    def provider(self) -> LLMProvider:
        """The provider the agent asks."""
        return self._provider

    @property
    def model(self) -> str | None:
        """The model id of the agent's requests."""
        return self._model or default_model(self._provider)

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
        return create_agent(**{**options, **changes})

    async def send(
        self,
        input: AgentInput,  # noqa: A002 - the word of the whole field
        *,
        signal: CancelSignal | None = None,
        max_steps: int | None = None,
        instructions: str | None = None,
        model_settings: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> RunResult:
        """Run the agent on `input` with an empty history and return the result.

        A pause, an abort or a reached limit is a result: see `finish_reason`. `instructions` are added to the agent's
        for this run, `model_settings` win over the agent's key by key. Raises what the run failed with, its spend
        attached as `usage`. Source: agents page.
        """
        call = CallOptions.check(
            signal=signal,
            max_steps=max_steps,
            instructions=instructions,
            model_settings=model_settings,
            metadata=metadata,
        )
        state = new_state(self.options, checked_input(input), call)
        return await drive(state, self.run_dependencies(state, call, RunChannel.silent(call)))

    def stream(
        self,
        input: AgentInput,  # noqa: A002 - the word of the whole field
        *,
        signal: CancelSignal | None = None,
        max_steps: int | None = None,
        instructions: str | None = None,
        model_settings: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        throw_on_error: bool = True,
    ) -> AgentRun:
        """Start a run on `input` and return it: iterate it for events, await its `result`.

        Options are checked here and now. A failed run raises at the end of the iteration unless
        `throw_on_error=False`. Must be called inside a running event loop. Source: agents page.
        """
        call = CallOptions.check(
            signal=signal,
            max_steps=max_steps,
            instructions=instructions,
            model_settings=model_settings,
            metadata=metadata,
        )
        state = new_state(self.options, checked_input(input), call)

        async def start(channel: RunChannel) -> RunResult:
            return await drive(state, self.run_dependencies(state, call, channel))

        return start_run(state.run_id, self.options, call.signal, start, throw_on_error=throw_on_error)

    def send_sync(self, input: AgentInput, **options: Any) -> RunResult:  # noqa: A002
        """Blocking twin of `send()`, with the same options."""
        return run_blocking(self.send(input, **options))

    def stream_sync(self, input: AgentInput, **options: Any) -> BlockingStream[AgentEvent]:  # noqa: A002
        """Blocking twin of `stream()`: yields the run's events; closing the iterator early aborts the run."""
        holder: list[AgentRun] = []

        def open_stream() -> AgentRun:
            holder.append(self.stream(input, **options))
            return holder[0]

        async def close() -> None:
            await holder[0].aclose()

        return iterate_blocking(open_stream, close)

    def session(self, id: str | None = None) -> Session:  # noqa: A002 - the documented name
        """Return the session with this id (a new one gets a generated id); its turns share one transcript.

        Ids are 1 to 128 letters, digits, `_` or `-`, else `LOUSHO_SESSION_ID_INVALID`. Source: agents page.
        """
        session_id = new_id("session") if id is None else check_session_id(id)
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(self, session_id)
        return session

    async def ready(self) -> None:
        """Connect what the agent needs before its first run; nothing yet is connected late."""

    async def close(self) -> None:
        """Release what the agent holds, such as the provider's connections."""
        close = getattr(self._provider, "aclose", None)
        if close is not None:
            await close()

    def run_dependencies(self, state: RunState, call: CallOptions, channel: RunChannel) -> RunDeps:
        """Return what one run of this agent works with."""
        sessions = self.store.sessions if state.session_id is not None else None
        checkpointer = AgentCheckpoints(self._approval_store, sessions, self.options.tools)
        return dependencies(
            self.options, self._provider, self._model, call, channel, run_id=state.run_id, checkpointer=checkpointer
        )

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, model={self.model!r})"


def _provider_of(options: AgentOptions) -> tuple[LLMProvider, str | None]:
    """Return the assembled provider and the model id it is asked for."""
    if options.provider is not None:
        return assemble(options.provider), options.model
    model = options.model or default_model_from_environment()
    if model is None:
        raise missing_model_error()
    return assemble(resolve_provider(model)), None
