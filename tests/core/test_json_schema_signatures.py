"""Some fifty kinds of parameter: what a model is shown of each, what it may send, and what it may not."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import typing
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union  # noqa: TID251 - people use them

import pytest
from pydantic import BaseModel, Field

from lousho.core.json_schema import SchemaMismatch, schema_of_function


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Item(BaseModel):
    sku: str
    quantity: Annotated[int, Field(ge=1)] = 1


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Address(typing.TypedDict):
    street: str
    zip: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
MIXED: dict[str, Any] = {
    "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]
}
ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {"sku": TEXT, "quantity": {"type": "integer", "default": 1, "minimum": 1}},
    "required": ["sku"],
}


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    function: Callable[..., object]
    schema: Mapping[str, Any]
    """What the model sees of the parameter `x`."""
    accepts: Sequence[tuple[object, object]]
    """What may be sent, and what the function gets."""
    refuses: Sequence[object] = ()
    default: tuple[object, ...] = ()
    """What the function gets when nothing is sent; empty for a required parameter."""


def same(*values: object) -> list[tuple[object, object]]:
    return [(value, value) for value in values]


def f01(x: str): ...
def f02(x: int): ...
def f03(x: float): ...
def f04(x: bool): ...
def f05(x: str | None): ...
def f06(x: str | None = None): ...
def f07(x: Optional[int] = 3): ...  # noqa: UP045 - people write it
def f08(x: str = None): ...  # noqa: RUF013 # pyright: ignore[reportArgumentType] - people write it
def f09(x: int = 5): ...
def f10(x: int | str): ...
def f11(x: Union[bool, int]): ...  # noqa: UP007 - people write it
def f12(x: Literal["a", "b"]): ...
def f13(x: Literal[1, 2] = 1): ...
def f14(x: Literal["a", 1, None]): ...
def f15(x: Colour): ...
def f16(x: Level = Level.LOW): ...
def f17(x: list[str]): ...
def f18(x: list[int] | None = None): ...
def f19(x: list): ...  # pyright: ignore[reportMissingTypeArgument]
def f20(x: dict[str, int]): ...
def f21(x: dict): ...  # pyright: ignore[reportMissingTypeArgument]
def f22(x: tuple[int, str]): ...
def f23(x: tuple[int, ...]): ...
def f24(x: set[str]): ...
def f25(x: Sequence[int] = ()): ...
def f26(x: Item): ...
def f27(x: list[Item] | None = None): ...
def f28(x: Point): ...
def f29(x: Address): ...
def f30(x: Pair): ...
def f31(x: Annotated[int, Field(ge=1, le=10)]): ...
def f32(x: Annotated[str, Field(min_length=2, pattern="^[a-z]+$")]): ...
def f33(x: Annotated[str, "The city"]): ...
def f34(x: int = Field(default=2, gt=0, description="How many")): ...
def f35(x: list[str] = Field(default_factory=list)): ...  # noqa: B008
def f36(x: datetime.datetime): ...
def f37(x: datetime.date | None = None): ...
def f38(x: uuid.UUID): ...
def f39(x: Path): ...
def f40(x: Any): ...
def f41(x: Any = None): ...
def f42(x: Cat | Dog): ...
def f43(x: Annotated[Cat | Dog, Field(discriminator="kind")]): ...
def f44(x: Tree): ...
def f45(x: Mapping[str, list[Item]]): ...
def f46(x: bytes): ...
def f47(*, x: int): ...
def f48(x: object = Ellipsis): ...
def f49(x: Iterable[int]): ...
def f50(x: Collection[Item] | None = None): ...
def f51(x: datetime.timedelta): ...
def f52(x: datetime.time): ...
def f53(x: decimal.Decimal): ...
def f54(x: frozenset[int]): ...
def f55(x: Access): ...
def f56(x: dict[int, str]): ...
def f57(x: ipaddress.IPv4Address): ...


ONE_DAY = datetime.date(2026, 1, 2)
NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
SOME_ID = uuid.UUID(int=1)

CASES = [
    Case("str", f01, TEXT, same("", "a", "é"), [1, None, True, ["a"]]),
    Case("int", f02, WHOLE, [*same(0, -1, 10**30), (3.0, 3), ("5", 5)], [1.5, "x", True, None]),
    Case("float", f03, {"type": "number"}, [*same(0.5), (3, 3.0), ("2.5", 2.5)], ["x", False, None]),
    Case("bool", f04, {"type": "boolean"}, same(True, False), ["yes", "true", 1, 0, None]),
    Case("optional without a default", f05, {"anyOf": [TEXT, {"type": "null"}]}, same("a", None), [1]),
    Case("optional", f06, {"default": None, "anyOf": [TEXT, {"type": "null"}]}, same("a", None), [1], (None,)),
    Case(
        "Optional with a default", f07, {"default": 3, "anyOf": [WHOLE, {"type": "null"}]}, same(1, None), [True], (3,)
    ),
    Case("a default of None", f08, {"default": None, "anyOf": [TEXT, {"type": "null"}]}, same("a", None), [1], (None,)),
    Case("default", f09, {"type": "integer", "default": 5}, same(1), ["x", None, True], (5,)),
    Case("union", f10, {"anyOf": [WHOLE, TEXT]}, same(1, "a", "1"), [True, None, 1.5]),
    Case("union with bool", f11, {"anyOf": [{"type": "boolean"}, WHOLE]}, same(True, 1), ["yes", None]),
    Case("literal", f12, {"type": "string", "enum": ["a", "b"]}, same("a", "b"), ["c", "", None, 1]),
    Case("numbers as literal", f13, {"type": "integer", "enum": [1, 2], "default": 1}, same(2), [3, True], (1,)),
    Case("mixed literal", f14, MIXED, same("a", 1, None), ["b", True, 2]),
    Case("enum", f15, {"type": "string", "enum": ["red", "blue"]}, [("red", Colour.RED)], ["RED", 1, None]),
    Case("enum of numbers", f16, {"type": "integer", "enum": [1, 2], "default": 1}, [(2, Level.HIGH)], [3, True], (1,)),
    Case("list", f17, {"type": "array", "items": TEXT}, same([], ["a"]), ["a", [1], {}, None]),
    Case(
        "optional list",
        f18,
        {"default": None, "anyOf": [{"type": "array", "items": WHOLE}, {"type": "null"}]},
        same([1], None),
        [[True], "x"],
        (None,),
    ),
    Case("bare list", f19, {"type": "array", "items": {}}, same([1, "a", None]), ["a", {}]),
    Case("dict", f20, {"type": "object", "additionalProperties": WHOLE}, same({}, {"a": 1}), [{"a": "x"}, [], None]),
    Case("bare dict", f21, {"type": "object"}, same({}, {"a": [1]}), [[], "a"]),
    Case(
        "tuple",
        f22,
        {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2},
        [([1, "a"], (1, "a"))],
        [[1], [1, "a", 2], ["a", 1]],
    ),
    Case("tuple of any length", f23, {"type": "array", "items": WHOLE}, [([1, 2], (1, 2)), ([], ())], [["a"], 1]),
    Case("set", f24, {"type": "array", "items": TEXT, "uniqueItems": True}, [(["a", "a"], {"a"})], [[1], "a"]),
    Case("sequence", f25, {"type": "array", "default": [], "items": WHOLE}, same([1]), [["a"]], ((),)),
    Case("model", f26, ITEM, [({"sku": "a"}, Item(sku="a"))], [{}, {"sku": "a", "quantity": 0}, "a"]),
    Case(
        "list of models",
        f27,
        {"default": None, "anyOf": [{"type": "array", "items": ITEM}, {"type": "null"}]},
        [([{"sku": "a", "quantity": 2}], [Item(sku="a", quantity=2)])],
        [[{}], [{"sku": 1}]],
        (None,),
    ),
    Case(
        "dataclass",
        f28,
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
            "required": ["x"],
        },
        [({"x": 1}, Point(1.0))],
        [{}, {"x": True}],
    ),
    Case(
        "TypedDict",
        f29,
        {"type": "object", "properties": {"street": TEXT, "zip": TEXT}, "required": ["street"]},
        same({"street": "a"}, {"street": "a", "zip": "1"}),
        [{}, {"street": "a", "zip": 1}, {"zip": "1"}],
    ),
    Case(
        "NamedTuple",
        f30,
        {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2},
        [([1, "a"], Pair(1, "a"))],
        [[1], ["a", "a"]],
    ),
    Case("bounds", f31, {"type": "integer", "minimum": 1, "maximum": 10}, same(1, 10), [0, 11, True]),
    Case("text rules", f32, {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"}, same("ab"), ["a", "AB"]),
    Case("annotated text", f33, {"type": "string", "description": "The city"}, same("Rome"), [1]),
    Case(
        "Field as default",
        f34,
        {"type": "integer", "description": "How many", "default": 2, "exclusiveMinimum": 0},
        same(1),
        [0, "x"],
        (2,),
    ),
    Case("default factory", f35, {"type": "array", "items": TEXT}, same(["a"]), ["a", None], ([],)),
    Case(
        "datetime",
        f36,
        {"type": "string", "format": "date-time"},
        [("2026-01-02T12:00:00Z", NOON), ("2026-01-02T13:00:00+01:00", NOON)],
        ["tomorrow", True, None],
    ),
    Case(
        "optional date",
        f37,
        {"default": None, "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        [("2026-01-02", ONE_DAY), (None, None)],
        ["2026-13-01"],
        (None,),
    ),
    Case("UUID", f38, {"type": "string", "format": "uuid"}, [(str(SOME_ID), SOME_ID)], ["x", 1]),
    Case("path", f39, {"type": "string", "format": "path"}, [("a/b", Path("a/b"))], [1, None]),
    Case("any", f40, {}, same(1, "a", None, [True], {"a": 1})),
    Case("any with a default", f41, {"default": None}, same(1, None), (), (None,)),
    Case(
        "union of models",
        f42,
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"type": "string", "enum": ["cat"]}, "lives": WHOLE},
                    "required": ["kind", "lives"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"type": "string", "enum": ["dog"]}, "name": TEXT},
                    "required": ["kind", "name"],
                },
            ]
        },
        [
            ({"kind": "cat", "lives": 9}, Cat(kind="cat", lives=9)),
            ({"kind": "dog", "name": "R"}, Dog(kind="dog", name="R")),
        ],
        [{"kind": "cat"}, {"kind": "cow", "name": "R"}, {"kind": "cat", "lives": True}],
    ),
    Case(
        "recursive model",
        f44,
        {"$ref": "#/$defs/Tree"},
        [({"name": "a", "children": [{"name": "b"}]}, Tree(name="a", children=[Tree(name="b")]))],
        [{"name": "a", "children": [{"name": 1}]}, {}],
    ),
    Case(
        "mapping of lists of models",
        f45,
        {"type": "object", "additionalProperties": {"type": "array", "items": ITEM}},
        [({"a": [{"sku": "s"}]}, {"a": [Item(sku="s")]})],
        [{"a": [{}]}, {"a": {"sku": "s"}}],
    ),
    Case("bytes", f46, {"type": "string", "format": "binary"}, [("ab", b"ab")], [1]),
    Case("keyword-only", f47, WHOLE, same(1), ["x"]),
    Case("a default JSON has no word for", f48, {}, same(1), (), (Ellipsis,)),
    Case("iterable", f49, {"type": "array", "items": WHOLE}, [*same([1]), (["2"], [2])], [["a"], 1, None]),
    Case(
        "optional collection",
        f50,
        {"default": None, "anyOf": [{"type": "array", "items": ITEM}, {"type": "null"}]},
        [([{"sku": "a"}], [Item(sku="a")]), (None, None)],
        [[{}], {}],
        (None,),
    ),
    Case(
        "timedelta",
        f51,
        {"type": "string", "format": "duration"},
        [("P1D", datetime.timedelta(days=1)), ("PT90S", datetime.timedelta(seconds=90))],
        ["a day", None],
    ),
    Case("time", f52, {"type": "string", "format": "time"}, [("12:30", datetime.time(12, 30))], ["noon", None]),
    Case(
        "decimal",
        f53,
        {"anyOf": [{"type": "number"}, {"type": "string"}]},
        [("1.10", decimal.Decimal("1.10")), (2, decimal.Decimal(2))],
        ["x", None, True],
    ),
    Case(
        "frozen set",
        f54,
        {"type": "array", "items": WHOLE, "uniqueItems": True},
        [([1, 1, 2], frozenset({1, 2}))],
        [["a"], 1],
    ),
    Case("flags", f55, {"type": "integer", "enum": [1, 2]}, [(1, Access.READ)], ["READ", True, None]),
    Case(
        "keys that are numbers",
        f56,
        {"type": "object", "additionalProperties": TEXT},
        [({"1": "a"}, {1: "a"})],
        [{"a": "a"}, {"1": 1}],
    ),
    Case(
        "address",
        f57,
        {"type": "string", "format": "ipv4"},
        [("10.0.0.1", ipaddress.IPv4Address("10.0.0.1"))],
        ["10.0.0.256", None],
    ),
]
# The discriminator only helps to read; the model is shown the same.
CASES.append(
    dataclasses.replace(next(case for case in CASES if case.id == "union of models"), id="tagged", function=f43)
)


def ids(case: Case) -> str:
    return case.id


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_model_is_shown_the_parameter(case: Case):
    shown = schema_of_function(case.function).json_schema
    assert shown["properties"] == {"x": case.schema}
    assert shown.get("required", []) == ([] if case.default else ["x"])
    assert shown["type"] == "object"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_what_fits_arrives_as_the_parameters_type(case: Case):
    schema = schema_of_function(case.function)
    for sent, got in case.accepts:
        arrived = schema.parse({"x": sent})["x"]
        assert (arrived, type(arrived)) == (got, type(got))
    if case.default:
        assert schema.parse({}) == {"x": case.default[0]}


@pytest.mark.parametrize("case", [case for case in CASES if case.refuses or not case.default], ids=ids)
def test_what_does_not_fit_is_refused_at_its_place(case: Case):
    schema = schema_of_function(case.function)
    for sent in case.refuses:
        with pytest.raises(SchemaMismatch) as caught:
            schema.parse({"x": sent})
        assert caught.value.issues
        assert all(issue.path.split(".")[0] == "x" and issue.message for issue in caught.value.issues), sent
    if not case.default:
        with pytest.raises(SchemaMismatch) as caught:
            schema.parse({})
        assert caught.value.issues == [("x", "Field required")]


def test_the_table_is_long_enough():
    assert len({case.id for case in CASES}) == len(CASES) >= 40
