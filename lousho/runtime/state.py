"""A run as plain data: everything that must survive a pause, a crash, a fork or a move to another process.

What can be rebuilt (model, tools, store, tracer, signal) is in `lousho.runtime.deps` and is never saved. The tree is
read and written by one adapter (`lousho.runtime.state_json`), keys in camelCase. A child run nests in the call that
started it, at any depth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from lousho.core.messages import Message
from lousho.core.usage import STORED, RunUsage, StepUsage

RUN_STATE_VERSION = 1

RunFinishReason: TypeAlias = Literal[
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "error",
    "other",
    "awaiting-approval",
    "aborted",
    "max-steps",
    "output-invalid",
    "budget-exceeded",
    "guardrail",
]
"""Why a run ended, or that it waits (`awaiting-approval`). Source: runs page."""


@dataclass(slots=True, kw_only=True)
class CallModel:
    """Next: ask the model."""

    kind: Literal["call-model"] = "call-model"


@dataclass(slots=True, kw_only=True)
class RunTools:
    """Next: pass the step's calls through the gate and run those that may run."""

    kind: Literal["run-tools"] = "run-tools"


@dataclass(slots=True, kw_only=True)
class RunDecided:
    """Next: settle the calls that have been decided."""

    kind: Literal["run-decided"] = "run-decided"
    in_code: bool = False
    """Whether the agent's `approve` function decided, in the run that asked."""


@dataclass(slots=True, kw_only=True)
class Paused:
    """The run waits for decisions on the calls that are `waiting`."""

    kind: Literal["paused"] = "paused"


@dataclass(slots=True, kw_only=True)
class Finished:
    """The run has ended."""

    kind: Literal["finished"] = "finished"


Next: TypeAlias = CallModel | RunTools | RunDecided | Paused | Finished

CallStatus: TypeAlias = Literal["new", "running", "waiting", "approved", "rejected", "expired", "settled"]


@dataclass(slots=True, kw_only=True)
class Decision:
    """What a person decided about one call."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    approved: bool
    note: str | None = None
    by: dict[str, Any] | None = None
    """The principal who decided."""
    source: Literal["human", "callback"] = "human"
    """Whether a person decided or the agent's `approve` function."""
    remember: bool = False
    """Whether the same call is approved for the rest of the session."""


@dataclass(slots=True, kw_only=True)
class CallSlot:
    """One tool call of the current step, from the model's words to its result."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    tool_call_id: str
    tool_name: str
    args: dict[str, Any] | None = None
    """The arguments as an object, or `None` while they could not be read."""
    raw_args: str | None = None
    """The model's text, when it had to be repaired or could not be read."""
    status: CallStatus = "new"
    approval_id: str | None = None
    ttl_ms: float | None = None
    """How long a pause on this call stays decidable, in milliseconds; `None`: for ever."""
    expires_at: str | None = None
    decision: Decision | None = None
    content: str | None = None
    """The result as the model reads it, once settled."""
    is_error: bool = False
    child: RunState | None = None
    """The run this call started and that is not over."""


@dataclass(slots=True, kw_only=True)
class CallTools:
    """What the run's own call said of its tools, by name: the code of a tool cannot be saved."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    names: list[str]
    """The tools that it brought."""
    picked: list[str] = field(default_factory=list)
    """The agent's tools that it took over."""
    replace: bool = False
    """Whether the agent's other tools are left out."""


@dataclass(slots=True, kw_only=True)
class RepeatedFailure:
    """A call that failed in the turn just recorded, and in how many turns in a row it has now."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    call: str
    """Stands for the tool and its arguments; equal calls have equal ones."""
    tool_name: str
    count: int
    message: str
    """What it failed with."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """One run. `messages` is the whole transcript without the system prompt; the turn's own start at `turn_start`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = STORED

    version: Literal[1] = RUN_STATE_VERSION
    run_id: str
    agent_name: str
    session_id: str | None = None
    session_revision: int = 0
    """The revision of the transcript the turn was built on."""
    messages: list[Message]
    turn_start: int = 0
    step: int = 0
    """Steps begun so far, paused and continued ones included."""
    model: str | None = None
    """The model that answered, for a continuation that must keep it."""
    chosen_model: str | None = None
    """The model that a function or the call chose for this run, which a continuation keeps; `None`: the agent's."""
    metadata: dict[str, Any] | None = None
    input: list[Message] | None = None
    """What the run was asked, for an agent whose options are functions of it."""
    call_tools: CallTools | None = None
    approval_ttl_ms: float | None = None
    """What the call said of its pauses, in milliseconds; `None`: the agent's `approval_ttl_ms` counts."""
    executor: dict[str, Any] | None = None
    """The agent and the options of a run of the executor, for a continuation that is not given them."""
    batch: list[CallSlot] = field(default_factory=list)
    """The tool calls of the current step, in the model's order; empty between steps."""
    turn_finish: str = "stop"
    """The finish reason the model gave for the current step."""
    next: Next = field(default_factory=CallModel)
    finish_reason: RunFinishReason | None = None
    text: str = ""
    usage: RunUsage = field(default_factory=RunUsage)
    step_usage: list[StepUsage] = field(default_factory=list)
    tool_errors: int = 0
    failing: list[RepeatedFailure] = field(default_factory=list)
    """The failed calls of the last turn with tools, if none of its calls succeeded; what the loop guard looks at."""
    results_folder: str | None = None
    """The folder that holds the results which were too long for the transcript, by its name alone."""
    abort_reason: dict[str, str] | None = None

    def waiting(self) -> list[CallSlot]:
        """Return the calls that need a decision, in call order."""
        return [slot for slot in self.batch if slot.status == "waiting"]

    @property
    def new_messages(self) -> list[Message]:
        """The messages of this turn: the input and everything after it."""
        return self.messages[self.turn_start :]
