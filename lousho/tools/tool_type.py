"""The one kind of object that the rest of the house knows as a tool. `@tool` and `define_tool()` make it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NoReturn, ParamSpec, TypedDict, TypeVar, Unpack, cast

from lousho.core.errors import ConfigurationError, ToolArgumentsValidationError
from lousho.core.json_schema import FunctionSchema, Schema, SchemaMismatch
from lousho.models.provider import FunctionDefinition, ToolDefinition
from lousho.tools.calling import Caller, CallStyle, caller_of, style_of
from lousho.tools.context import ToolContext
from lousho.tools.tool_options import OPTIONS, NeedsApproval, check_options, merged_metadata, refuse_unknown

P = ParamSpec("P")
R = TypeVar("R")


class ToolOptions(TypedDict, total=False):
    """The options of a tool that have a default."""

    needs_approval: NeedsApproval
    display_name: str | None
    timeout_ms: float | None
    annotations: Mapping[str, Any] | None
    edits_files: bool
    metadata: Mapping[str, Any] | None
    concurrent: bool
    requires_sandbox: bool
    sandbox_execute: Callable[..., Any] | None


class Tool:
    """A function a model can call: what the model is told of it, how its arguments are checked, how it runs.

    Calling the object calls the function itself, so a tool can be tested like any function. A tool does not change;
    `replace()` gives a changed one. Source: tools page.
    """

    name: str
    """What the model calls the tool by."""
    description: str
    """What the model reads to decide when to call it."""
    execute: Callable[..., Any]
    """The function itself."""
    schema: Schema
    """How arguments are read."""
    needs_approval: NeedsApproval
    """Whether a call waits for a person: a bool, or a function of the arguments."""
    display_name: str
    """A name for people."""
    timeout_ms: float | None
    """The longest a call may run, in milliseconds."""
    annotations: dict[str, Any]
    """Hints in the words of MCP, such as `{'readOnlyHint': True}`."""
    edits_files: bool
    """Whether it changes files."""
    metadata: dict[str, Any]
    """Anything of the application's, with the hints at `mcp.annotations` and the mark at `editsFiles`."""
    concurrent: bool
    """Whether other calls of the same step may run beside a call of this tool."""
    requires_sandbox: bool
    """Whether it may only run in a sandbox."""
    sandbox_execute: Callable[..., Any] | None
    """What runs in the sandbox: a function of (arguments, sandbox) or (arguments, sandbox, context)."""
    pause_kind: Literal["question"] | None
    """What a pause before a call means when it is no approval."""
    style: CallStyle
    """What calling the function gives."""
    _given: ToolOptions
    _call: Caller
    _gate: Caller | None

    def __init__(
        self,
        *,
        name: str,
        description: str,
        execute: Callable[..., Any],
        schema: Schema,
        pause_kind: Literal["question"] | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        refuse_unknown((key for key in options if key not in OPTIONS), "Tool")
        check_options(name, description, execute, cast("Mapping[str, object]", options))
        needs_approval = options.get("needs_approval", False)
        metadata = options.get("metadata")
        annotations = dict(options.get("annotations") or _annotations_in(metadata))
        edits_files = options.get("edits_files", False)
        call, gate = _callers(name, execute, needs_approval, schema)
        self.__dict__.update(
            name=name,
            description=description,
            execute=execute,
            schema=schema,
            needs_approval=needs_approval,
            display_name=options.get("display_name") or name,
            timeout_ms=options.get("timeout_ms"),
            annotations=annotations,
            edits_files=edits_files,
            metadata=merged_metadata(metadata, annotations, edits_files),
            concurrent=options.get("concurrent", True),
            requires_sandbox=options.get("requires_sandbox", False),
            sandbox_execute=options.get("sandbox_execute"),
            pause_kind=pause_kind,
            style=style_of(execute),
            _given=_copied(options),
            _call=call,
            _gate=gate,
            __wrapped__=execute,
            __name__=getattr(execute, "__name__", name),
            __qualname__=getattr(execute, "__qualname__", name),
            __module__=getattr(execute, "__module__", __name__),
            __doc__=getattr(execute, "__doc__", None),
        )

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, as the model sees it. It is shared: copy it before changing it."""
        return self.schema.json_schema

    @functools.cached_property
    def definition(self) -> ToolDefinition:
        """What a model request carries."""
        return ToolDefinition(FunctionDefinition(self.name, self.description, self.input_schema))

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
        return self._call(parsed, context)

    def asks_approval(self, parsed: Any, context: ToolContext) -> Any:
        """Return what the tool's own gate says of a call: its `needs_approval`, called when it is a function."""
        return self.needs_approval if self._gate is None else self._gate(parsed, context)

    def to_options(self) -> dict[str, Any]:
        """Return what the tool was defined with: `define_tool(**tool.to_options())` is the same tool again."""
        kind = {} if self.pause_kind is None else {"pause_kind": self.pause_kind}
        return {
            "name": self.name,
            "description": self.description,
            "input": self.schema,
            "execute": self.execute,
            **_copied(self._given),
            **kind,
        }

    def replace(self, **changes: Any) -> Tool:
        """Return the tool with some options changed: `weather.replace(execute=fake)`.

        Takes the options of `define_tool()`. A new `execute` is called with the same arguments as the old one, by name
        or as one value, whichever it takes; `input=None` reads them anew from its type hints.
        Raises `LOUSHO_CONFIG_INVALID`.
        """
        from lousho.tools.definition import define_tool

        refuse_unknown((key for key in changes if key not in OPTIONS), "replace")
        return define_tool(**{**self.to_options(), **changes})

    __replace__ = replace

    def renamed(self, name: str) -> Tool:
        """Return the same tool under another name."""
        return self if name == self.name else self.replace(name=name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without validation."""
        return self.execute(*args, **kwargs)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__"):
            self.__dict__[name] = value
            return
        self._refuse_change(name)

    def __delattr__(self, name: str) -> None:
        self._refuse_change(name)

    def _refuse_change(self, name: str) -> NoReturn:
        raise ConfigurationError(
            f"The tool {self.name!r} cannot be changed, as agents and runs may share it: "
            f"tool.replace({name}=...) gives a changed one.",
            field=name,
        )

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


class FunctionTool(Tool, Generic[P, R]):
    """What `@tool` and `define_tool()` give: a `Tool` of which a type checker knows the function's own signature.

    It is a class apart, so that a list of any tools is a `list[Tool]` and need not speak of signatures.
    """

    execute: Callable[P, R]

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, without validation."""
        return self.execute(*args, **kwargs)


def _callers(
    name: str, execute: Callable[..., Any], needs_approval: NeedsApproval, schema: Schema
) -> tuple[Caller, Caller | None]:
    """Return how to call a tool's function and its gate: by the names of the arguments where the schema has such."""
    names = context = None
    if isinstance(schema, FunctionSchema):
        names, context = schema.parameters, schema.context_parameter
    call = caller_of(execute, names, tool_name=name, field="execute", context_name=context)
    if isinstance(needs_approval, bool):
        return call, None
    return call, caller_of(needs_approval, names, tool_name=name, field="needs_approval", context_name=context)


def _copied(options: ToolOptions) -> ToolOptions:
    """Return options whose mappings are nobody else's to change."""
    copies = {
        key: dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
        for key, value in options.items()
    }
    return cast("ToolOptions", copies)


def _annotations_in(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    mcp: object = (metadata or {}).get("mcp")
    found: object = cast("Mapping[str, object]", mcp).get("annotations") if isinstance(mcp, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
