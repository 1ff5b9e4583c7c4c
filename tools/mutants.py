"""Small changes to a line of Python that a test of its behaviour should notice.

Each mutation yields a whole new source text; `spec_bite.py` writes it into a copy of the tree. Only statements that do
something are changed: not docstrings, annotations, imports or `if TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple, cast

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """One changed source: the line, what was done to it, and the new text of the file."""

    line: int
    what: str
    source: str


def changed_expressions(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Copies of a statement, each with one expression of its own line turned around."""
    own = [node for node in walk_own(statement) if isinstance(node, ast.expr)]
    types = {id(part) for node in own for part in type_of_cast(node)}
    for index, node in enumerate(own):
        if id(node) in types:
            continue
        twin = copy.deepcopy(statement)
        other = [n for n in walk_own(twin) if isinstance(n, ast.expr)][index]
        if isinstance(node, ast.Compare) and isinstance(other, ast.Compare) and type(node.ops[0]) in OPPOSITE:
            other.ops[0] = OPPOSITE[type(node.ops[0])]()
            yield f"turn the comparison around: {ast.unparse(node)}", twin
        elif isinstance(node, ast.BoolOp) and isinstance(other, ast.BoolOp):
            other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield f"swap and/or: {ast.unparse(node)}", twin
        elif isinstance(node, ast.Constant) and isinstance(other, ast.Constant):
            value = node.value
            if isinstance(value, bool):
                other.value = not value
            elif isinstance(value, int):
                other.value = value + 1
            elif isinstance(value, str) and value:
                other.value = value + "~"
            else:
                continue
            yield f"change the constant {value!r}", twin


def type_of_cast(node: ast.expr) -> Iterator[ast.AST]:
    """What `cast(...)` names as a type: it does nothing when it runs."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast" and node.args:
        yield from ast.walk(node.args[0])


def walk_own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements inside it, and without annotations."""
    for name, value in ast.iter_fields(statement):
        if name in {"body", "orelse", "finalbody", "handlers", "annotation", "returns", "decorator_list", "args"}:
            continue
        children = cast("list[object]", value) if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from ast.walk(child)


def removed(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """The statement gone, or returning nothing."""
    if isinstance(statement, ast.Return) and statement.value is not None:
        if not (isinstance(statement.value, ast.Constant) and statement.value.value is None):
            yield f"return None: {ast.unparse(statement.value)[:60]}", ast.Return(value=None)
    elif isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
        yield f"delete: {ast.unparse(statement)[:60]}", ast.Pass()
    elif isinstance(statement, ast.If) and not statement.orelse:
        yield f"never: {ast.unparse(statement.test)[:60]}", ast.If(ast.Constant(False), statement.body, [])


def is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def lists_of_statements(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Every block of statements of the tree, except those under `if TYPE_CHECKING`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def mutants_of(source: str, lines: set[int]) -> Iterator[Mutant]:
    """Every mutant whose statement starts on one of `lines`. The new text is unparsed: comments go, behaviour stays."""
    tree = ast.parse(source)
    for block in lists_of_statements(tree):
        for index, statement in enumerate(block):
            if statement.lineno not in lines or is_docstring(statement):
                continue
            if isinstance(
                statement, ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            for what, instead in (*removed(statement), *changed_expressions(statement)):
                block[index] = instead
                text = ast.unparse(ast.fix_missing_locations(tree))
                block[index] = statement
                yield Mutant(statement.lineno, what, text)
