"""The agents that the executor runs: one for a run that begins, one that continues what was saved.

Both are agents like any other; they differ in where their options come from. Source: executor-api page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lousho.agent.agent import Agent
from lousho.agent.builder import AgentConfig
from lousho.agent.executor_options import ExecutorOptions, corrupt_record, kept_options
from lousho.agent.preparation import CallOptions, RunChannel
from lousho.agent.run_config import Resolved
from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.suggest import did_you_mean
from lousho.models.provider import LLMProvider
from lousho.policy.modes import ModeGetter
from lousho.runtime.deps import RunDeps
from lousho.runtime.state import RunState
from lousho.stores.protocol import ApprovalStore, PausedStepRecord
from lousho.tools.definition import Tool
from lousho.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What every call hands over anew."""

    provider: LLMProvider
    registry: ToolRegistry | None
    store: ApprovalStore
    unknown_tool_code: str = "LOUSHO_CONFIG_INVALID"

    def all_tools(self) -> dict[str, Tool]:
        """Return the tools of the registry."""
        registry = self.registry
        if registry is None:
            return {}
        # By its names, for another thread may fill it meanwhile.
        return {name: tool for name in registry.names() if (tool := registry.get(name)) is not None}

    def tools_of(self, config: AgentConfig) -> dict[str, Tool]:
        """Return the tools the agent may use, those it only names taken from the registry.

        Raises `LOUSHO_CONFIG_INVALID`, for a continued run `LOUSHO_RESUME_TOOL_MISSING`, naming what is missing.
        """
        registered = self.all_tools()
        missing = [name for name, tool in config.tools.items() if tool is None and name not in registered]
        if missing:
            there = "no tool_registry was given" if self.registry is None else "the tool_registry does not have it"
            raise ConfigurationError(
                f"The agent {config.name!r} names the tool {missing[0]!r}, and {there}"
                f"{did_you_mean(missing[0], registered)}."
                + (f" Missing, too: {', '.join(missing[1:])}." if missing[1:] else ""),
                field="tools",
                code=self.unknown_tool_code,
            )
        return {name: tool or registered[name] for name, tool in config.tools.items()}


class NoApprovalStore:
    """Stands for the approval store of a run that was given none: a run that has to pause fails instead."""

    async def save(self, step: PausedStepRecord) -> bool:
        """Raise `LOUSHO_APPROVAL_STORE_MISSING`."""
        raise no_store(f"The call of {step.approvals[0]['toolName']!r} needs a person's decision, and the run has")

    async def load(self, step_id: str) -> PausedStepRecord | None:
        """Return `None`: nothing is kept."""
        return None

    async def claim(self, step_id: str, revision: int) -> bool:
        """Return `False`: nothing is kept."""
        return False

    async def list(self) -> list[PausedStepRecord]:
        """Return nothing."""
        return []


class ExecutorAgent(Agent):
    """The agent of one call of the executor."""

    def __init__(
        self, config: AgentConfig, given: ExecutorOptions, wiring: Wiring, kept: Mapping[str, Any] | None = None
    ) -> None:
        options = given.for_agent(config, wiring.tools_of(config), wiring.provider, kept or {})
        options.approval_store = wiring.store
        super().__init__(options)
        self.config = config
        """What it was built from."""
        self._given = given
        self._record: dict[str, Any] = {
            **given.to_keep(self.options, kept or {}),
            "agent": config.to_dict(),
            "rules": bool(self.options.permissions),
        }

    def run_dependencies(
        self,
        state: RunState,
        call: CallOptions,
        channel: RunChannel,
        resolved: Resolved | None = None,
        mode: ModeGetter | None = None,
    ) -> RunDeps:
        """Return what the run works with: an agent's, and what only the executor takes."""
        deps = super().run_dependencies(state, call, channel, resolved, mode)
        state.executor = dict(self._record)
        deps.agent_id = self.config.id
        deps.observers = self._given.observers
        if channel.backlog is None and self._given.given.get("stream_model_calls") is False:
            deps.stream_model_calls = False
        return deps


class ContinuedAgent(Agent):
    """Continues runs of the executor: what each works with is read from its saved state."""

    def __init__(self, config: AgentConfig | None, given: ExecutorOptions, wiring: Wiring) -> None:
        known = wiring.all_tools() if config is None else wiring.tools_of(config)
        options = given.for_agent(config or AgentConfig(), known, wiring.provider, {})
        options.approval_store = wiring.store
        super().__init__(options)
        self._config = config
        self._given = given
        self._wiring = wiring

    def run_dependencies(
        self,
        state: RunState,
        call: CallOptions,
        channel: RunChannel,
        resolved: Resolved | None = None,
        mode: ModeGetter | None = None,
    ) -> RunDeps:
        """Return what the run works with. Raises before anything of it is claimed."""
        return self._as_begun(state).run_dependencies(state, call, channel, resolved, mode)

    def _as_begun(self, state: RunState) -> ExecutorAgent:
        where, begun = self._given.where, state.executor
        if begun is None and (self._config is None or state.session_id is not None):
            raise ConfigurationError(
                f"{where}: the executor did not start this run, so it cannot say what its agent is. Decide with "
                "approvals.resolve() of the agent that started it"
                + (", whose session it belongs to." if state.session_id else ", or pass agent=."),
                field="agent",
                code="LOUSHO_CONFIG_MISSING_AGENT",
            )
        kept: dict[str, Any] = begun or {}
        if kept.get("rules") and "permissions" not in self._given.given:
            raise ConfigurationError(
                f"{where}: the run was started with permission rules, which are code and not saved. Pass the same "
                "permissions= again, or permissions=[] to go on without.",
                field="permissions",
            )
        config = _saved_agent(kept) if self._config is None else self._config
        return ExecutorAgent(config, self._given, self._wiring, kept_options(kept))


def _saved_agent(record: Mapping[str, Any]) -> AgentConfig:
    try:
        return AgentConfig.of(record.get("agent"))
    except ConfigurationError as error:
        raise corrupt_record(error) from error


def no_store(whose: str) -> SDKError:
    """Return the error of a run that has nowhere to pause; `whose` begins its message."""
    return SDKError(f"{whose} no approval_store.", code="LOUSHO_APPROVAL_STORE_MISSING")
