"""Schemas given as JSON Schema: an MCP server's, an OpenAPI document's, or one written by hand.

`jsonschema` does the checking, with a schema that `schema_reader` made fit for it; the words of the issues are those of
the other kinds of schema.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from lousho.core.errors import ROOT_PATH, Issue
from lousho.core.json_values import JsonObject, to_json_value
from lousho.core.schema_base import MAX_ISSUES, Schema, SchemaMismatch, json_type_name, path_text
from lousho.core.schema_canonical import canonical_schema
from lousho.core.schema_reader import Readable, pattern_matcher, readable_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as JsonSchemaError

MAX_UNIQUE_ITEMS = 1_000
"""Items up to which `uniqueItems` is checked: the comparison is quadratic."""


class DictSchema(Schema):
    """The schema a JSON Schema object describes. Source: API overview page, "Schema support"."""

    def __init__(self, source: Mapping[str, object]) -> None:
        self._source = source

    @property
    def json_schema(self) -> JsonObject:
        return self._canonical

    def parse(self, value: object) -> object:
        """Return `value` with defaults filled in and whole numbers as `int`. Raises `SchemaMismatch`."""
        try:
            errors: Iterator[JsonSchemaError] = self._validator.iter_errors(value)
            issues = [issue for error in itertools.islice(errors, MAX_ISSUES * 2) for issue in _issues(error)]
            if issues:
                raise SchemaMismatch(_joined(issues))
            return _completed(self._readable, value, self._validator)
        except RecursionError:
            raise SchemaMismatch([Issue(ROOT_PATH, "the value is nested too deeply")]) from None

    def dump(self, value: object) -> object:
        return to_json_value(value)

    @functools.cached_property
    def _canonical(self) -> JsonObject:
        return canonical_schema(self._source)

    @functools.cached_property
    def _readable(self) -> Readable:
        return readable_schema(self._source)

    @functools.cached_property
    def _validator(self) -> Any:
        return _validator_class()(self._readable)


@functools.cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    standard: Mapping[str, Any] = Draft202012Validator.VALIDATORS

    def pattern(_validator: object, wanted: str, value: object, _schema: object) -> Iterator[ValidationError]:
        search = pattern_matcher(wanted)
        if isinstance(value, str) and search is not None and not search(value):
            yield ValidationError(f"String should match pattern '{wanted}'")

    def unique_items(validator: object, wanted: bool, value: object, schema: object) -> Iterator[ValidationError]:
        if isinstance(value, list) and len(cast("list[object]", value)) <= MAX_UNIQUE_ITEMS:
            yield from standard["uniqueItems"](validator, wanted, value, schema) or ()

    def multiple_of(validator: object, wanted: float, value: object, schema: object) -> Iterator[ValidationError]:
        try:
            yield from standard["multipleOf"](validator, wanted, value, schema) or ()
        except (OverflowError, ValueError):  # a number too large to divide
            return

    changed = {"pattern": pattern, "uniqueItems": unique_items, "multipleOf": multiple_of}
    make = cast("Any", extend)
    return make(Draft202012Validator, changed)


def _issues(error: JsonSchemaError) -> list[Issue]:
    """Return one of jsonschema's errors as issues in the words of the other schemas."""
    path: list[object] = list(error.absolute_path)
    keyword, wanted, value = str(error.validator), cast("Any", error.validator_value), cast("Any", error.instance)
    if keyword == "required":
        missing = [name for name in wanted if name not in value]
        # One error comes per missing name; its message starts with the name.
        named = [name for name in missing if error.message.startswith(repr(name))]
        return [Issue(path_text([*path, name]), "Field required") for name in named or missing[:1]]
    if keyword == "not" and path and wanted == {}:
        return [Issue(path_text(path), "Extra inputs are not permitted")]
    if keyword == "anyOf" and error.context:
        inner: list[JsonSchemaError] = list(error.context)
        deepest = max(len(part.absolute_path) for part in inner)
        # A choice that fitted as far as some field says more than the ones whose type was wrong at once.
        return [issue for part in inner if len(part.absolute_path) == deepest for issue in _issues(part)]
    return [Issue(path_text(path), _message(keyword, wanted, value) or error.message)]


_NOUNS = {
    "string": "a valid string",
    "number": "a valid number",
    "integer": "a valid integer",
    "boolean": "a valid boolean",
    "array": "a valid array",
    "object": "an object",
    "null": "null",
}


def _message(keyword: str, wanted: Any, value: Any) -> str | None:
    match keyword:
        case "type":
            nouns = " or ".join(_NOUNS[name] for name in wanted)
            return f"Input should be {nouns}, received {json_type_name(value) or type(value).__name__}"
        case "enum" | "const":
            values = [wanted] if keyword == "const" else wanted
            shown = [repr(item) for item in values[:20]]
            return f"Input should be {' or '.join([', '.join(shown[:-1]), shown[-1]] if shown[1:] else shown)}"
        case "minLength" | "maxLength":
            few = "least" if keyword == "minLength" else "most"
            return f"String should have at {few} {wanted} character{'' if wanted == 1 else 's'}"
        case "minItems" | "maxItems":
            few = "least" if keyword == "minItems" else "most"
            return f"List should have at {few} {wanted} item{'' if wanted == 1 else 's'}, not {len(value)}"
        case "minimum" | "maximum":
            return f"Input should be {'greater' if keyword == 'minimum' else 'less'} than or equal to {wanted}"
        case "exclusiveMinimum" | "exclusiveMaximum":
            return f"Input should be {'greater' if keyword == 'exclusiveMinimum' else 'less'} than {wanted}"
        case "minProperties" | "maxProperties":
            few = "least" if keyword == "minProperties" else "most"
            return f"Object should have at {few} {wanted} field{'' if wanted == 1 else 's'}, not {len(value)}"
        case "uniqueItems":
            return "Items should all be different"
        case "multipleOf":
            return f"Input should be a multiple of {wanted}"
        case _:
            return None


def _joined(issues: list[Issue]) -> list[Issue]:
    """Return one issue a path; what the choices of a union want is joined with "or"."""
    found: dict[str, list[str]] = {}
    for issue in issues:
        messages = found.setdefault(issue.path, [])
        if issue.message not in messages:
            messages.append(issue.message)
    return [Issue(path, _either(messages)) for path, messages in found.items()]


def _either(messages: list[str]) -> str:
    start = "Input should be "
    heads = [message.partition(", received ") for message in messages]
    if len(messages) > 1 and all(message.startswith(start) for message in messages):
        wanted = dict.fromkeys(head.removeprefix(start) for head, _, _ in heads)
        received = next((f", received {tail}" for _, _, tail in heads if tail), "")
        return f"{start}{' or '.join(wanted)}{received}"
    return " or ".join(messages)


def _completed(schema: object, value: object, validator: Any) -> object:
    """Return a valid `value` with the defaults of `schema` filled in and whole numbers as `int`."""
    if not isinstance(schema, dict):
        return value
    node = cast("dict[str, Any]", schema)
    complete = value
    if isinstance(value, float) and value.is_integer() and "integer" in node.get("type", ()):
        complete = int(value)
    elif isinstance(value, dict):
        complete = _completed_object(node, cast("dict[str, object]", value), validator)
    elif isinstance(value, list) and "items" in node:
        complete = [_completed(node["items"], item, validator) for item in cast("list[object]", value)]
    for part in node.get("allOf", ()):
        complete = _completed(part, complete, validator)
    choices: list[object] = node.get("anyOf", [])
    for choice in choices:
        if validator.evolve(schema=choice).is_valid(complete):
            return _completed(choice, complete, validator)
    return complete


def _completed_object(node: dict[str, Any], value: dict[str, object], validator: Any) -> dict[str, object]:
    properties: dict[str, Any] = node.get("properties", {})
    extra = node.get("additionalProperties")
    complete = {name: _completed(properties.get(name, extra), part, validator) for name, part in value.items()}
    for name, field in properties.items():
        if name not in complete and "default" in field:
            complete[name] = copy.deepcopy(field["default"])
    return complete
