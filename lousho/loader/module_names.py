"""Which names of a module are its own: what it "exports", in a language where every import is an attribute too.

A tool file that does `from .shared import log_tool` uses that tool and does not offer it a second time. The source
tells the two apart: a name that only an import statement binds is not the file's own, unless `__all__` lists it. What
a factory returned (`send = make_tool("send")`) is, although its function was defined elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, cast


def own_names(module: ModuleType, source: bytes) -> list[str]:
    """Return the public names the module defines itself, in the order of their first assignment."""
    listed = _listed(module)
    imported, assigned, star = _bindings(ast.parse(source))
    own: list[str] = []
    for name in vars(module):
        if name in listed:
            own.append(name)
        elif name.startswith("_") or (name in imported and name not in assigned):
            continue
        elif not star or name in assigned:
            own.append(name)
    return own


def _listed(module: ModuleType) -> frozenset[str]:
    names: Any = getattr(module, "__all__", ())
    if not isinstance(names, (list, tuple, set, frozenset)):
        return frozenset()
    return frozenset(name for name in cast("Iterable[Any]", names) if isinstance(name, str))


def _bindings(tree: ast.Module) -> tuple[set[str], set[str], bool]:
    """Return the names bound by imports, those bound otherwise, and whether there is an `import *`."""
    imported: set[str] = set()
    assigned: set[str] = set()
    star = False
    for node in _module_level(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                star = star or alias.name == "*"
                imported.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            assigned.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.add(node.id)
    return imported, assigned, star


def _module_level(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes that run in the module's own scope: what functions and classes hold is not among them."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
