"""Opening and closing a step: every `step.start` has exactly one `step.done`, whatever happens in between."""

from __future__ import annotations

from lousho.core.events import StepDoneEvent, StepStartEvent
from lousho.core.usage import StepUsage
from lousho.runtime.deps import RunDeps
from lousho.runtime.state import RunState


def open_step(state: RunState, deps: RunDeps) -> None:
    """Begin the next step."""
    state.step += 1
    deps.step_open = True
    deps.emitter.emit(StepStartEvent(step=state.step))


def close_step(state: RunState, deps: RunDeps, reason: str, usage: StepUsage | None = None) -> None:
    """End the step that is open; does nothing when none is (a continued run settles decided calls outside steps)."""
    if deps.step_open:
        deps.step_open = False
        usage = usage.copied() if usage is not None and deps.emitter.listening else None
        deps.emitter.emit(StepDoneEvent(step=state.step, finish_reason=reason, usage=usage))


def last_usage(state: RunState) -> StepUsage | None:
    """Return the usage of the current step's model call, if it gave a response."""
    return state.step_usage[-1] if state.step_usage else None
