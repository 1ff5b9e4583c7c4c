"""The schema of a function's parameters, from its type hints and docstring: what makes a typed function a tool."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast

from lousho.core.docstrings import DocText, read_docstring
from lousho.core.errors import ConfigurationError
from lousho.core.json_values import JsonObject
from lousho.core.schema_base import Schema
from lousho.core.schema_hints import eager_hint
from lousho.core.schema_types import TypeSchema

CONTEXT_CLASS_NAMES = frozenset({"ToolContext", "ToolExecutionContext"})

_QUALIFIERS = frozenset(
    f"{module}.{name}"
    for module in ("typing", "typing_extensions")
    for name in ("ClassVar", "Final", "NotRequired", "ReadOnly", "Required", "Self", "Unpack")
)
"""What may stand before a type in a class, and means nothing as the hint of a parameter."""

IsContext = Callable[[object], bool]
"""Whether a type hint (resolved, or the text of one that cannot be) means the context of the call."""


def is_context_hint(hint: object) -> bool:
    """Return whether `hint` is a class named `ToolContext` or `ToolExecutionContext`, alone, optional or annotated."""
    if isinstance(hint, str):
        return any(part.strip().rsplit(".", 1)[-1].split("[")[0] in CONTEXT_CLASS_NAMES for part in hint.split("|"))
    origin = typing.get_origin(hint)
    if getattr(origin or hint, "__name__", None) in CONTEXT_CLASS_NAMES:
        return True
    is_choice = origin is types.UnionType or str(origin) == "typing.Union" or hasattr(hint, "__metadata__")
    choices = [part for part in typing.get_args(hint) if part is not type(None)]
    return is_choice and bool(choices) and is_context_hint(choices[0])


class FunctionSchema(Schema):
    """The parameters of a function as a schema; `parse()` returns its keyword arguments."""

    def __init__(self, name: str, description: str, fields: dict[str, Any], context_parameter: str | None) -> None:
        self.name = name
        """The function's name."""
        self.description = description
        """The first paragraph of its docstring; empty when it has none."""
        self.context_parameter = context_parameter
        """The parameter that takes the context of the call, if there is one; it is not part of the schema."""
        self.parameters: tuple[str, ...] = tuple(fields)
        """The names of the other parameters."""
        self._arguments = TypeSchema(_typed_dict(name, fields))

    @property
    def json_schema(self) -> JsonObject:
        return self._arguments.json_schema

    def parse(self, value: object) -> dict[str, object]:
        """Return the keyword arguments for a call, defaults included. Raises `SchemaMismatch`."""
        return cast("dict[str, object]", self._arguments.parse(value))

    def dump(self, value: object) -> object:
        return self._arguments.dump(value)


def schema_of_function(
    function: Callable[..., object],
    *,
    is_context: IsContext = is_context_hint,
    namespace: Mapping[str, object] | None = None,
) -> FunctionSchema:
    """Return the schema of the parameters of `function` (plain, async or a generator).

    Descriptions come from `Field(description=...)`, else `Annotated[..., "text"]`, else the docstring. The parameter
    for which `is_context` holds is left out. `namespace` has local names that type hints may use, such as the frame's
    of a decorator's caller. Raises `LOUSHO_CONFIG_INVALID` naming the parameter: without a type hint, with one that
    cannot be resolved or that no JSON value satisfies, or taking `*args`, `**kwargs` or by position only.
    Source: tools page.
    """
    name = name_of_function(function)
    text = text_of_function(function)
    names = _names_for(function, namespace)
    fields: dict[str, Any] = {}
    context: str | None = None
    for parameter in _parameters(function, name):
        where = f"Parameter '{parameter.name}' of {name}()"
        hint = _resolved(parameter, names, is_context, where)
        if is_context(hint):
            if context is not None:
                raise ConfigurationError(f"{where} is a second context parameter; keep one", field=parameter.name)
            context = parameter.name
            continue
        _refuse_kind(parameter, where)
        fields[parameter.name] = _field(parameter, hint, text.parameters.get(parameter.name))
    try:
        return FunctionSchema(name, text.summary, fields, context)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}(): {error.detail}", field=error.field, cause=error) from error


def name_of_function(function: Callable[..., object]) -> str:
    """Return the function's name; of a `functools.partial` its function's, of an object with `__call__` its class's."""
    plain = _without_partial(function)
    name: object = getattr(plain, "__name__", None)
    return name if isinstance(name, str) and name else type(plain).__name__


def text_of_function(function: Callable[..., object]) -> DocText:
    """Return what the docstring says; of an object with `__call__`, what its class and that method say."""
    plain = _without_partial(function)
    text = read_docstring(inspect.getdoc(plain))
    method: object = getattr(type(plain), "__call__", None)  # noqa: B004 - its docstring is wanted
    if inspect.isroutine(plain) or isinstance(plain, type) or not inspect.isfunction(method):
        return text
    called = read_docstring(method.__doc__)
    return DocText(text.summary or called.summary, {**text.parameters, **called.parameters})


def _without_partial(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: Callable[..., object], name: str) -> list[inspect.Parameter]:
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        else:
            signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name}() has no signature that can be read; wrap it in a function with type hints", cause=error
        ) from error
    return list(signature.parameters.values())


def _names_for(function: Callable[..., object], namespace: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the names the function's hints may use: its module's, those around it, and the given ones."""
    plain: Any = inspect.unwrap(_without_partial(function))
    if not inspect.isroutine(plain):  # an object with a `__call__`
        plain = type(plain).__call__
    plain = getattr(plain, "__func__", plain)
    names: dict[str, Any] = dict(getattr(plain, "__globals__", {}))
    if inspect.isfunction(plain):
        cells = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False)
        for free, cell in cells:
            try:
                names[free] = cell.cell_contents
            except ValueError:  # a name that is not bound yet
                continue
    names.update({parameter.__name__: parameter for parameter in getattr(plain, "__type_params__", ())})
    names.update(namespace or {})
    return names


class _Holder:
    """Something with annotations, as `typing.get_type_hints` wants it."""

    def __init__(self, hint: object) -> None:
        self.__annotations__ = {"hint": hint}


def _resolved(parameter: inspect.Parameter, names: dict[str, Any], is_context: IsContext, where: str) -> object:
    hint: object = parameter.annotation
    if hint is inspect.Parameter.empty:
        _refuse_kind(parameter, where)
        advice = "add one, for example `str`"
        if parameter.name in {"ctx", "context"}:
            advice = "write `ToolContext` to get the context of the call"
        elif parameter.name in {"self", "cls"}:
            advice = "a method is made a tool on its object: `tool(thing.method)`"
        raise ConfigurationError(f"{where} has no type hint; {advice}", field=parameter.name)
    try:
        hints: dict[str, object] = typing.get_type_hints(_Holder(hint), names, names, include_extras=True)
    except Exception as error:
        written: object = getattr(hint, "__forward_arg__", hint)
        written = written.strip("'\"") if isinstance(written, str) else written
        if isinstance(written, str) and is_context(written):
            return written
        _refuse_kind(parameter, where)
        raise ConfigurationError(
            f"{where} has the type hint {written!r}, which cannot be resolved ({error}); import or define what it"
            " names where the function can see it",
            field=parameter.name,
            cause=error,
        ) from error
    found = hints["hint"]
    if str(typing.get_origin(found) or found) in _QUALIFIERS:
        raise ConfigurationError(
            f"{where} has the type hint {found}, which says nothing of the values it takes; write the type alone",
            field=parameter.name,
        )
    return eager_hint(found)


def _refuse_kind(parameter: inspect.Parameter, where: str) -> None:
    kinds = {
        inspect.Parameter.VAR_POSITIONAL: ("takes *args", "name each argument, or take one list"),
        inspect.Parameter.VAR_KEYWORD: ("takes **kwargs", "name each argument, or take one dict"),
        inspect.Parameter.POSITIONAL_ONLY: ("is positional-only", "remove the `/` from the signature"),
    }
    if parameter.kind in kinds:
        problem, fix = kinds[parameter.kind]
        raise ConfigurationError(f"{where} {problem}, but a model sends arguments by name; {fix}", field=parameter.name)


def _field(parameter: inspect.Parameter, hint: object, described: str | None) -> Any:
    """Return the hint of one field of the arguments, with its default and description on it."""
    from pydantic.fields import FieldInfo

    metadata: list[Any] = list(getattr(hint, "__metadata__", ()))
    default: object = parameter.default
    infos = [item for item in [*metadata, default] if isinstance(item, FieldInfo)]
    if not any(info.description for info in infos):
        texts = [item for item in metadata if isinstance(item, str)]
        texts += [str(item.documentation) for item in metadata if hasattr(item, "documentation")]
        described = texts[0] if texts else described
    else:
        described = None
    extra: list[object] = []
    if isinstance(default, FieldInfo):
        extra.append(default)
    elif default is Ellipsis:  # as a plain default it would mean "required"
        extra.append(_field_info(default_factory=lambda: Ellipsis))
    elif default is not inspect.Parameter.empty:
        extra.append(_field_info(default=default))
        hint = typing.cast("Any", hint) | None if default is None and not _takes_none(hint) else hint
    if described:
        extra.append(_field_info(description=described))
    annotated: Any = typing.Annotated
    return annotated[(hint, *extra)] if extra else hint


def _field_info(**options: object) -> object:
    import pydantic

    make: Any = pydantic.Field
    return make(**options)


def _takes_none(hint: object) -> bool:
    """Return whether None is among what `hint` names; `x: str = None` means that it is."""
    if typing.get_origin(hint) is typing.Annotated:
        return _takes_none(typing.get_args(hint)[0])
    return hint in (Any, object, None, type(None)) or type(None) in typing.get_args(hint)


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    return make(f"{name}_arguments", fields)
