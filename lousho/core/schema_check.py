"""Finding mistakes in a JSON Schema that a developer wrote, before a model meets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from lousho.core.console_text import one_line
from lousho.core.errors import ROOT_PATH, ConfigurationError
from lousho.core.schema_base import path_text
from lousho.core.schema_reader import TYPE_NAMES
from lousho.core.schema_refs import MAX_DEPTH, Node, as_list, as_node

_KEYWORDS = frozenset({"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items", "$defs"})


def check_written_schema(schema: Node) -> None:
    """Refuse a JSON Schema written by hand that would not do what its author meant.

    Raises `LOUSHO_CONFIG_INVALID` naming the place.
    """
    for path, problem in _written_problems(schema, (), 0):
        place = path_text(path)
        raise ConfigurationError(
            f"The JSON Schema is wrong at {place}: {problem}", field=None if place == ROOT_PATH else place
        )
    if schema and not _KEYWORDS & schema.keys() and all(_looks_like_a_field(value) for value in schema.values()):
        names = ", ".join(f"'{name}'" for name in list(schema)[:5])
        raise ConfigurationError(
            f"The JSON Schema has fields ({names}) where its keywords should be; write"
            " {'type': 'object', 'properties': {...}} around them"
        )


def _written_problems(schema: object, path: tuple[object, ...], depth: int) -> Iterator[tuple[tuple[object, ...], str]]:
    if isinstance(schema, bool) or depth > MAX_DEPTH:
        return
    node = as_node(schema)
    if node is None:
        yield path, f"a schema is an object, not {_shown(schema)}"
        return
    kind = node.get("type")
    for name in as_list(kind) or ([] if kind is None else [kind]):
        if name not in TYPE_NAMES:
            yield (*path, "type"), f"{_shown(name)} is not a JSON type; the types are {', '.join(sorted(TYPE_NAMES))}"
    properties = node.get("properties", {})
    if as_node(properties) is None:
        yield (*path, "properties"), "properties is an object that maps each field's name to its schema"
    for name, part in (as_node(properties) or {}).items():
        yield from _written_problems(part, (*path, name), depth + 1)
    required = node.get("required")
    names = as_list(required)
    if required is not None and (names is None or not all(isinstance(name, str) for name in names)):
        yield (*path, "required"), "required is a list of field names"
    if "items" in node and as_list(node["items"]) is None:
        yield from _written_problems(node["items"], (*path, "items"), depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for index, part in enumerate(as_list(node.get(key)) or []):
            yield from _written_problems(part, (*path, key, index), depth + 1)


def _looks_like_a_field(value: object) -> bool:
    return as_node(value) is not None or isinstance(value, type) or (isinstance(value, str) and value in TYPE_NAMES)


def _shown(value: object) -> str:
    return one_line(cast("type[object]", value).__name__ if isinstance(value, type) else value, 40)
