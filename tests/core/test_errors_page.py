"""The page of errors says of every code what it means, how to fix it and when it happens, in the order of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lousho.core.error_codes import ERROR_TABLE

SECTION = re.compile(r"^### (?P<code>LOUSHO_[A-Z_]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
AREA = re.compile(r"^\| \[(?P<area>[^]]+)\]\(#[a-z-]+\) \| (?P<codes>.*?) \| .+ \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def page(project_root: Path) -> str:
    return (project_root / "docs/errors.md").read_text(encoding="utf-8")


def test_every_section_explains_fixes_and_shows_its_code(page: str):
    sections = {match["code"]: match["body"] for match in SECTION.finditer(page)}
    assert list(sections) == list(ERROR_TABLE)
    for code, body in sections.items():
        parts = re.findall(r"^\*\*(\w+):\*\* (?=\S)", body, re.MULTILINE)
        status = ERROR_TABLE[code].http_status
        assert parts == (["Means", "Fix", "Example"] if status is None else ["Means", "HTTP", "Fix", "Example"]), code
        if status is not None:
            assert f"**HTTP:** {status}\n" in body, code


def test_sections_stand_under_their_area(page: str):
    found: dict[str, str] = {}
    area = ""
    for line in page.splitlines():
        if line.startswith("## "):
            area = line.removeprefix("## ")
        elif line.startswith("### "):
            found[line.removeprefix("### ")] = area
    assert found == {row.code: row.area for row in ERROR_TABLE.values()}


def test_the_table_of_areas_lists_every_code_once(page: str):
    listed = [
        (match["area"], code)
        for match in AREA.finditer(page)
        for code in re.findall(r"\[`(LOUSHO_[A-Z_]+)`\]\(#lousho_[a-z_]+\)", match["codes"])
    ]
    assert listed == [(row.area, row.code) for row in ERROR_TABLE.values()]


def test_every_variable_the_source_reads_is_in_the_table_of_variables(page: str, project_root: Path):
    variables = set(re.findall(r"^\| `(LOUSHO_[A-Z_]+)` \| .+ \| .+ \|$", page, re.MULTILINE))
    assert not variables & ERROR_TABLE.keys()
    quoted = re.compile(r"[\"'](LOUSHO_[A-Z]+(?:_[A-Z]+)*)[\"']")
    used = {
        name
        for top in ("lousho", "lousho_cli")
        for file in (project_root / top).rglob("*.py")
        for name in quoted.findall(file.read_text(encoding="utf-8"))
    }
    assert used - ERROR_TABLE.keys() - variables == set()
