"""Defining a tool: `@tool` over a typed function, or `define_tool()` with everything spelled out.

Both give a `Tool`, the one kind of object the rest of the house knows. Source: tools page.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

from lousho.core.errors import ConfigurationError
from lousho.core.json_schema import Schema, object_schema_of, schema_of_function
from lousho.core.schema_function import name_of_function, text_of_function
from lousho.tools.calling import CallStyle, is_context_annotation
from lousho.tools.tool_options import OPTIONS, NeedsApproval, check_name, refuse_unknown
from lousho.tools.tool_type import FunctionTool, Tool, ToolOptions

__all__ = [
    "CallStyle",
    "FunctionTool",
    "NeedsApproval",
    "Tool",
    "ToolOptions",
    "define_tool",
    "is_context_annotation",
    "tool",
]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound="Callable[..., Any]")


def _options_by_name(function: F) -> F:
    """Say what is wrong with the options before Python says that one is missing: the typo is the better news."""
    required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty][:-1]

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        where = function.__name__
        if args:
            raise ConfigurationError(f"{where} takes its options by name: {where}(name='...', execute=...).")
        refuse_unknown((key for key in options if key not in OPTIONS and key != "pause_kind"), where)
        for key in required:
            if key not in options:
                raise ConfigurationError(f"{where} needs {key}=; it needs {', '.join(required)}.", field=key)
        return function(**options)

    return cast("F", checked)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, input: Any = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function (sync, async or async generator) a tool.

    The name, the description (the docstring's first paragraph) and the input schema come from the function unless
    given; with `input`, the function gets the arguments as one value. A parameter annotated `ToolContext` receives the
    call's context and is not part of the schema. The other options are those of `define_tool()`. Above a tool, it
    gives that tool with the options changed. Raises `LOUSHO_CONFIG_INVALID`. Source: tools page.
    """
    refuse_unknown((key for key in options if key not in OPTIONS or key == "execute"), "tool", _OF_THE_DECORATOR)

    def decorate(target: Callable[..., Any]) -> Tool:
        return _tool_of_function(target, options)

    return decorate if function is None else decorate(function)


@_options_by_name
def define_tool(
    *,
    name: str,
    description: str,
    execute: Callable[P, R],
    input: Any = None,  # noqa: A002
    **options: Unpack[ToolOptions],
) -> FunctionTool[P, R]:
    """Return a tool with everything spelled out.

    `input` is a pydantic model, a `TypedDict`, a dataclass or a JSON Schema dict with an object at its root; `execute`
    then gets the parsed value (and the context, when it takes a second parameter). Without `input` the schema comes
    from `execute`'s own type hints and it is called with keyword arguments.

    `needs_approval` (a bool, or a function of the arguments) pauses the run before the call. `timeout_ms` bounds a
    call, in milliseconds. `annotations` are hints in the words of MCP. `edits_files` marks a tool that changes files.
    `concurrent=False` lets no other call of the step run beside it. `requires_sandbox` and `sandbox_execute` are for
    tools that may only run in a sandbox. `metadata` is the application's own.
    Raises `LOUSHO_CONFIG_INVALID`. Source: tools page.
    """
    check_name(name)
    return FunctionTool(
        name=name, description=description, execute=execute, schema=_schema(execute, input, name), **options
    )


_OF_THE_DECORATOR = tuple(option for option in OPTIONS if option != "execute")


def _tool_of_function(target: Any, options: Mapping[str, Any]) -> Tool:
    if isinstance(target, Tool):
        return target.replace(**options) if options else target
    if not callable(target):
        shown = type(cast("object", target)).__name__
        advice = "write @tool above a plain function and bind it later" if isinstance(target, classmethod) else ""
        raise ConfigurationError(
            f"@tool stands above a function, not above a {shown}; {advice or 'its options go by name: @tool(name=...)'}."
        )
    given = name_of_function(target)
    name = options.get("name")
    if name is None:
        name = given
        check_name(name, "a lambda" if given == "<lambda>" else f"the function {given!r}")
    check_name(name)
    source = options.get("input")
    text = options.get("description")
    if text is None:
        text = text_of_function(target).summary
    rest = {key: value for key, value in options.items() if key not in ("name", "description", "input")}
    function = cast("Callable[..., Any]", target)
    made: FunctionTool[..., Any] = FunctionTool(
        name=name, description=text, execute=function, schema=_schema(function, source, name), **rest
    )
    return made


def _schema(function: Callable[..., Any], source: object, name: str) -> Schema:
    """Return the schema of a tool's arguments: that of `source`, or of the function's own type hints."""
    if source is not None:
        return object_schema_of(source)
    if not callable(function):
        raise ConfigurationError(f"The tool {name!r} needs a function as execute; got {function!r}.", field="execute")
    return schema_of_function(function, is_context=is_context_annotation, namespace=_names_around())


def _names_around() -> Mapping[str, object] | None:
    """Return the local names where the tool is defined, which its type hints may use; `None` at a module's top level."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("lousho.tools."):
        frame = frame.f_back
    if frame is None or frame.f_locals is frame.f_globals:
        return None
    return dict(frame.f_locals)
