"""Making a JSON Schema from outside fit for checking values with it.

What arrives may be wrong or hostile, so reading it is permissive and bounded: a keyword that is unknown or unusable says
nothing, references are followed inside the document only, and a pattern is matched in linear time or not at all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from lousho.core.json_values import to_json_value
from lousho.core.schema_refs import MAX_DEPTH, MAX_NODES, Node, References, as_list, as_node

TYPE_NAMES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
MAX_PATTERN_CHARS = 1_000

_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})

Readable = dict[str, Any]
"""A schema of which every keyword can be checked."""


def readable_schema(schema: Mapping[str, object]) -> Readable:
    """Return `schema` with references written out and only what can be checked left in it.

    A reference inside itself, an unresolvable one and a tuple's `items` are any value, `oneOf` is a plain choice, and a
    field with a default is never required.
    """
    return _Reader(schema).node(schema, 0, frozenset())


class _Reader:
    def __init__(self, root: Node) -> None:
        self._references = References(root)
        self._nodes = 0

    def node(self, value: object, depth: int, open_refs: frozenset[str]) -> Readable:
        self._nodes += 1
        if value is False:
            return {"not": {}}
        source = as_node(value)
        if source is None or depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return {}
        ref = source.get("$ref")
        if ref is not None:
            siblings = self.node({key: part for key, part in source.items() if key != "$ref"}, depth, open_refs)
            target = self._references.target(ref)
            if target is None or not isinstance(ref, str) or ref in open_refs:
                return siblings
            out = self.node(target, depth + 1, open_refs | {ref})
            return {"allOf": [out, siblings]} if siblings else out
        out: Readable = {}
        for key, part in source.items():
            self._keyword(out, key, part, depth, open_refs)
        _settle_bounds(out, source)
        if "patternProperties" in source:  # names are not checked by pattern, so which are extra cannot be told
            out.pop("additionalProperties", None)
        properties = out.get("properties")
        required = as_list(source.get("required")) or []
        given = cast("Readable", properties) if isinstance(properties, dict) else {}
        wanted = [name for name in required if isinstance(name, str) and not _has_default(given.get(name))]
        if wanted:
            out["required"] = to_json_value(wanted)
        if source.get("nullable") is True:
            inner = {key: part for key, part in out.items() if key != "default"}
            default: Readable = {"default": out["default"]} if "default" in out else {}
            return {**default, "anyOf": [inner, {"type": ["null"]}]}
        return out

    def _keyword(self, out: Readable, key: str, part: object, depth: int, open_refs: frozenset[str]) -> None:
        fields, parts = as_node(part), as_list(part)
        if key == "properties" and fields is not None:
            out[key] = {name: self.node(field, depth + 1, open_refs) for name, field in fields.items()}
        elif key in {"items", "additionalProperties"} and (fields is not None or isinstance(part, bool)):
            out[key] = self.node(part, depth + 1, open_refs)
        elif key == "prefixItems" and parts is not None:
            out[key] = [self.node(item, depth + 1, open_refs) for item in parts]
        elif key in {"anyOf", "oneOf", "allOf"} and parts:
            choices = [self.node(item, depth + 1, open_refs) for item in parts]
            if key == "allOf":
                out["allOf"] = [*cast("list[Any]", out.get("allOf", [])), *choices]
            elif "anyOf" in out:
                out["allOf"] = [*cast("list[Any]", out.get("allOf", [])), {"anyOf": choices}]
            else:
                out["anyOf"] = choices
        elif key in {"default", "const"} or (key == "enum" and parts is not None):
            out[key] = to_json_value(part)
        elif usable := _usable_keyword(key, part):
            out[key] = to_json_value(usable[0])


def _usable_keyword(key: str, value: object) -> tuple[object] | None:
    """Return the value of a plain keyword in a tuple if it can be checked, else None."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) else None
    if key == "type":
        names = [value] if isinstance(value, str) else as_list(value) or []
        return (names,) if names and all(isinstance(name, str) and name in TYPE_NAMES for name in names) else None
    if key in _COUNTS:
        return (int(number),) if number is not None and number >= 0 else None
    if key in _BOUNDS:
        return (number,) if number is not None else None
    if key == "multipleOf":
        return (number,) if number is not None and number > 0 else None
    if key == "uniqueItems":
        return (value,) if isinstance(value, bool) else None
    if key == "pattern":
        return (value,) if isinstance(value, str) and pattern_matcher(value) is not None else None
    return None


def _settle_bounds(out: Readable, source: Node) -> None:
    """Read the older `minimum: 5, exclusiveMinimum: true`."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if source.get(exclusive) is True and bound in out:
            out[exclusive] = out.pop(bound)


def _has_default(schema: object) -> bool:
    return isinstance(schema, dict) and "default" in schema


@functools.lru_cache(maxsize=512)
def pattern_matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return a search for `pattern` that takes linear time, or None for a pattern that has none.

    The engine is the one of pydantic: it knows neither look-around nor back references, which is why it cannot be made
    to hang.
    """
    from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

    if len(pattern) > MAX_PATTERN_CHARS:
        return None
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None

    def matches(text: str) -> bool:
        try:
            validator.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches
