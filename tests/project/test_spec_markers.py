"""What the suite writes down for the specification, from a run of a small suite of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONFTEST = """
import spec_results

def pytest_configure(config):
    config.addinivalue_line("markers", "spec(*ids): rows")
    config.pluginmanager.register(spec_results.Recorder(config))
"""
SUITE = """
import pytest

@pytest.mark.spec("TH-01", "TH-02")
@pytest.mark.parametrize("n", [1, 2])
def test_two_cases(n): assert n

@pytest.mark.spec("TH-03")
@pytest.mark.skip(reason="no wind")
def test_skipped(): ...

@pytest.mark.spec("TH-04")
@pytest.mark.xfail
def test_expected_to_fail(): assert False

@pytest.fixture
def leaky():
    yield
    raise OSError("late")

@pytest.mark.spec("TH-05")
def test_whose_teardown_fails(leaky): ...

def test_without_a_row(): ...
"""


def run_suite(folder: Path, suite: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_suite.py").write_text(suite, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {**os.environ, "LOUSHO_TEST_RESULTS": "out/results.json"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "two workers"])
def test_each_test_is_written_with_its_rows_and_its_worst_outcome(tmp_path: Path, workers: list[str]):
    run_suite(tmp_path, SUITE, *workers)
    results: dict[str, Any] = json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))
    found = {test["nodeid"].split("::")[1]: (test["outcome"], test["spec"]) for test in results["tests"]}
    assert found == {
        "test_two_cases[1]": ("passed", ["TH-01", "TH-02"]),
        "test_two_cases[2]": ("passed", ["TH-01", "TH-02"]),
        "test_skipped": ("skipped", ["TH-03"]),
        "test_expected_to_fail": ("skipped", ["TH-04"]),
        "test_whose_teardown_fails": ("failed", ["TH-05"]),
        "test_without_a_row": ("passed", []),
    }
    assert (results["exitStatus"], results["narrowedBy"]) == (1, [])


def test_a_narrowed_run_says_so(tmp_path: Path):
    run_suite(tmp_path, SUITE, "-k", "two_cases")
    assert json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))["narrowedBy"] == ["keyword"]


@pytest.mark.parametrize(
    ("marker", "complaint"),
    [
        pytest.param(
            'spec("A-1", "A-2", "A-3", "A-4")',
            "names 4 rows (A-1, A-2, A-3, A-4); a test proves at most 3",
            id="too many",
        ),
        pytest.param('spec("a row")', "'a row' is not the id of a row", id="no id"),
        pytest.param("spec()", "a spec marker without a row", id="empty"),
    ],
)
def test_a_marker_that_proves_nothing_stops_the_run(tmp_path: Path, marker: str, complaint: str):
    done = run_suite(tmp_path, f"import pytest\n@pytest.mark.{marker}\ndef test_it(): ...\n")
    assert done.returncode == 4
    assert complaint in done.stderr
