"""What a run works with and what can be rebuilt at any time: model, tools, rules, listeners. Never saved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lousho.core.cancel import CancelSignal
from lousho.core.events import ToolDoneEvent, ToolErrorEvent, ToolStartEvent
from lousho.models.provider import LLMProvider, ModelRequest, ModelResponse, ToolDefinition
from lousho.policy.modes import ModeGetter, default_mode
from lousho.policy.permissions import PermissionRule
from lousho.runtime.emitter import Emitter
from lousho.runtime.inbox import InputQueue
from lousho.runtime.racing import uninterrupted
from lousho.runtime.spilled_results import SpilledResults
from lousho.runtime.state import RunState
from lousho.tools.definition import Tool
from lousho.tracing.tracer import NULL_SPAN, NULL_TRACER, Span, SpanKind, Tracer


class Checkpointer(Protocol):
    """Where a run saves itself. The default one does nothing; a store's one writes before anything can be lost.

    `paused()` and `finished()` are run to their end even when the task of the run is cancelled meanwhile.
    """

    @property
    def pause_waits(self) -> bool:
        """Whether `paused()` may have to wait for its store, so that it could be cut off."""
        ...

    @property
    def finish_waits(self) -> bool:
        """Whether `finished()` may have to wait for its store, so that it could be cut off."""
        ...

    async def model_turn(self, state: RunState) -> None:
        """The model answered; no tool has run yet."""
        ...

    async def call_settled(self, state: RunState) -> None:
        """One more call of the step has its result."""
        ...

    async def paused(self, state: RunState) -> None:
        """The run waits for a person; nobody has been told yet."""
        ...

    async def finished(self, state: RunState) -> None:
        """The run ended (not by an error); `run.done` has not been emitted yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolErrorInfo:
    """Which call a thrown error belongs to, for `tool_error_message`."""

    tool_name: str
    tool_call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOptions:
    """Where long tool results are kept, and from how many characters on a result counts as long."""

    directory: Path
    above_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """Functions of the application that watch model calls and tool calls; what they raise never fails the run."""

    on_llm_request: Callable[[ModelRequest], object] | None = None
    on_llm_response: Callable[[ModelResponse], object] | None = None
    on_tool_call: Callable[[ToolStartEvent], object] | None = None
    on_tool_result: Callable[[ToolDoneEvent | ToolErrorEvent], object] | None = None


NO_OBSERVERS = Observers()


@dataclass(slots=True, kw_only=True)
class RunDeps:
    """One run's dependencies."""

    provider: LLMProvider
    model: str | None
    """The model id of every request; `None`: the provider's default."""
    instructions: str
    """The system prompt of every request."""
    tools: Mapping[str, Tool]
    settings: Mapping[str, Any]
    """`ModelRequest` fields that every request carries."""
    max_steps: int
    emitter: Emitter
    signal: CancelSignal
    checkpointer: Checkpointer
    tool_concurrency: int | None = None
    """How many calls of a step run at once; `None`: all."""
    rules: Sequence[PermissionRule] = ()
    on_permission_decision: Callable[[Mapping[str, Any], Mapping[str, Any] | None], object] | None = None
    permission_mode: ModeGetter = default_mode
    """Gives the permission mode of the moment; asked at every tool call."""
    prompt_note: str | None = None
    """What `instructions` end with because of the mode the run starts in, for a transcript with its own system prompt."""
    redact_content: bool = False
    approval_ttl_ms: float | None = None
    """How long a pause stays decidable where no rule says otherwise, in milliseconds; `None`: for ever."""
    approve: Callable[[Any], Any] | None = None
    """Decides calls in code before the run pauses on them; gets an `ApprovalRequest`."""
    max_tool_result_chars: float = 50_000
    tool_timeout_ms: float | None = None
    """How long a call may run whose tool has no time limit of its own, in milliseconds; `None`: for ever."""
    spill: SpillOptions | None = None
    """Where results go that are too long for the transcript."""
    loop_guard: bool = True
    """Whether a model that repeats one failing call is told so, and at last answers without tools."""
    repair_arguments: bool = True
    """Whether arguments that are almost JSON are read all the same."""
    match_tool_names: bool = True
    """Whether a vendor's prefix on a tool's name is dropped and the nearest name of an unknown tool is told."""
    observers: Observers = NO_OBSERVERS
    tool_error_message: Callable[[BaseException, ToolErrorInfo], str] | None = None
    agent_id: str | None = None
    agent_version: str | None = None
    principal: Mapping[str, Any] | None = None
    stream_model_calls: bool = False
    tracer: Tracer = NULL_TRACER
    span: Span = NULL_SPAN
    inbox: InputQueue | None = None
    """Input that comes in while the run goes on; `None`: none can."""
    step_open: bool = False
    """Whether the stream has a `step.start` without its `step.done`."""
    cancelled: asyncio.CancelledError | None = None
    """The cancellation of the task that runs it, raised again once the run has ended in order."""
    definitions: list[ToolDefinition] = field(init=False)
    rules_wait: bool = field(init=False)
    """Whether a permission rule calls a function of the application, which may take its time."""
    spilled: SpilledResults | None = field(init=False, default=None)
    """The results that are too long for the transcript; its reader is one more tool of the run."""

    def __post_init__(self) -> None:
        if self.spill is not None and self.tools:
            spill = self.spill
            self.spilled = SpilledResults(spill.directory, spill.above_chars, self.max_tool_result_chars, self.tools)
            self.tools = {**self.tools, self.spilled.reader.name: self.spilled.reader}
        self.definitions = [tool.definition for tool in self.tools.values()]
        self.rules_wait = any(rule.when is not None for rule in self.rules)

    def start_span(self, kind: SpanKind, name: str, parent: Span | None = None) -> Span:
        """Open a span of the run, labelled with the agent's version if it has one."""
        span = self.tracer.start(kind, name, parent)
        if self.agent_version is not None:
            span.set("agent_version", self.agent_version)
        return span

    async def save(self, work: Coroutine[Any, Any, None], *, waits: bool) -> None:
        """Run a save to its end. A cancellation that comes meanwhile is kept for later; raises what the save raised."""
        if not waits:
            await work
            return
        saved = await uninterrupted(work)
        self.cancelled = self.cancelled or saved.cancelled
        if saved.error is not None:
            raise saved.error

    @property
    def audits(self) -> bool:
        """Whether permission decisions are reported."""
        return bool(self.rules) or self.on_permission_decision is not None


Commit = Callable[[RunState], Awaitable[None]]
