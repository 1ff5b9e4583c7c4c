"""Functions of every kind as tools: how each is read, called and bound, and which cannot be tools."""

from __future__ import annotations

import functools
import json
import unittest.mock
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Optional, Self, TypeVar  # noqa: TID251 - people write it

import pydantic
import pytest
from runs import call, collect, of_type

import lousho
from lousho import ConfigurationError, ToolContext, create_agent, define_tool, tool
from lousho.testing import mock_model

if TYPE_CHECKING:
    from lousho import ToolContext as OnlyForCheckers

T = TypeVar("T")
Alias = ToolContext
ANY: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}


async def answer_of(made: Any, *, name: str | None = None, **args: Any) -> Any:
    """Let a model call the tool once and return what the model reads."""
    model = mock_model([call(name or made.name, **args), "Done."])
    result = await create_agent(provider=model, tools=[made]).send("go")
    text = str(result.messages[2].content)
    try:
        return json.loads(text)
    except ValueError:
        return text


def double(x: int, by: int = 2) -> int:
    """Multiply a number.

    Args:
        x: The number.
    """
    return x * by


async def double_async(x: int) -> int:
    """Double a number."""
    return x * 2


async def double_stream(x: int) -> AsyncIterator[int]:
    """Double a number."""
    yield x
    yield x * 2


class Maths:
    """Multiplies."""

    factor = 2

    def double(self, x: int) -> int:
        """Double a number."""
        return x * self.factor

    async def double_async(self, x: int) -> int:
        """Double a number."""
        return x * self.factor

    @classmethod
    def on_class(cls, x: int) -> int:
        """Double a number."""
        return x * cls.factor

    @staticmethod
    def static(x: int) -> int:
        """Double a number."""
        return x * 2

    def __call__(self, x: int) -> int:
        """Double a number.

        Args:
            x: The number.
        """
        return x * self.factor


class AsyncMaths:
    async def __call__(self, x: int) -> int:
        """Double a number."""
        return x * 2


def noisy(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


KINDS: list[tuple[str, Any, str]] = [
    ("a function", double, "double"),
    ("an async function", double_async, "double_async"),
    ("an async generator", double_stream, "double_stream"),
    ("a bound method", Maths().double, "double"),
    ("a bound async method", Maths().double_async, "double_async"),
    ("a class method", Maths.on_class, "on_class"),
    ("a static method", Maths.static, "static"),
    ("a static method object", Maths.__dict__["static"], "static"),
    ("an object with __call__", Maths(), "Maths"),
    ("an object with an async __call__", AsyncMaths(), "AsyncMaths"),
    ("a partial", functools.partial(double, by=2), "double"),
    ("a partial of a partial", functools.partial(functools.partial(double), by=2), "double"),
    ("a partial of an async function", functools.partial(double_async), "double_async"),
    ("a partial of an async generator", functools.partial(double_stream), "double_stream"),
    ("a wrapped function", noisy(double), "double"),
    ("a wrapped async function", noisy(double_async), "double_async"),
    ("a wrapped async generator", noisy(double_stream), "double_stream"),
    ("a cached function", functools.lru_cache(double), "double"),
]


@pytest.mark.parametrize(("function", "name"), [kind[1:] for kind in KINDS], ids=[kind[0] for kind in KINDS])
async def test_every_kind_of_function_is_read_and_called(function: Any, name: str):
    made = tool(function)
    assert made.name == name
    assert made.description in ("Double a number.", "Multiply a number.", "Multiplies.")
    assert made.input_schema["properties"]["x"]["type"] == "integer"
    assert await answer_of(made, x=21) == 42


async def test_what_a_partial_or_a_class_says_of_its_parameters_reaches_the_model():
    described = {"type": "integer", "description": "The number."}
    assert tool(functools.partial(double, by=3)).input_schema["properties"]["x"] == described
    assert tool(Maths()).input_schema["properties"]["x"] == described
    bound = tool(functools.partial(double, 4))
    assert list(bound.input_schema["properties"]) == ["by"]


async def test_an_async_generator_behind_a_wrapper_still_streams():
    agent = create_agent(provider=mock_model([call("double_stream", x=1), "Done."]), tools=[tool(noisy(double_stream))])
    assert [event.output for event in of_type(await collect(agent.stream("go")), "tool.partial")] == [1, 2]


async def test_a_mock_can_stand_for_any_function():
    fake = unittest.mock.AsyncMock(return_value="faked")
    assert await answer_of(tool(double).replace(execute=fake), x=1) == "faked"
    fake.assert_awaited_once_with(x=1, by=2)
    plain = unittest.mock.Mock(return_value="plain")
    assert await answer_of(define_tool(name="act", description="Act", input=ANY, execute=plain), x=1) == "plain"
    assert plain.call_args.args[0] == {"x": 1}
    assert isinstance(plain.call_args.args[1], ToolContext)


def not_a_name_größe(x: int) -> int:
    """Double."""
    return x


def by_position(x: int, /) -> int:
    """Double."""
    return x


def no_doc(x: int) -> int:
    return x


def later(x: Unknown) -> int:  # noqa: F821 # pyright: ignore[reportUndefinedVariable]
    """Double."""
    return x


def unbound(self, x: int) -> int:
    """Double."""
    return x


def many(*numbers: int) -> int:
    """Sum."""
    return sum(numbers)


def open_ended(**numbers: int) -> int:
    """Sum."""
    return sum(numbers.values())


REFUSED: list[tuple[str, Any, str]] = [
    ("a lambda", lambda x: x, "It comes from a lambda: pass name="),
    ("a name with accents", not_a_name_größe, "It comes from the function 'not_a_name_größe': pass name="),
    ("a positional-only parameter", by_position, "is positional-only"),
    ("*args", many, "takes *args"),
    ("**kwargs", open_ended, "takes **kwargs"),
    ("no description", no_doc, "Pass description=, or write a docstring"),
    ("a hint that nothing defines", later, "cannot be resolved"),
    ("an unbound method", unbound, "a method is made a tool on its object: `tool(thing.method)`"),
    ("a class method object", Maths.__dict__["on_class"], "not above a classmethod"),
    ("a text", "find_book", "not above a str; its options go by name: @tool(name=...)"),
    ("a builtin", print, "takes *args"),
    ("nothing at all", 5, "not above a int"),
]


@pytest.mark.parametrize(("function", "says"), [kind[1:] for kind in REFUSED], ids=[kind[0] for kind in REFUSED])
def test_what_cannot_be_a_tool_is_refused_with_the_fix(function: Any, says: str):
    with pytest.raises(ConfigurationError) as caught:
        tool(function)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    assert says in caught.value.detail


async def test_a_lambda_or_a_name_with_accents_works_under_a_name():
    make: Any = lambda x: x + 1  # noqa: E731 - what the test is about
    named = tool(name="next", description="The next number", input=ANY)(lambda args: make(args["x"]))
    assert await answer_of(named, x=1) == 2
    assert await answer_of(tool(name="size")(not_a_name_größe), x=3) == 3


async def test_parameters_may_have_the_names_that_a_call_needs_itself():
    @tool(needs_approval=lambda context: context == "stop")
    def odd(self: str, ctx: int, input: str, context: str, parsed: bool = True, function: int = 1) -> list[Any]:
        """Return all."""
        return [self, ctx, input, context, parsed, function]

    sent: dict[str, Any] = {"self": "s", "ctx": 2, "input": "i", "context": "c"}
    assert await answer_of(odd, **sent) == ["s", 2, "i", "c", True, 1]
    assert odd(**sent) == ["s", 2, "i", "c", True, 1]
    assert list(odd.input_schema["properties"]) == ["self", "ctx", "input", "context", "parsed", "function"]


def first(ctx: ToolContext, x: int) -> str:
    return f"{x} {ctx.tool_name}"


def last(x: int, ctx: ToolContext | None = None) -> str:
    return f"{x} {ctx and ctx.tool_name}"


def only_keyword(x: int, *, here: ToolContext) -> str:
    return f"{x} {here.tool_name}"


def only_positional(ctx: ToolContext, /, x: int) -> str:
    return f"{x} {ctx.tool_name}"


def by_module(x: int, ctx: lousho.ToolContext) -> str:
    return f"{x} {ctx.tool_name}"


def by_alias(x: int, c: Alias) -> str:
    return f"{x} {c.tool_name}"


def by_other_name(x: int, ctx: lousho.ToolExecutionContext) -> str:
    return f"{x} {ctx.tool_name}"


def for_checkers_only(x: int, ctx: OnlyForCheckers) -> str:
    return f"{x} {ctx.tool_name}"


def annotated(x: int, ctx: Annotated[ToolContext, "the call"]) -> str:
    return f"{x} {ctx.tool_name}"


def optional(x: int, ctx: Optional[ToolContext] = None) -> str:  # noqa: UP045 - people write it
    return f"{x} {ctx and ctx.tool_name}"


CONTEXTS = [first, last, only_keyword, only_positional, by_module, by_alias, by_other_name, annotated, optional]


@pytest.mark.parametrize("function", CONTEXTS, ids=lambda function: function.__name__)
async def test_the_context_reaches_its_parameter_wherever_it_stands(function: Any):
    made = tool(name="act", description="Act")(function)
    assert made.input_schema["properties"] == {"x": {"type": "integer"}}
    assert await answer_of(made, x=1) == "1 act"


async def test_a_context_that_is_imported_for_type_checkers_only_is_known_by_its_name():
    for_checkers_only.__annotations__["ctx"] = "ToolContext"
    made = tool(name="act", description="Act")(for_checkers_only)
    assert await answer_of(made, x=1) == "1 act"


def context_then_value(ctx: ToolContext, args: dict[str, Any]) -> list[Any]:
    return [args["x"], ctx.tool_name]


VALUES: list[tuple[str, Any, Any]] = [
    ("nothing", lambda: "none", "none"),
    ("the arguments", lambda args: args["x"], 1),
    ("arguments and context", lambda args, run: [args["x"], run.tool_name], [1, "act"]),
    ("context first", context_then_value, [1, "act"]),
    ("a default that is no context", lambda args, step=5: [args["x"], step], [1, 5]),
    ("a context with a default", lambda args, ctx=None: [args["x"], getattr(ctx, "tool_name", None)], [1, "act"]),
    ("a context by keyword", lambda args, *, context: [args["x"], context.tool_name], [1, "act"]),
    ("stars", lambda *given: [given[0]["x"], given[1].tool_name], [1, "act"]),
]


@pytest.mark.parametrize(("function", "expected"), [kind[1:] for kind in VALUES], ids=[kind[0] for kind in VALUES])
async def test_a_function_over_one_value_takes_what_it_wants_of_it(function: Any, expected: Any):
    made = define_tool(name="act", description="Act", input=ANY, execute=function)
    assert await answer_of(made, x=1) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"execute": lambda a, b, c: 1}, "cannot call its execute, which needs (a, b, c): it is given (arguments)"),
        ({"execute": lambda a, *, token: 1}, "cannot call its execute, which needs (a, token)"),
        ({"execute": lambda a, b, *, ctx: 1}, "cannot call its execute, which needs (a, b, ctx)"),
        ({"needs_approval": lambda a, b, c: True}, "cannot call its needs_approval"),
    ],
    ids=["three values", "a keyword nobody gives", "two and a context", "a gate of three"],
)
def test_a_function_that_could_never_be_called_is_refused_when_the_tool_is_defined(options: Any, says: str):
    given: dict[str, Any] = {"name": "act", "description": "Act", "input": ANY, "execute": print, **options}
    with pytest.raises(ConfigurationError) as caught:
        define_tool(**given)
    assert says in caught.value.detail


def test_a_gate_that_asks_for_an_argument_the_tool_has_not_is_refused_and_never_guesses():
    with pytest.raises(ConfigurationError) as caught:
        tool(needs_approval=lambda x, bye: x > bye)(double)
    assert "needs_approval takes 'bye', which is no argument of the tool (did you mean 'by'?)" in caught.value.detail
    assert "the arguments are x, by" in caught.value.detail


@pytest.mark.parametrize(
    "gate",
    [
        lambda x: x > 5,
        lambda x, limit=5: x > limit,
        lambda args: args["x"] > 5,
        lambda args, ctx: args["x"] > 5 and ctx.tool_name == "double",
        lambda x, ctx: x > 5 and ctx.tool_name == "double",
        lambda by, x: x > 5 and by == 2,
        lambda **given: given["x"] > 5,
    ],
    ids=["one argument", "a default of its own", "all", "all and context", "one and context", "reordered", "keywords"],
)
@pytest.mark.parametrize(("x", "reason"), [(9, "awaiting-approval"), (1, "stop")])
async def test_a_gate_takes_arguments_by_name_or_all_at_once(gate: Any, x: int, reason: str):
    agent = create_agent(provider=mock_model([call("double", x=x), "Done."]), tools=[tool(needs_approval=gate)(double)])
    assert (await agent.send("go")).finish_reason == reason


async def test_local_types_are_known_where_the_function_stands():
    class Book(pydantic.BaseModel):
        title: str

    @tool
    def lend(book: Book, others: list[Book] | None = None) -> str:
        """Lend a book."""
        return book.title

    @tool(name="give")
    def give(book: Book) -> str:
        """Give a book."""
        return book.title

    defined = define_tool(name="take", description="Take a book", execute=lambda_free(Book))
    for made in (lend, give, defined):
        assert await answer_of(made, book={"title": "Momo"}) == "Momo"


def lambda_free(kind: type[pydantic.BaseModel]) -> Callable[..., str]:
    def take(book: pydantic.BaseModel) -> str:
        return str(book.model_dump()["title"])

    take.__annotations__["book"] = kind
    return take


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


async def test_generic_models_and_iterables_are_read_before_the_function_runs():
    @tool
    def count(page: Page[int], more: Iterable[int] = ()) -> int:
        """Count."""
        return sum(page.items) + sum(more) + sum(more)

    assert await answer_of(count, page={"items": [1, "2"]}, more=[3]) == 9
    wrong = await answer_of(count, page={"items": ["x"]}, more=["y"])
    assert [issue["path"] for issue in wrong["issues"]] == ["page.items.0", "more.0"]


async def test_a_default_that_can_change_is_fresh_for_every_call():
    @tool
    def collect_into(x: int, into: list[int] = []) -> list[int]:  # noqa: B006 - what the test is about
        """Collect."""
        into.append(x)
        return into

    model = mock_model([call("collect_into", x=1), call("collect_into", x=2), "Done."])
    result = await create_agent(provider=model, tools=[collect_into]).send("go")
    assert [message.content for message in result.messages if message.role == "tool"] == ["[1]", "[2]"]


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_description_may_be_long(size: int):
    def act(x: int) -> int:
        return x

    line = "word " * (size // 5)
    act.__doc__ = f"{line}\n\n    Args:\n        x: {line}\n"
    made = tool(act)
    assert made.description == line.strip()
    assert made.input_schema["properties"]["x"]["description"] == line.strip()


def test_hints_that_are_words_of_a_class_are_refused():
    def act(x: int) -> int:
        """Act."""
        return x

    for hint in (Final[int], ClassVar[int], Self):
        act.__annotations__ = {"x": hint}
        with pytest.raises(ConfigurationError, match="write the type alone"):
            tool(act)
