"""Shows which rows of the specification are proved, and refuses gaps.

usage: spec.py [PAGE | ROW ...] [--check] [--json] [--missing]

  spec.py             a table: rows, proved, open, not proved, corrected, page by page
  spec.py cli         the rows of a page with their state
  spec.py CLI-07      one row: what it says, which tests prove it, what it waits for
  --missing           only rows that are neither proved nor open
  --check             the gate: exit 1 with a list of what to do
  --json              the same as data, for other programs
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from specification import FOLDER, ROOT, Report, Standing, judge

SIGN = {"proved": "✔", "open": "·", "failing": "✘", "unproved": "?"}


def short(text: str, width: int) -> str:
    """The text on one line, cut to `width`."""
    return textwrap.shorten(text, max(width, 20), placeholder=" …")


def counts(standings: list[Standing]) -> dict[str, int]:
    """How many rows are in each state."""
    found = {"rows": len(standings), "proved": 0, "open": 0, "failing": 0, "unproved": 0}
    for standing in standings:
        found[standing.state] += 1
    found["corrected"] = sum(standing.corrected for standing in standings)
    found["partly"] = sum(bool(standing.partly) for standing in standings)
    return found


def as_data(report: Report) -> dict[str, Any]:
    """The report as JSON data."""
    return {
        "version": 1,
        "results": [
            {key: result[key] for key in ("suite", "commit", "python", "finished", "exitStatus")}
            | {"tests": len(result["tests"])}
            for result in report.results
        ],
        "pages": {page: counts(standings) for page, standings in report.pages().items()},
        "total": counts(report.standings),
        "rows": [
            {
                "id": standing.row.id,
                "page": standing.row.page,
                "state": standing.state,
                "star": standing.row.star,
                "corrected": standing.corrected,
                "needs": list(standing.features),
                "waitsFor": list(standing.partly),
                "tests": sorted({test["nodeid"] for test in standing.tests}),
                "note": standing.note,
            }
            for standing in report.standings
        ],
        "stray": report.stray,
        "problems": [{"where": problem.where, "what": problem.what, "do": problem.do} for problem in report.problems],
    }


def print_table(report: Report) -> None:
    """One line a page."""
    print(f"{'page':22}{'rows':>6}{'proved':>8}{'open':>6}{'left':>6}{'corrected':>11}{'in part':>9}")
    for page, standings in [*report.pages().items(), ("all pages", report.standings)]:
        found = counts(standings)
        left = found["failing"] + found["unproved"]
        print(
            f"{page:22}{found['rows']:>6}{found['proved']:>8}{found['open']:>6}{left:>6}"
            f"{found['corrected']:>11}{found['partly']:>9}{'' if left else '   complete'}"
        )
    for row, places in sorted(report.stray.items()):
        print(f"stray marker: {row} at {places[0]} names no row")


def print_results(report: Report) -> None:
    """Which runs the figures rest on."""
    if not report.results:
        print("No results yet: run `make test` (and `make test-peers`), then look again.")
    for result in report.results:
        age = time.strftime("%Y-%m-%d %H:%M", time.localtime(result["finished"]))
        failed = sum(test["outcome"] == "failed" for test in result["tests"])
        print(
            f"from make {'test' if result['suite'] == 'test' else 'test-' + result['suite']}: {len(result['tests'])} tests, {failed} failed, {age}, commit {result['commit'][:9] or 'unknown'}"
        )


def print_rows(standings: list[Standing]) -> None:
    """One line a row: its sign, its id, what it says."""
    width = shutil.get_terminal_size((120, 24)).columns
    for standing in standings:
        row = standing.row
        star = "★" if row.star else " "
        print(f"{SIGN[standing.state]} {row.id:9} {star} {short(row.text.replace('★ ', ''), width - 15)}")
        if standing.state == "open":
            print(f"    needs: {', '.join(standing.features)}")
        if standing.partly:
            print(f"    provable only in part yet; the rest waits for: {', '.join(standing.partly)}")
        if standing.note:
            print(f"    {short(standing.note, width - 4)}")
    print(
        f"\n{SIGN['proved']} proved   {SIGN['open']} open   {SIGN['failing']} a test of it fails or is skipped   {SIGN['unproved']} neither"
    )


def print_row(standing: Standing) -> None:
    """Everything about one row."""
    row = standing.row
    print(
        f"{row.id} ({FOLDER}/{row.page}.md:{row.line}): {standing.state}{', corrected' if standing.corrected else ''}"
    )
    print(textwrap.indent(textwrap.fill(row.text, 110), "  "))
    if row.check:
        print(textwrap.indent(textwrap.fill(f"check: {row.check}", 110), "  "))
    if standing.features or standing.partly:
        print(f"  needs: {', '.join((*standing.features, *standing.partly))}")
    for test in standing.tests:
        print(f"  {test['outcome']}: {test['nodeid']}")


def show(report: Report, names: list[str], missing: bool) -> int:
    """Print what was asked for; 2 when a name is neither a page nor a row."""
    pages = report.pages()
    by_id = {standing.row.id: standing for standing in report.standings}
    if not names and not missing:
        print_table(report)
        print_results(report)
        return 0
    chosen = names or list(pages)
    for name in chosen:
        if name.upper() in by_id:
            print_row(by_id[name.upper()])
        elif name in pages:
            rows = [standing for standing in pages[name] if not missing or standing.state in {"unproved", "failing"}]
            if rows:
                print(f"{name}: {len(rows)} rows")
                print_rows(rows)
        else:
            print(f"{name!r} is neither a page nor a row. Pages: {', '.join(pages)}", file=sys.stderr)
            return 2
    return 0


def check(report: Report) -> int:
    """The gate: print each problem with what to do, exit 1 when there is one."""
    print_table(report)
    print_results(report)
    for problem in report.problems:
        print(f"\n{problem.where}\n  {problem.what}\n  -> {problem.do}")
    found = counts(report.standings)
    verdict = f"{found['proved']} rows proved, {found['open']} open, {len(report.problems)} problems"
    print(f"\nspecification: {verdict}")
    return 1 if report.problems else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="spec.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PAGE | ROW")
    parser.add_argument("--check", action="store_true", help="fail when a row is neither proved nor open, or both")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--missing", action="store_true", help="only rows that are neither proved nor open")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    report = judge(args.root)
    if args.json:
        print(json.dumps(as_data(report), indent=2, ensure_ascii=False))
        return 1 if args.check and report.problems else 0
    if args.check:
        return check(report)
    return show(report, args.names, args.missing)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `make spec PAGE=cli | head`
        sys.stdout = None
        sys.exit(0)
