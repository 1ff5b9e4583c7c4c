"""How a tool's functions are called: which parameter takes the arguments, which the context, and what must be awaited.

Signatures are read once, when the tool is defined, so that a function that could never be called is refused there and
a call costs no reflection.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import did_you_mean
from lousho.tools.context import ToolContext

CallStyle: TypeAlias = Literal["async", "sync", "async-generator"]
Caller: TypeAlias = "Callable[[Any, ToolContext], Any]"
"""Calls a function with parsed arguments and the context, giving it those of them that it takes."""

_CONTEXT_NAMES = frozenset({"ToolContext", "ToolExecutionContext"})
_CONTEXT_WORDS = frozenset({"ctx", "context"})
_WRITTEN_OPTIONAL = re.compile(r"(?:\w+\.)*Optional\[(.*)\]")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_REQUIRED = inspect.Parameter.empty


def is_context_annotation(annotation: object) -> bool:
    """Return whether a parameter's annotation, resolved or as text, asks for the call's context."""
    if isinstance(annotation, str):
        optional = _WRITTEN_OPTIONAL.fullmatch(annotation.strip("'\" "))
        written = optional.group(1) if optional else annotation
        return any(part.strip("'\" ").rsplit(".", 1)[-1] in _CONTEXT_NAMES for part in written.split("|"))
    if typing.get_origin(annotation) is typing.Annotated:
        return is_context_annotation(typing.get_args(annotation)[0])
    is_choice = isinstance(annotation, types.UnionType) or str(typing.get_origin(annotation)) == "typing.Union"
    choices = typing.get_args(annotation) if is_choice else (annotation,)
    return any(choice is ToolContext for choice in choices)


def style_of(function: Callable[..., Any]) -> CallStyle:
    """Return whether calling `function` gives a value, a coroutine or an async generator."""
    plain: Any = function
    while isinstance(plain, (functools.partial, staticmethod)):
        plain = plain.func if isinstance(plain, functools.partial) else cast("staticmethod[..., Any]", plain).__func__
    target = plain if inspect.isroutine(plain) else getattr(plain, "__call__", plain)  # noqa: B004
    if inspect.isasyncgenfunction(target):
        return "async-generator"
    return "async" if inspect.iscoroutinefunction(target) else "sync"


def caller_of(
    function: Callable[..., Any],
    names: Sequence[str] | None,
    *,
    tool_name: str,
    field: str,
    context_name: str | None = None,
) -> Caller:
    """Return how to call `function`, which is the `field` (`execute`, `needs_approval`) of a tool.

    With `names`, the arguments are a dict of these keys: they are given by name where the function's parameters have
    such names, and otherwise, as without `names`, as one value, with the context as the second one. A parameter
    annotated `ToolContext`, the one called `context_name`, and one named `ctx` or `context` that is no argument takes
    the context. A function without parameters gets nothing. Raises `LOUSHO_CONFIG_INVALID` for one that cannot be called either way.
    """
    parameters = _parameters(function)
    if parameters is None:  # a builtin that does not say what it takes
        return (lambda parsed, _: function(**parsed)) if names else (lambda parsed, _: function(parsed))
    if context_name is not None:
        parameters = [p.replace(annotation=ToolContext) if p.name == context_name else p for p in parameters]
    caller = None
    if names is not None:
        caller = _by_name(function, parameters, names)
        if caller is None:
            _refuse_wrong_names(parameters, names, tool_name, field)
    caller = caller or _by_value(function, parameters)
    if caller is None:
        raise ConfigurationError(
            f"The tool {tool_name!r} cannot call its {field}, which needs {_listed(parameters)}: it is given"
            " (arguments) or (arguments, context)" + (f", or by name: {', '.join(names)}." if names else "."),
            field=field,
        )
    return caller


def _by_name(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], names: Sequence[str]
) -> Caller | None:
    known = [p.name for p in parameters if p.name in names and p.kind not in (*_STARRED, p.POSITIONAL_ONLY)]
    context = next((p for p in parameters if p.name not in known and _is_context(p)), None)
    if any(_is_required(p) and p.name not in known and p is not context for p in parameters):
        return None
    takes_all = len(known) == len(names) or any(p.kind is p.VAR_KEYWORD for p in parameters)

    def given(parsed: Any) -> dict[str, Any]:
        return parsed if takes_all else {name: parsed[name] for name in known if name in parsed}

    if context is None:
        return lambda parsed, _: function(**given(parsed))
    if context.kind is inspect.Parameter.POSITIONAL_ONLY:
        return lambda parsed, ctx: function(ctx, **given(parsed))
    word = context.name
    return lambda parsed, ctx: function(**given(parsed), **{word: ctx})


def _by_value(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Caller | None:
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    keyword = next((p for p in parameters if p.kind is p.KEYWORD_ONLY and _is_context(p)), None)
    rest = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p is not keyword]
    rest += positional[2 if keyword is None else 1 :]
    if any(map(_is_required, rest)):
        return None
    if keyword is not None:
        word = keyword.name
        if not positional:
            return lambda _, ctx: function(**{word: ctx})
        return lambda parsed, ctx: function(parsed, **{word: ctx})
    if positional and is_context_annotation(positional[0].annotation):
        return (lambda parsed, ctx: function(ctx, parsed)) if positional[1:] else (lambda _, ctx: function(ctx))
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not positional and not starred:
        return lambda _, __: function()
    second = positional[1] if len(positional) > 1 else None
    if (second is None and starred) or (second is not None and (_is_required(second) or _is_context(second))):
        return function
    return lambda parsed, _: function(parsed)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception:  # noqa: BLE001 - an annotation that means nothing here may still be read as text
        pass
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        else:
            signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return list(signature.parameters.values())


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is _REQUIRED and parameter.kind not in _STARRED


def _is_context(parameter: inspect.Parameter) -> bool:
    if is_context_annotation(parameter.annotation):
        return True
    return parameter.name in _CONTEXT_WORDS and parameter.annotation is _REQUIRED and parameter.kind not in _STARRED


def _listed(parameters: Sequence[inspect.Parameter]) -> str:
    return f"({', '.join(p.name for p in parameters if _is_required(p))})"


def _refuse_wrong_names(
    parameters: Sequence[inspect.Parameter], names: Sequence[str], tool_name: str, field: str
) -> None:
    """Refuse a function that takes some arguments of the tool and something that the tool does not have."""
    required = [p.name for p in parameters if _is_required(p)]
    wrong = next(
        (p.name for p in parameters if p.name in required and p.name not in names and not _is_context(p)), None
    )
    if wrong is not None and any(name in names for name in required):
        raise ConfigurationError(
            f"The tool {tool_name!r}: {field} takes {wrong!r}, which is no argument of the tool"
            f"{did_you_mean(wrong, names)}; the arguments are {', '.join(names)}.",
            field=field,
        )
