"""Breaks the product on purpose and looks whether the tests of a row notice.

usage: spec_bite.py [ROW ...] [--sample N] [--seed TEXT] [--mutants N] [--seconds S]

For each row: find the tests that name it (in the results of `make test`), see which product lines they run, change some of
those lines one at a time in a copy of the tree, and run just those tests. A row whose tests notice none of the changes
fails. Without rows, `--sample` ★ rows are drawn by `--seed`, by default the hash of the commit, so that a run can be
repeated.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mutants import Mutant, mutants_of
from specification import ROOT, Report, judge

PRODUCT = ("lousho", "lousho_cli")
LINKED = (".venv", ".peers")
LEFT_OUT = (".git", ".lousho-test", "site", "build", "dist", ".ruff_cache", ".pytest_cache", ".hypothesis")
MOST_TESTS = 25
ONE_RUN = 120.0


@dataclass(slots=True)
class Verdict:
    """What came of one row."""

    row: str
    tests: list[str]
    tried: int = 0
    noticed: list[str] = field(default_factory=list[str])
    survived: list[str] = field(default_factory=list[str])
    note: str = ""

    @property
    def bites(self) -> bool | None:
        """Whether a change was noticed; None when no change could be tried."""
        return bool(self.noticed) if self.tried else None


class Copy:
    """A copy of the tree in which lines are broken; the working tree is never touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for source in ROOT.iterdir():
            target = folder / source.name
            if source.name in LINKED:
                target.symlink_to(source)
            elif source.is_dir() and source.name not in LEFT_OUT:
                shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.is_file():
                shutil.copy2(source, target)

    def run_tests(self, tests: list[str], seconds: float, coverage: Path | None = None) -> int | None:
        """Run the tests in the copy; returns pytest's exit code, None when they take longer than `seconds`.

        With `coverage`, the tests and the processes they start write which lines they run (`tests/support` does that).
        """
        environment = {name: value for name, value in os.environ.items() if name != "LOUSHO_TEST_RESULTS"}
        environment["LOUSHO_TEST_TREE"] = str(self.folder)
        environment["PYTHONPATH"] = os.pathsep.join((str(self.folder / "tests/support"), str(self.folder)))
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if coverage is not None:
            environment["COVERAGE_PROCESS_START"] = str(self.settings(coverage))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-m", "", *tests]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        return done.returncode

    def settings(self, coverage: Path) -> Path:
        """Write the settings that each measured process reads."""
        settings = coverage.with_suffix(".ini")
        sources = ",".join(str(self.folder / top) for top in PRODUCT)
        settings.write_text(f"[run]\ndata_file = {coverage}\nparallel = true\nsource = {sources}\n", encoding="utf-8")
        return settings

    def lines_run(self, coverage: Path) -> dict[str, set[int]]:
        """Which product lines ran, by path."""
        report = coverage.with_suffix(".json")
        for words in (["combine", "-q"], ["json", "-q", "-o", str(report)]):
            command = [sys.executable, "-m", "coverage", *words, f"--rcfile={coverage.with_suffix('.ini')}"]
            subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        if not report.is_file():
            return {}
        files: dict[str, dict[str, list[int]]] = json.loads(report.read_text(encoding="utf-8"))["files"]
        return {name: set(data["executed_lines"]) for name, data in files.items() if name.startswith(PRODUCT)}


def lines_in_functions(source: str) -> set[int]:
    """Lines that run when something is called; what runs at import, definitions and constants, says little about a row."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            inside.update(range(node.body[0].lineno, node.end_lineno + 1))
    return inside


def draw_mutants(
    copy: Copy, ran: dict[str, set[int]], elsewhere: list[dict[str, set[int]]], chance: random.Random
) -> Iterator[tuple[str, Mutant]]:
    """Mutants of the lines that ran: first those of lines that no other chosen row runs, in an order drawn by `chance`."""
    found: list[tuple[int, float, str, Mutant]] = []
    for name, lines in sorted(ran.items()):
        source = (copy.folder / name).read_text(encoding="utf-8")
        for mutant in mutants_of(source, lines & lines_in_functions(source)):
            others = sum(mutant.line in other.get(name, set()) for other in elsewhere)
            found.append((others, chance.random(), name, mutant))
    for _, _, name, mutant in sorted(found, key=lambda entry: entry[:2]):
        yield name, mutant


def measure(copy: Copy, row: str, tests: list[str]) -> tuple[dict[str, set[int]], float]:
    """Which lines a row's tests run, and how many seconds they take; no lines when they fail on the unchanged copy."""
    data = copy.folder / f".bite-{row}"
    started = time.monotonic()
    passed = copy.run_tests(tests, ONE_RUN, coverage=data) == 0
    return (copy.lines_run(data) if passed else {}), time.monotonic() - started


def bite(
    copy: Copy, verdict: Verdict, mutants: Iterator[tuple[str, Mutant]], seconds: float, most: int, deadline: float
) -> None:
    """Try mutants until one is noticed, `most` were tried, or the time is over."""
    for name, mutant in mutants:
        if verdict.noticed or verdict.tried >= most or time.monotonic() > deadline:
            return
        file = copy.folder / name
        before = file.read_text(encoding="utf-8")
        file.write_text(mutant.source, encoding="utf-8")
        try:
            code = copy.run_tests(verdict.tests, seconds * 3 + 20)
        finally:
            file.write_text(before, encoding="utf-8")
        verdict.tried += 1
        place = f"{name}:{mutant.line} {mutant.what}"
        (verdict.survived if code == 0 else verdict.noticed).append(place)


def head() -> str:
    """The commit's hash, or "" outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.stdout.strip()


def choose(report: Report, wanted: list[str], sample: int, chance: random.Random) -> dict[str, list[str]]:
    """The rows to try, each with its tests: those named, or proved ★ rows drawn by chance."""
    proved = {
        standing.row.id: [test["nodeid"] for test in standing.tests][:MOST_TESTS]
        for standing in report.standings
        if standing.state == "proved" and (standing.row.star or standing.row.id in wanted)
    }
    if wanted:
        return {row: proved.get(row, []) for row in wanted}
    names = sorted(proved)
    return {row: proved[row] for row in chance.sample(names, min(sample, len(names)))}


def tell(verdict: Verdict) -> None:
    """Print what came of one row."""
    if verdict.bites is None:
        print(f"  {verdict.note or 'no line could be changed'}")
    for place in verdict.survived:
        print(f"  not noticed  {place}")
    for place in verdict.noticed:
        print(f"  noticed      {place}")


def try_rows(
    copy: Copy, rows: dict[str, list[str]], chance: random.Random, most: int, deadline: float
) -> list[Verdict]:
    """Measure every row, then break its lines; prints each verdict as it comes."""
    measured = {row: measure(copy, row, tests) for row, tests in rows.items() if tests}
    verdicts: list[Verdict] = []
    for place, (row, tests) in enumerate(rows.items()):
        print(f"{row}: {len(tests)} tests", flush=True)
        verdict = Verdict(row, tests)
        lines, seconds = measured.get(row, ({}, 0.0))
        if not tests:
            verdict.note = "no passing test names it"
        elif not lines:
            verdict.note = "its tests fail, or run no product line, on an unchanged copy"
        else:
            elsewhere = [other for name, (other, _) in measured.items() if name != row]
            until = time.monotonic() + (deadline - time.monotonic()) / (len(rows) - place)
            bite(copy, verdict, draw_mutants(copy, lines, elsewhere, chance), seconds, most, until)
        tell(verdict)
        verdicts.append(verdict)
    return verdicts


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 when a row's tests notice nothing."""
    parser = argparse.ArgumentParser(
        prog="spec_bite.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--sample", type=int, default=3, help="how many ★ rows to draw (default 3)")
    parser.add_argument("--seed", default="", help="what the draw depends on (default: the commit)")
    parser.add_argument("--mutants", type=int, default=12, help="changes to try a row (default 12)")
    parser.add_argument("--seconds", type=float, default=240, help="time for all rows together (default 240)")
    args = parser.parse_args(argv)
    seed = args.seed or head()
    chance = random.Random(seed)
    rows = choose(judge(), [row.upper() for row in args.rows], args.sample, chance)
    if not rows:
        print("No ★ row is proved yet, or there are no results: run make test first.")
        return 1
    print(f"breaking lines under {', '.join(rows)} (drawn by {seed[:12] or 'nothing'})")
    deadline = time.monotonic() + args.seconds
    with tempfile.TemporaryDirectory(prefix="lousho-bite-", ignore_cleanup_errors=True) as name:
        verdicts = try_rows(Copy(Path(name).resolve()), rows, chance, args.mutants, deadline)
    failed = [verdict.row for verdict in verdicts if not verdict.bites]
    print(f"spec-bite: {len(rows) - len(failed)} rows bite" + (f", not: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
