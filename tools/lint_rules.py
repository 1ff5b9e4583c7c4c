"""The project's own rules, those that ruff cannot express. Prints `path:line: what (what to do)` and exits 1 on a finding.

usage: lint_rules.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("lousho", "lousho_cli", "tools", "benchmarks", "examples")
PRODUCT = ("lousho", "lousho_cli")
RUNNERS = {"run", "new_event_loop", "run_until_complete"}
LOOPS_ALLOWED = ("lousho/runtime/blocking.py", "lousho/diagnose/", "lousho_cli/")
RST = re.compile(r"``|:(?:param|type|returns?|raises|rtype|class|func|meth|mod)\b[^:\n]*:")


class Finding(NamedTuple):
    """One place that breaks a rule."""

    path: str
    line: int
    text: str


Rule = Callable[[str, ast.Module], Iterator[tuple[int, str]]]


def dotted(node: ast.AST) -> str:
    """The name that an expression spells, such as `typer.Exit`; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    return ""


def returned_exit(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """A returned `typer.Exit` ends with exit code 0, whatever code it carries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            target = node.value.func if isinstance(node.value, ast.Call) else node.value
            if dotted(target) in {"typer.Exit", "Exit", "click.exceptions.Exit"}:
                yield node.lineno, "typer.Exit is returned, which exits 0 (raise it)"


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules, or for the package root the names, that a statement imports by their full name."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    return [f"lousho.{alias.name}" for alias in node.names] if node.module == "lousho" else [node.module]


def room_imports_face(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Rooms import rooms; the lazy public names and the thin faces are for users, and would make a cycle."""
    if not path.startswith("lousho/") or path.count("/") < 2:
        return
    faces = {file.stem for file in (ROOT / "lousho").glob("*.py")} - {"__init__"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for name in imported(node):
            parts = name.split(".")
            is_package = len(parts) > 1 and (ROOT / "lousho" / parts[1] / "__init__.py").is_file()
            if parts[0] == "lousho" and (len(parts) == 1 or parts[1] in faces or not is_package):
                yield node.lineno, f"a room imports {name}, a public face (import from the room that defines it)"


def text_without_encoding(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Text files are UTF-8 everywhere; without `encoding` they are whatever the machine says."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(keyword.arg in {"encoding", None} for keyword in node.keywords):
            continue
        name = dotted(node.func)
        last = name.rsplit(".", 1)[-1]
        modes = [
            a.value
            for a in (*node.args, *(k.value for k in node.keywords if k.arg == "mode"))
            if isinstance(a, ast.Constant)
        ]
        binary = any(isinstance(mode, str) and "b" in mode and len(mode) <= 3 for mode in modes)
        least = {"read_text": 1, "write_text": 2}.get(last, 0)
        if isinstance(node.func, ast.Attribute) and len(node.args) < least:
            yield node.lineno, f"{last}() without encoding (encoding='utf-8')"
        elif name == "open" and not binary:
            yield node.lineno, "open() without encoding (encoding='utf-8')"


def event_loops(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Only the blocking twins and commands start an event loop; a room that did would break inside one."""
    if path.startswith(LOOPS_ALLOWED):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name.rsplit(".", 1)[-1] in RUNNERS and name.startswith(("asyncio.", "anyio.")):
                yield (
                    node.lineno,
                    f"{name}() inside a room (await instead; blocking twins go through lousho/runtime/blocking.py)",
                )


def restructured_text(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings are Markdown with single backticks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False) or ""
            without_blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            if RST.search(without_blocks):
                line = 1 if isinstance(node, ast.Module) else node.lineno
                yield line, "reStructuredText in a docstring (Markdown, single backticks)"


RULES: tuple[tuple[Rule, tuple[str, ...]], ...] = (
    (returned_exit, CHECKED),
    (room_imports_face, PRODUCT),
    (text_without_encoding, CHECKED),
    (event_loops, PRODUCT),
    (restructured_text, CHECKED),
)


def check_file(path: str, source: str) -> list[Finding]:
    """What one file, named by its path from the root, does against the rules."""
    tree = ast.parse(source)
    top = path.split("/", 1)[0]
    return [Finding(path, line, text) for rule, folders in RULES if top in folders for line, text in rule(path, tree)]


def main(root: Path = ROOT) -> int:
    """Check every file; returns the exit code."""
    findings: list[Finding] = []
    for folder in CHECKED:
        for file in sorted((root / folder).rglob("*.py")):
            findings += check_file(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.text}")
    print(f"project rules: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT))
