"""Breaks the product on purpose and looks whether the tests of a row notice.

usage: spec_bite.py [ROW ...] [--sample N] [--seed TEXT] [--mutants N] [--seconds S]

For each row: find the tests that name it (in the results of `make test`), see which product lines they run, change some of
those lines one at a time in a copy of the tree, and run just those tests. A row whose tests notice none of the changes
fails. Without rows, `--sample` ★ rows with quick tests are drawn by `--seed`, by default the hash of the commit, so that a
run can be repeated; a row that cannot be tried (its tests run no line of the product) makes room for the next.
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
from typing import Literal

from mutants import Mutant, mutants_of
from specification import ROOT, Report, judge

PRODUCT = ("lousho", "lousho_cli")
LINKED = (".venv", ".peers")
LEFT_OUT = (".git", ".lousho-test", "site", "build", "dist", ".ruff_cache", ".pytest_cache", ".hypothesis")
MOST_TESTS = 25
QUICK = 20.0  # seconds that the tests of a drawn row took in the suite
ONE_RUN = 120.0
FEWEST_TRIES = 5  # fewer changes, for want of time, say nothing against a row


@dataclass(slots=True)
class Verdict:
    """What came of one row."""

    row: str
    tests: list[str]
    tried: int = 0
    noticed: list[str] = field(default_factory=list[str])
    survived: list[str] = field(default_factory=list[str])
    note: str = ""

    broken: bool = False
    """Its tests fail on the unchanged copy, or there are none."""
    whole: bool = False
    """All changes there are were tried."""

    @property
    def state(self) -> Literal["bites", "fails", "undecided"]:
        """Whether the tests notice changes; undecided when too few could be tried."""
        if self.noticed:
            return "bites"
        if self.broken or self.tried >= FEWEST_TRIES or (self.tried and self.whole):
            return "fails"
        return "undecided"


class Copy:
    """A copy of the tree in which lines are broken; the working tree is never touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.folder.mkdir()
        self.measured = folder / "measured"  # beside the copy: a test may look at what its tree holds
        self.measured.mkdir()
        folder = self.folder
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


def measure(copy: Copy, verdict: Verdict) -> tuple[dict[str, set[int]], float]:
    """Which lines a row's tests run, and how many seconds they take; no lines when the row cannot be tried."""
    if not verdict.tests:
        verdict.broken, verdict.note = True, "no passing test names it"
        return {}, 0.0
    data = copy.measured / verdict.row
    started = time.monotonic()
    code = copy.run_tests(verdict.tests, ONE_RUN, coverage=data)
    if code is None:
        verdict.note = f"its tests take more than {ONE_RUN:.0f} s"
    elif code:
        verdict.broken, verdict.note = True, "its tests fail on an unchanged copy"
    return (copy.lines_run(data) if code == 0 else {}), time.monotonic() - started


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
    verdict.whole = True


def head() -> str:
    """The commit's hash, or "" outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    return done.stdout.strip()


def choose(report: Report, wanted: list[str], chance: random.Random) -> list[Verdict]:
    """The rows to try in order, each with its tests: those named, or all proved ★ rows with quick tests, shuffled."""
    proved = {standing.row.id: standing for standing in report.standings if standing.state == "proved"}
    names = wanted
    if not names:
        names = sorted(
            row
            for row, standing in proved.items()
            if standing.row.star and sum(test["seconds"] for test in standing.tests) <= QUICK
        )
        chance.shuffle(names)
    tests = {row: [test["nodeid"] for test in proved[row].tests][:MOST_TESTS] for row in names if row in proved}
    return [Verdict(row, tests.get(row, [])) for row in names]


def tell(verdict: Verdict) -> None:
    """Print what came of one row."""
    print(f"{verdict.row}: {verdict.state}, {len(verdict.tests)} tests")
    if verdict.note:
        print(f"  {verdict.note}")
    for place in verdict.survived:
        print(f"  not noticed  {place}")
    for place in verdict.noticed:
        print(f"  noticed      {place}", flush=True)


def try_rows(copy: Copy, verdicts: list[Verdict], chance: random.Random, most: int, deadline: float) -> None:
    """Measure the rows, then break their lines; prints each verdict as it comes."""
    measured = {verdict.row: measure(copy, verdict) for verdict in verdicts}
    for place, verdict in enumerate(verdicts):
        lines, seconds = measured[verdict.row]
        elsewhere = [other for row, (other, _) in measured.items() if row != verdict.row]
        mutants = list(draw_mutants(copy, lines, elsewhere, chance))
        if not mutants and not verdict.note:
            verdict.note = "its tests run no line of the product that could be changed"
        until = time.monotonic() + (deadline - time.monotonic()) / (len(verdicts) - place)
        bite(copy, verdict, iter(mutants), seconds, most, until)
        tell(verdict)


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
    rows = choose(judge(), [row.upper() for row in args.rows], chance)
    if not rows:
        print("No ★ row is proved yet, or there are no results: run make test first.")
        return 1
    wanted = len(rows) if args.rows else args.sample
    print(f"breaking lines under {wanted} rows, drawn by {seed[:12] or 'nothing'}", flush=True)
    deadline = time.monotonic() + args.seconds
    done: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="lousho-bite-", ignore_cleanup_errors=True) as name:
        copy = Copy(Path(name).resolve())
        while rows and time.monotonic() < deadline:
            missing = wanted - sum(verdict.state != "undecided" for verdict in done)
            batch, rows = rows[:missing], rows[missing:]
            if not batch:
                break
            try_rows(copy, batch, chance, args.mutants, deadline)
            done += batch
    failed = [verdict.row for verdict in done if verdict.state == "fails"]
    bites = sum(verdict.state == "bites" for verdict in done)
    print(f"spec-bite: {bites} rows bite" + (f", not: {', '.join(failed)}" if failed else ""))
    return 1 if failed or not bites else 0


if __name__ == "__main__":
    sys.exit(main())
