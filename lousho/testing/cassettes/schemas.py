"""One form for every way to print the same tool schema.

A cassette must go on matching when only the printer of a schema changed: pydantic, `TypedDict` and a hand-written JSON
Schema, draft 7 and 2020-12, and the two majors of the library that JavaScript tools are written with all spell the same
parameters differently. What the author wrote (names, types, optional, enum values, checks, descriptions) is kept; how
it was spelled is not. Source: testing page ("What replay checks").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

Schema: TypeAlias = "dict[str, Any]"

MAX_NODES = 20_000
"""Schema nodes that are visited; a schema that grows beyond this when its references are inlined is compared as it is."""

_SAFE_INTEGER = 2**53 - 1
_DROPPED = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "title", "discriminator", "nullable"})
_ANNOTATIONS = ("description", "default")
_BELONGS_TO: dict[str, str] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(
        ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"
    ),
    **dict.fromkeys(
        (
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
        ),
        "object",
    ),
}
"""Which type a keyword speaks of, so that `{type: [string, null], minLength: 1}` can be taken apart."""


class _TooLarge(Exception):
    """Inlining made the schema grow past `MAX_NODES`."""


def canonical_schema(schema: object, steady: Callable[[str], str] = str) -> Any:
    """Return `schema` in the one form that equal schemas share; `steady` masks what changes in descriptions.

    A reference that points into itself stays a reference, counted in levels upwards.
    """
    if not isinstance(schema, Mapping):
        return schema
    root = cast("Mapping[str, Any]", schema)
    try:
        return _Canonical(root, steady).of(root)
    except (_TooLarge, RecursionError):
        return dict(root)


def one_sided_patterns(recorded: Mapping[str, Any], actual: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys two schema nodes may differ in: some printers spell a `format` out as a `pattern` as well."""
    if (
        "format" in recorded
        and recorded["format"] == actual.get("format")
        and ("pattern" in recorded) != ("pattern" in actual)
    ):
        return frozenset({"pattern"})
    return frozenset()


class _Canonical:
    """One pass over one schema."""

    def __init__(self, root: Mapping[str, Any], steady: Callable[[str], str]) -> None:
        self._root = root
        self._steady = steady
        self._path: list[str] = []
        self._left = MAX_NODES

    def of(self, schema: object) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _TooLarge
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            return schema
        node = dict(cast("Mapping[str, Any]", schema))
        if isinstance(node.get("$ref"), str):
            return self._reference(node)
        if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
            only = node.pop("allOf")[0]
            return self.of({**cast("Schema", only), **node} if isinstance(only, dict) else node)
        alternatives = self._alternatives(node)
        return self._union(node, alternatives) if alternatives is not None else self._single(node)

    def _reference(self, node: Schema) -> Any:
        pointer = str(node.pop("$ref"))
        target = self._lookup(pointer)
        if target is None:
            return {"$ref": pointer, **self._single(node)}
        if pointer in self._path:
            return {"$ref": f"{len(self._path) - self._path.index(pointer)} up", **self._single(node)}
        self._path.append(pointer)
        try:
            return self.of({**target, **node})
        finally:
            self._path.pop()

    def _lookup(self, pointer: str) -> Mapping[str, Any] | None:
        if not pointer.startswith("#"):
            return None
        found: Any = self._root
        for part in pointer[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = cast("Mapping[str, Any]", found).get(key)
            elif isinstance(found, list) and key.isdigit():
                found = next(iter(cast("list[Any]", found)[int(key) : int(key) + 1]), None)
            else:
                return None
        return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None

    def _alternatives(self, node: Schema) -> list[Any] | None:
        """Take what makes `node` a choice out of it and return the choices; None when it is not one."""
        choices: list[Any] | None = None
        for key in ("anyOf", "oneOf"):
            if choices is None and isinstance(node.get(key), list):
                choices = list(node.pop(key))
        nullable = node.get("nullable") is True
        if choices is None and isinstance(node.get("type"), list):
            choices = _split_types(node)
        if choices is None and nullable:
            inner = {key: node.pop(key) for key in list(node) if key not in (*_ANNOTATIONS, "nullable")}
            choices = [inner]
        if choices is None and _mixed_enum(node):
            values = node.pop("enum")
            node.pop("type", None)
            choices = [{"enum": [value for value in values if value is not None]}, {"type": "null"}]
        if choices is not None and nullable:
            choices.append({"type": "null"})
        return choices

    def _union(self, node: Schema, alternatives: list[Any]) -> Any:
        node.pop("nullable", None)
        flat: list[Any] = []
        for alternative in map(self.of, alternatives):
            nested: Any = cast("Schema", alternative).get("anyOf") if isinstance(alternative, dict) else None
            if isinstance(nested, list) and len(cast("Schema", alternative)) == 1:
                flat.extend(cast("list[Any]", nested))
            else:
                flat.append(alternative)
        flat = _unique(_merged_enums(flat))
        rest = self._single(node)
        if len(flat) == 1 and isinstance(flat[0], dict):
            return {**cast("Schema", flat[0]), **rest}
        return {"anyOf": flat, **rest}

    def _single(self, node: Schema) -> Schema:
        out: Schema = {}
        for key, value in node.items():
            if key in _DROPPED:
                continue
            if key == "description" and isinstance(value, str):
                out[key] = self._steady(" ".join(value.split()))
            elif key == "default":
                if value is not None:
                    out[key] = value
            elif key in ("properties", "patternProperties") and isinstance(value, Mapping):
                out[key] = {name: self.of(inner) for name, inner in cast("Mapping[str, Any]", value).items()}
            elif key in ("prefixItems", "allOf", "anyOf", "oneOf") and isinstance(value, list):
                out[key] = [self.of(inner) for inner in cast("list[Any]", value)]
            elif key in ("items", "additionalProperties", "additionalItems", "propertyNames", "not", "contains"):
                out[key] = (
                    [self.of(inner) for inner in cast("list[Any]", value)]
                    if isinstance(value, list)
                    else self.of(value)
                )
            else:
                out[key] = value
        _settle_values(out)
        _settle_numbers(out)
        _settle_array(out)
        _settle_object(out)
        if isinstance(out.get("allOf"), list):
            out["allOf"] = _unique(out["allOf"])
        return out


def _split_types(node: Schema) -> list[Any]:
    """Take `type: [a, b]` and the keywords of those types out of `node`; return one schema per type."""
    types = [str(one) for one in node.pop("type")]
    values = node.pop("enum", None)
    choices: list[Any] = []
    for one in types:
        choice: Schema = {"type": one}
        for key, owner in _BELONGS_TO.items():
            if key in node and owner == ("number" if one == "integer" else one):
                choice[key] = node[key]
        if isinstance(values, list):
            fitting = [value for value in cast("list[Any]", values) if _type_name(value) == one]
            if not fitting:
                continue
            choice["enum"] = fitting
        choices.append(choice)
    for key in _BELONGS_TO:
        node.pop(key, None)
    return choices


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _mixed_enum(node: Schema) -> bool:
    values = node.get("enum")
    return isinstance(values, list) and None in values and len(cast("list[Any]", values)) > 1


def _merged_enums(alternatives: list[Any]) -> list[Any]:
    """Put choices that only list values into one list: `a` or `b` is the enum of `a` and `b`."""
    values: list[Any] = []
    others: list[Any] = []
    for alternative in alternatives:
        if isinstance(alternative, dict) and set(cast("Schema", alternative)) == {"enum"}:
            values.extend(cast("list[Any]", alternative["enum"]))
        else:
            others.append(alternative)
    return [*others, {"enum": _unique(values)}] if values else others


def _unique(items: list[Any]) -> list[Any]:
    """Return `items` without repetitions, in an order of their own."""
    return list({json.dumps(item, sort_keys=True): item for item in sorted(items, key=_sort_key)}.values())


def _sort_key(item: object) -> str:
    return json.dumps(item, sort_keys=True)


def _settle_values(node: Schema) -> None:
    if "const" in node:
        node["enum"] = [node.pop("const")]
    values = node.get("enum")
    if isinstance(values, list):
        node["enum"] = _unique(cast("list[Any]", values))
        node.pop("type", None)
        if values == [None]:
            del node["enum"]
            node["type"] = "null"


def _settle_numbers(node: Schema) -> None:
    for limit in ("Minimum", "Maximum"):
        inclusive, exclusive = limit.lower(), f"exclusive{limit}"
        if node.get(exclusive) is True and inclusive in node:
            node[exclusive] = node.pop(inclusive)
        elif node.get(exclusive) is False:
            del node[exclusive]
    if node.get("type") == "integer":
        # One printer adds the range of a double to every integer; nobody wrote it.
        if node.get("minimum") == -_SAFE_INTEGER:
            del node["minimum"]
        if node.get("maximum") == _SAFE_INTEGER:
            del node["maximum"]


def _settle_array(node: Schema) -> None:
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if "additionalItems" in node:
            node["items"] = node.pop("additionalItems")
    fixed = node.get("prefixItems")
    if isinstance(fixed, list):
        length = len(cast("list[Any]", fixed))
        for key in ("minItems", "maxItems"):
            if node.get(key) == length:
                del node[key]
        if node.get("items") is False:
            del node["items"]
    if node.get("items") == {}:
        del node["items"]


def _settle_object(node: Schema) -> None:
    if node.get("additionalProperties") in (False, {}):
        del node["additionalProperties"]
    if node.get("propertyNames") in ({}, {"type": "string"}):
        del node["propertyNames"]
    properties = node.get("properties")
    if isinstance(properties, dict) and not any(key in node for key in ("type", "anyOf", "allOf", "$ref")):
        node["type"] = "object"
    listed = node.pop("required", None)
    names: set[str] = {str(name) for name in cast("list[Any]", listed)} if isinstance(listed, list) else set()
    if isinstance(properties, dict):
        known = cast("dict[str, Any]", properties)
        for name, inner in known.items():
            # A default, and a property that takes anything, cannot be missed: printers disagree on listing them.
            if inner == {} or (isinstance(inner, dict) and "default" in inner):
                names.discard(name)
            if name not in names:
                known[name] = _without_null(inner)
        if not known:
            del node["properties"]
    if names:
        node["required"] = sorted(names)


def _without_null(schema: Any) -> Any:
    """Return the schema of an optional property: that it may also be null says the same as leaving it out."""
    choices = cast("Schema", schema).get("anyOf") if isinstance(schema, dict) else None
    if not isinstance(choices, list):
        return cast("Any", schema)
    rest = {key: value for key, value in cast("Schema", schema).items() if key != "anyOf"}
    left = [choice for choice in cast("list[Any]", choices) if choice != {"type": "null"}]
    if len(left) == 1 and isinstance(left[0], dict):
        return {**cast("Schema", left[0]), **rest}
    return {"anyOf": left, **rest}
