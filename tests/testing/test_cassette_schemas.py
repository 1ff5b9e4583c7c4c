"""A tool's schema matches by what it means: the same parameters printed by different libraries, and real changes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from lousho.testing import CassetteMismatchError, mock_model, record_replay

PRINTED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "printed_schemas.json").read_text(encoding="utf-8")
)


class Place(BaseModel):
    lat: float = Field(ge=-90, le=90)
    lon: float


class WeatherModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: str = Field(min_length=2, description="The city")
    days: int | None = None
    unit: Literal["c", "f"]
    place: Place
    near: list[Place] | None = None
    title: str


class PlaceDict(TypedDict):
    lat: Annotated[float, Field(ge=-90, le=90)]
    lon: float


class WeatherDict(TypedDict):
    city: Annotated[str, Field(min_length=2, description="The city")]
    days: NotRequired[int]
    unit: Literal["c", "f"]
    place: PlaceDict
    near: NotRequired[list[PlaceDict]]
    title: str


PLACE = {
    "type": "object",
    "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90}, "lon": {"type": "number"}},
    "required": ["lat", "lon"],
}
WEATHER: dict[str, Any] = {
    "type": "object",
    "required": ["title", "place", "unit", "city"],
    "properties": {
        "title": {"type": "string"},
        "unit": {"enum": ["f", "c"]},
        "city": {"type": "string", "minLength": 2, "description": "The city"},
        "days": {"type": "integer"},
        "place": PLACE,
        "near": {"type": "array", "items": PLACE},
    },
}
SAME = {
    "pydantic": WeatherModel.model_json_schema(),
    "TypedDict": TypeAdapter(WeatherDict).json_schema(),
    "JSON Schema": WEATHER,
}


async def replays(recorded: Any, actual: Any, ask: Any, cassette: Path) -> str | None:
    """Record a tool with one schema and replay it with the other; returns where they differ."""
    recording = record_replay(mock_model(["reply"]), cassette=cassette, mode="record")
    await recording.generate(ask("hi", tools={"tool": recorded}))
    try:
        await record_replay(cassette=cassette).generate(ask("hi", tools={"tool": actual}))
    except CassetteMismatchError as error:
        return error.detail.split("First difference at request.tools.tool.parameters")[1].split(":\n")[0]
    return None


@pytest.mark.spec("TEST-18")
@pytest.mark.parametrize("actual", SAME)
@pytest.mark.parametrize("recorded", SAME)
async def test_one_tool_written_in_three_ways_matches(recorded: str, actual: str, ask: Any, cassette: Path):
    assert await replays(SAME[recorded], SAME[actual], ask, cassette) is None


@pytest.mark.spec("TEST-18")
@pytest.mark.parametrize("actual", PRINTED)
@pytest.mark.parametrize("recorded", PRINTED)
async def test_one_tool_printed_by_other_libraries_matches(recorded: str, actual: str, ask: Any, cassette: Path):
    assert await replays(PRINTED[recorded], PRINTED[actual], ask, cassette) is None


def changed(path: str, value: Any) -> dict[str, Any]:
    """The weather schema with the value at `path` replaced, or taken out where it is `...`."""
    schema = copy.deepcopy(WEATHER)
    *parents, last = path.split(".")
    node: Any = schema
    for key in parents:
        node = node[key]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return schema


@pytest.mark.spec("TEST-18")
@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        pytest.param("properties.days.minimum", 1, ".properties.days.minimum", id="a check is added"),
        pytest.param("properties.city.minLength", 3, ".properties.city.minLength", id="a check is changed"),
        pytest.param("properties.city.minLength", ..., ".properties.city.minLength", id="a check is taken out"),
        pytest.param("properties.days.type", "number", ".properties.days.type", id="an integer becomes a number"),
        pytest.param("properties.unit.enum", ["c", "k"], ".properties.unit.enum[1]", id="an enum value is changed"),
        pytest.param("properties.unit.enum", ["c"], ".properties.unit.enum[1]", id="an enum value is taken out"),
        pytest.param("properties.city.description", "A city", ".properties.city.description", id="another description"),
        pytest.param("properties.town", {"type": "string"}, ".properties.town", id="a property is added"),
        pytest.param("properties.days", ..., ".properties.days", id="a property is taken out"),
        pytest.param("required", ["title", "place", "unit"], ".required[0]", id="a property becomes optional"),
        pytest.param("properties.title.type", ["string", "null"], ".properties.title.type", id="null is allowed"),
        pytest.param(
            "properties.near.items", {"type": "number"}, ".properties.near.items.properties", id="other items"
        ),
        pytest.param(
            "properties.place.properties.lat.maximum",
            80,
            ".properties.place.properties.lat.maximum",
            id="a check inside",
        ),
        pytest.param("properties.days.default", 3, ".properties.days.default", id="a default is added"),
        pytest.param("properties.city.format", "email", ".properties.city.format", id="a format is added"),
        pytest.param("properties.city.pattern", "^[A-Z]", ".properties.city.pattern", id="a pattern is added"),
    ],
)
async def test_a_real_change_does_not_match(path: str, value: Any, where: str, ask: Any, cassette: Path):
    assert await replays(SAME["pydantic"], changed(path, value), ask, cassette) == where


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"const": "a"}, {"enum": ["a"], "type": "string"}, id="a constant"),
        pytest.param({"type": ["string", "null"]}, {"type": "string", "nullable": True}, id="nullable"),
        pytest.param(
            {"type": ["string", "null"], "minLength": 1},
            {"oneOf": [{"type": "null"}, {"type": "string", "minLength": 1}]},
            id="a check on one of two types",
        ),
        pytest.param({"enum": ["a", None]}, {"anyOf": [{"const": "a"}, {"type": "null"}]}, id="null among the values"),
        pytest.param({"type": "string", "title": "T", "$comment": "c"}, {"type": "string"}, id="titles and comments"),
        pytest.param({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}, id="one of all"),
        pytest.param(
            {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
            {"type": "integer"},
            id="the range of a double",
        ),
        pytest.param({"properties": {}}, {"type": "object", "required": [], "additionalProperties": True}, id="no properties"),
        pytest.param({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "number"}]},
                     {"type": ["number", "null", "string"]}, id="nested choices"),
    ],
)  # fmt: skip
async def test_two_ways_to_write_one_schema_match(one: Any, other: Any, ask: Any, cassette: Path):
    def tool(inner: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"x": inner}, "required": ["x"]}

    assert await replays(tool(one), tool(other), ask, cassette) is None
    assert await replays(tool(other), tool(one), ask, cassette) is None


async def test_a_property_may_be_called_like_a_keyword(ask: Any, cassette: Path):
    one = {"type": "object", "properties": {"title": {"type": "string"}, "$ref": {"type": "string"}}}
    other = {"type": "object", "properties": {"$ref": {"type": "string"}}}
    assert await replays(one, copy.deepcopy(one), ask, cassette) is None
    assert await replays(one, other, ask, cassette) == ".properties.title"


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


async def test_a_schema_that_refers_to_itself_is_compared(ask: Any, cassette: Path):
    schema = Tree.model_json_schema()
    assert await replays(schema, copy.deepcopy(schema), ask, cassette) is None
    other = copy.deepcopy(schema)
    other["$defs"]["Tree"]["properties"]["name"]["minLength"] = 1
    assert (await replays(schema, other, ask, cassette) or "").endswith("name.minLength")


async def test_a_schema_that_explodes_when_it_is_inlined_is_compared_in_bounded_time(ask: Any, cassette: Path):
    levels = {
        f"L{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "abcd"}} for n in range(30)
    }
    schema: dict[str, Any] = {"$ref": "#/$defs/L0", "$defs": {**levels, "L30": {"type": "string"}}}
    assert await replays(schema, copy.deepcopy(schema), ask, cassette) is None
    other = copy.deepcopy(schema)
    other["$defs"]["L30"] = {"type": "number"}
    assert await replays(schema, other, ask, cassette) is not None


@pytest.mark.parametrize("schema", [{}, {"$ref": "#/nowhere"}, {"$ref": "https://example.com/s.json"}, {"type": 5}, {"anyOf": []},
                                    {"properties": []}, {"required": "x"}, {"enum": "x"}, {"items": [1]}])  # fmt: skip
async def test_a_schema_that_makes_no_sense_still_compares(schema: Any, ask: Any, cassette: Path):
    assert await replays(schema, copy.deepcopy(schema), ask, cassette) is None
