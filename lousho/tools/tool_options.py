"""What may be said of a tool beside its function: the options, what they may be, and what people call them elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message

NeedsApproval: TypeAlias = "bool | Callable[..., Any]"

OPTIONS = (
    "name",
    "description",
    "input",
    "execute",
    "needs_approval",
    "display_name",
    "timeout_ms",
    "annotations",
    "edits_files",
    "metadata",
    "concurrent",
    "requires_sandbox",
    "sandbox_execute",
)
"""The options of `define_tool()`; those of `@tool` are the same without `execute`."""
ALIASES: Mapping[str, str] = {
    "require_approval": "needs_approval",
    "requires_approval": "needs_approval",
    "requires_confirmation": "needs_approval",
    "require_confirmation": "needs_approval",
    "need_approval": "needs_approval",
    "approval": "needs_approval",
    "input_schema": "input",
    "input_model": "input",
    "parameters": "input",
    "args_schema": "input",
    "schema": "input",
    "func": "execute",
    "function": "execute",
    "handler": "execute",
    "run": "execute",
    "timeout": "timeout_ms",
    "title": "display_name",
    "label": "display_name",
    "doc": "description",
    "sandbox": "requires_sandbox",
    "parallel": "concurrent",
    "sequential": "concurrent",
}
_NOT_YET = {"defer_loading": "this version has no tool search, so the model is told of every tool"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_MS = 100 * 365.25 * 86_400_000


def refuse_unknown(keys: Iterable[object], where: str, known: Iterable[str] = OPTIONS) -> None:
    """Raise `LOUSHO_CONFIG_INVALID` for the first key, as no option of `where`, with the one that was probably meant.

    An option that is not taken is never ignored: a misspelt `needs_approval` would let every call run.
    """
    for key in keys:
        name = str(key)
        missing = {_plain(option): reason for option, reason in _NOT_YET.items()}.get(_plain(name))
        if missing is not None:
            raise ConfigurationError(f"{where}: '{name}' is not there yet: {missing}.", field=name)
        raise ConfigurationError(f"{where}: {unknown_key_message(name, known, aliases=ALIASES)}.", field=name)


def check_options(
    name: object, description: object, execute: object, options: Mapping[str, object], *, named_by: str = ""
) -> None:
    """Check the values of a tool's options. Raises `LOUSHO_CONFIG_INVALID` saying what would do."""
    check_name(name, named_by)
    if not isinstance(description, str) or not description.strip():
        raise ConfigurationError(
            f"The tool {name!r} needs a description: the model reads it to decide when to call the tool. "
            "Pass description=, or write a docstring.",
            field="description",
        )
    if not callable(execute):
        raise ConfigurationError(
            f"The tool {name!r} needs a function as execute; got {shown(execute)}.", field="execute"
        )
    _check(name, "needs_approval", options, "True, False or a function of the arguments", _is_gate)
    _check(name, "display_name", options, "a text", lambda value: value is None or isinstance(value, str))
    _check(name, "timeout_ms", options, "a number of milliseconds above 0", _is_time)
    _check(name, "timeout_ms", options, "100 years at most, in milliseconds", _is_bounded)
    _check(name, "annotations", options, "a mapping, such as {'readOnlyHint': True}", _is_mapping)
    _check(name, "metadata", options, "a mapping", _is_mapping)
    for flag in ("edits_files", "concurrent", "requires_sandbox"):
        _check(name, flag, options, "True or False", lambda value: isinstance(value, bool))
    _check(
        name,
        "sandbox_execute",
        options,
        "a function of (arguments, sandbox)",
        lambda value: value is None or callable(value),
    )


def check_name(name: object, named_by: str = "") -> None:
    """Refuse a name that a vendor would refuse; `named_by` says where it comes from when nobody wrote it."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return
    advice = f" It comes from {named_by}: pass name=." if named_by else ""
    raise ConfigurationError(
        f"The tool name {shown(name)} does not fit: use 1 to 64 letters of a to z, digits, '_' or '-'.{advice}",
        field="name",
    )


def merged_metadata(
    metadata: Mapping[str, Any] | None, annotations: Mapping[str, Any], edits_files: bool
) -> dict[str, Any]:
    """Return a tool's `metadata` with its hints at `mcp.annotations` and its mark at `editsFiles`."""
    merged = dict(metadata or {})
    if annotations:
        mcp = merged.get("mcp")
        merged["mcp"] = {**(cast("Mapping[str, Any]", mcp) if isinstance(mcp, Mapping) else {})}
        merged["mcp"]["annotations"] = dict(annotations)
    if edits_files:
        merged["editsFiles"] = True
    return merged


def _check(name: object, key: str, options: Mapping[str, object], wanted: str, fits: Callable[[object], bool]) -> None:
    if key in options and not fits(options[key]):
        raise ConfigurationError(f"The tool {name!r}: {key} must be {wanted}; got {shown(options[key])}.", field=key)


def _is_gate(value: object) -> bool:
    return isinstance(value, bool) or callable(value)


def _is_time(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def _is_bounded(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and value <= _LONGEST_MS)


def _is_mapping(value: object) -> bool:
    return value is None or isinstance(value, Mapping)


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
