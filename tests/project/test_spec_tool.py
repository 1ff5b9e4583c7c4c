"""The gate of the specification: it lets a sound state pass and names every kind of gap, with what to do about it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SPEC = Path(__file__).resolve().parents[2] / "tools/spec.py"
PAGE = """# Things
| id | behaviour | check |
| - | - | - |
| TH-01 | ★ it starts | start it |
| TH-02 | it stops, or `a \\| b` | stop it |
| TH-03 | it flies | look up |
"""
FEATURES = "wings: missing - what flies\nlegs: exists - what walks\n"
Make = Callable[..., Path]


def ran(nodeid: str, *rows: str, outcome: str = "passed") -> dict[str, Any]:
    return {"nodeid": nodeid, "outcome": outcome, "spec": list(rows), "reason": "no wind", "seconds": 0.1}


SOUND = [ran("tests/test_a.py::test_one", "TH-01"), ran("tests/test_a.py::test_two", "TH-02")]


@pytest.fixture
def project(tmp_path: Path) -> Make:
    """A small project with one page; by default two rows are proved and one is open."""

    def make(
        *,
        tests: list[dict[str, Any]] | None = None,
        open: str = "TH-03 needs: wings\n",
        partly: str = "",
        corrections: str = "",
        source: str = "",
        page: str = PAGE,
        **results: Any,
    ) -> Path:
        folder = tmp_path / "docs/specification"
        for place in (folder, tmp_path / ".lousho-test", tmp_path / "tests"):
            place.mkdir(parents=True, exist_ok=True)
        files = {
            "things.md": page,
            "features.txt": FEATURES,
            "open.txt": open,
            "partly.txt": partly,
            "corrections.md": corrections,
        }
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        (tmp_path / "tests/test_a.py").write_text(source, encoding="utf-8")
        data = {
            "version": 1,
            "suite": "test",
            "commit": "abc",
            "python": "3.11",
            "started": 0,
            "finished": 0,
            "exitStatus": 0,
        }
        whole = {**data, "narrowedBy": [], "tests": SOUND if tests is None else tests, **results}
        (tmp_path / ".lousho-test/results-test.json").write_text(json.dumps(whole), encoding="utf-8")
        return tmp_path

    return make


def spec(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SPEC), *words, "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=30, check=False)


def test_a_sound_state_passes_the_gate(project: Make):
    done = spec(project(), "--check")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "specification: 2 rows proved, 1 open, 0 problems")


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        pytest.param({"open": ""}, "TH-03 is neither proved nor open", id="a row that nobody proves"),
        pytest.param(
            {"open": "TH-03 needs: wings\nTH-02 needs: wings\n"}, "TH-02 is open and has a test", id="open and proved"
        ),
        pytest.param(
            {"open": "TH-03 needs: legs\n"}, "TH-03 is open for legs, which exists now", id="the feature exists"
        ),
        pytest.param({"open": "TH-03 needs: fins\n"}, "TH-03 names 'fins'", id="a feature nobody listed"),
        pytest.param(
            {"open": "TH-03 needs: wings\nTH-09 needs: wings\n"}, "TH-09 is no row", id="an open row that is not there"
        ),
        pytest.param({"open": "TH-03 wants wings\n"}, "cannot read 'TH-03 wants wings'", id="a line nobody can read"),
        pytest.param(
            {"partly": "TH-01 waits for: legs\n"}, "TH-01 waits for legs, which exists now", id="the rest can be proved"
        ),
        pytest.param({"partly": "TH-03 waits for: wings\n"}, "TH-03 is open and proved in part", id="open and in part"),
        pytest.param({"corrections": "## TH-01\n- Before: x\n"}, "TH-01 lacks Now:, Why:", id="half a correction"),
        pytest.param({"corrections": "## TH-08\nBefore: Now: Why:"}, "TH-08 is no row", id="a correction of nothing"),
        pytest.param({"page": PAGE + "| TH-01 | again | - |\n"}, "TH-01 is there twice", id="an id used twice"),
        pytest.param({"page": PAGE + "| TH-04 | a | b | c |\n"}, "TH-04 has 4 cells", id="a row of another width"),
        pytest.param(
            {"tests": [SOUND[0], ran("t", "TH-02", outcome="skipped")]}, "t skipped: no wind", id="a skipped test"
        ),
        pytest.param(
            {"tests": [*SOUND, ran("t", "TH-02", outcome="failed")]}, "t failed: no wind", id="one of two tests fails"
        ),
        pytest.param({"tests": [*SOUND, ran("t", "TH-77")]}, "the marker names TH-77", id="a marker without a row"),
        pytest.param(
            {"source": '@pytest.mark.spec("TH-78")\ndef test_a(): ...\n'},
            "the marker names TH-78",
            id="such a marker, never run",
        ),
        pytest.param(
            {"tests": [ran("t", "TH-01", "TH-02", "TH-03", "TH-04")]}, "names 4 rows", id="four rows on a test"
        ),
        pytest.param({"narrowedBy": ["keyword"]}, "narrowed or broken off", id="a run of some tests"),
        pytest.param({"exitStatus": 2}, "narrowed or broken off", id="a run that was interrupted"),
        pytest.param({"suite": "peers"}, "no results of the test suite", id="only the peers ran"),
    ],
)
def test_the_gate_names_each_kind_of_gap(project: Make, state: dict[str, Any], complaint: str):
    done = spec(project(**state), "--check")
    assert done.returncode == 1
    assert complaint in done.stdout
    assert "\n  -> " in done.stdout


def test_an_open_row_waits_for_the_last_of_its_features(project: Make):
    assert spec(project(open="TH-03 needs: wings, legs\n"), "--check").returncode == 0


def test_a_row_in_part_stays_until_one_of_its_features_exists(project: Make):
    assert spec(project(partly="TH-01 waits for: wings\n"), "--check").returncode == 0


def test_a_page_lists_its_rows_with_their_state(project: Make):
    done = spec(project(), "things")
    signs = [line[:7] for line in done.stdout.splitlines() if "TH-" in line]
    assert signs == ["✔ TH-01", "✔ TH-02", "· TH-03"]
    assert "    needs: wings" in done.stdout


def test_a_row_shows_its_tests_and_its_text(project: Make):
    done = spec(project(), "th-02")
    assert "it stops, or `a | b`" in done.stdout
    assert "passed: tests/test_a.py::test_two" in done.stdout


def test_an_unknown_page_is_a_usage_error_that_lists_the_pages(project: Make):
    done = spec(project(), "thinks")
    assert (done.returncode, done.stderr) == (2, "'thinks' is neither a page nor a row. Pages: things\n")


def test_json_has_the_same_figures(project: Make):
    data = json.loads(spec(project(corrections="## TH-01\nBefore: a Now: b Why: c"), "--json").stdout)
    assert data["total"] == {
        "rows": 3,
        "proved": 2,
        "open": 1,
        "failing": 0,
        "unproved": 0,
        "corrected": 1,
        "partly": 0,
    }
    assert [(row["id"], row["state"], row["star"]) for row in data["rows"]] == [
        ("TH-01", "proved", True),
        ("TH-02", "proved", False),
        ("TH-03", "open", False),
    ]


def test_without_results_it_says_which_command_makes_them(tmp_path: Path, project: Make):
    (project() / ".lousho-test/results-test.json").unlink()
    assert "run `make test`" in spec(tmp_path).stdout
