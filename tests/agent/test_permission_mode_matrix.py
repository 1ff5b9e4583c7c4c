"""Rule x own gate x mode x kind of tool, against a table that was written down by hand from the order of evaluation."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from runs import call, collect, of_type

from lousho import create_agent, define_tool
from lousho.testing import mock_model

RULES = ("none", "allow", "ask", "deny")
GATES = ("runs", "asks", "refuses")
MODES = ("default", "plan", "acceptEdits", "dontAsk")
KINDS = ("reads", "edits", "other")

PLAN = "The agent is in plan mode: it may read but not change anything. Describe the change instead."
DONT_ASK = "The agent is in dontAsk mode: calls that need approval are refused."

# What rules and the tool's own gate leave, before any mode. R runs, ? asks, x is refused.
BEFORE = {
    #          runs asks refuses
    "none": "R?x",
    "allow": "RRx",
    "ask": "??x",
    "deny": "xxx",
}
# What each mode makes of it: (what was left, kind of tool) -> outcome. P: refused by plan mode, D: by dontAsk mode,
# E: let through by acceptEdits.
AFTER = {
    #                reads  edits  other
    "default": {"R": "RRR", "?": "???"},
    "plan": {"R": "RPP", "?": "?PP"},
    "acceptEdits": {"R": "RRR", "?": "?E?"},
    "dontAsk": {"R": "RRR", "?": "DDD"},
}


def expected(rule: str, gate: str, mode: str, kind: str) -> str:
    before = BEFORE[rule][GATES.index(gate)]
    return "x" if before == "x" else AFTER[mode][before][KINDS.index(kind)]


@pytest.mark.spec("PMODE-01", "PMODE-13")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_every_rule_and_own_gate_meets_every_mode_as_the_table_says(mode: str, kind: str):
    for rule, gate in itertools.product(RULES, GATES):
        ran: list[str] = []

        own: Any = {"runs": False, "asks": True, "refuses": lambda _: {"deny": "own"}}[gate]
        act = define_tool(
            name="act",
            description="Act.",
            input={"type": "object", "properties": {}},
            execute=lambda _, ran=ran: ran.append("ran"),
            needs_approval=own,
            edits_files=kind == "edits",
            annotations={"readOnlyHint": True} if kind == "reads" else None,
        )
        agent = create_agent(
            provider=mock_model([call("act"), "Done."]),
            tools=[act],
            permissions=[] if rule == "none" else [{"tool": "act", "action": rule, "reason": "rule"}],
            permission_mode=mode,  # type: ignore[arg-type]
        )
        run = agent.stream("go")
        events = await collect(run)
        result = await run.result
        want = expected(rule, gate, mode, kind)
        case = (rule, gate, mode, kind)
        assert bool(ran) == (want in "RE"), case
        assert (result.finish_reason == "awaiting-approval") == (want == "?"), case
        told = [json.loads(str(m.content)) for m in result.messages if m.role == "tool" and m.is_error]
        assert [one["kind"] for one in told] == (["denied"] if want in "xPD" else []), case
        _check_audit(of_type(events, "permission.decision"), case, want)


def _check_audit(audited: list[Any], case: tuple[str, str, str, str], want: str) -> None:
    rule, gate, mode, _ = case
    if rule == "none" and mode == "default":
        assert audited == [], case
        return
    (one,) = audited
    assert one.mode == {"P": "plan", "D": "dontAsk", "E": "acceptEdits"}.get(want), case
    reasons = {"P": PLAN, "D": DONT_ASK}
    if want in reasons:
        assert (one.decision, one.reason) == ("deny", reasons[want]), case
    elif want == "x":
        assert one.decision == "deny", case
    elif want == "E":
        assert one.decision == "allow", case
    else:
        assert one.decision == ("default" if rule == "none" else rule), case
    matched = rule != "none" and not (rule != "deny" and gate == "refuses")
    assert (one.rule or {}).get("index") == (0 if matched else None), case
