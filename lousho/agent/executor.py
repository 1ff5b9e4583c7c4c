"""The executor: a run whose parts (agent, tools, provider, stores) are handed over one by one, without an object to keep.

It has no loop of its own. Each call builds the agent that `create_agent()` would give and runs that; what the agent needs
to go on after a pause is kept in the saved run, so that another process can decide with nothing but the store, the tools
and a provider. Source: executor-api page, approvals page ("Advanced: the executor API").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Unpack, cast

from lousho.agent.builder import AgentConfig
from lousho.agent.executor_agents import ContinuedAgent, ExecutorAgent, NoApprovalStore, Wiring, no_store
from lousho.agent.executor_options import (
    NEEDED_OF_APPROVAL_STORES,
    ExecuteOptions,
    ExecutorOptions,
    ResumeExecuteOptions,
    StreamExecuteOptions,
    check_registry,
)
from lousho.agent.preparation import CallOptions, RunChannel, new_state
from lousho.agent.running import start_run, stream_blocking
from lousho.agent.session import check_session_id
from lousho.agent.store_options import check_approval_store
from lousho.core.checked_input import checked_input
from lousho.core.errors import ConfigurationError, SDKError, SessionAwaitingApprovalError
from lousho.core.events import AgentEvent
from lousho.core.messages import AgentInput
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message
from lousho.models.provider import LLMProvider
from lousho.runtime.agent_run import AgentRun
from lousho.runtime.blocking import BlockingStream, run_blocking
from lousho.runtime.inbox import InputQueue
from lousho.runtime.result import RunResult
from lousho.runtime.state import RunState
from lousho.stores.protocol import ApprovalStore
from lousho.tools.registry import ToolRegistry


class AgentExecutor:
    """Runs an `AgentConfig`: `await AgentExecutor.execute(agent=..., input=..., provider=...)`. There are no instances.

    Source: executor-api page.
    """

    def __new__(cls) -> NoReturn:
        """Refuse: raises `LOUSHO_CONFIG_INVALID`."""
        raise ConfigurationError("AgentExecutor has no instances: call AgentExecutor.execute(...) on the class itself.")

    @staticmethod
    async def execute(
        *,
        agent: AgentConfig | Mapping[str, Any] | None = None,
        input: AgentInput | None = None,  # noqa: A002 - the word of the whole field
        provider: LLMProvider | None = None,
        **options: Unpack[ExecuteOptions],
    ) -> RunResult:
        """Run `agent` on `input` and return the result; only `agent`, `input` and `provider` are required.

        `options` are those of `ExecuteOptions`. A pause, an abort or a reached limit is a result: see `finish_reason`.

        Raises `LOUSHO_CONFIG_MISSING_AGENT`, `LOUSHO_CONFIG_MISSING_INPUT`, `LOUSHO_CONFIG_MISSING_PROVIDER`,
        `LOUSHO_CONFIG_INVALID` (an unknown option, an unusable value, a tool that the registry does not have),
        `LOUSHO_APPROVAL_STORE_MISSING` (a call needs a decision and there is no `approval_store`),
        `LOUSHO_SESSION_AWAITING_APPROVAL`, and what the run failed with, its spend attached as `usage`.
        Source: executor-api page.
        """
        run = _Execution.prepare(agent, input, provider, options, ExecuteOptions, "AgentExecutor.execute")
        return await run.start(RunChannel.silent(run.call, run.inbox))

    @staticmethod
    def stream(
        *,
        agent: AgentConfig | Mapping[str, Any] | None = None,
        input: AgentInput | None = None,  # noqa: A002
        provider: LLMProvider | None = None,
        **options: Unpack[StreamExecuteOptions],
    ) -> AgentRun:
        """Start a run and return it: iterate it for events, await its `result`.

        Options as for `execute()`, checked here and now. A failed run raises at the end of the iteration unless
        `throw_on_error=False`. Must be called inside a running event loop. Source: executor-api page, streaming page.
        """
        run = _Execution.prepare(agent, input, provider, options, StreamExecuteOptions, "AgentExecutor.stream")
        throws = options.get("throw_on_error") is not False
        return start_run(
            run.state.run_id,
            run.agent.options,
            run.call.signal,
            run.start,
            throw_on_error=throws,
            agent_id=run.agent.config.id,
            inbox=run.inbox,
        )

    @staticmethod
    def execute_sync(
        *,
        agent: AgentConfig | Mapping[str, Any] | None = None,
        input: AgentInput | None = None,  # noqa: A002
        provider: LLMProvider | None = None,
        **options: Unpack[ExecuteOptions],
    ) -> RunResult:
        """Blocking twin of `execute()`."""
        return run_blocking(AgentExecutor.execute(agent=agent, input=input, provider=provider, **options))

    @staticmethod
    def stream_sync(
        *,
        agent: AgentConfig | Mapping[str, Any] | None = None,
        input: AgentInput | None = None,  # noqa: A002
        provider: LLMProvider | None = None,
        **options: Unpack[StreamExecuteOptions],
    ) -> BlockingStream[AgentEvent]:
        """Blocking twin of `stream()`: yields the run's events; closing the iterator early aborts the run."""
        return stream_blocking(lambda: AgentExecutor.stream(agent=agent, input=input, provider=provider, **options))


async def resume_after_approval(
    decision: Mapping[str, Any] | None = None,
    approval_store: ApprovalStore | None = None,
    tool_registry: ToolRegistry | None = None,
    provider: LLMProvider | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the documented name
    approved: bool | None = None,
    note: str | None = None,
    agent: AgentConfig | Mapping[str, Any] | None = None,
    **options: Unpack[ResumeExecuteOptions],
) -> RunResult:
    """Decide a call that a run of the executor waits for and continue that run, in whatever process.

    `decision` is `{'id': ..., 'approved': ..., 'note': ...}`, with `args`, `remember` and `principal` as for
    `approvals.resolve()`; the first three may be given as keywords instead. The agent, its
    model and the options of the run come from the saved run; `agent` and `options` (those of `ResumeExecuteOptions`)
    win over them. Functions are not saved: permission rules must be given again. Returns the continued run's result,
    which may be the next pause; while other calls of the step are undecided it is `awaiting-approval` again and nothing
    runs.

    Raises `LOUSHO_APPROVAL_DECISION_INVALID`, `LOUSHO_APPROVAL_STORE_MISSING`, `LOUSHO_CONFIG_MISSING_PROVIDER`,
    `LOUSHO_CONFIG_MISSING_AGENT` (a run that the executor did not start), `LOUSHO_CONFIG_INVALID`,
    `LOUSHO_APPROVAL_NOT_FOUND`, `LOUSHO_APPROVAL_CONFLICT`, `LOUSHO_RESUME_TOOL_MISSING`; after any of them but a
    conflict the call is still undecided. Source: executor-api page, approvals page.
    """
    continued = _continued(agent, approval_store, tool_registry, provider, options, "resume_after_approval")
    decided = _decided(decision, {"id": id, "approved": approved, "note": note})
    return await continued.approvals.resolve(**decided, signal=options.get("signal"))


def stream_resume_after_approval(
    decision: Mapping[str, Any] | None = None,
    approval_store: ApprovalStore | None = None,
    tool_registry: ToolRegistry | None = None,
    provider: LLMProvider | None = None,
    *,
    id: str | None = None,  # noqa: A002
    approved: bool | None = None,
    note: str | None = None,
    agent: AgentConfig | Mapping[str, Any] | None = None,
    **options: Unpack[ResumeExecuteOptions],
) -> AgentRun:
    """Decide a call and stream its continued run; arguments as for `resume_after_approval()`, checked here and now.

    The iteration ends normally even when the run fails. Must be called inside a running event loop.
    Source: streaming page ("Streaming after an approval").
    """
    continued = _continued(agent, approval_store, tool_registry, provider, options, "stream_resume_after_approval")
    decided = _decided(decision, {"id": id, "approved": approved, "note": note})
    return continued.approvals.stream_resolve(**decided, signal=options.get("signal"))


def resume_after_approval_sync(*arguments: Any, **options: Any) -> RunResult:
    """Blocking twin of `resume_after_approval()`, with the same arguments."""
    return run_blocking(resume_after_approval(*arguments, **options))


def stream_resume_after_approval_sync(*arguments: Any, **options: Any) -> BlockingStream[AgentEvent]:
    """Blocking twin of `stream_resume_after_approval()`: yields the continued run's events."""
    return stream_blocking(lambda: stream_resume_after_approval(*arguments, **options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """One run, ready to start."""

    agent: ExecutorAgent
    state: RunState
    call: CallOptions
    inbox: InputQueue | None

    @classmethod
    def prepare(
        cls, agent: object, given_input: AgentInput | None, provider: object, options: Any, known: type, where: str
    ) -> _Execution:
        """Check everything that can be checked before the run begins."""
        given = ExecutorOptions.check(options, known, where)
        if agent is None:
            raise ConfigurationError(f"{where}: agent is missing.", field="agent", code="LOUSHO_CONFIG_MISSING_AGENT")
        if given_input is None:
            raise ConfigurationError(f"{where}: input is missing.", field="input", code="LOUSHO_CONFIG_MISSING_INPUT")
        wiring = Wiring(
            provider=_provider(provider, where),
            registry=given.given.get("tool_registry"),
            store=given.given.get("approval_store", NoApprovalStore()),
        )
        config = AgentConfig.of(agent)
        built = ExecutorAgent(config, given, wiring)
        session_id: str | None = given.given.get("session_id")
        call = CallOptions.check(signal=given.given.get("signal"), metadata=given.given.get("metadata"))
        state = new_state(
            built.options,
            checked_input(given_input),
            call,
            session_id=None if session_id is None else check_session_id(session_id),
        )
        state.step = given.given.get("initial_steps", 0)
        inputs: InputQueue | None = given.given.get("input_queue")
        return cls(agent=built, state=state, call=call, inbox=None if inputs is None else inputs.claim())

    async def start(self, channel: RunChannel) -> RunResult:
        """Run it. Raises `LOUSHO_SESSION_AWAITING_APPROVAL` while a run with the same session id waits."""
        try:
            await self._refuse_while_paused()
            return await self.agent.run_state(self.state, self.call, channel)
        finally:
            channel.signal.detach()
            if channel.inbox is not None:
                channel.inbox.close()

    async def _refuse_while_paused(self) -> None:
        session_id = self.state.session_id
        if session_id is None or not hasattr(self.agent.approval_store, "list"):
            return
        for step in await self.agent.approval_store.list():
            if step.session_id == session_id:
                open_ids = [str(one["id"]) for one in step.approvals if one.get("decision") is None]
                raise SessionAwaitingApprovalError(session_id, open_ids[0] if open_ids else step.id, open_ids)


def _continued(
    agent: object, store: object, registry: ToolRegistry | None, provider: object, options: Any, where: str
) -> ContinuedAgent:
    given = ExecutorOptions.check(options, ResumeExecuteOptions, where)
    if store is None:
        raise no_store(f"{where} has")
    check_approval_store(store, where, NEEDED_OF_APPROVAL_STORES)
    check_registry(registry, where)
    wiring = Wiring(
        provider=_provider(provider, where),
        registry=registry,
        store=cast("ApprovalStore", store),
        unknown_tool_code="LOUSHO_RESUME_TOOL_MISSING",
    )
    return ContinuedAgent(None if agent is None else AgentConfig.of(agent), given, wiring)


def _decided(decision: object, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decision, given as a mapping or as keywords. Raises `LOUSHO_APPROVAL_DECISION_INVALID`."""
    if decision is None:
        decided: dict[str, Any] = {}
    elif isinstance(decision, Mapping):
        decided = dict(cast("Mapping[str, Any]", decision))
    else:
        raise _bad_decision(f"A decision is {{'id': ..., 'approved': ..., 'note': ...}}; got {shown(decision)}.")
    for key in decided:
        known = (*keywords, "args", "remember", "principal")
        if key not in known:
            raise _bad_decision(f"The decision: {unknown_key_message(str(key), known, noun='key')}.")
        if keywords.get(key) is not None:
            raise _bad_decision(f"{key!r} is given twice: in the decision and as a keyword.")
    decided |= {key: value for key, value in keywords.items() if value is not None}
    if not isinstance(decided.get("id"), str) or "approved" not in decided:
        raise _bad_decision("A decision needs the id of the call (a text) and approved=True or False.")
    return decided


def _bad_decision(message: str) -> SDKError:
    return SDKError(message, code="LOUSHO_APPROVAL_DECISION_INVALID")


def _provider(provider: object, where: str) -> LLMProvider:
    if provider is None:
        raise ConfigurationError(
            f"{where}: provider is missing.", field="provider", code="LOUSHO_CONFIG_MISSING_PROVIDER"
        )
    return cast("LLMProvider", provider)
