"""Tools that were not made with `@tool`: a mapping or an object with a description and a function becomes a `Tool`.

Such descriptors come from other code (a client of another protocol, a library) or are written by hand. Field names are
read in both spellings, `input_schema` and `inputSchema`. Source: tools page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from lousho.core.errors import ConfigurationError
from lousho.core.json_schema import Schema, object_schema_of
from lousho.core.json_values import JsonObject, to_json_value
from lousho.core.redact import shown
from lousho.tools.tool_options import ALIASES, OPTIONS, check_name, refuse_unknown
from lousho.tools.tool_type import Tool


@runtime_checkable
class ToolDescriptor(Protocol):
    """What an object needs to be taken as a tool; a `Tool` is one. Source: tools page.

    It may also have `name`, `input_schema`, `display_name`, `needs_approval` and the other options of `define_tool()`.
    """

    @property
    def description(self) -> str:
        """What the model reads to decide when to call the tool."""
        ...

    @property
    def execute(self) -> Callable[..., Any]:
        """The function: of (arguments), or of (arguments, context)."""
        ...


ToolLike: TypeAlias = "Tool | ToolDescriptor | Mapping[str, Any]"
"""What can be given as a tool: a tool, or a descriptor (an object or a mapping)."""

_SCHEMA_NAMES = ("input", "input_schema", "parameters")
_INNER = "tool"
_INNER_FIELDS = ("description", "execute", *_SCHEMA_NAMES)
"""What may stand in an inner `tool` object instead."""
_FIELDS = (*OPTIONS, *_SCHEMA_NAMES[1:], _INNER)
_CAMEL = {option.replace("_", ""): option for option in _FIELDS}
_GATE_NAMES = tuple(name for name, option in ALIASES.items() if option == "needs_approval")


class AnyArguments(Schema):
    """The schema of a tool that has none: whatever a model sends is handed on as it is."""

    @property
    def json_schema(self) -> JsonObject:
        return {"type": "object", "properties": {}}

    def parse(self, value: object) -> object:
        return value

    def dump(self, value: object) -> object:
        return to_json_value(value)


def as_tool(value: object, name: str | None = None, *, where: str = "tools") -> Tool:
    """Return `value` as a tool, under `name` when one is given (else under the name it has itself).

    A `Tool` is renamed. A descriptor is a mapping or an object with `description` and `execute`, and what else
    `define_tool()` takes; its schema may be called `input_schema`, `inputSchema` or `parameters`, and without one its
    arguments are not checked. `execute` gets the arguments as one value, and the context as a second one.
    `where` begins the messages. Raises `LOUSHO_CONFIG_INVALID`.
    """
    if isinstance(value, Tool):
        if name is None:
            return value
        check_name(name)
        return value.renamed(name)
    fields = _fields_of(value, where)
    wanted = fields.pop("name", None) if name is None else name
    fields.pop("name", None)
    if wanted is None:
        raise ConfigurationError(
            f"{where}: a tool descriptor has no name of its own: give it one, or put it under a key, "
            "as in tools={'name': descriptor}.",
            field="name",
        )
    check_name(wanted)
    source = next((fields.pop(key) for key in _SCHEMA_NAMES if key in fields), None)
    schema = AnyArguments() if source is None else object_schema_of(source, lenient=True)
    for key in ("description", "execute"):
        if key not in fields:
            raise ConfigurationError(f"{where}: the descriptor of the tool {wanted!r} has no {key}.", field=key)
    return Tool(name=wanted, schema=schema, **fields)


def _fields_of(value: object, where: str) -> dict[str, Any]:
    """Return the fields of a descriptor under our names; those that are `None` count as not there."""
    if isinstance(value, Mapping):
        fields = _read_mapping(cast("Mapping[object, object]", value), where, _FIELDS)
    elif isinstance(value, (FunctionType, type, str, bytes, list, tuple)) or value is None:
        raise _no_tool(cast("object", value), where)
    else:
        fields = _read_object(value, where)
        if not {"description", "execute", _INNER} & fields.keys():
            raise _no_tool(value, where)
    inner = fields.pop(_INNER, None)
    if inner is None:
        return fields
    if isinstance(inner, Mapping):
        found = _read_mapping(cast("Mapping[object, object]", inner), f"{where}: tool", _INNER_FIELDS)
    else:
        found = _read_object(inner, where)
    has_schema = any(key in fields for key in _SCHEMA_NAMES)
    return {key: part for key, part in found.items() if not (has_schema and key in _SCHEMA_NAMES)} | fields


def _read_mapping(given: Mapping[object, object], where: str, known: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, part in given.items():
        option = _CAMEL.get(str(key).replace("_", "").lower())
        if option is None or option not in known:
            refuse_unknown([key], where, known)
            continue
        if part is None:
            continue
        if option in fields:
            raise _twice(option, where)
        fields[option] = part
    return fields


def _read_object(value: object, where: str) -> dict[str, Any]:
    """Return the fields an object has. What else it has is its own business, but not another word for the gate."""
    if callable(getattr(value, "execute", None)) or getattr(value, _INNER, None) is not None:
        for name in _GATE_NAMES:
            for spelling in (name, _camel(name)):
                if getattr(value, spelling, None):
                    refuse_unknown([spelling], where)
    fields: dict[str, Any] = {}
    for option in _FIELDS:
        spellings = dict.fromkeys((option, _camel(option)))
        parts = [part for name in spellings if (part := getattr(value, name, None)) is not None]
        if len(parts) > 1 and parts[0] != parts[1]:
            raise _twice(option, where)
        if parts:
            fields[option] = parts[0]
    return fields


def _twice(option: str, where: str) -> ConfigurationError:
    return ConfigurationError(f"{where}: the descriptor has {option!r} twice, in two spellings.", field=option)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _no_tool(value: object, where: str) -> ConfigurationError:
    if isinstance(value, (list, tuple)):
        what, advice = "a list inside the list", "Put a star before it: tools=[*these, other]."
    elif isinstance(value, FunctionType):
        what, advice = f"{value.__name__}()", "Put @tool above the function, or use define_tool()."
    else:
        what = shown(value)
        advice = "Put @tool above the function, or use define_tool()."
    return ConfigurationError(f"{where}: {what} is not a tool. {advice}", field="tools")
