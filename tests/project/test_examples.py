"""The examples run as their README says, without a key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("script", "last_line"),
    [
        pytest.param("hello.py", "(stop, 2 steps)", id="hello"),
        pytest.param("approval.py", "Sam has the report.", id="approval"),
    ],
)
def test_a_script_runs_to_its_last_line(script, last_line, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script)], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == last_line


def test_the_support_desk_looks_up_asks_and_refuses(run_lousho):
    lines = "Find order 4711\nRefund order 4711, amount 39\ny\nRefund order 4712, amount 620\n"
    done = run_lousho(["chat", EXAMPLES / "support-desk"], input=lines)
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert "desk lamp" in shown
    assert "Approve refund_order" in shown
    assert "finance team" in shown
