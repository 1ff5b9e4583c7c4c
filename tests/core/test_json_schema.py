"""One schema for every way to write a shape, and one way to read values with it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import pydantic.dataclasses
import pytest
import typing_extensions
from pydantic import BaseModel, Field

from lousho.core.errors import ConfigurationError, Issue
from lousho.core.json_schema import SchemaMismatch, object_schema_of, schema_of, schema_of_function


class ItemModel(BaseModel):
    sku: str
    quantity: Annotated[int, Field(ge=1)] = 1


class OrderModel(BaseModel):
    city: str = Field(description="Where to")
    speed: Literal["slow", "fast"] = "slow"
    note: str | None = None
    items: list[ItemModel] = []


@dataclasses.dataclass
class ItemClass:
    sku: str
    quantity: Annotated[int, Field(ge=1)] = 1


@pydantic.dataclasses.dataclass
class OrderClass:
    city: Annotated[str, Field(description="Where to")]
    speed: Literal["slow", "fast"] = "slow"
    note: str | None = None
    items: list[ItemClass] = Field(default=[])


class ItemDict(typing.TypedDict):
    sku: str
    quantity: Annotated[int, Field(ge=1, default=1)]


class OrderDict(typing.TypedDict):
    city: Annotated[str, Field(description="Where to")]
    speed: Annotated[Literal["slow", "fast"], Field(default="slow")]
    note: Annotated[str | None, Field(default=None)]
    items: Annotated[list[ItemDict], Field(default=[])]


ORDER_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "required": ["city"],
    "properties": {
        "city": {"type": "string", "description": "Where to", "title": "City"},
        "speed": {"enum": ["slow", "fast"], "default": "slow"},
        "note": {"type": ["null", "string"], "default": None},
        "items": {"type": "array", "items": {"$ref": "#/definitions/Item"}, "default": []},
    },
    "definitions": {
        "Item": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1, "default": 1}},
            "required": ["sku"],
        }
    },
    "type": "object",
}


def order(
    city: Annotated[str, "Where to"],
    speed: Literal["slow", "fast"] = "slow",
    note: str | None = None,
    items: list[ItemModel] = [],  # noqa: B006
) -> None:
    """Order something."""


SHAPES: dict[str, Any] = {
    "model": OrderModel,
    "dataclass": OrderClass,
    "TypedDict": OrderDict,
    "JSON Schema": ORDER_SCHEMA,
}
CANONICAL = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where to"},
        "speed": {"type": "string", "enum": ["slow", "fast"], "default": "slow"},
        "note": {"default": None, "anyOf": [{"type": "string"}, {"type": "null"}]},
        "items": {
            "type": "array",
            "default": [],
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer", "default": 1, "minimum": 1}},
                "required": ["sku"],
            },
        },
    },
    "required": ["city"],
}


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_equal_shapes_have_equal_schemas_to_the_byte(source: object):
    assert json.dumps(schema_of(source).json_schema) == json.dumps(CANONICAL)
    assert json.dumps(schema_of_function(order).json_schema) == json.dumps(CANONICAL)


def test_a_real_change_of_the_shape_shows():
    changed = json.loads(json.dumps(ORDER_SCHEMA))
    changed["definitions"]["Item"]["properties"]["quantity"]["maximum"] = 9
    assert schema_of(changed).json_schema != CANONICAL


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_defaults_arrive_and_the_value_goes_back_to_json(source: object):
    schema = schema_of(source)
    parsed = schema.parse({"city": "Rome", "items": [{"sku": "a"}]})
    assert isinstance(parsed, source if source in (OrderModel, OrderClass) else dict)
    assert schema.dump(parsed) == {
        "city": "Rome",
        "speed": "slow",
        "note": None,
        "items": [{"sku": "a", "quantity": 1}],
    }


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
def test_what_is_wrong_is_told_the_same_way(source: object):
    wrong = {"city": 3, "speed": "x", "items": [{"quantity": 0}, {"sku": "a", "quantity": True}]}
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(source).parse(wrong)
    assert sorted(caught.value.issues) == [
        Issue("city", "Input should be a valid string, received number"),
        Issue("items.0.quantity", "Input should be greater than or equal to 1"),
        Issue("items.0.sku", "Field required"),
        Issue("items.1.quantity", "Input should be a valid integer, received boolean"),
        Issue("speed", "Input should be 'slow' or 'fast'"),
    ]
    assert caught.value.code == "LOUSHO_VALIDATION_FAILED"
    assert caught.value.errors["city"] == ["Input should be a valid string, received number"]


@pytest.mark.parametrize("source", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("value", [None, [], "x", 3, True], ids=repr)
def test_another_kind_of_value_is_wrong_at_the_root(source: object, value: object):
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(source).parse(value)
    assert [issue.path for issue in caught.value.issues] == ["(root)"]


def test_reading_a_value_leaves_it_as_it_was():
    for source in SHAPES.values():
        value = {"city": "Rome", "items": [{"sku": "a"}], "extra": [1]}
        schema_of(source).parse(value)
        assert value == {"city": "Rome", "items": [{"sku": "a"}], "extra": [1]}


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, True, "Input should be a valid integer, received boolean"),
        (float, False, "Input should be a valid number, received boolean"),
        (bool, "yes", "Input should be a valid boolean, received string"),
        (bool, 1, "Input should be a valid boolean, received number"),
        (int | str, True, "Input should be a valid integer or a valid string, received boolean"),
        (Literal[1, 2], True, "Input should be 1 or 2, received boolean"),
        (Literal[1] | None, True, "Input should be 1, received boolean"),
        (list[Literal[0]], [False], "Input should be 0, received boolean"),
    ],
    ids=str,
)
def test_a_boolean_is_no_number_and_a_word_no_boolean(hint: object, value: object, message: str):
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(hint).parse(value)
    assert [issue.message for issue in caught.value.issues] == [message]


def test_a_number_written_as_text_is_understood():
    assert schema_of(list[int]).parse(["1", 2, 3.0]) == [1, 2, 3]
    assert schema_of(bool | Literal[1]).parse(True) is True


def test_a_value_error_of_the_type_is_told_in_its_own_words():
    def positive(value: int) -> int:
        if value < 0:
            raise ValueError("must not be negative")
        return value

    with pytest.raises(SchemaMismatch) as caught:
        schema_of(Annotated[int, pydantic.AfterValidator(positive)]).parse(-1)
    assert caught.value.issues == [Issue("(root)", "must not be negative")]


def test_a_union_of_models_names_only_places_that_exist():
    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(BaseModel):
        kind: Literal["dog"]

    class Owner(BaseModel):
        pet: Cat | Dog

    with pytest.raises(SchemaMismatch) as caught:
        schema_of(Owner).parse({"pet": {"kind": "cat", "lives": []}})
    assert {issue.path for issue in caught.value.issues} == {"pet.lives", "pet.kind"}


def test_aliases_are_what_is_shown_and_read():
    class Aliased(BaseModel):
        max_tokens: int = Field(alias="maxTokens")

    schema = schema_of(Aliased)
    assert schema.json_schema["required"] == ["maxTokens"]
    assert schema.dump(schema.parse({"maxTokens": 3})) == {"maxTokens": 3}
    with pytest.raises(SchemaMismatch) as caught:
        schema.parse({})
    assert caught.value.issues == [Issue("maxTokens", "Field required")]


def test_a_recursive_type_keeps_its_definition_and_is_read_all_the_way_down():
    class Node(typing.TypedDict):
        value: int
        kids: typing.NotRequired[list[Node]]

    globals()["Node"] = Node
    try:
        schema = object_schema_of(Node)
    finally:
        del globals()["Node"]
    properties: Any = schema.json_schema["properties"]
    assert properties["kids"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    with pytest.raises(SchemaMismatch) as caught:
        schema.parse({"value": 1, "kids": [{"value": 2, "kids": [{"value": "x"}]}]})
    assert [issue.path for issue in caught.value.issues] == ["kids.0.kids.0.value"]


def test_a_typed_dict_of_either_module_works_at_any_depth():
    class Outer(typing_extensions.TypedDict, total=False):
        one: ItemDict | None
        many: Annotated[list[ItemDict], Field(max_length=1)]
        by_name: dict[str, ItemDict | int]

    schema = schema_of(Outer)
    assert "required" not in schema.json_schema
    assert schema.parse({"many": [{"sku": "a"}], "by_name": {"x": 1}}) == {
        "many": [{"sku": "a", "quantity": 1}],
        "by_name": {"x": 1},
    }


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (str, "string"),
        (list[int], "array"),
        (int | None, "a choice of types"),
        (OrderModel | ItemModel, "a choice of types"),
        ({"type": "array", "items": {}}, "array"),
        ({"anyOf": [{"type": "object"}]}, None),
    ],
    ids=str,
)
def test_the_arguments_of_a_tool_are_one_object(source: object, kind: str | None):
    if kind is None:
        assert object_schema_of(source).is_object
        return
    with pytest.raises(ConfigurationError) as caught:
        object_schema_of(source)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", "input")
    assert caught.value.detail.startswith(f"input: the root must be an object, not {kind}, ")
    assert "wrap it as {value: ...}" in caught.value.detail


def test_an_empty_json_schema_is_an_object_without_fields():
    assert object_schema_of({}).json_schema == {"type": "object", "properties": {}}


class Connection:
    pass


class WithConnection(typing_extensions.TypedDict):
    name: str
    link: list[Connection]


@dataclasses.dataclass
class Outer:
    inner: WithConnection


class Loose(BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    link: Connection


@pytest.mark.parametrize(
    ("source", "field", "kind"),
    [
        (WithConnection, "link", "Connection"),
        (Outer, "inner.link", "Connection"),
        (Loose, "link", "Connection"),
        (list[Connection], None, "Connection"),
        (Callable[[], int], None, "Callable[[], int]"),
        (type[int], None, "type[int]"),
    ],
    ids=str,
)
def test_a_type_no_json_value_satisfies_is_refused_with_its_field(source: object, field: str | None, kind: str):
    with pytest.raises(ConfigurationError) as caught:
        schema_of(source)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", field)
    assert f"has the type {kind}, which no JSON value can satisfy; use str, int," in caught.value.detail


def test_a_typed_dict_inside_a_dataclass_works_or_says_what_to_import():
    @dataclasses.dataclass
    class Basket:
        items: list[ItemDict]

    if sys.version_info >= (3, 12):
        assert schema_of(Basket).parse({"items": [{"sku": "a"}]}) == Basket([{"sku": "a", "quantity": 1}])
        return
    with pytest.raises(ConfigurationError, match="import TypedDict from typing_extensions instead") as caught:
        schema_of(Basket)
    assert caught.value.field == "items"


@pytest.mark.parametrize("source", [5, "str", [str], OrderModel(city="Rome")], ids=lambda value: type(value).__name__)
def test_a_value_is_no_schema(source: object):
    with pytest.raises(ConfigurationError, match="A schema is a type or a JSON Schema, not a value of type"):
        schema_of(source)


def test_a_hint_that_cannot_be_resolved_is_named():
    class Broken(typing_extensions.TypedDict):
        other: "Missing"  # noqa: F821, UP037 # pyright: ignore[reportUndefinedVariable]

    with pytest.raises(ConfigurationError, match="cannot be resolved") as caught:
        schema_of(Broken)
    assert "Missing" in caught.value.detail


def test_a_schema_is_a_schema():
    schema = schema_of(OrderModel)
    assert schema_of(schema) is schema
    assert schema_of(pydantic.TypeAdapter(OrderModel)).json_schema == CANONICAL


def test_odd_values_are_refused_or_read_but_never_crash():
    deep: list[object] = []
    for _ in range(3_000):
        deep = [deep]
    loop: list[object] = []
    loop.append(loop)
    for source in (OrderModel, dict[str, int], list[list[int]], {"type": "array", "items": {"type": "array"}}):
        for value in (
            object(),
            {1: 2},
            {"city": "\ud800"},
            deep,
            loop,
            float("nan"),
            10**400,
            b"\xff",
            {"city": object()},
        ):
            try:
                schema_of(source).parse(value)
            except SchemaMismatch as error:
                assert error.issues


def test_a_list_of_thousands_of_errors_is_described_by_its_first():
    for source in (list[int], {"type": "array", "items": {"type": "integer"}}):
        with pytest.raises(SchemaMismatch) as caught:
            schema_of(source).parse(["x"] * 20_000)
        assert 50 <= len(caught.value.issues) <= 51
        assert len(str(caught.value)) < 5_000


def test_importing_and_describing_loads_neither_library():
    program = (
        "import sys, lousho.core.json_schema as j; j.object_schema_of({'type': 'object'}).json_schema;"
        "print(*sorted({'pydantic', 'jsonschema', 'asyncio', 'httpx'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == ""
