"""One spelling for every JSON Schema, so that a model, a drift check and a cassette see the same tool the same way
whether it was written as a pydantic model, a TypedDict, a dataclass, a function or a JSON Schema.

The canonical form:

* no `title`, `$schema`, `$id`, `$comment` or `discriminator`;
* local references written out; `$defs` holds only what refers to itself, and an unresolvable reference is any value;
* a value that may have several types, or be null, is an `anyOf` of one entry a type, `null` last (`type` is never a
  list); `oneOf` is `anyOf`, `nullable: true` an entry `null`, `const` an `enum` of one;
* `required` in the order of `properties`; a field with a default, or that may be left out, is not in it;
* an array has `items`, the root object has `properties`, and `additionalProperties: true` is left out as it says
  nothing;
* keys in one fixed order, so that equal schemas are equal bytes.

It is what a reader is shown; values are read with the schema as it was written. It only reads plain data, is bounded
in depth and size, and never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lousho.core.json_values import Json, JsonObject, to_json_value
from lousho.core.schema_base import json_type_name
from lousho.core.schema_refs import MAX_DEPTH, MAX_NODES, Node, References, as_list, as_node

_DROPPED = frozenset({"$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "discriminator", "$ref"})
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
_BY_TYPE = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"}),
    "object": frozenset(
        {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
    ),
}
_BY_TYPE["integer"] = _BY_TYPE["number"]
_TYPED_KEYWORDS = frozenset[str]().union(*_BY_TYPE.values())
_FIRST_KEYS = (
    "$ref",
    "type",
    "description",
    "enum",
    "default",
    "format",
    "anyOf",
    "allOf",
    "not",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
)
_ORDER = {key: index for index, key in enumerate(_FIRST_KEYS)}
_MAX_COMPARED = 200
"""Choices of one `anyOf` that are compared with each other."""


def canonical_schema(schema: Mapping[str, object]) -> JsonObject:
    """Return the canonical form of `schema`, a new object. Source: testing page, tools page."""
    return _Canonical(schema).root()


class _Canonical:
    def __init__(self, root: Node) -> None:
        self._source = root
        self._references = References(root)
        self._nodes = 0
        self._names: dict[str, str] = {}

    def root(self) -> JsonObject:
        root = self._source
        ref = root.get("$ref")
        if isinstance(ref, str) and (target := self._references.target(ref)) is not None and target is not root:
            root = _merged(target, {key: value for key, value in root.items() if key != "$ref"})
        out = self._node(root, 0)
        if out.get("type") == "object":
            out.setdefault("properties", {})
        definitions: dict[str, Json] = {}
        waiting = list(self._names)
        while waiting:
            ref = waiting.pop(0)
            definitions[self._names[ref]] = self._node(self._references.target(ref) or {}, 1)
            waiting.extend(ref for ref in self._names if self._names[ref] not in definitions and ref not in waiting)
        out = _ordered(out)
        if definitions:
            out["$defs"] = definitions
        return out

    def _node(self, value: object, depth: int) -> JsonObject:
        """Return the canonical form of one part."""
        self._nodes += 1
        if value is False:
            return {"not": {}}
        node = as_node(value)
        if node is None or depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return {}
        if "$ref" in node:
            return self._reference(node, depth)
        if node.get("nullable") is True:
            return self._nullable({key: value for key, value in node.items() if key != "nullable"}, depth)
        types = as_list(node.get("type")) or _types_of_enum(node)
        if types and "anyOf" not in node and "oneOf" not in node:
            return self._node(_split_types(node, types), depth)
        return _ordered(self._keywords(node, depth))

    def _reference(self, node: Node, depth: int) -> JsonObject:
        ref = node["$ref"]
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        target = self._references.target(ref)
        if target is None or not isinstance(ref, str):
            return self._node(siblings, depth)
        if not self._references.is_recursive(ref):
            return self._node(_merged(target, siblings), depth + 1)
        out: JsonObject = {"$ref": f"#/$defs/{self._name(ref)}"}
        if siblings.pop("nullable", False) is True:
            out = {"anyOf": [out, {"type": "null"}]}
        kept = {key: value for key, value in siblings.items() if key in _ANNOTATIONS and key != "title"}
        return _ordered(out | {key: to_json_value(value) for key, value in kept.items()})

    def _name(self, ref: str) -> str:
        if ref not in self._names:
            name = base = ref.rsplit("/", 1)[-1].lstrip("#") or "Root"
            number = 2
            while name in self._names.values():
                name = f"{base}{number}"
                number += 1
            self._names[ref] = name
        return self._names[ref]

    def _nullable(self, node: Node, depth: int) -> JsonObject:
        outer = {key: value for key, value in node.items() if key in _ANNOTATIONS}
        inner = {key: value for key, value in node.items() if key not in _ANNOTATIONS}
        return self._node({**outer, "anyOf": [inner, {"type": "null"}]}, depth)

    def _keywords(self, node: Node, depth: int) -> JsonObject:
        out: JsonObject = {}
        for key, value in node.items():
            if key in _DROPPED or (key == "title" and isinstance(value, str)):
                continue
            parts = as_list(value)
            if key in {"properties", "patternProperties"}:
                fields = as_node(value) or {}
                out[key] = {name: self._node(part, depth + 1) for name, part in fields.items()}
            elif key in {"items", "not", "contains", "additionalProperties"} and parts is None:
                out[key] = self._node(value, depth + 1)
            elif key in {"prefixItems", "items"}:  # a list of `items` is the older spelling of `prefixItems`
                out["prefixItems"] = [self._node(part, depth + 1) for part in parts or []]
            elif key in {"anyOf", "oneOf", "allOf"}:
                name = "anyOf" if key == "oneOf" and "anyOf" not in node else key
                out[name] = [self._node(part, depth + 1) for part in parts or []]
            elif key == "const":
                out["enum"] = [to_json_value(value)]
            else:
                out[key] = to_json_value(value)
        _settle_type(out)
        _settle_numbers(out)
        _settle_object(out)
        if out.get("type") == "array" and "prefixItems" not in out:
            out.setdefault("items", {})
        return _settle_any_of(_settle_all_of(out))


def _merged(target: Node, siblings: Node) -> Node:
    """Return a reference's target with what stands beside the reference; both count."""
    if all(key in _ANNOTATIONS or key in _DROPPED or key == "nullable" for key in siblings):
        return {**target, **siblings}
    return {**{key: value for key, value in siblings.items() if key in _ANNOTATIONS}, "allOf": [target, siblings]}


def _split_types(node: Node, types: list[object]) -> Node:
    """Return `type: [a, b]` as an `anyOf` with each keyword at the types it speaks of."""
    outer = {key: value for key, value in node.items() if key not in _TYPED_KEYWORDS and key not in {"type", "enum"}}
    branches: list[object] = []
    values = as_list(node.get("enum"))
    for name in types:
        branch: dict[str, object] = {"type": name}
        branch |= {key: value for key, value in node.items() if key in _BY_TYPE.get(str(name), ())}
        if values is not None:
            fitting = [value for value in values if _has_type(value, name)]
            if not fitting:
                continue
            if name != "null":
                branch["enum"] = fitting
        branches.append(branch)
    return {**outer, "anyOf": branches}


def _types_of_enum(node: Node) -> list[object]:
    """Return the types among the values of an `enum` that has no `type`, if there are several."""
    values = as_list(node.get("enum")) if "type" not in node else None
    kinds: dict[object, None] = {}
    for value in values or ():
        kinds["integer" if isinstance(value, int) and not isinstance(value, bool) else json_type_name(value)] = None
    if "number" in kinds:
        kinds.pop("integer", None)
    return list(kinds) if len(kinds) > 1 else []


def _has_type(value: object, name: object) -> bool:
    kind = json_type_name(value)
    if name == "integer":
        return kind == "number" and float(cast("float", value)).is_integer()
    return kind == name


def _settle_type(out: JsonObject) -> None:
    """Name the type where the other keywords leave no doubt."""
    if "type" in out:
        return
    values = out.get("enum")
    if isinstance(values, list) and values:
        kinds = {json_type_name(value) for value in values}
        if kinds == {"number"} and all(isinstance(value, int) for value in values):
            kinds = {"integer"}
        if len(kinds) == 1:
            out["type"] = cast("str", kinds.pop())
        if out.get("type") == "null":
            del out["enum"]
    elif not out.keys() & {"anyOf", "oneOf", "allOf", "$ref", "not"}:
        if "properties" in out:
            out["type"] = "object"
        elif out.keys() & {"items", "prefixItems"}:
            out["type"] = "array"


def _settle_numbers(out: JsonObject) -> None:
    """Write the older `minimum: 5, exclusiveMinimum: true` as `exclusiveMinimum: 5`."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = out.get(exclusive)
        if isinstance(flag, bool):
            del out[exclusive]
            if flag and bound in out:
                out[exclusive] = out.pop(bound)


def _settle_object(out: JsonObject) -> None:
    if out.get("additionalProperties") == {}:
        del out["additionalProperties"]
    elif out.get("additionalProperties") == {"not": {}}:
        out["additionalProperties"] = False
    required = out.pop("required", None)
    if isinstance(required, list):
        names = [name for name in required if isinstance(name, str)]
        properties = out.get("properties")
        order = list(properties) if isinstance(properties, dict) else []
        ranked = [name for name in order if name in names] + [name for name in names if name not in order]
        if ranked:
            out["required"] = list(dict.fromkeys(ranked))


def _settle_all_of(out: JsonObject) -> JsonObject:
    """Write an `allOf` of objects that do not contradict each other as one object."""
    parts = out.get("allOf")
    if not isinstance(parts, list):
        return out
    if not parts:
        return {key: value for key, value in out.items() if key != "allOf"}
    merged: JsonObject = {key: value for key, value in out.items() if key != "allOf"}
    for part in parts:
        if not isinstance(part, dict):
            return out
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                own = merged.setdefault("properties", {})
                if not isinstance(own, dict) or any(name in own and own[name] != value[name] for name in value):
                    return out
                merged["properties"] = {**own, **value}
            elif key == "required" and isinstance(value, list):
                own = merged.get("required", [])
                merged["required"] = [*(own if isinstance(own, list) else []), *value]
            elif key in merged and key in _ANNOTATIONS:
                continue
            elif merged.setdefault(key, value) != value:
                return out
    _settle_type(merged)
    _settle_object(merged)
    return merged


def _settle_any_of(out: JsonObject) -> JsonObject:
    """Flatten nested choices, drop repeated ones, put `null` last, and write a single choice as itself."""
    parts = out.get("anyOf")
    if not isinstance(parts, list):
        return out
    flat: list[Json] = []
    for part in parts:
        inner = part["anyOf"] if isinstance(part, dict) and part.keys() == {"anyOf"} else [part]
        for choice in cast("list[Json]", inner):
            if len(flat) > _MAX_COMPARED or choice not in flat:
                flat.append(choice)
    flat.sort(key=lambda choice: choice == {"type": "null"})
    rest = {key: value for key, value in out.items() if key != "anyOf"}
    if not flat:
        return rest
    only = flat[0]
    if len(flat) == 1 and isinstance(only, dict) and not (only.keys() & rest.keys()) - _ANNOTATIONS:
        return {**only, **rest}
    out["anyOf"] = flat
    return out


def _ordered(out: JsonObject) -> JsonObject:
    return {key: out[key] for key in sorted(out, key=lambda key: (_ORDER.get(key, len(_ORDER)), key))}
