"""A decision as an application gives it: its form is checked before anything is looked up, recorded or run.

Source: approvals page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from lousho.agent.call_options import AnswerOptions, ResolveOptions, given_options
from lousho.agent.preparation import CallOptions
from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.json_values import clean_text, to_json_value
from lousho.core.redact import shown
from lousho.runtime.emitter import timestamp_now
from lousho.runtime.state import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDecision:
    """A decision as it was given, checked."""

    id: str
    decision: Decision
    call: CallOptions
    answers: bool
    """Whether it answers a question."""
    args: dict[str, Any] | None = None
    """The arguments in place of the model's, of an approval."""

    @classmethod
    def check(cls, options: Mapping[str, Any], known: type, where: str) -> GivenDecision:
        """Raises `LOUSHO_CONFIG_INVALID` for a name that `known` does not have, and `LOUSHO_APPROVAL_DECISION_INVALID`."""
        answers = known is AnswerOptions
        given = given_options(options, known, where)
        for name in ("id", "answer" if answers else "approved"):
            if name not in options:
                raise _invalid(f"{where}: {name}= is missing.")
        approved, note = (True, options["answer"]) if answers else (options["approved"], options.get("note"))
        decision = _decision(approved, note)
        decision.by = _principal(options.get("principal"))
        decision.remember = _remember(options.get("remember")) and decision.approved
        args = _edited(options.get("args"))
        return cls(
            id=options["id"],
            decision=decision,
            args=args if decision.approved else None,
            call=CallOptions.check(
                **{name: given[name] for name in ("signal", "tools", "extra_tools") if name in given}
            ),
            answers=answers,
        )

    def check_kind(self, approval: Mapping[str, Any]) -> None:
        """Raise `LOUSHO_APPROVAL_KIND_MISMATCH` for an answer to no question, and for a bare yes to one."""
        asks = approval.get("kind") == "question"
        if self.answers and not asks:
            problem = "is not a question; decide it with approved=True or False."
        elif asks and self.decision.approved and not self.decision.note:
            problem = "is a question; answer it with answer(), or decline with approved=False."
        elif approval.get("kind") is not None and (self.args is not None or self.decision.remember):
            problem = "is no tool call; args= and remember= are for tool calls."
        else:
            return
        raise SDKError(f"The approval {shown(self.id)} {problem}", code="LOUSHO_APPROVAL_KIND_MISMATCH")

    def record(self) -> dict[str, Any]:
        """Return the decision as it is stored with the approval."""
        decision = self.decision
        made: dict[str, Any] = {"approved": decision.approved, "note": decision.note, "at": timestamp_now()}
        if decision.by is not None:
            made["by"] = decision.by
        if decision.remember:
            made["remember"] = "session"
        if self.args is not None:
            made["args"] = self.args
        return made


def all_given(decisions: object, options: Mapping[str, Any]) -> list[GivenDecision]:
    """Return the decisions of one call, all of them checked. Raises what `GivenDecision.check()` raises."""
    if isinstance(decisions, (str, bytes, Mapping)) or not isinstance(decisions, Iterable):
        raise _invalid("approvals.resolve_all takes a list of decisions, each {'id': ..., 'approved': ...}.")
    given: list[GivenDecision] = []
    for number, one in enumerate(cast("Iterable[Any]", decisions)):
        if not isinstance(one, Mapping):
            raise _invalid(f"approvals.resolve_all: decision {number} is no mapping with 'id' and 'approved'.")
        decision = {str(key): value for key, value in cast("Mapping[Any, Any]", one).items()}
        given.append(
            GivenDecision.check({**options, **decision}, ResolveOptions, f"approvals.resolve_all: decision {number}")
        )
    ids = [shown(one.id) for one in given]
    if not ids or len(set(ids)) < len(ids):
        raise _invalid("approvals.resolve_all needs at least one decision, and one for each call at most.")
    return given


def _principal(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"principal must be a mapping; got {shown(value)}.", field="principal")
    return cast("dict[str, Any]", to_json_value(cast("object", value)))


def _remember(value: object) -> bool:
    if value not in (None, "session"):
        raise _invalid(f"remember must be 'session'; got {shown(value)}.")
    return value is not None


def _edited(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _invalid(f"args must be a mapping of arguments; got {shown(value)}.")
    return cast("dict[str, Any]", to_json_value(cast("object", value)))


def _decision(approved: object, note: object) -> Decision:
    if not isinstance(approved, bool) or (note is not None and not isinstance(note, str)):
        raise _invalid("A decision is approved=True or approved=False, with an optional note as text.")
    return Decision(approved=approved, note=None if note is None else clean_text(note))


def _invalid(message: str) -> SDKError:
    return SDKError(message, code="LOUSHO_APPROVAL_DECISION_INVALID")
