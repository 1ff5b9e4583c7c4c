"""The schema of a function: its parameters, their descriptions, and the functions a model cannot call."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from lousho.core.errors import ConfigurationError
from lousho.core.json_schema import schema_of_function


class Connection:
    pass


class ToolContext:
    pass


def google(city: str, days: int = 3, *, note: str = "") -> None:
    """Return the forecast
    of a city.

    It is only a guess.

    Args:
        city: The city,
            with its country.
        days (int): How many days.
        note: Anything
    Returns:
        city: not this
    """


def sphinx(city: str, days: int = 3) -> None:
    """Return the forecast.

    :param str city: The city,
        with its country.
    :param days: How many days.
    :returns: nothing
    """


def numpy(city: str, days: int = 3) -> None:
    """
    Return the forecast.

    Parameters
    ----------
    city : str
        The city,
        with its country.
    days
        How many days.

    Returns
    -------
    days
        not this
    """


@pytest.mark.parametrize("function", [google, sphinx, numpy], ids=lambda function: function.__name__)
def test_a_docstring_describes_the_function_and_its_parameters(function: Callable[..., object]):
    schema = schema_of_function(function)
    assert schema.description.startswith("Return the forecast")
    assert "\n" not in schema.description
    properties: Any = schema.json_schema["properties"]
    assert properties["city"]["description"] == "The city, with its country."
    assert properties["days"]["description"] == "How many days."


def test_only_the_first_paragraph_describes_the_function():
    assert schema_of_function(google).description == "Return the forecast of a city."
    assert schema_of_function(lambda: None).description == ""


def test_a_description_in_the_hint_wins_over_the_docstring():
    def function(
        a: Annotated[int, "from the hint"], b: Annotated[int, Field(description="from the field")], c: int = 1
    ):
        """Do it.

        Args:
            a: from the docstring
            b: from the docstring
            c: from the docstring
        """

    properties: Any = schema_of_function(function).json_schema["properties"]
    assert [properties[name]["description"] for name in "abc"] == [
        "from the hint",
        "from the field",
        "from the docstring",
    ]


async def coroutine(x: int) -> int:
    return x


async def generator(x: int) -> AsyncIterator[int]:
    yield x


class Callables:
    def method(self, x: int) -> int:
        return x

    @classmethod
    def on_class(cls, x: int) -> int:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x

    def __call__(self, x: int) -> int:
        return x


def two(y: object, /, x: int) -> int:
    return x


@functools.wraps(coroutine)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return coroutine(*args, **kwargs)


@pytest.mark.parametrize(
    "function",
    [
        coroutine,
        generator,
        Callables().method,
        Callables.on_class,
        Callables.static,
        Callables(),
        wrapped,
        functools.partial(two, 1),
    ],
    ids=["async", "generator", "method", "class method", "static method", "callable object", "wrapped", "partial"],
)
def test_any_kind_of_function_has_a_schema(function: Any):
    schema = schema_of_function(function)
    assert schema.json_schema["properties"] == {"x": {"type": "integer"}}
    assert schema.parse({"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    "hint",
    [
        ToolContext,
        ToolContext | None,
        Annotated[ToolContext, "the call"],
        "ToolContext",
        "ToolContext | None",
        "'Elsewhere.ToolContext'",
        "lousho.ToolContext[str]",
        type("ToolExecutionContext", (), {}),
    ],
    ids=str,
)
def test_the_context_of_the_call_is_not_an_argument(hint: object):
    def function(ctx: object, x: int) -> None: ...

    function.__annotations__ = {"ctx": hint, "x": int}
    schema = schema_of_function(function)
    assert schema.context_parameter == "ctx"
    assert schema.json_schema["properties"] == {"x": {"type": "integer"}}


def test_what_counts_as_the_context_can_be_told():
    def function(here: Connection, x: int) -> None: ...

    assert schema_of_function(function, is_context=lambda hint: hint is Connection).context_parameter == "here"


def test_local_names_of_hints_are_found_where_they_are_given():
    class Local(BaseModel):
        x: int

    def function(value: "Local | None" = None) -> None: ...  # noqa: UP037

    with pytest.raises(ConfigurationError, match="cannot be resolved"):
        schema_of_function(function)
    assert schema_of_function(function, namespace=locals()).parse({"value": {"x": 1}}) == {"value": Local(x=1)}


def no_hint(x): ...
def no_hint_context(ctx, x: int): ...
def star(*values: int): ...
def stars(**values: int): ...
def by_position(x: int, /): ...
def unknown(x: "Nowhere"): ...  # noqa: F821, UP037 # pyright: ignore[reportUndefinedVariable]
def connection(x: Connection): ...
def two_contexts(a: ToolContext, b: ToolContext): ...


@pytest.mark.parametrize(
    ("function", "field", "message"),
    [
        (no_hint, "x", "Parameter 'x' of no_hint() has no type hint; add one"),
        (no_hint_context, "ctx", "write `ToolContext` to get the context of the call"),
        (star, "values", "Parameter 'values' of star() takes *args"),
        (stars, "values", "Parameter 'values' of stars() takes **kwargs"),
        (by_position, "x", "Parameter 'x' of by_position() is positional-only"),
        (unknown, "x", "has the type hint 'Nowhere', which cannot be resolved"),
        (connection, "x", "connection(): Field 'x' has the type Connection, which no JSON value can satisfy"),
        (two_contexts, "b", "Parameter 'b' of two_contexts() is a second context parameter"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_function_a_model_cannot_call_is_refused_with_its_parameter(function: Any, field: str, message: str):
    with pytest.raises(ConfigurationError) as caught:
        schema_of_function(function)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", field)
    assert message in caught.value.detail


def test_parameters_may_have_any_name():
    def function(schema: str, copy: int, model_config: bool = False, _private: int = 1, json: str = "") -> None: ...

    assert schema_of_function(function).parse({"schema": "a", "copy": 1}) == {
        "schema": "a",
        "copy": 1,
        "model_config": False,
        "_private": 1,
        "json": "",
    }


def test_a_mutable_default_is_not_shared_between_calls():
    def function(items: list[int] = []) -> None: ...  # noqa: B006

    schema = schema_of_function(function)
    first: Any = schema.parse({})["items"]
    first.append(1)
    assert schema.parse({}) == {"items": []}


def test_a_function_without_parameters_takes_an_empty_object():
    def function() -> None: ...

    schema = schema_of_function(function)
    assert schema.json_schema == {"type": "object", "properties": {}}
    assert schema.parse({}) == {}
