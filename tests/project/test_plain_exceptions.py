"""Deliberate failures of the product carry a code; a bare built-in exception needs a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

BARE = {
    "AssertionError",
    "BaseException",
    "Exception",
    "IndexError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "OSError",
    "RuntimeError",
    "TypeError",
    "ValueError",
}

# `file::function` -> why a built-in exception is right there.
ALLOWED = {
    "lousho/core/messages.py::_part": "caught by the function itself, which says what is wrong with the part",
    "lousho/models/snapshots.py::_refuse": "what Python's own immutable values raise",
    "lousho/runtime/arguments.py::_loads": "caught in the same file and turned into an issue",
    "lousho/runtime/arguments.py::_refuse": "caught in the same file and turned into an issue",
}


def bare_raises(root: Path) -> Iterator[tuple[str, str]]:
    """Every raise of a bare built-in exception in the runtime: `file::function` and `file:line raise ...`."""
    for file in sorted((root / "lousho").rglob("*.py")):
        name = file.relative_to(root).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in ast.walk(tree):
            if not isinstance(node, ast.Raise) or node.exc is None:
                continue
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in BARE:
                around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or f.lineno)]
                inside = max(around, key=lambda f: f.lineno).name if around else "module"
                yield f"{name}::{inside}", f"{name}:{node.lineno} {ast.unparse(node)}"


@pytest.mark.spec("ERR-10")
def test_a_bare_builtin_exception_is_raised_only_where_a_reason_is_given(project_root: Path):
    unexplained = [place for site, place in bare_raises(project_root) if site not in ALLOWED]
    assert unexplained == [], "raise an SDKError with a code, or give the reason in ALLOWED"


def test_every_reason_still_has_its_place(project_root: Path):
    sites = {site for site, _ in bare_raises(project_root)}
    assert set(ALLOWED) - sites == set()


def test_the_check_sees_a_bare_raise(tmp_path: Path):
    (tmp_path / "lousho").mkdir()
    (tmp_path / "lousho/x.py").write_text("def f():\n    raise ValueError('no')\n", encoding="utf-8")
    assert list(bare_raises(tmp_path)) == [("lousho/x.py::f", "lousho/x.py:2 raise ValueError('no')")]
