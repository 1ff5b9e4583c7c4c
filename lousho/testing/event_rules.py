"""What must hold for each type of event, given what was seen of its run before. `event_walk` does the walking.

One rule a type, in the words of the events page. Source: events page ("Ordering guarantees").
"""

from __future__ import annotations

from collections.abc import Callable

from lousho.testing.event_walk import STOPPED, Call, Rule, RunWalk, Seen

RULES: dict[str, Rule] = {}
"""The rule of each event type."""

_CAUSES = {"guardrail": "guardrail.tripped", "budget-exceeded": "budget.exceeded", "error": "error"}


def _rule(*types: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, rule))
        return rule

    return register


@_rule("run.start")
def _run_start(run: RunWalk, one: Seen) -> None:
    if run.parent is not None:
        run.wrong(one, "belongs to the top-level run only")
    elif run.first is not one:
        run.wrong(one, "comes twice")


@_rule("run.done")
def _run_done(run: RunWalk, one: Seen) -> None:
    if run.parent is not None:
        run.wrong(one, "belongs to the top-level run only")
        return
    run.done = one
    reason = one.data.get("finishReason")
    if run.step is not None:
        run.wrong(run.step, "has no step.done before run.done")
        run.step = None
    # A model may give 'error' as its own reason for an answer: such a run did not fail, and has usage like any other.
    own = reason == run.step_reason == "error" and "error" not in run.types and "usage" in one.data
    cause = None if own else _CAUSES.get(str(reason))
    if cause is not None and cause not in run.types:
        run.wrong(one, f"has the finish reason {reason!r}, and there was no {cause}")
    if reason == "error" and not own:
        if one.data.get("text") != "" or "usage" in one.data:
            run.wrong(one, "belongs to a failed run: its text is '' and it has no usage")
    elif run.tripped is not None and reason not in ("guardrail", "aborted"):
        run.wrong(one, f"follows #{run.tripped.index} guardrail.tripped; its finish reason is 'guardrail' or 'error'")
    elif "budget.exceeded" in run.types and reason not in ("budget-exceeded", "aborted"):
        run.wrong(one, "follows budget.exceeded; its finish reason is 'budget-exceeded' or 'error'")
    if run.step_reason in ("aborted", "error") and reason not in ("aborted", "error") and run.tripped is None:
        run.wrong(one, f"has the finish reason {reason!r}, and the last step.done {run.step_reason!r}")
    paused = run.step_reason == "awaiting-approval"
    if run.last_step is not None and paused != (reason == "awaiting-approval") and (paused or not run.continued):
        run.wrong(one, f"has the finish reason {reason!r}, and the last step.done {run.step_reason!r}")


@_rule("step.start")
def _step_start(run: RunWalk, one: Seen) -> None:
    number = one.data.get("step")
    if run.step is not None:
        run.wrong(one, f"begins while #{run.step.index} step.start {run.step.data.get('step')} has no step.done")
    before = run.last_step.data.get("step") if run.last_step is not None else None
    if isinstance(number, int) and (number < 1 or (isinstance(before, int) and number != before + 1)):
        run.wrong(one, f"has the number {number}; the step before it was {before}")
    if run.tripped is not None:
        run.wrong(one, f"begins after #{run.tripped.index} guardrail.tripped, which ends the run")
    if run.step_reason == "awaiting-approval":
        run.wrong(one, "begins after a step that waits for an approval")
    if run.applied is not None and run.applied.data.get("step") != number:
        run.wrong(run.applied, f"names another step than the step.start that follows it ({number})")
    run.applied = None
    run.step = one
    run.last_step = one
    run.step_reason = None
    run.begin_step()


@_rule("step.done")
def _step_done(run: RunWalk, one: Seen) -> None:
    if run.step is None:
        run.wrong(one, "has no step.start")
        return
    if run.step.data.get("step") != one.data.get("step"):
        run.wrong(one, f"closes step {run.step.data.get('step')}, which has another number")
    reason = str(one.data.get("finishReason"))
    run.step_reason = reason
    _step_reason(run, one, reason)
    if reason not in STOPPED and run.tripped is None:
        if run.text and not run.text_done:
            run.wrong(one, "ends a step with text.delta and without text.done")
        if run.reasoning is not None:
            run.wrong(one, "ends a step whose reasoning has no reasoning.done")
        if run.compacting is not None:
            run.wrong(run.compacting, "has no compaction.done in its step")
        for call_id, call in run.calls.items():
            if call.state == "open" and not (reason == "awaiting-approval" and run.waits(call_id)):
                run.wrong(call.began, f"has no tool.done or tool.error before #{one.index} step.done")
                call.state = "settled"
    run.step = None
    run.asked = None
    run.steering = None


def _step_reason(run: RunWalk, one: Seen, reason: str) -> None:
    if reason == "steered":
        if run.text or run.text_done:
            run.wrong(one, "was steered away from, and its aborted call has text events")
        if run.steering is None:
            run.wrong(one, "is steered, and there was no input.steered with the mode 'immediate' in the step")
    elif run.steering is not None and reason not in STOPPED:
        run.wrong(one, f"follows #{run.steering.index} input.steered (immediate), and its reason is not 'steered'")
    if reason == "awaiting-approval" and run.asked is None:
        run.wrong(one, "waits for an approval, and no approval.requested came in the step")
    if run.asked is not None and reason not in ("awaiting-approval", *STOPPED):
        run.wrong(one, f"follows #{run.asked.index} approval.requested, and its reason is not 'awaiting-approval'")


@_rule("text.delta", "text.done", "object.delta")
def _text(run: RunWalk, one: Seen) -> None:
    if one.type == "object.delta":
        if run.last is None or run.last.type != "text.delta":
            run.wrong(one, "does not follow the text.delta that changed it")
        return
    if run.reasoning is not None:
        run.wrong(one, "comes before the reasoning.done of its step")
        run.reasoning = None
    if run.text_done:
        run.wrong(one, "comes after the text.done of its step")
    if run.tools:
        run.wrong(one, "comes after the tool events of its step")
    if one.type == "text.delta":
        run.text.append(str(one.data.get("text")))
        return
    run.text_done = True
    if run.tripped is not None and run.tripped.data.get("kind") == "output":
        run.wrong(one, f"shows a text that #{run.tripped.index} guardrail.tripped blocked")
    if not run.rewrote and one.data.get("text") != "".join(run.text):
        run.wrong(one, "is not the text of its step's text.delta events joined")


@_rule("reasoning.start", "reasoning.delta", "reasoning.done")
def _reasoning(run: RunWalk, one: Seen) -> None:
    if one.type == "reasoning.start":
        if run.reasoning is not None:
            run.wrong(one, "comes before the reasoning.done of the one before")
        run.reasoning = []
    elif run.reasoning is None:
        run.wrong(one, "has no reasoning.start")
    elif one.type == "reasoning.delta":
        run.reasoning.append(str(one.data.get("text")))
    else:
        if one.data.get("text") != "".join(run.reasoning):
            run.wrong(one, "is not the text of its reasoning.delta events joined")
        run.reasoning = None


@_rule("provider.retry", "provider.fallback")
def _next_attempt(run: RunWalk, one: Seen) -> None:
    if run.reasoning is not None:
        run.wrong(one, "comes before the failed attempt's reasoning.done")
        run.reasoning = None


@_rule("compaction.start", "compaction.done")
def _compaction(run: RunWalk, one: Seen) -> None:
    begins = one.type == "compaction.start"
    if one.data.get("trigger") == "manual":
        run.wrong(one, "is manual; it goes to session listeners only, never into a run's stream")
    if begins and run.compacting is not None:
        run.wrong(one, f"begins while #{run.compacting.index} compaction.start has no compaction.done")
    if not begins and run.compacting is None:
        run.wrong(one, "has no compaction.start")
    run.compacting = one if begins else None


@_rule("tool.start")
def _tool_start(run: RunWalk, one: Seen) -> None:
    parent = one.data.get("parentToolCallId")
    hosted = one.data.get("executedBy") == "provider"
    if one.call_id in run.calls:
        run.wrong(one, f"starts a call that #{run.calls[one.call_id].began.index} had started already")
    inside = run.calls.get(str(parent)) if parent is not None else None
    if parent is not None and (inside is None or inside.state != "open"):
        run.wrong(one, f"starts inside of {parent!r}, which is not running")
    early = run.continued and run.last_step is None
    if run.step is None and inside is None and not early:
        run.wrong(one, "lies outside of a step")
    if not hosted and parent is None:
        if run.text and not run.text_done and run.tripped is None:
            run.wrong(one, "comes before the text.done of its step")
        run.tools = run.step is not None
    if run.reasoning is not None:
        run.wrong(one, "comes before the reasoning.done of its step")
        run.reasoning = None
    if run.tripped is not None:
        run.wrong(one, f"starts after #{run.tripped.index} guardrail.tripped, which ends the run")
    run.calls[one.call_id] = Call(str(one.data.get("toolName")), one, str(parent) if parent is not None else None)


@_rule("tool.resume")
def _tool_resume(run: RunWalk, one: Seen) -> None:
    if run.last_step is not None:
        run.wrong(one, "comes after the first step.start; decided calls run before it")
    if one.call_id in run.calls:
        run.wrong(one, "resumes a call of the same stream; its tool.start was in the run that paused")
    run.calls[one.call_id] = Call(str(one.data.get("toolName")), one)


@_rule("tool.partial", "tool.done", "tool.error")
def _tool_goes_on(run: RunWalk, one: Seen) -> None:
    call = run.calls.get(one.call_id)
    if call is None:
        # In a continuation a call may end without a resume, aborted or with its sub-agent: it began in the paused run.
        if run.last_step is None and one.type != "tool.partial":
            run.orphans.append(one)
        else:
            run.wrong(one, "has no tool.start")
        return
    if call.state != "open":
        run.wrong(one, "speaks of a call that is settled" if call.state == "settled" else "speaks of a call that waits")
    if call.name != one.data.get("toolName"):
        run.wrong(one, f"names the tool otherwise than #{call.began.index} {call.began.type} ({call.name!r})")
    if one.type == "tool.partial":
        if one.data.get("index") != call.partials:
            run.wrong(one, f"has the index {one.data.get('index')!r}; it is partial number {call.partials} of its call")
        call.partials += 1
        return
    call.state = "settled"
    for call_id, inner in run.calls.items():
        if inner.parent == one.call_id and inner.state == "open":
            run.wrong(one, f"comes before the end of {call_id!r}, a call inside of it")


@_rule("todo.updated")
def _todo_updated(run: RunWalk, one: Seen) -> None:
    before = run.last
    if before is None or before.type != "tool.done" or before.call_id != one.call_id:
        run.wrong(one, "does not come right after the tool.done of its call")


@_rule("permission.decision")
def _permission_decision(run: RunWalk, one: Seen) -> None:
    call = run.calls.get(one.call_id)
    if call is None or call.state != "open":
        run.wrong(one, "does not lie between the start of its call and its tool.done, tool.error or approval.requested")


@_rule("approval.requested")
def _approval_requested(run: RunWalk, one: Seen) -> None:
    if run.parent is not None:
        run.wrong(one, "belongs to the top-level run; a sub-agent's pause is reported once")
        return
    call = _call_anywhere(run, one.call_id)
    if call is None:
        if not run.continued and run.last_step is not None:
            run.wrong(one, "has no tool.start")
    elif call.state != "open":
        run.wrong(one, "speaks of a call that is settled" if call.state == "settled" else "comes twice for its call")
    else:
        call.state = "waiting"
    if run.step is not None:
        run.asked = one


def _call_anywhere(run: RunWalk, call_id: str) -> Call | None:
    found = run.calls.get(call_id)
    if found is not None and found.state == "open":
        return found
    below = next((call for child in run.children if (call := _call_anywhere(child, call_id)) is not None), None)
    return below or found


@_rule("input.steered")
def _input_steered(run: RunWalk, one: Seen) -> None:
    if one.data.get("mode") == "immediate":
        if run.step is None or run.text or run.text_done or run.tools:
            run.wrong(one, "is immediate outside of a model call that has produced nothing yet")
        run.steering = one if run.step is not None else None


@_rule("input.applied")
def _input_applied(run: RunWalk, one: Seen) -> None:
    if run.step is not None:
        run.wrong(one, "lies inside of a step; inputs join between steps")
        return
    run.applied = one


@_rule("guardrail.tripped", "guardrail.rewrote")
def _guardrail(run: RunWalk, one: Seen) -> None:
    kind = one.data.get("kind")
    if kind == "output" and run.step is None:
        run.wrong(one, "lies outside of a step")
    if kind == "output" and run.text_done:
        run.wrong(one, "comes after the text.done it is about")
    if one.type == "guardrail.rewrote":
        run.rewrote = run.rewrote or kind == "output"
    else:
        run.tripped = one


@_rule("agent.drift")
def _agent_drift(run: RunWalk, one: Seen) -> None:
    before = run.last.type if run.last is not None else None
    if before != ("run.start" if run.parent is None else None):
        run.wrong(one, "does not come right after the start of its run")


@_rule("handoff")
def _handoff(run: RunWalk, one: Seen) -> None:
    call = run.calls.get(one.call_id)
    if call is None or call.state != "settled":
        run.wrong(one, "comes before the tool.done of the call that handed over")


@_rule("context.cleared")
def _context_cleared(run: RunWalk, one: Seen) -> None:
    run.wrong(one, "goes to session listeners only, never into a run's stream")
