"""Writes what each test did, and which rows of the specification it proves, for `make spec` to read.

Only the process that runs the whole session writes (under pytest-xdist: the controller), and only when
`LOUSHO_TEST_RESULTS` names a file, so that a run of one file never overwrites the results of the suite.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

ROW_ID = re.compile(r"[A-Z][A-Z0-9]*-\d+")
MOST_ROWS = 3
RANK = {"passed": 0, "skipped": 1, "failed": 2}


def rows_of(item: pytest.Item) -> list[str]:
    """The rows that the markers of a test name, in order, each once."""
    rows: list[str] = []
    for marker in item.iter_markers("spec"):
        rows.extend(str(row) for row in marker.args if row not in rows)
    return rows


def complain_about_markers(items: list[pytest.Item]) -> None:
    """Refuse a marker that names no row, something that is no id, or more rows than one test can prove."""
    wrong: list[str] = []
    for item in items:
        rows = rows_of(item)
        if " at 0x" in item.nodeid:
            wrong.append(f"{item.nodeid}: a memory address in the id of a test changes with each run; give it ids")
        if any(not marker.args for marker in item.iter_markers("spec")):
            wrong.append(f"{item.nodeid}: a spec marker without a row")
        wrong += [f"{item.nodeid}: {row!r} is not the id of a row" for row in rows if not ROW_ID.fullmatch(row)]
        if len(rows) > MOST_ROWS:
            wrong.append(
                f"{item.nodeid}: names {len(rows)} rows ({', '.join(rows)}); a test proves at most {MOST_ROWS}"
            )
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def git_head(root: Path) -> str:
    """The commit the results belong to, or "" outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=root,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


class Recorder:
    """Collects one outcome a test: the worst of its setup, call and teardown."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.started = time.time()
        self.tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        complain_about_markers(items)
        for item in items:
            item.user_properties.append(("spec", rows_of(item)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        rows = next((value for key, value in report.user_properties if key == "spec"), [])
        entry = self.tests.setdefault(
            report.nodeid, {"nodeid": report.nodeid, "outcome": "passed", "spec": rows, "reason": "", "seconds": 0.0}
        )
        entry["seconds"] = round(entry["seconds"] + report.duration, 4)
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        if RANK[outcome] > RANK[entry["outcome"]]:
            entry["outcome"] = outcome
            entry["reason"] = reason_of(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        target = os.environ.get("LOUSHO_TEST_RESULTS")
        if not target or hasattr(self.config, "workerinput") or self.config.option.collectonly:
            return
        selection = [name for name in ("keyword", "lf", "failedfirst") if getattr(self.config.option, name, None)]
        result = {
            "version": 1,
            "suite": os.environ.get("LOUSHO_TEST_SUITE", "test"),
            "commit": git_head(Path(self.config.rootpath)),
            "python": platform.python_version(),
            "started": self.started,
            "finished": time.time(),
            "exitStatus": int(exitstatus),
            "narrowedBy": selection,
            "tests": sorted(self.tests.values(), key=lambda test: test["nodeid"]),
        }
        path = Path(self.config.rootpath) / target
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        scratch.replace(path)


def reason_of(report: pytest.TestReport) -> str:
    """One line that says why a test was skipped or failed."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).strip().splitlines()[0][:200]
    text = str(getattr(report, "wasxfail", "") or report.longreprtext).strip()
    return text.splitlines()[-1][:200] if text else ""
