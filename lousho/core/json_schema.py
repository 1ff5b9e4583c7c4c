"""Schemas of the values a model sends: tool arguments and structured replies.

One face over three sources: Python types (`schema_types`), JSON Schema objects (`schema_dict`) and functions
(`schema_function`). pydantic and jsonschema are imported on first use, never by importing this file.
"""

from __future__ import annotations

from lousho.core.errors import ConfigurationError, Issue
from lousho.core.schema_base import Schema, SchemaMismatch, json_type_name, path_text
from lousho.core.schema_canonical import canonical_schema
from lousho.core.schema_check import check_written_schema
from lousho.core.schema_dict import DictSchema
from lousho.core.schema_function import FunctionSchema, IsContext, is_context_hint, schema_of_function
from lousho.core.schema_refs import as_node
from lousho.core.schema_types import TypeSchema

__all__ = [
    "DictSchema",
    "FunctionSchema",
    "IsContext",
    "Issue",
    "Schema",
    "SchemaMismatch",
    "TypeSchema",
    "canonical_schema",
    "is_context_hint",
    "json_type_name",
    "object_schema_of",
    "path_text",
    "schema_of",
    "schema_of_function",
]


def schema_of(source: object, *, lenient: bool = False) -> Schema:
    """Return the schema of `source`: a pydantic model, TypedDict, dataclass, type hint, JSON Schema object or `Schema`.

    Equal shapes have equal `json_schema`, whatever they were written in. A JSON Schema with a mistake in it is refused
    unless `lenient` is true (an outside server's, where a bad keyword just says nothing). Raises
    `LOUSHO_CONFIG_INVALID` naming the field that no JSON value can satisfy, and how to fix it. Source: tools page.
    """
    if isinstance(source, Schema):
        return source
    node = as_node(source)
    if node is None:
        return TypeSchema(source)
    if not lenient:
        check_written_schema(node)
    return DictSchema(node)


def object_schema_of(source: object, *, subject: str = "input", lenient: bool = False) -> Schema:
    """Return `schema_of(source)` if its root is one object, as the arguments of a tool are.

    An empty JSON Schema counts as an object without fields. Raises `LOUSHO_CONFIG_INVALID`; its `field` is `subject`.
    Source: tools page.
    """
    if as_node(source) == {}:
        source = {"type": "object"}
    schema = schema_of(source, lenient=lenient)
    if not schema.is_object:
        kind = schema.json_schema.get("type")
        raise ConfigurationError(
            f"{subject}: the root must be an object, not {kind if isinstance(kind, str) else 'a choice of types'},"
            " because a model sends arguments as a JSON object; wrap it as {value: ...}, for example in a TypedDict or"
            " pydantic model with one field `value`",
            field=subject,
        )
    return schema
