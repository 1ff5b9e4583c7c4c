"""Deciding in code: the agent's `approve` function is asked about each call of a step that would wait for a person.

What it leaves open waits as if it had never been asked. Source: approvals page ("Deciding in code").
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lousho.core.errors import ConfigurationError, never_wrap
from lousho.core.json_values import clean_text
from lousho.core.redact import shown
from lousho.runtime.arguments import copied
from lousho.runtime.deps import RunDeps
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.questions import question_of
from lousho.runtime.racing import Aborted, outcome_of, start, wait_for
from lousho.runtime.state import CallSlot, Decision, RunState
from lousho.runtime.threads import in_thread
from lousho.runtime.tool_result import settle_failed
from lousho.tools.calling import style_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What an `approve` function is asked about. `kind` is `question` for a question the model asks, else `None`."""

    id: str
    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    created_at: str = ""
    kind: Literal["question", "sign-in"] | None = None
    question: Mapping[str, Any] | None = None
    session_id: str | None = None
    expires_at: str | None = None
    """When the function is cut off and the call denied, ISO 8601 in UTC; `None`: never."""
    principal: Mapping[str, Any] | None = None
    """Who the run acts for."""


Approver: TypeAlias = "Callable[[ApprovalRequest], Any]"


async def decide_in_code(approve: Approver, state: RunState, deps: RunDeps) -> None:
    """Ask `approve` about each waiting call, in call order. Raises `Aborted` when the run is stopped meanwhile.

    A call that it fails on fails with that error, like a call whose own gate fails.
    """
    begun = time.monotonic()
    for slot in state.waiting():
        left = None if slot.ttl_ms is None else slot.ttl_ms - (time.monotonic() - begun) * 1000
        try:
            answer = await _answer_within(approve, _request(slot, state, deps), deps, left)
            _take(slot, answer)
        except _Overdue:
            slot.status = "expired"
            slot.decision = Decision(approved=False, source="callback")
        except (Exception, SystemExit) as error:
            if isinstance(error, Aborted) or (isinstance(error, Exception) and never_wrap(error)):
                raise
            settle_failed(slot, state, deps, time.monotonic(), error, None)


class _Overdue(Exception):
    """The deadline passed before there was an answer."""


def _request(slot: CallSlot, state: RunState, deps: RunDeps) -> ApprovalRequest:
    question = question_of(slot, deps.tools.get(slot.tool_name))
    return ApprovalRequest(
        id=slot.approval_id or "",
        tool_call_id=slot.tool_call_id,
        tool_name=slot.tool_name,
        args=copied(slot.args or {}),
        created_at=timestamp_now(),
        kind=None if question is None else "question",
        question=question,
        session_id=state.session_id,
        expires_at=slot.expires_at,
        principal=deps.principal,
    )


async def _answer_within(approve: Approver, request: ApprovalRequest, deps: RunDeps, left_ms: float | None) -> Any:
    if left_ms is not None and left_ms <= 0:
        raise _Overdue
    task = start(_answer(approve, request))
    outcome = await wait_for(task, deps.signal, left_ms)
    if outcome == "aborted":
        raise Aborted(deps.signal.reason)
    if outcome == "overdue":
        raise _Overdue
    return outcome_of(task)


async def _answer(approve: Approver, request: ApprovalRequest) -> Any:
    # A plain function may well wait for somebody: the event loop must not.
    answer = approve(request) if style_of(approve) == "async" else await in_thread(approve, request)
    return await answer if inspect.isawaitable(answer) else answer


def _take(slot: CallSlot, answer: object) -> None:
    """Write an answer into the call. Raises `LOUSHO_CONFIG_INVALID` for one that is none."""
    if answer == "defer":
        return
    if not isinstance(answer, (bool, str)):
        raise ConfigurationError(
            f"approve returned {shown(answer)}; return True, False, a text (yes, with this note) or 'defer'.",
            field="approve",
        )
    approved = answer is not False
    note = clean_text(answer) if isinstance(answer, str) else None
    slot.decision = Decision(approved=approved, note=note, source="callback")
    slot.status = "approved" if approved else "rejected"
