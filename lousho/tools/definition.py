"""Defining a tool: `@tool` over a typed function, or `define_tool()` with everything spelled out.

Both give a `Tool`, the one kind of object the rest of the house knows. Source: tools page.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, cast, overload

from lousho.core.errors import ConfigurationError, ToolArgumentsValidationError
from lousho.core.json_schema import Schema, SchemaMismatch, schema_of, schema_of_function
from lousho.core.suggest import unknown_key_message
from lousho.models.provider import FunctionDefinition, ToolDefinition
from lousho.tools.context import ToolContext

NeedsApproval: TypeAlias = "bool | Callable[..., Any]"
CallStyle: TypeAlias = Literal["async", "sync", "async-generator"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CONTEXT_NAMES = frozenset({"ToolContext", "ToolExecutionContext"})
_ALIASES = {
    "require_approval": "needs_approval",
    "requires_approval": "needs_approval",
    "requires_confirmation": "needs_approval",
    "input_schema": "input",
    "parameters": "input",
    "args_schema": "input",
    "schema": "input",
    "func": "execute",
    "function": "execute",
    "handler": "execute",
    "timeout": "timeout_ms",
    "title": "display_name",
}


class Tool:
    """A function a model can call: what the model is told of it, how its arguments are checked, how it runs.

    Calling the object calls the function itself, so a tool can be tested like any function.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        execute: Callable[..., Any],
        schema: Schema,
        keyword_arguments: bool,
        needs_approval: NeedsApproval = False,
        display_name: str | None = None,
        timeout_ms: float | None = None,
        annotations: Mapping[str, Any] | None = None,
        edits_files: bool = False,
        metadata: Mapping[str, Any] | None = None,
        pause_kind: Literal["question"] | None = None,
        concurrent: bool = True,
        requires_sandbox: bool = False,
        sandbox_execute: Callable[..., Any] | None = None,
    ) -> None:
        _check(name, description, execute, needs_approval, timeout_ms)
        self.name = name
        self.description = description
        self.execute = execute
        self.schema = schema
        self.needs_approval = needs_approval
        self.display_name = display_name or name
        self.timeout_ms = timeout_ms
        self.annotations = dict(annotations or {})
        self.edits_files = edits_files
        self.metadata = _metadata(metadata, self.annotations, edits_files)
        self.pause_kind: Literal["question"] | None = pause_kind
        self.concurrent = concurrent
        """Whether other calls of the same step may run beside a call of this tool."""
        self.requires_sandbox = requires_sandbox
        self.sandbox_execute = sandbox_execute
        self.style = _style_of(execute)
        self._keyword_arguments = keyword_arguments
        self._context_parameter = _context_parameter(execute, keyword_arguments)
        self._definition: ToolDefinition | None = None
        self.__name__ = getattr(execute, "__name__", name)
        self.__qualname__ = getattr(execute, "__qualname__", name)
        self.__module__ = getattr(execute, "__module__", __name__)
        self.__doc__ = getattr(execute, "__doc__", None)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as the model sees it."""
        return self.schema.json_schema

    @property
    def definition(self) -> ToolDefinition:
        """What a model request carries."""
        if self._definition is None:
            self._definition = ToolDefinition(FunctionDefinition(self.name, self.description, self.input_schema))
        return self._definition

    def parse(self, arguments: Mapping[str, Any]) -> Any:
        """Return the arguments as the function takes them: defaults filled in, values coerced.

        Raises `LOUSHO_TOOL_ARGS_INVALID` with every problem by path.
        """
        try:
            return self.schema.parse(arguments)
        except SchemaMismatch as mismatch:
            raise ToolArgumentsValidationError(self.name, mismatch.issues) from None

    def invoke(self, parsed: Any, context: ToolContext) -> Any:
        """Call the function with parsed arguments; returns what it returns (a coroutine, a generator or a value)."""
        if self._keyword_arguments:
            if self._context_parameter is not None:
                return self.execute(**parsed, **{self._context_parameter: context})
            return self.execute(**parsed)
        return self.execute(parsed, context) if self._context_parameter is not None else self.execute(parsed)

    def asks_approval(self, parsed: Any, context: ToolContext) -> Any:
        """Return what the tool's own gate says of a call: its `needs_approval`, called when it is a function."""
        gate = self.needs_approval
        if isinstance(gate, bool):
            return gate
        parameters = _positional_count(gate)
        if self._keyword_arguments:
            names = _parameter_names(gate)
            if names and names <= (set(parsed) | {"ctx", "context"}):
                given = {key: value for key, value in parsed.items() if key in names}
                extra = dict.fromkeys(names & {"ctx", "context"}, context)
                return gate(**given, **extra)
        return gate(parsed, context) if parameters >= 2 else gate(parsed)

    def renamed(self, name: str) -> Tool:
        """Return the same tool under another name."""
        return Tool(
            name=name,
            description=self.description,
            execute=self.execute,
            schema=self.schema,
            keyword_arguments=self._keyword_arguments,
            needs_approval=self.needs_approval,
            display_name=self.display_name,
            timeout_ms=self.timeout_ms,
            edits_files=self.edits_files,
            metadata=self.metadata,
            annotations=self.annotations,
            pause_kind=self.pause_kind,
            concurrent=self.concurrent,
            requires_sandbox=self.requires_sandbox,
            sandbox_execute=self.sandbox_execute,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without validation."""
        return self.execute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input: Any = None,
    needs_approval: NeedsApproval = False,
    display_name: str | None = None,
    timeout_ms: float | None = None,
    annotations: Mapping[str, Any] | None = None,
    edits_files: bool = False,
    metadata: Mapping[str, Any] | None = None,
    concurrent: bool = True,
    requires_sandbox: bool = False,
    sandbox_execute: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    input: Any = None,  # noqa: A002
    needs_approval: NeedsApproval = False,
    display_name: str | None = None,
    timeout_ms: float | None = None,
    annotations: Mapping[str, Any] | None = None,
    edits_files: bool = False,
    metadata: Mapping[str, Any] | None = None,
    concurrent: bool = True,
    requires_sandbox: bool = False,
    sandbox_execute: Callable[..., Any] | None = None,
    **unknown: object,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function (sync, async or async generator) a tool.

    The name, the description (the docstring's first paragraph) and the input schema come from the function unless
    given. A parameter annotated `ToolContext` receives the call's context and is not part of the schema.
    `needs_approval` (a bool, or a function of the arguments) pauses the run before the call. `timeout_ms` bounds a
    call, in milliseconds. Raises `LOUSHO_CONFIG_INVALID`. Source: tools page.
    """
    _refuse_unknown(unknown, "tool")

    def decorate(target: Callable[..., Any]) -> Tool:
        wanted = name or getattr(target, "__name__", "tool")
        found = schema_of_function(target, is_context=is_context_annotation)
        schema = found if input is None else schema_of(input)
        text = description if description is not None else found.description
        if not text:
            raise ConfigurationError(
                f"The tool {wanted!r} has no description: write a docstring or pass description=, "
                "so that the model knows when to call it.",
                field="description",
            )
        return Tool(
            name=wanted,
            description=text,
            execute=target,
            schema=schema,
            keyword_arguments=input is None,
            needs_approval=needs_approval,
            display_name=display_name,
            timeout_ms=timeout_ms,
            annotations=annotations,
            edits_files=edits_files,
            metadata=metadata,
            concurrent=concurrent,
            requires_sandbox=requires_sandbox,
            sandbox_execute=sandbox_execute,
        )

    return decorate if function is None else decorate(function)


def define_tool(
    *,
    name: str,
    description: str,
    execute: Callable[..., Any],
    input: Any = None,  # noqa: A002
    needs_approval: NeedsApproval = False,
    display_name: str | None = None,
    timeout_ms: float | None = None,
    annotations: Mapping[str, Any] | None = None,
    edits_files: bool = False,
    metadata: Mapping[str, Any] | None = None,
    concurrent: bool = True,
    requires_sandbox: bool = False,
    sandbox_execute: Callable[..., Any] | None = None,
    **unknown: object,
) -> Tool:
    """Return a tool with everything spelled out.

    `input` is a pydantic model, a `TypedDict`, a dataclass or a JSON Schema dict with an object at its root; `execute`
    then gets the parsed value (and the context, when it takes a second parameter). Without `input` the schema comes
    from `execute`'s own type hints and it is called with keyword arguments. Raises `LOUSHO_CONFIG_INVALID`.
    Source: tools page.
    """
    _refuse_unknown(unknown, "define_tool")
    schema = schema_of_function(execute, is_context=is_context_annotation) if input is None else schema_of(input)
    return Tool(
        name=name,
        description=description,
        execute=execute,
        schema=schema,
        keyword_arguments=input is None,
        needs_approval=needs_approval,
        display_name=display_name,
        timeout_ms=timeout_ms,
        annotations=annotations,
        edits_files=edits_files,
        metadata=metadata,
        concurrent=concurrent,
        requires_sandbox=requires_sandbox,
        sandbox_execute=sandbox_execute,
    )


def is_context_annotation(annotation: object) -> bool:
    """Whether a parameter's annotation asks for the call's context."""
    if isinstance(annotation, str):
        return annotation.rsplit(".", 1)[-1].split("|")[0].strip() in _CONTEXT_NAMES
    options = typing.get_args(annotation) or (annotation,)
    return any(option is ToolContext for option in options)


def _check(name: object, description: object, execute: object, needs_approval: object, timeout_ms: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"The tool name {name!r} does not fit: use 1 to 64 letters, digits, '_' or '-'.", field="name"
        )
    if not isinstance(description, str) or not description.strip():
        raise ConfigurationError(
            f"The tool {name!r} needs a description: the model reads it to decide when to call the tool.",
            field="description",
        )
    if not callable(execute):
        raise ConfigurationError(f"The tool {name!r} needs a function as execute.", field="execute")
    if not isinstance(needs_approval, bool) and not callable(needs_approval):
        raise ConfigurationError(
            f"The tool {name!r}: needs_approval must be True, False or a function of the arguments.",
            field="needs_approval",
        )
    if timeout_ms is not None and (
        isinstance(timeout_ms, bool) or not isinstance(timeout_ms, (int, float)) or not timeout_ms > 0
    ):
        raise ConfigurationError(
            f"The tool {name!r}: timeout_ms must be a number of milliseconds above 0; got {timeout_ms!r}.",
            field="timeout_ms",
        )


def _refuse_unknown(unknown: Mapping[str, object], where: str) -> None:
    if not unknown:
        return
    known = [
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
    ]
    key = next(iter(unknown))
    raise ConfigurationError(f"{where}: {unknown_key_message(key, known, aliases=_ALIASES)}.", field=key)


def _metadata(metadata: Mapping[str, Any] | None, annotations: Mapping[str, Any], edits_files: bool) -> dict[str, Any]:
    merged = dict(metadata or {})
    if annotations:
        merged["mcp"] = {**cast("Mapping[str, Any]", merged.get("mcp", {})), "annotations": dict(annotations)}
    if edits_files:
        merged["editsFiles"] = True
    return merged


def _style_of(execute: Callable[..., Any]) -> CallStyle:
    target = execute if inspect.isroutine(execute) else getattr(execute, "__call__", execute)  # noqa: B004
    if inspect.isasyncgenfunction(target):
        return "async-generator"
    return "async" if inspect.iscoroutinefunction(target) else "sync"


def _context_parameter(execute: Callable[..., Any], keyword_arguments: bool) -> str | None:
    try:
        parameters = list(inspect.signature(execute).parameters.values())
    except (TypeError, ValueError):
        return None
    if keyword_arguments:
        return next((p.name for p in parameters if is_context_annotation(p.annotation)), None)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) > 1:
        return positional[1].name
    return "*" if any(p.kind is p.VAR_POSITIONAL for p in parameters) else None


def _positional_count(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _parameter_names(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


ToolResult: TypeAlias = "Awaitable[Any] | AsyncIterator[Any] | Any"
