"""The events of a run, schema version 1: the only output a run has.

Each event type is one class; `AgentEvent` is their union, told apart by `.type`. Attributes are snake_case, the wire
form (`to_dict()`) is camelCase and leaves out every optional field that has no value. Source: events page.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from lousho.core.json_values import clean_text
from lousho.core.sdk_error import bare_message
from lousho.core.unset import UNSET
from lousho.core.usage import RunUsage, StepUsage, camel_case

AGENT_EVENT_SCHEMA_VERSION: Final = 1
"""The version of the events' form: every event carries it as `v`. Source: events page."""

JsonMap: TypeAlias = dict[str, Any]
_E = TypeVar("_E", bound="type[BaseEvent]")
EVENT_CLASSES: dict[str, type[BaseEvent]] = {}
"""Every event type and its class."""


@dataclass(slots=True, kw_only=True)
class BaseEvent:
    """What every event carries. `run_id`, `seq` and `timestamp` are stamped when the run emits it."""

    type: ClassVar[Any] = ""
    """The event's name; each class has its own."""
    wire_fields: ClassVar[tuple[tuple[str, str, bool], ...]] = ()

    run_id: str = ""
    seq: int = -1
    timestamp: str = ""
    """ISO 8601 in UTC with milliseconds, e.g. `2026-10-01T09:30:00.000Z`."""
    v: int = AGENT_EVENT_SCHEMA_VERSION
    subagent: JsonMap | None = None
    """Only on events of a sub-agent's run: `{name, depth, toolCallId, description, parent?}`."""

    def to_dict(self) -> JsonMap:
        """Return the wire form; `json.loads(json.dumps(...))` of it gives an equal object."""
        out: JsonMap = {
            "type": self.type,
            "runId": self.run_id,
            "seq": self.seq,
            "timestamp": self.timestamp,
            "v": self.v,
        }
        for attribute, wire, required in type(self).wire_fields:
            value = getattr(self, attribute)
            if value is UNSET or (value is None and not required):
                continue
            to_dict = getattr(value, "to_dict", None)
            out[wire] = to_dict() if to_dict is not None else value
        return out


@dataclass(slots=True, kw_only=True)
class ErrorInfo:
    """An error as events show it. `message` is the bare text, never the help line."""

    message: str
    name: str | None = None
    category: str | None = None

    def to_dict(self) -> JsonMap:
        """Return `{name?, message, category?}`."""
        out: JsonMap = {} if self.name is None else {"name": self.name}
        out["message"] = self.message
        if self.category is not None:
            out["category"] = self.category
        return out

    @classmethod
    def of(cls, error: BaseException) -> ErrorInfo:
        """Return what an event says about `error`."""
        return cls(name=error_name(error), message=clean_text(bare_message(error)))


def error_name(error: BaseException) -> str:
    """Return the name an error goes by: its own `name` when it sets one, else its class name."""
    try:
        name: object = getattr(error, "name", None)
    except Exception:  # noqa: BLE001 - an attribute of the application's own class may do anything
        name = None
    return clean_text(name) if isinstance(name, str) and name else type(error).__name__


def _registered(cls: _E) -> _E:
    """Add a finished event class to the table and work out its wire names once."""
    skipped = {"run_id", "seq", "timestamp", "v"}
    rows = [
        (
            f.name,
            str(f.metadata.get("wire") or camel_case(f.name)),
            f.default is MISSING and f.default_factory is MISSING,
        )
        for f in fields(cls)
        if f.name not in skipped
    ]
    cls.wire_fields = tuple(sorted(rows, key=lambda row: row[0] == "subagent"))
    EVENT_CLASSES[cls.type] = cls
    return cls


@_registered
@dataclass(slots=True, kw_only=True)
class RunStartEvent(BaseEvent):
    """First event of every run."""

    type: ClassVar[Literal["run.start"]] = "run.start"

    agent_name: str
    agent_id: str | None = None
    version: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class StepStartEvent(BaseEvent):
    """A model step begins; steps count from 1 and a continued run goes on counting."""

    type: ClassVar[Literal["step.start"]] = "step.start"

    step: int


@_registered
@dataclass(slots=True, kw_only=True)
class TextDeltaEvent(BaseEvent):
    """A piece of model text, as it arrives."""

    type: ClassVar[Literal["text.delta"]] = "text.delta"

    text: str


@_registered
@dataclass(slots=True, kw_only=True)
class ObjectDeltaEvent(BaseEvent):
    """The structured reply as far as it can be read by now; not validated."""

    type: ClassVar[Literal["object.delta"]] = "object.delta"

    object: Any


@_registered
@dataclass(slots=True, kw_only=True)
class TextDoneEvent(BaseEvent):
    """The step's whole text: its deltas joined."""

    type: ClassVar[Literal["text.done"]] = "text.done"

    text: str


@_registered
@dataclass(slots=True, kw_only=True)
class ReasoningStartEvent(BaseEvent):
    """The model starts to reason in this step."""

    type: ClassVar[Literal["reasoning.start"]] = "reasoning.start"


@_registered
@dataclass(slots=True, kw_only=True)
class ReasoningDeltaEvent(BaseEvent):
    """A piece of reasoning; never part of the answer's text."""

    type: ClassVar[Literal["reasoning.delta"]] = "reasoning.delta"

    text: str


@_registered
@dataclass(slots=True, kw_only=True)
class ReasoningDoneEvent(BaseEvent):
    """The reasoning ended; `tokens` where the provider counted them by then."""

    type: ClassVar[Literal["reasoning.done"]] = "reasoning.done"

    text: str
    tokens: int | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ToolStartEvent(BaseEvent):
    """A tool call starts. `args` is `{}` when the model's text was not valid JSON; `raw_args` is that text
    whenever it had to be repaired or could not be read."""

    type: ClassVar[Literal["tool.start"]] = "tool.start"

    tool_call_id: str
    tool_name: str
    args: JsonMap
    raw_args: str | None = None
    executed_by: Literal["provider"] | None = None
    parent_tool_call_id: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ToolResumeEvent(BaseEvent):
    """A decided call runs in the continuation of a paused run."""

    type: ClassVar[Literal["tool.resume"]] = "tool.resume"

    tool_call_id: str
    tool_name: str
    args: JsonMap


@_registered
@dataclass(slots=True, kw_only=True)
class ToolPartialEvent(BaseEvent):
    """A snapshot of a running tool's output; each one replaces the one before."""

    type: ClassVar[Literal["tool.partial"]] = "tool.partial"

    tool_call_id: str
    tool_name: str
    output: Any
    index: int
    parent_tool_call_id: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ToolDoneEvent(BaseEvent):
    """A tool call returned. `result` is its JSON form, `duration_ms` counts from its start or resume."""

    type: ClassVar[Literal["tool.done"]] = "tool.done"

    tool_call_id: str
    tool_name: str
    result: Any
    duration_ms: int
    replaced_by_hook: str | None = None
    executed_by: Literal["provider"] | None = None
    parent_tool_call_id: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class TodoUpdatedEvent(BaseEvent):
    """`todo_write` replaced the list."""

    type: ClassVar[Literal["todo.updated"]] = "todo.updated"

    todos: list[JsonMap]
    counts: JsonMap
    tool_call_id: str


@_registered
@dataclass(slots=True, kw_only=True)
class ToolErrorEvent(BaseEvent):
    """A tool call failed; the model gets the error as the call's result and the run goes on."""

    type: ClassVar[Literal["tool.error"]] = "tool.error"

    tool_call_id: str
    tool_name: str
    error: ErrorInfo
    duration_ms: int
    executed_by: Literal["provider"] | None = None
    parent_tool_call_id: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ApprovalRequestedEvent(BaseEvent):
    """A call waits for a person; the run stops."""

    type: ClassVar[Literal["approval.requested"]] = "approval.requested"

    approval_id: str
    tool_call_id: str
    tool_name: str
    args: JsonMap
    kind: Literal["question", "sign-in"] | None = None
    question: JsonMap | None = None
    sign_in: JsonMap | None = None
    expires_at: str | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class PermissionDecisionEvent(BaseEvent):
    """How the permission rules decided a call."""

    type: ClassVar[Literal["permission.decision"]] = "permission.decision"

    tool_call_id: str
    tool_name: str
    decision: Literal["allow", "deny", "ask", "default"]
    rule: JsonMap | None = None
    reason: str | None = None
    hook: str | None = None
    mode: Literal["plan", "acceptEdits", "dontAsk"] | None = None
    args: JsonMap | None = None
    at: str = ""


@_registered
@dataclass(slots=True, kw_only=True)
class StepDoneEvent(BaseEvent):
    """A step ends; `usage` is missing when its model call gave no response."""

    type: ClassVar[Literal["step.done"]] = "step.done"

    step: int
    finish_reason: str
    usage: StepUsage | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ErrorEvent(BaseEvent):
    """An error. The one that ends the run is followed by `run.done` with `error`."""

    type: ClassVar[Literal["error"]] = "error"

    error: ErrorInfo


@_registered
@dataclass(slots=True, kw_only=True)
class ProviderRetryEvent(BaseEvent):
    """A model call failed and is tried again after `delay_ms`."""

    type: ClassVar[Literal["provider.retry"]] = "provider.retry"

    attempt: int
    max_retries: int
    delay_ms: int
    error: ErrorInfo
    provider: str


@_registered
@dataclass(slots=True, kw_only=True)
class ProviderFallbackEvent(BaseEvent):
    """The next provider takes over a failed model call."""

    type: ClassVar[Literal["provider.fallback"]] = "provider.fallback"

    from_: str = field(metadata={"wire": "from"})
    to: str
    from_model: str | None = None
    to_model: str | None = None
    error: ErrorInfo = field()


@_registered
@dataclass(slots=True, kw_only=True)
class CompactionStartEvent(BaseEvent):
    """The next request is above its threshold and is being compacted."""

    type: ClassVar[Literal["compaction.start"]] = "compaction.start"

    strategy: str
    tokens_before: int
    context_window: int
    threshold_tokens: int
    trigger: Literal["manual"] | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class CompactionDoneEvent(BaseEvent):
    """A compaction ended."""

    type: ClassVar[Literal["compaction.done"]] = "compaction.done"

    strategy: str
    applied_strategy: str | None = None
    tokens_before: int
    tokens_after: int
    pruned_tool_call_ids: list[str]
    summary: bool | None = None
    error: ErrorInfo | None = None
    unchanged: Literal[True] | None = None
    trigger: Literal["manual"] | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class ContextClearedEvent(BaseEvent):
    """A session's transcript was emptied; only session listeners hear it."""

    type: ClassVar[Literal["context.cleared"]] = "context.cleared"

    session_id: str
    messages_cleared: int


@_registered
@dataclass(slots=True, kw_only=True)
class BudgetExceededEvent(BaseEvent):
    """A limit of the run or the session was reached."""

    type: ClassVar[Literal["budget.exceeded"]] = "budget.exceeded"

    limit: str
    value: float
    max: float
    scope: Literal["run", "session"]


@_registered
@dataclass(slots=True, kw_only=True)
class InputQueuedEvent(BaseEvent):
    """`run.enqueue()` took an input."""

    type: ClassVar[Literal["input.queued"]] = "input.queued"

    id: str
    text: str


@_registered
@dataclass(slots=True, kw_only=True)
class InputSteeredEvent(BaseEvent):
    """`run.steer()` took an input."""

    type: ClassVar[Literal["input.steered"]] = "input.steered"

    id: str
    text: str
    mode: Literal["immediate", "queued"]


@_registered
@dataclass(slots=True, kw_only=True)
class InputAppliedEvent(BaseEvent):
    """A queued or steered input joined the transcript, right before the model call of `step`."""

    type: ClassVar[Literal["input.applied"]] = "input.applied"

    id: str
    step: int


@_registered
@dataclass(slots=True, kw_only=True)
class GuardrailTrippedEvent(BaseEvent):
    """A guardrail blocked the run."""

    type: ClassVar[Literal["guardrail.tripped"]] = "guardrail.tripped"

    name: str
    kind: Literal["input", "output", "tool"]
    reason: str
    tool_name: str | None = None
    info: JsonMap | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class GuardrailRewroteEvent(BaseEvent):
    """A guardrail rewrote the input, the text or a call's arguments; the run goes on."""

    type: ClassVar[Literal["guardrail.rewrote"]] = "guardrail.rewrote"

    name: str
    kind: Literal["input", "output", "tool"]
    reason: str
    tool_name: str | None = None
    info: JsonMap | None = None


@_registered
@dataclass(slots=True, kw_only=True)
class AgentDriftEvent(BaseEvent):
    """The run is continued by an agent that differs from the one that saved it."""

    type: ClassVar[Literal["agent.drift"]] = "agent.drift"

    model: JsonMap | None = None
    tools_added: list[str]
    tools_removed: list[str]
    tools_changed: list[str]
    instructions: bool


@_registered
@dataclass(slots=True, kw_only=True)
class HandoffEvent(BaseEvent):
    """The run handed the conversation to another agent."""

    type: ClassVar[Literal["handoff"]] = "handoff"

    from_: str = field(metadata={"wire": "from"})
    to: str
    tool_call_id: str


@_registered
@dataclass(slots=True, kw_only=True)
class RunDoneEvent(BaseEvent):
    """Last event of every run, exactly once in every ending."""

    type: ClassVar[Literal["run.done"]] = "run.done"

    finish_reason: str
    text: str
    usage: RunUsage | None = None
    object: Any = UNSET


AgentEvent: TypeAlias = (
    RunStartEvent
    | StepStartEvent
    | TextDeltaEvent
    | ObjectDeltaEvent
    | TextDoneEvent
    | ReasoningStartEvent
    | ReasoningDeltaEvent
    | ReasoningDoneEvent
    | ToolStartEvent
    | ToolResumeEvent
    | ToolPartialEvent
    | ToolDoneEvent
    | TodoUpdatedEvent
    | ToolErrorEvent
    | ApprovalRequestedEvent
    | PermissionDecisionEvent
    | StepDoneEvent
    | ErrorEvent
    | ProviderRetryEvent
    | ProviderFallbackEvent
    | CompactionStartEvent
    | CompactionDoneEvent
    | ContextClearedEvent
    | BudgetExceededEvent
    | InputQueuedEvent
    | InputSteeredEvent
    | InputAppliedEvent
    | GuardrailTrippedEvent
    | GuardrailRewroteEvent
    | AgentDriftEvent
    | HandoffEvent
    | RunDoneEvent
)
"""Any event of a run; `type` says which. Source: events page."""

ToolEvent: TypeAlias = ToolStartEvent | ToolResumeEvent | ToolPartialEvent | ToolDoneEvent | ToolErrorEvent
TextEvent: TypeAlias = TextDeltaEvent | TextDoneEvent
StepEvent: TypeAlias = StepStartEvent | StepDoneEvent
