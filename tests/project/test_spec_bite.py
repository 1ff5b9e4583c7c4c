"""When a row counts as bitten, as toothless, or as not tried."""

from __future__ import annotations

import random
from typing import Any

import pytest
from spec_bite import Verdict, choose
from specification import Report, Row, Standing


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        pytest.param({"tried": 1, "noticed": ["a"]}, "bites", id="the first change was noticed"),
        pytest.param({"tried": 5, "survived": list("abcde")}, "fails", id="none of enough changes was"),
        pytest.param({"tried": 2, "survived": ["a", "b"], "whole": True}, "fails", id="none of all there are"),
        pytest.param({"tried": 2, "survived": ["a", "b"]}, "undecided", id="too few for want of time"),
        pytest.param({"whole": True}, "undecided", id="nothing to change"),
        pytest.param({"broken": True}, "fails", id="the tests fail by themselves"),
    ],
)
def test_a_verdict_says_what_the_changes_showed(verdict: dict[str, Any], state: str):
    assert Verdict("TH-01", ["t"], **verdict).state == state


def standing(row: str, *, star: bool = True, state: Any = "proved", seconds: float = 1.0) -> Standing:
    test = {"nodeid": f"test_{row}", "outcome": "passed", "spec": [row], "seconds": seconds}
    return Standing(Row(row, "things", "", "", star, 1), state, [test])


def test_rows_are_drawn_from_those_with_a_star_a_proof_and_quick_tests():
    rows = [standing("A-1"), standing("A-2", star=False), standing("A-3", state="open"), standing("A-4", seconds=90)]
    report = Report([*rows, standing("A-5")], {}, [], [])
    drawn = [[verdict.row for verdict in choose(report, [], random.Random(seed))] for seed in range(9)]
    assert {tuple(sorted(rows)) for rows in drawn} == {("A-1", "A-5")}
    assert len({tuple(rows) for rows in drawn}) == 2


def test_a_row_that_is_named_is_taken_as_it_is():
    report = Report([standing("A-2", star=False), standing("A-4", seconds=90)], {}, [], [])
    named = choose(report, ["A-4", "A-9"], random.Random(1))
    assert [(verdict.row, verdict.tests) for verdict in named] == [("A-4", ["test_A-4"]), ("A-9", [])]
