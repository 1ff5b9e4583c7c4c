"""Noticing that a model repeats one failing call, and saying so before its steps are used up.

What counts is a turn: equal calls of one turn are one failure, because the model has not read the result of any of
them. Any success starts the count anew, and so does a turn that does not repeat the call. Refusals by a person and
calls that were cut short say nothing about the call, so they neither count nor start anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lousho.runtime.state import CallSlot, RepeatedFailure, RunState

REFUSED_FROM = 3
"""The identical failing call in a row that is not run any more."""
LAST_ANSWER_AFTER = 5
"""The identical failing call in a row after which the model gets no more tools."""

_LONGEST_MESSAGE = 500
_NOT_COUNTED = frozenset({"cancelled", "rejected", "not-run", "interrupted"})


def refusal(slot: CallSlot, state: RunState) -> tuple[str, str] | None:
    """Return the message and the reason for not running a call once more; `None`: it may run."""
    known = _known(state.failing, _key(slot)) if state.failing else None
    if known is None or known.count < REFUSED_FROM - 1:
        return None
    reason = f"this exact call failed {known.count} times in a row"
    message = (
        f"The call of the tool {slot.tool_name!r} was denied: {reason}, so it was not run again. Change the arguments, "
        f"use another tool, or answer without it. It failed with: {known.message}"
    )
    return message, reason


def note_outcomes(state: RunState) -> None:
    """Count the failures of the batch that has just been settled."""
    failed: list[RepeatedFailure] = []
    judged = False
    for slot in state.batch:
        if not slot.is_error:
            state.failing = []
            return
        result = _result_of(slot)
        if not _counts(slot, result):
            continue
        judged = True
        key = _key(slot)
        if _known(failed, key) is not None:
            continue
        before = _known(state.failing, key)
        count = 1 if before is None else before.count + 1
        # A refused call keeps telling what was really wrong with it.
        message = before.message if before is not None and count >= REFUSED_FROM else str(result.get("message", ""))
        kept = message[:_LONGEST_MESSAGE]
        failed.append(RepeatedFailure(call=key, tool_name=slot.tool_name, count=count, message=kept))
    if judged:
        state.failing = failed


def stuck_call(state: RunState) -> RepeatedFailure | None:
    """Return the call that failed so often that the model must answer without tools now, if there is one."""
    return next((known for known in state.failing if known.count >= LAST_ANSWER_AFTER), None)


def last_answer_note(stuck: RepeatedFailure) -> str:
    """Return what the model is told when its tools are taken away."""
    return (
        f"The same call of the tool {stuck.tool_name!r} failed {stuck.count} times in a row, so there are no tools any "
        "more. Give your answer now, with what you know; say what could not be done."
    )


def no_answer_text(stuck: RepeatedFailure) -> str:
    """Return the text of a run whose model has nothing to say without its tools."""
    return (
        f"Stopped: the same call of the tool {stuck.tool_name!r} failed {stuck.count} times in a row, and the model gave "
        "no answer without it."
    )


def _counts(slot: CallSlot, result: dict[str, Any]) -> bool:
    kind = result.get("kind")
    decided = slot.decision is not None
    return kind not in _NOT_COUNTED and not (decided and kind == "denied")  # a decision that came too late


def _known(failing: list[RepeatedFailure], key: str) -> RepeatedFailure | None:
    return next((known for known in failing if known.call == key), None)


def _key(slot: CallSlot) -> str:
    args = slot.raw_args if slot.args is None else json.dumps(slot.args, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{slot.tool_name}\0{args}".encode("utf-8", "replace"))
    return digest.hexdigest()[:32]


def _result_of(slot: CallSlot) -> dict[str, Any]:
    """Return the error that the model reads of a failed call."""
    return json.loads(slot.content or "{}")
