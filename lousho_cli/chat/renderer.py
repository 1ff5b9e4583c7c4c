"""Turns the events of one turn into text on the screen, in the order in which a person can follow them.

Calls of one step run side by side, but each call's line must stand right above its result, so a call that started is
shown when its result can follow it: at once when it runs alone, otherwise in call order. A call that turns out to wait
for a decision is not shown at all; the question that follows says everything. Source: CLI page, "lousho chat"; stream
events page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lousho.core import events as e
from lousho.core.events import AgentEvent, ApprovalRequestedEvent
from lousho.core.usage import RunUsage
from lousho_cli.chat.screen import Screen
from lousho_cli.chat.shown import (
    ShownCall,
    call_line,
    duration_text,
    error_text,
    one_row,
    outcome_lines,
    usage_line,
)

HOLD_SECONDS = 0.25
"""How long a call that just started is kept back, to see whether it waits for a decision instead of running."""

HOLD_GATED_SECONDS = 5.0
"""The same for a tool that says it will wait; only a rule that allows it makes such a call run."""

KEPT_CALLS = 50

_STOPPED = {
    "length": "the reply reached its token limit (max_tokens)",
    "content_filter": "the provider's content filter cut the reply",
    "max-steps": "the run used up its steps (max_steps)",
    "output-invalid": "the reply does not fit the output schema",
    "budget-exceeded": "a budget is used up",
    "guardrail": "a guardrail blocked the turn",
}


@dataclass(slots=True)
class _Call:
    shown: ShownCall
    visible: bool = False
    held: bool = True
    done: bool = False
    quiet: bool = False
    """A question that was answered: the answer stands on the screen already."""


@dataclass(slots=True)
class Outcome:
    """What a stream of events came to."""

    finish_reason: str = ""
    usage: RunUsage | None = None
    waiting: list[ApprovalRequestedEvent] = field(default_factory=list[ApprovalRequestedEvent])
    """The decisions it asks for, in call order."""
    failure: Exception | None = None
    """What the run failed with."""


class Renderer:
    """Shows one stream of events; `outcome` is complete when the stream is.

    `decided` is how many decisions the stream continues from: with one, its result follows the question directly.
    `gated` says of a tool, by name, that its calls wait for a person.
    """

    def __init__(
        self,
        screen: Screen,
        calls: deque[ShownCall],
        *,
        decided: int = 0,
        gated: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self.outcome = Outcome()
        self._screen = screen
        self._kept = calls
        self._decided = decided
        self._gated = gated
        self._calls: dict[str, _Call] = {}
        self._step_text: list[str] = []
        self._last_text = ""
        self._reported_stop = False
        self._error: str | None = None
        screen.before_print = self._release

    def show(self, event: AgentEvent) -> None:
        """Show one event. An event of an unknown type is passed by."""
        with self._screen.lock:
            if event.subagent is not None:
                self._show_subagent(event)
            else:
                self._show(event)

    def _show(self, event: AgentEvent) -> None:
        match event:
            case e.TextDeltaEvent():
                self._release()
                self._step_text.append(event.text)
                self._screen.words(event.text)
            case e.TextDoneEvent():
                self._text_done(event.text)
            case e.ReasoningDeltaEvent():
                self._screen.thought(event.text)
            case e.ReasoningDoneEvent():
                self._screen.fresh_line()
            case e.ApprovalRequestedEvent():
                self._calls.pop(event.tool_call_id, None)
                self.outcome.waiting.append(event)
            case e.StepStartEvent() | e.StepDoneEvent():
                self._step_boundary()
            case e.ErrorEvent():
                self._error = event.error.message
            case e.RunDoneEvent():
                self._run_done(event)
            case _:
                if not self._show_tool(event):
                    self._show_note(event)

    def close(self) -> None:
        """Show what is still held back; nothing more will come."""
        with self._screen.lock:
            self._screen.before_print = None
            self._release()
            for call in self._calls.values():
                self._reveal(call)
            self._calls.clear()
            self._screen.fresh_line()

    def _show_tool(self, event: AgentEvent) -> bool:
        match event:
            case e.ToolStartEvent() if event.parent_tool_call_id is None:
                self._started(event.tool_call_id, ShownCall(event.tool_name, event.args))
            case e.ToolStartEvent():
                self._release()
                self._screen.line(f"  {call_line(ShownCall(event.tool_name, event.args))}", "dim")
            case e.ToolResumeEvent():
                call = self._started(event.tool_call_id, ShownCall(event.tool_name, event.args))
                call.visible = self._decided == 1
                call.held = False
                self._advance()
            case e.PermissionDecisionEvent() if event.decision == "allow" and event.tool_call_id in self._calls:
                self._unhold(self._calls[event.tool_call_id])
            case e.ToolDoneEvent() if event.parent_tool_call_id is None:
                call = self._call(event.tool_call_id, event.tool_name)
                call.shown.result = event.result
                call.quiet = event.tool_name == "ask_question"
                self._settled(call, event.duration_ms)
            case e.ToolErrorEvent() if event.parent_tool_call_id is None:
                call = self._call(event.tool_call_id, event.tool_name)
                call.shown.error = error_text(event.error.name or "Error", event.error.message)
                self._settled(call, event.duration_ms)
            case _:
                return False
        return True

    def _show_note(self, event: AgentEvent) -> None:
        note = _note(event)
        if note is None:
            return
        if isinstance(event, e.BudgetExceededEvent | e.GuardrailTrippedEvent):
            self._reported_stop = True
        self._release()
        self._screen.line(note, "dim")

    def _show_subagent(self, event: AgentEvent) -> None:
        if isinstance(event, e.ApprovalRequestedEvent):
            self.outcome.waiting.append(event)
        elif isinstance(event, e.ToolStartEvent):
            self._release()
            who = str((event.subagent or {}).get("name", "sub-agent"))
            self._screen.line(f"  {one_row(who)}: {call_line(ShownCall(event.tool_name, event.args))}", "dim")

    def _started(self, call_id: str, shown: ShownCall) -> _Call:
        call = self._calls[call_id] = _Call(shown)
        self._kept.append(shown)
        patience = HOLD_GATED_SECONDS if self._gated(shown.name) else HOLD_SECONDS
        asyncio.get_running_loop().call_later(patience, self._unhold, call)
        return call

    def _call(self, call_id: str, name: str) -> _Call:
        """Return a call that ended, also one whose start belongs to an earlier stream (a rejected one)."""
        call = self._calls.get(call_id)
        if call is None:
            call = self._started(call_id, ShownCall(name, {}))
            call.visible = True
        return call

    def _settled(self, call: _Call, duration_ms: int) -> None:
        call.shown.duration_ms = duration_ms
        call.done, call.held = True, False
        self._advance()

    def _unhold(self, call: _Call) -> None:
        with self._screen.lock:
            call.held = False
            self._advance()

    def _release(self) -> None:
        for call in self._calls.values():
            call.held = False
        self._advance()

    def _advance(self) -> None:
        """Show what may be shown: up to the first call that is running."""
        for call_id, call in list(self._calls.items()):
            if call.held:
                continue
            self._reveal(call)
            if not call.done:
                return
            if not (call.quiet and call.shown.error is None):
                self._screen.line(outcome_lines(call.shown), *(("red",) if call.shown.error is not None else ()))
            del self._calls[call_id]

    def _reveal(self, call: _Call) -> None:
        if not call.visible:
            call.visible = True
            self._screen.line(call_line(call.shown), "dim")

    def _text_done(self, text: str) -> None:
        streamed = "".join(self._step_text)
        if text != streamed:
            if streamed:  # a guardrail rewrote what was streamed; a screen cannot take it back
                self._screen.line("[rewritten]", "dim")
            self._screen.words(text)
        self._last_text = text
        self._step_text.clear()
        self._screen.fresh_line()

    def _step_boundary(self) -> None:
        self._release()
        if self._step_text:
            self._last_text = "".join(self._step_text)
            self._step_text.clear()
        self._screen.fresh_line()
        if self._error is not None:  # an error that ends the run is told by whoever awaits the result
            self._screen.line(f"[retry] {one_row(self._error)}", "dim")
            self._error = None

    def _run_done(self, event: e.RunDoneEvent) -> None:
        self._error = None if event.finish_reason == "error" else self._error
        self._step_boundary()
        self.outcome.finish_reason = event.finish_reason
        self.outcome.usage = event.usage
        reason = event.finish_reason
        if reason in _STOPPED:
            if event.text and event.text != self._last_text:
                self._screen.words(event.text)
                self._screen.fresh_line()
            if not self._reported_stop:
                self._screen.line(f"[stopped] {_STOPPED[reason]}", "dim")
        elif reason == "aborted":
            self._screen.line("aborted", "dim")
        if event.usage is not None and reason != "awaiting-approval":
            self._screen.line(usage_line(event.usage), "dim")


def _note(event: AgentEvent) -> str | None:
    """Return the dim line of an event that is neither text nor a call, or None when it is not worth one."""
    match event:
        case e.ProviderRetryEvent():
            wait = duration_text(event.delay_ms)
            return f"[retry] {one_row(event.error.message)}; attempt {event.attempt + 1} in {wait}"
        case e.ProviderFallbackEvent():
            source, target = event.from_model or event.from_, event.to_model or event.to
            return f"[fallback] {source} -> {target}: {one_row(event.error.message)}"
        case e.CompactionDoneEvent() if not event.unchanged:
            return f"[compaction] {event.tokens_before} -> {event.tokens_after} tokens"
        case e.HandoffEvent():
            return f"[handoff] {event.from_} -> {event.to}"
        case e.BudgetExceededEvent():
            return f"[budget] {event.limit} is {event.max:g} and {event.value:g} was used ({event.scope})"
        case e.GuardrailTrippedEvent():
            return f"[guardrail] {event.name}: {one_row(event.reason)}"
        case e.GuardrailRewroteEvent():
            return f"[guardrail] {event.name} rewrote the {event.kind}: {one_row(event.reason)}"
        case e.AgentDriftEvent():
            return "[drift] the agent changed since this turn paused"
        case _:
            return None
