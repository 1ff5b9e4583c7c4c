"""Python values that no JSON has a place for, for tests that hand them to a run as results."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import pathlib
import re
import threading
import types
import uuid
import weakref
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
from pydantic import BaseModel, computed_field, field_serializer

from lousho import Message, define_tool


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Flags(enum.Flag):
    A = 1
    B = 2


class Book(BaseModel):
    """A model like those that tools return."""

    title: str = "Momo"
    added: datetime.datetime = datetime.datetime(2026, 10, 1, 9, 30)
    price: decimal.Decimal = decimal.Decimal("12.50")
    place: pathlib.PurePosixPath = pathlib.PurePosixPath("/shelf/b2")
    others: list[Book] = []


class SoreBook(BaseModel):
    """A model that cannot be shown."""

    title: str = "Momo"

    @field_serializer("title")
    def show(self, value: str) -> str:
        raise RuntimeError("no title")

    @computed_field
    @property
    def shelf(self) -> str:
        raise RuntimeError("no shelf")


class OddBook(BaseModel, arbitrary_types_allowed=True):
    """A model that holds something that pydantic cannot serialize."""

    lock: Any = dataclasses.field(default_factory=threading.Lock)
    number: complex = 1j


@dataclasses.dataclass(slots=True)
class Loan:
    reader: str
    due: datetime.date
    books: list[Any]


@dataclasses.dataclass
class HalfMade:
    """A dataclass that lacks a field."""

    here: int
    gone: int

    def __post_init__(self) -> None:
        del self.gone


class SoreList(list):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")


class SoreDict(dict):
    def items(self) -> Any:
        raise RuntimeError("items")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def keys(self) -> Any:
        raise RuntimeError("keys")


class SoreInt(int):
    def __repr__(self) -> str:
        raise RuntimeError("repr")

    __str__ = __repr__

    def __int__(self) -> int:
        raise RuntimeError("int")


class SoreText(str):
    def __str__(self) -> str:
        raise RuntimeError("str")

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise RuntimeError("encode")

    def __len__(self) -> int:
        raise RuntimeError("len")


class Liar:
    """Says that it is something else, and raises whatever it is asked."""

    __class__: Any = property(lambda self: dict)

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")


class Exits:
    """Raises what is no `Exception` when it is shown."""

    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class Endless:
    """Has no last item."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 1

    def __getitem__(self, index: int) -> int:
        return index


def deep_dict(levels: int = 10_000) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"a": value}
    return value


def deep_mixture(levels: int = 10_000) -> Any:
    value: Any = "end"
    for level in range(levels):
        value = [value, (value,), {"a": value}, Loan("r", datetime.date(2026, 1, 1), [])][level % 2 * 2]
        if level % 3 == 0:
            value = Loan("reader", datetime.date(2026, 10, 1), [value])
    return value


def circle() -> Any:
    book = Book()
    book.others.append(book)
    loop: dict[str, Any] = {"book": book, "list": [1]}
    loop["list"].append(loop)
    return loop


def text_of_surrogates() -> str:
    return "".join(map(chr, range(0xD800, 0xD810)))


LEAVES: list[Any] = [
    None,
    True,
    -0.0,
    math.nan,
    -math.inf,
    2**80,
    -(10**5000),
    1e308,
    5e-324,
    "",
    "\x00\x1b[31m\u2028\ufeff",
    text_of_surrogates(),
    b"\xff\x00",
    bytearray(b"a"),
    memoryview(b"ab")[::-1],
    decimal.Decimal("1E+400"),
    decimal.Decimal("sNaN"),
    fractions.Fraction(1, 3),
    complex(math.nan, math.inf),
    datetime.datetime.min,
    datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-23, minutes=-59))),
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 999_999),
    datetime.timedelta.max,
    uuid.UUID(int=7),
    pathlib.Path("a/b"),
    pathlib.PurePosixPath(b"\xff".decode("utf-8", "surrogateescape")),
    pathlib.PureWindowsPath("C:\\x"),
    Colour.RED,
    Number.ONE,
    Flags.A | Flags.B,
    range(10**9),
    re.compile("a+"),
    re.match("a", "a"),
    ipaddress.ip_network("10.0.0.0/8"),
    array.array("d", [1.0, math.nan]),
    collections.deque([1], maxlen=1),
    collections.Counter("aab"),
    collections.ChainMap({"a": 1}, {"b": 2}),
    types.MappingProxyType({1: 2}),
    types.SimpleNamespace(a=1),
    frozenset({frozenset({1})}),
    ...,
    NotImplemented,
    int,
    len,
    math,
    threading.Lock(),
    threading.current_thread(),
    weakref.ref(Book),
    ValueError("value"),
    ExceptionGroup("g", [KeyError("k")]),
    Book(),
    SoreBook(),
    OddBook(),
    Loan("reader", datetime.date(2026, 10, 1), [Book()]),
    HalfMade(1, 2),
    SoreList([1]),
    SoreDict(a=1),
    SoreInt(3),
    SoreText("text"),
    Liar(),
    Exits(),
    Endless(),
    Message("user", "hi"),
    define_tool(name="t", description="T.", execute=lambda number: number, input={"type": "object"}),
    object(),
    type("Nameless", (), {"__module__": None})(),
]
KEYS: list[Any] = [
    None,
    True,
    1,
    "1",
    1.5,
    math.nan,
    (1, (2,)),
    b"k",
    "",
    "\ud800",
    Colour.RED,
    Number.ONE,
    datetime.date(2026, 1, 1),
    pathlib.PurePosixPath("p"),
    frozenset({1}),
    int,
    SoreInt(5),
    2**80,
]
Recipe = tuple[str, Any]
"""How to build a value. Recipes are drawn instead of values, because many of these cannot be shown when a test fails."""

HARMLESS = [number for number, leaf in enumerate(LEAVES) if type(leaf) is not Exits]


def build(recipe: Recipe) -> Any:
    """Return the value of a recipe."""
    kind, parts = recipe
    if kind == "leaf":
        return LEAVES[parts]
    if kind == "dict":
        return {KEYS[key]: build(part) for key, part in parts}
    inside = [build(part) for part in parts]
    if kind == "loan":
        return Loan("reader", wrong(inside[:1]), inside[1:])
    makers: dict[str, Any] = {
        "list": list,
        "tuple": tuple,
        "proxy": lambda items: types.MappingProxyType(dict(enumerate(items))),
        "deque": collections.deque,
        "soft": lambda items: collections.UserList(items),
    }
    return makers[kind](inside)


def wrong(value: object) -> Any:
    return value


RECIPES: st.SearchStrategy[Recipe] = st.recursive(
    st.tuples(st.just("leaf"), st.sampled_from(HARMLESS)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["list", "tuple", "proxy", "deque", "soft", "loan"]), st.lists(inner, max_size=4)),
        st.tuples(st.just("dict"), st.lists(st.tuples(st.integers(0, len(KEYS) - 1), inner), max_size=4)),
    ),
    max_leaves=12,
)
