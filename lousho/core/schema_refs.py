"""Finding what a `$ref` of a JSON Schema points to. Only places inside the same document count: nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

Node = Mapping[str, object]

MAX_DEPTH = 64
"""Nesting of a schema beyond which a part counts as "any value"."""
MAX_NODES = 20_000
"""Parts a schema may have once its references are written out; what comes after counts as "any value"."""


def as_node(value: object) -> Node | None:
    """Return `value` if it is a JSON object with text keys."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in cast("Mapping[object, object]", value)):
        return cast("Node", value)
    return None


def as_list(value: object) -> list[object] | None:
    """Return `value` as a list if it is a JSON array."""
    return list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else None


class References:
    """The references of one document: what each points to, and which lead back to themselves."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._recursive: dict[str, bool] = {}
        self._direct: dict[str, set[str]] = {}

    def target(self, ref: object) -> Node | None:
        """Return the part that `ref` (`#`, `#/$defs/City`) points to, or None when it is not in this document."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        current: object = self._root
        for step in ref[1:].split("/")[1:]:
            name = step.replace("%24", "$").replace("~1", "/").replace("~0", "~")
            node = as_node(current)
            items = as_list(current)
            if node is not None:
                current = node.get(name)
            elif items is not None and name.isdecimal() and int(name) < len(items):
                current = items[int(name)]
            else:
                return None
        return as_node(current) if ref in {"#", "#/"} or ref.startswith("#/") else None

    def is_recursive(self, ref: str) -> bool:
        """Return whether what `ref` points to refers to itself, directly or through others."""
        if ref not in self._recursive:
            self._recursive[ref] = ref in self._reachable(ref)
        return self._recursive[ref]

    def _reachable(self, start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            current = waiting.pop()
            if current not in self._direct:
                self._direct[current] = _refs_in(self.target(current))
            for ref in self._direct[current]:
                if ref not in seen:
                    seen.add(ref)
                    waiting.append(ref)
        return seen


def _refs_in(node: Node | None) -> set[str]:
    """Return every `$ref` below `node`, without following any."""
    found: set[str] = set()
    waiting: list[object] = [node]
    for _ in range(MAX_NODES):
        if not waiting:
            break
        current = waiting.pop()
        mapping = as_node(current)
        if mapping is not None:
            ref = mapping.get("$ref")
            if isinstance(ref, str):
                found.add(ref)
            waiting.extend(mapping.values())
        else:
            waiting.extend(as_list(current) or [])
    return found
