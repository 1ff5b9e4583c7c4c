"""Arguments of the right value in the wrong JSON type: `"5"` for a number, `"true"` for a boolean, a list as text.

Only looked at once a tool's own reading of the arguments has failed, only for the parameters it complained about, and
only where the text can be read in one way as something that the schema wants.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from lousho.core.errors import ToolArgumentsValidationError
from lousho.runtime.almost_json import MOST_ALMOST_CHARS, read_almost_json
from lousho.runtime.arguments import DEEPEST_ARGUMENTS, holdable
from lousho.tools.definition import Tool

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?")
_BOOLEANS: Mapping[object, bool] = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_NULLS = ("null", "None")


def fitted_arguments(tool: Tool, args: Mapping[str, Any], error: ToolArgumentsValidationError) -> dict[str, Any] | None:
    """Return `args` with the parameters that `error` names in the types of the tool's schema; `None`: nothing fits."""
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    changed: dict[str, Any] = {}
    for name in {issue.path for issue in error.issues} & args.keys() & cast("Mapping[str, Any]", properties).keys():
        values = _readings(args[name], _types_of(cast("Mapping[str, Any]", properties)[name]))
        if len(values) == 1:
            changed[name] = values[0]
    return {**args, **changed} if changed else None


def _types_of(schema: object) -> set[str]:
    """Return the JSON types that a parameter's schema, in canonical form, may have."""
    node: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    parts: list[Any] = [node, *cast("list[Any]", node.get("anyOf") or [])]
    return {part["type"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("type"), str)}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _readings(value: object, types: set[str]) -> list[Any]:
    """Return every way to read `value` as one of `types`."""
    if not isinstance(value, str) or len(value) > MOST_ALMOST_CHARS:
        return []
    text = value.strip()
    found: list[Any] = []
    if "boolean" in types and text in _BOOLEANS:
        found.append(_BOOLEANS[text])
    if types & {"integer", "number"} and _NUMBER.fullmatch(text):
        number = json.loads(text)
        if math.isfinite(number):
            found.append(number)
    if "null" in types and text in _NULLS:
        found.append(None)
    for kind, opening in (("array", "["), ("object", "{")):
        if kind in types and text.startswith(opening):
            try:
                found.append(holdable(read_almost_json(text), DEEPEST_ARGUMENTS - 1))
            except ValueError:  # no JSON, or more than a run can hold
                continue
    return found
