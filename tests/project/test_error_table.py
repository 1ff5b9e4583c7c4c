"""One table of error codes: the code that raises them, the specification and the documentation agree with it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lousho import ERROR_CODES

CODE = re.compile(r"LOUSHO_[A-Z]+(?:_[A-Z]+)+")
ROW = re.compile(r"^\| ERR-\d+ \| `(LOUSHO_[A-Z_]+)` \|", re.MULTILINE)
VARIABLE = re.compile(r"^\| ENV-\d+ \| `(LOUSHO_[A-Z_]+)` \|", re.MULTILINE)
RESERVED = "LOUSHO_OUTPUT_INVALID"


def texts_in(root: Path) -> dict[str, list[str]]:
    """Every whole `LOUSHO_*` word in a string of the product's source, with the places."""
    found: dict[str, list[str]] = {}
    for file in (path for top in ("lousho", "lousho_cli") for path in sorted((root / top).rglob("*.py"))):
        if file.name == "error_codes.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.setdefault(node.value, []).append(f"{file.relative_to(root)}:{node.lineno}")
    return found


@pytest.fixture(scope="module")
def specified(project_root: Path) -> str:
    return (project_root / "docs/specification/errors.md").read_text(encoding="utf-8")


@pytest.mark.spec("ERR-09", "ERR-121")
def test_the_table_the_specification_and_the_documentation_have_the_same_codes(project_root: Path, specified: str):
    documented = re.findall(
        r"^### (LOUSHO_[A-Z_]+)$", (project_root / "docs/errors.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(ERROR_CODES) == sorted(ROW.findall(specified)) == sorted(documented)
    assert len(ERROR_CODES) == 101
    assert "LOUSHO_REMOTE_AGENT_FAILED" not in ERROR_CODES
    assert all(hint.strip() for hint in ERROR_CODES.values())


@pytest.mark.spec("ERR-09")
def test_the_source_uses_no_code_that_the_table_lacks(project_root: Path, specified: str):
    variables = set(VARIABLE.findall(specified))
    unknown = {
        word: places
        for word, places in texts_in(project_root).items()
        if word not in ERROR_CODES and word not in variables
    }
    assert unknown == {}


@pytest.mark.spec("ERR-108")
def test_the_reserved_code_is_in_the_table_and_raised_nowhere(project_root: Path):
    assert RESERVED in ERROR_CODES
    assert RESERVED not in texts_in(project_root)
