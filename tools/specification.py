"""Reads the executable specification and says, row by row, what is proved, what is open and what is wrong.

A row is proved when at least one test names it in `@pytest.mark.spec(...)` and every test that names it passed. This
module only reads files and judges; `spec.py` prints, `spec_bite.py` draws rows from it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/specification")
RESULTS = Path(".lousho-test")
NOT_PAGES = {"README", "corrections"}
MOST_ROWS = 3

ROW_ID = re.compile(r"[A-Z][A-Z0-9]*-\d+")
ROW = re.compile(r"^\|\s*([A-Z][A-Z0-9]*-\d+)\s*\|")
CELL = re.compile(r"(?<!\\)\|")
FEATURE = re.compile(r"^(?P<name>[^:]+): (?P<state>exists|missing) - (?P<sentence>\S.*)$")
NEEDS = re.compile(r"^(?P<row>\S+) (?P<verb>needs|waits for): (?P<features>.+)$")

State = Literal["proved", "open", "failing", "unproved"]


@dataclass(frozen=True, slots=True)
class Row:
    """One behaviour of a page. `text` is what must hold, `check` how a test can see it; `star` marks the page's heart."""

    id: str
    page: str
    text: str
    check: str
    star: bool
    line: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line of `open.txt` or `partly.txt`: a row and the missing features it needs."""

    row: str
    features: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something the gate refuses: where, what is wrong, and what to do about it."""

    where: str
    what: str
    do: str


@dataclass(slots=True)
class Standing:
    """What is known about one row."""

    row: Row
    state: State
    tests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    features: tuple[str, ...] = ()
    corrected: bool = False
    partly: tuple[str, ...] = ()
    note: str = ""


@dataclass(slots=True)
class Report:
    """The whole picture: every row's standing, stray markers, problems, and the results it rests on."""

    standings: list[Standing]
    stray: dict[str, list[str]]
    problems: list[Problem]
    results: list[dict[str, Any]]

    def pages(self) -> dict[str, list[Standing]]:
        """The standings by page, in the order of the pages."""
        pages: dict[str, list[Standing]] = {}
        for standing in self.standings:
            pages.setdefault(standing.row.page, []).append(standing)
        return pages


class Specification:
    """The files under `docs/specification`, read once; `problems` holds what is wrong with the files themselves."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.folder = root / FOLDER
        self.problems: list[Problem] = []
        self.rows: dict[str, Row] = {}
        for page in sorted(self.folder.glob("*.md")):
            if page.stem not in NOT_PAGES:
                self._read_page(page)
        self.features = self._read_features()
        self.open = self._read_waiting("open.txt", "needs")
        self.partly = self._read_waiting("partly.txt", "waits for")
        self.corrected = self._read_corrections()

    def _complain(self, file: str, line: int, what: str, do: str) -> None:
        self.problems.append(Problem(f"{FOLDER}/{file}:{line}", what, do))

    def _read_page(self, page: Path) -> None:
        heads: list[str] = []
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            cells = [cell.strip() for cell in CELL.split(line.strip())[1:-1]]
            if cells and cells[0] == "id":
                heads = cells
            if not (match := ROW.match(line)):
                continue
            id_ = match.group(1)
            if len(cells) != len(heads):
                self._complain(
                    page.name,
                    number,
                    f"{id_} has {len(cells)} cells and its table {len(heads)}",
                    "write | as \\| inside a cell",
                )
                continue
            if id_ in self.rows:
                self._complain(page.name, number, f"{id_} is there twice", "give one of them a number of its own")
                continue
            named = dict(zip(heads, cells, strict=True))
            text = " - ".join(
                value for head, value in named.items() if head not in {"id", "check", "area", "HTTP", "hint", "read by"}
            )
            self.rows[id_] = Row(id_, page.stem, text.replace("\\|", "|"), named.get("check", ""), "★" in line, number)

    def _lines(self, name: str) -> Iterable[tuple[int, str]]:
        file = self.folder / name
        if not file.is_file():
            return
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                yield number, line.strip()

    def _read_features(self) -> dict[str, bool]:
        features: dict[str, bool] = {}
        for number, line in self._lines("features.txt"):
            match = FEATURE.match(line)
            if match is None:
                self._complain("features.txt", number, f"cannot read {line!r}", "write `name: exists - sentence`")
            elif match["name"] in features:
                self._complain("features.txt", number, f"{match['name']!r} is there twice", "keep one line")
            else:
                features[match["name"]] = match["state"] == "exists"
        return features

    def _read_waiting(self, file: str, verb: str) -> dict[str, Waiting]:
        rows: dict[str, Waiting] = {}
        for number, line in self._lines(file):
            match = NEEDS.match(line)
            if match is None or match["verb"] != verb:
                self._complain(
                    file, number, f"cannot read {line!r}", f"write `ROW-01 {verb}: a feature, another feature`"
                )
                continue
            row = match["row"]
            names = tuple(name.strip() for name in match["features"].split(","))
            if row not in self.rows:
                self._complain(file, number, f"{row} is no row of a copied page", "correct the id or delete the line")
            elif row in rows:
                self._complain(file, number, f"{row} is there twice", "keep one line")
            for name in names:
                if name not in self.features:
                    self._complain(
                        file,
                        number,
                        f"{row} names {name!r}, which features.txt has not",
                        "use a name from features.txt, or add it there",
                    )
            there = [name for name in names if self.features.get(name, False)]
            if verb == "needs" and len(there) == len(names):
                self._complain(
                    file,
                    number,
                    f"{row} is open for {', '.join(there)}, which exists now",
                    "prove the row and delete this line",
                )
            elif verb == "waits for" and there:
                self._complain(
                    file,
                    number,
                    f"{row} waits for {', '.join(there)}, which exists now",
                    "prove that part of the row and take the name out of the line",
                )
            rows[row] = Waiting(row, names, number)
        return rows

    def _read_corrections(self) -> set[str]:
        file = self.folder / "corrections.md"
        if not file.is_file():
            return set()
        found: set[str] = set()
        for part in re.split(r"^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n")
            ids = ROW_ID.findall(title)
            for id_ in ids:
                if id_ not in self.rows:
                    self._complain("corrections.md", 1, f"{id_} is no row of a copied page", "correct the heading")
            missing = [word for word in ("Before:", "Now:", "Why:") if word not in body]
            if ids and missing:
                self._complain(
                    "corrections.md",
                    1,
                    f"{', '.join(ids)} lacks {', '.join(missing)}",
                    "say what the row said, what it says now, and why",
                )
            found.update(ids)
        return found


def read_results(root: Path) -> list[dict[str, Any]]:
    """What the suites wrote, newest first; a file that cannot be read counts as missing."""
    results: list[dict[str, Any]] = []
    for file in sorted((root / RESULTS).glob("results-*.json")):
        if file.stem == "results-soak":
            continue
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(result, dict) and result.get("version") == 1:  # pyright: ignore[reportUnknownMemberType]
            results.append(result)  # pyright: ignore[reportUnknownArgumentType]
    return sorted(results, key=lambda result: -float(result["finished"]))


def marks_in_source(tests: Path) -> dict[str, list[str]]:
    """Where each row is named in the test files, as `path:line`, without running anything."""
    found: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("test_*.py")):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.spec"):
                place = f"{file.relative_to(tests.parent).as_posix()}:{node.lineno}"
                for row in node.args:
                    if isinstance(row, ast.Constant):
                        found.setdefault(str(row.value), []).append(place)
    return found


def tests_by_row(results: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The tests that name each row, over all suites."""
    found: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        for test in result["tests"]:
            for row in test["spec"]:
                found.setdefault(row, []).append(test)
    return found


def stand(row: Row, spec: Specification, tests: list[dict[str, Any]], places: list[str]) -> Standing:
    """What one row's tests say about it."""
    standing = Standing(row, "unproved", tests, corrected=row.id in spec.corrected)
    if row.id in spec.open:
        standing.features = spec.open[row.id].features
    if row.id in spec.partly:
        standing.partly = spec.partly[row.id].features
    bad = [test for test in tests if test["outcome"] != "passed"]
    if tests and not bad:
        standing.state = "proved"
    elif bad:
        standing.state = "failing"
        first = bad[0]
        reason = f": {first['reason']}" if first["reason"] else ""
        standing.note = f"{first['nodeid']} {first['outcome']}{reason}"
    elif row.id in spec.open:
        standing.state = "open"
    elif places:
        standing.note = f"named at {places[0]}, but no test of it is in the results"
    return standing


def problems_of(standing: Standing, spec: Specification) -> Iterable[Problem]:
    """What the gate has against one row."""
    row = standing.row
    where = f"{FOLDER}/{row.page}.md:{row.line}"
    marker = f'@pytest.mark.spec("{row.id}")'
    if row.id in spec.open and standing.state != "open":
        line = spec.open[row.id].line
        yield Problem(
            f"{FOLDER}/open.txt:{line}",
            f"{row.id} is open and has a test that names it",
            f"delete the line, or take {marker} from {standing.tests[0]['nodeid']}",
        )
    elif standing.state == "failing":
        yield Problem(
            where,
            f"{row.id} is not proved: {standing.note}",
            "every test that names a row must pass; a skipped test proves nothing",
        )
    elif standing.state == "unproved":
        note = f" ({standing.note})" if standing.note else ""
        do = (
            "run the suites again"
            if standing.note
            else f"mark the test that proves it with {marker}, or add `{row.id} needs: <feature>` to open.txt"
        )
        yield Problem(where, f"{row.id} is neither proved nor open{note}", do)
    if row.id in spec.partly and row.id in spec.open:
        where = f"{FOLDER}/partly.txt:{spec.partly[row.id].line}"
        yield Problem(where, f"{row.id} is open and proved in part", "keep it in one of open.txt and partly.txt")


def problems_of_results(results: list[dict[str, Any]]) -> Iterable[Problem]:
    """What makes results unfit to be judged by."""
    if not any(result["suite"] == "test" for result in results):
        yield Problem(str(RESULTS), "there are no results of the test suite", "run make test")
    for result in results:
        where = f"{RESULTS}/results-{result['suite']}.json"
        if result["narrowedBy"] or result["exitStatus"] not in (0, 1):
            yield Problem(where, "the run was narrowed or broken off", "run the whole suite again")
        for test in result["tests"]:
            if len(test["spec"]) > MOST_ROWS:
                yield Problem(
                    test["nodeid"],
                    f"names {len(test['spec'])} rows ({', '.join(test['spec'])})",
                    f"a test proves at most {MOST_ROWS} rows: split it",
                )


def judge(root: Path = ROOT) -> Report:
    """Read everything under `root` and say where each row stands."""
    spec = Specification(root)
    results = read_results(root)
    tests = tests_by_row(results)
    places = marks_in_source(root / "tests")
    standings = [stand(row, spec, tests.get(row.id, []), places.get(row.id, [])) for row in spec.rows.values()]
    stray = {row: found for row, found in places.items() if row not in spec.rows}
    for row, found in tests.items():
        if row not in spec.rows:
            stray.setdefault(row, [test["nodeid"] for test in found])
    problems = [*spec.problems, *problems_of_results(results)]
    for standing in standings:
        problems.extend(problems_of(standing, spec))
    problems += [
        Problem(
            found[0],
            f"the marker names {row}, which is no row of a copied page",
            "correct the id, or copy the page first",
        )
        for row, found in sorted(stray.items())
    ]
    return Report(standings, stray, problems, results)
