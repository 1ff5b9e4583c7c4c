"""Schemas from Python types: pydantic models, dataclasses, TypedDicts and plain type hints. pydantic does the work.

A value is read the strict way first, which is one call into pydantic: numbers are numbers, `true` is no number and
"yes" is no boolean. Only when that fails, and no boolean is involved, it is read again the lenient way, so that a model
that wrote "5" for a number is understood.
"""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from lousho.core.errors import ConfigurationError, Issue
from lousho.core.json_values import JsonObject, to_json_value
from lousho.core.schema_base import Schema, SchemaMismatch, json_type_name, path_text
from lousho.core.schema_canonical import canonical_schema
from lousho.core.schema_hints import eager_hint, fields_of, portable_hint, type_name, unreadable_part

if TYPE_CHECKING:
    import pydantic
    from pydantic_core import ErrorDetails

JSON_TYPES_ADVICE = (
    "use str, int, float, bool, a list, a dict, an Enum or a datetime, or describe it with a pydantic model, a"
    " dataclass or a TypedDict"
)


class TypeSchema(Schema):
    """The schema of a Python type. Raises `LOUSHO_CONFIG_INVALID` for a type that no JSON value can satisfy."""

    def __init__(self, source: object) -> None:
        self._source = source
        self._adapter = _adapter_for(source)
        try:
            self._json_schema = canonical_schema(_json_schema_of(self._adapter))
        except Exception as error:
            raise refuse_type(source, error) from error
        unreadable = unreadable_part(source)
        if unreadable is not None:
            raise _unsatisfiable(*unreadable)

    @property
    def json_schema(self) -> JsonObject:
        return self._json_schema

    def parse(self, value: object) -> object:
        import pydantic
        import pydantic_core

        if self._counts_enumerate and (issues := _booleans_among_numbers(self._json_schema, value, ())):
            raise SchemaMismatch(issues)
        try:
            data = pydantic_core.to_json(value)
        except pydantic_core.PydanticSerializationError:
            return self._read(self._adapter.validate_python, value, value)
        try:
            return self._adapter.validate_json(data, strict=True)
        except pydantic.ValidationError as strict:
            return self._read_again(self._adapter.validate_json, data, value, strict)

    def dump(self, value: object) -> object:
        import pydantic_core

        try:
            return self._adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        except (pydantic_core.PydanticSerializationError, pydantic_core.ValidationError):
            return to_json_value(value)  # the second comes of a lazily read part, such as an `Iterable` of a model

    @functools.cached_property
    def _counts_enumerate(self) -> bool:
        """Whether some `enum` holds numbers: pydantic takes `true` for 1 there."""
        return _has_numeric_enum(self._json_schema)

    def _read(self, validate: Callable[..., object], data: object, value: object) -> object:
        """Read what JSON cannot carry (an object a caller handed in, half a surrogate pair)."""
        import pydantic

        try:
            return validate(data, strict=True)
        except pydantic.ValidationError as strict:
            return self._read_again(validate, data, value, strict)

    def _read_again(
        self, validate: Callable[..., object], data: object, value: object, strict: pydantic.ValidationError
    ) -> object:
        import pydantic

        errors = strict.errors(include_url=False, include_context=False)
        if any(isinstance(error["input"], bool) or error["type"] == "bool_type" for error in errors):
            raise SchemaMismatch(_issues(errors, value), cause=strict) from None
        if any(error["type"] == "float_type" and _is_endless(error["input"]) for error in errors):
            raise SchemaMismatch(_issues(errors, value), cause=strict) from None
        try:
            return validate(data)
        except pydantic.ValidationError as error:
            errors = error.errors(include_url=False, include_context=False)
            raise SchemaMismatch(_issues(errors, value), cause=error) from None


def _is_endless(value: object) -> bool:
    """Whether a text would be read as NaN or infinity: JSON has neither, and no limit (`days > 14`) holds for NaN."""
    try:
        return isinstance(value, str) and not math.isfinite(float(value))
    except ValueError:
        return False


def refuse_type(source: object, error: Exception) -> ConfigurationError:
    """Return the error that names the field of `source` no JSON value can satisfy, and how to fix it."""
    import pydantic

    old_typed_dict = isinstance(error, pydantic.errors.PydanticUserError) and error.code == "typed-dict-version"
    place, hint = _offending_field(source, (lambda part: portable_hint(part) is part) if old_typed_dict else _usable)
    subject = f"field '{place}'" if place else "the schema"
    if old_typed_dict:
        reason = f"{subject} uses typing.TypedDict; on this Python import TypedDict from typing_extensions instead"
    elif isinstance(error, (pydantic.errors.PydanticUndefinedAnnotation, NameError)):
        reason = f"{subject} has a type hint that cannot be resolved ({_first_line(error)}); define or import that name"
    elif isinstance(
        error, (pydantic.errors.PydanticSchemaGenerationError, pydantic.errors.PydanticInvalidForJsonSchema)
    ):
        return _unsatisfiable(place, hint, error)
    else:
        reason = f"{subject} has the type {type_name(hint)}, which is not usable: {_first_line(error)}"
    return ConfigurationError(f"{reason[0].upper()}{reason[1:]}", field=place or None, cause=error)


def _unsatisfiable(place: str, hint: object, error: Exception | None = None) -> ConfigurationError:
    subject = f"Field '{place}'" if place else "The schema"
    return ConfigurationError(
        f"{subject} has the type {type_name(hint)}, which no JSON value can satisfy; {JSON_TYPES_ADVICE}",
        field=place or None,
        cause=error,
    )


def _adapter_for(source: object) -> pydantic.TypeAdapter[Any]:
    import pydantic

    if isinstance(source, pydantic.TypeAdapter):
        return cast("pydantic.TypeAdapter[Any]", source)
    kind = type(source)
    if issubclass(kind, (pydantic.BaseModel, str, bytes, int, float, list)):
        raise ConfigurationError(
            f"A schema is a type or a JSON Schema, not a value of type {kind.__name__}; {JSON_TYPES_ADVICE}"
        )
    if inspect.isroutine(source) or isinstance(source, functools.partial):
        raise ConfigurationError("A schema is a type or a JSON Schema, not a function: pydantic would call it")
    try:
        return pydantic.TypeAdapter(portable_hint(eager_hint(source)))
    except Exception as error:  # a type may bring code of its own, which may raise anything
        raise refuse_type(source, error) from error


def _json_schema_of(adapter: pydantic.TypeAdapter[Any]) -> dict[str, Any]:
    return adapter.json_schema(by_alias=True, mode="validation", schema_generator=_generator())


@functools.cache
def _generator() -> type[pydantic.json_schema.GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        # A default that JSON cannot hold is a Python matter; the field is optional all the same.
        ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012 - as the base has it

        def is_subclass_schema(self, schema: Any) -> Any:
            return self.handle_invalid_for_json_schema(schema, "core_schema.IsSubclassSchema")

    return Generator


def _offending_field(
    source: object, usable: Callable[[object], bool], path: str = "", depth: int = 0
) -> tuple[str, object]:
    """Return the dotted path and type of the first field that makes `source` unusable."""
    if depth > 8:
        return path, source
    for name, hint in fields_of(source).items():
        if not usable(hint):
            return _offending_field(hint, usable, f"{path}.{name}" if path else name, depth + 1)
    for part in typing.get_args(source):
        if (isinstance(part, type) or typing.get_origin(part) is not None) and not usable(part):
            return _offending_field(part, usable, path, depth + 1)
    return path, source


def _usable(hint: object) -> bool:
    import pydantic

    try:
        _json_schema_of(pydantic.TypeAdapter(portable_hint(eager_hint(hint))))
    except Exception:  # noqa: BLE001 - any failure is the answer
        return False
    return True


def _issues(errors: list[ErrorDetails], value: object) -> list[Issue]:
    """Return pydantic's errors as issues: one a path, the choices of a union joined with "or"."""
    found: dict[str, list[str]] = {}
    received: dict[str, str] = {}
    for error in errors:
        path = _readable_path(error, value)
        message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        kind = json_type_name(error["input"])
        messages = found.setdefault(path, [])
        if messages and messages[0].startswith("Input should be "):
            message = message.removeprefix("Input should be ")
        if message not in messages and f"Input should be {message}" not in messages:
            messages.append(message)
        if error["type"].endswith("_type") and kind is not None:
            received[path] = f", received {kind}"
    return [Issue(path, " or ".join(messages) + received.get(path, "")) for path, messages in found.items()]


def _readable_path(error: ErrorDetails, value: object) -> str:
    """Return the path of an error inside `value`.

    pydantic mixes the names of union members into it; what neither exists in the value nor is missing there is one.
    """
    parts: list[object] = []
    current = value
    location = error["loc"]
    for index, part in enumerate(location):
        if isinstance(current, Mapping):
            fields = cast("Mapping[object, object]", current)
            if part in fields or str(part) in fields:
                parts.append(part)
                current = fields[part] if part in fields else fields[str(part)]
            elif index == len(location) - 1 and error["type"].startswith("missing"):
                parts.append(part)
        elif isinstance(current, (list, tuple)) and isinstance(part, int):
            items = cast("list[object] | tuple[object, ...]", current)
            parts.append(part)
            current = items[part] if part < len(items) else None
    return path_text(parts)


def _has_numeric_enum(schema: object) -> bool:
    if isinstance(schema, dict):
        fields = cast("dict[str, object]", schema)
        values = fields.get("enum")
        if isinstance(values, list) and any(json_type_name(item) == "number" for item in cast("list[object]", values)):
            return True
        return any(_has_numeric_enum(part) for part in fields.values())
    return isinstance(schema, list) and any(_has_numeric_enum(part) for part in cast("list[object]", schema))


def _booleans_among_numbers(schema: object, value: object, path: tuple[object, ...]) -> list[Issue]:
    """Return an issue for every boolean where one of some numbers is wanted."""
    if not isinstance(schema, dict):
        return []
    node = cast("dict[str, Any]", schema)
    values: list[object] = node.get("enum", [])
    found: list[Issue] = []
    if isinstance(value, bool) and values and not any(item is value for item in values):
        wanted = " or ".join(repr(item) for item in values)
        return [Issue(path_text(path), f"Input should be {wanted}, received boolean")]
    if isinstance(value, Mapping):
        for name, part in cast("Mapping[object, object]", value).items():
            inner = node.get("properties", {}).get(name, node.get("additionalProperties"))
            found += _booleans_among_numbers(inner, part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(cast("list[object]", value)):
            found += _booleans_among_numbers(node.get("items"), part, (*path, index))
    branches: list[dict[str, Any]] = node.get("anyOf", [])
    if isinstance(value, bool):  # of the choices without an enum, only these take it
        branches = [part for part in branches if "enum" in part or part.get("type", "boolean") == "boolean"]
    choices = [_booleans_among_numbers(choice, cast("object", value), path) for choice in branches]
    if choices and all(choices):
        found += choices[0]
    return found


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
