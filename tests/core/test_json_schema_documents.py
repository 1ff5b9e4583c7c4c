"""JSON Schemas from outside: every keyword that counts, permissive about the rest, bounded whatever arrives."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho.core.errors import ConfigurationError, Issue
from lousho.core.json_schema import SchemaMismatch, canonical_schema, schema_of


def fits(schema: dict[str, Any], value: object) -> bool:
    try:
        schema_of(schema, lenient=True).parse(value)
    except SchemaMismatch:
        return False
    return True


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        pytest.param({"type": "string"}, ["", "a"], [1, None, True, [], {}], id="string"),
        pytest.param({"type": "integer"}, [0, -3, 3.0], [1.5, "1", True, None], id="integer"),
        pytest.param({"type": "number"}, [0, 1.5], ["1", True, None], id="number"),
        pytest.param({"type": "boolean"}, [True, False], [0, 1, "true", None], id="boolean"),
        pytest.param({"type": "null"}, [None], [0, "", False], id="null"),
        pytest.param({"type": "array"}, [[], [1, "a"]], [{}, "a"], id="array"),
        pytest.param({"type": "object"}, [{}, {"a": 1}], [[], "a"], id="object"),
        pytest.param({"type": ["string", "null"]}, ["a", None], [1], id="several types"),
        pytest.param({"enum": ["a", 1, None, True]}, ["a", 1, None, True], ["b", 2, False], id="mixed enum"),
        pytest.param({"const": "a"}, ["a"], ["b", None], id="const"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [None, 1.5], id="anyOf"),
        pytest.param({"oneOf": [{"type": "number"}, {"type": "integer"}]}, [1, 1.5], ["a"], id="oneOf is a choice"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1], id="or null"),
        pytest.param({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [1, 3], [0, 4], id="allOf"),
        pytest.param({"type": "string", "nullable": True}, ["a", None], [1], id="nullable"),
        pytest.param({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, ["a"], [1], id="$defs"),
        pytest.param(
            {"$ref": "#/definitions/A", "definitions": {"A": {"type": "string"}}}, ["a"], [1], id="definitions"
        ),
        pytest.param({"$ref": "#/$defs/a~1b%24", "$defs": {"a/b$": {"type": "null"}}}, [None], [1], id="escaped names"),
        pytest.param(
            {"$ref": "#/$defs/A", "maxLength": 1, "$defs": {"A": {"type": "string"}}},
            ["a"],
            ["ab", 1],
            id="beside $ref",
        ),
        pytest.param(
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            [{"a": "x"}, {"a": "x", "b": 1}],
            [{}, {"a": 1}],
            id="properties",
        ),
        pytest.param(
            {"properties": {"a": {}}, "additionalProperties": False}, [{}, {"a": 1}], [{"b": 1}], id="no extras"
        ),
        pytest.param({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "x"}], id="typed extras"),
        pytest.param({"type": "array", "items": {"type": "integer"}}, [[], [1]], [["a"], [True]], id="items"),
        pytest.param({"prefixItems": [{"type": "integer"}]}, [[1], [1, "a"], []], [["a"]], id="prefixItems"),
        pytest.param({"minimum": 1, "maximum": 3}, [1, 2.5, 3], [0, 4], id="minimum and maximum"),
        pytest.param({"exclusiveMinimum": 1, "exclusiveMaximum": 3}, [2], [1, 3], id="exclusive bounds"),
        pytest.param({"minimum": 1, "exclusiveMinimum": True}, [2], [1], id="the older exclusive bounds"),
        pytest.param({"multipleOf": 0.5}, [1, 1.5], [1.2], id="multipleOf"),
        pytest.param({"minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"], id="lengths"),
        pytest.param({"pattern": "^[a-z]+$"}, ["ab", 1], ["A"], id="pattern"),
        pytest.param({"pattern": "b"}, ["abc"], ["ac"], id="pattern anywhere"),
        pytest.param({"minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]], id="item counts"),
        pytest.param({"uniqueItems": True}, [[1, 2], [1, True]], [[1, 1]], id="unique items"),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
            [{"a": "x"}],
            [{}, {"a": 1}],
            id="a choice beside properties",
        ),
    ],
)
def test_each_keyword_is_checked(schema: dict[str, Any], good: list[object], bad: list[object]):
    assert [value for value in good if not fits(schema, value)] == []
    assert [value for value in bad if fits(schema, value)] == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"x-thing": 1, "frobnicate": {"a": 1}}, 1, id="unknown keywords"),
        pytest.param({}, object, id="empty"),
        pytest.param({"items": [{"type": "string"}]}, [1], id="a tuple in items"),
        pytest.param({"$ref": "#/$defs/Missing"}, 1, id="a reference to nothing"),
        pytest.param({"$ref": "https://example.invalid/schema.json"}, 1, id="a reference elsewhere"),
        pytest.param({"$ref": "other.json#/A"}, 1, id="a reference to a file"),
        pytest.param({"$ref": 5}, 1, id="a reference that is none"),
        pytest.param({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, 1, id="a reference to itself"),
        pytest.param({"pattern": "(["}, "a", id="a broken pattern"),
        pytest.param({"pattern": "(?=a)b"}, "a", id="a pattern with look-ahead"),
        pytest.param({"pattern": "a" * 5_000}, "b", id="an endless pattern"),
        pytest.param({"type": "strng"}, 1, id="an unknown type"),
        pytest.param({"type": {"a": 1}}, 1, id="a type that is none"),
        pytest.param({"properties": []}, {"a": 1}, id="properties that are none"),
        pytest.param({"properties": {"a": 3}}, {"a": 1}, id="a field that is no schema"),
        pytest.param({"required": "a"}, {}, id="required that is no list"),
        pytest.param({"required": [1, None]}, {}, id="required that has no names"),
        pytest.param({"minimum": "a", "maxLength": -1, "multipleOf": 0}, 5, id="bounds that are none"),
        pytest.param({"enum": "abc"}, 1, id="an enum that is no list"),
        pytest.param({"anyOf": []}, 1, id="an empty choice"),
        pytest.param({"allOf": "x", "oneOf": {}}, 1, id="choices that are none"),
        pytest.param(
            {"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}, {"a": 1}, id="patterns"
        ),
        pytest.param({"if": {"type": "string"}, "then": {"minLength": 99}, "not": {}}, "a", id="conditions"),
        pytest.param({"multipleOf": 0.3}, 10**400, id="a number too large to divide"),
    ],
)
def test_what_says_nothing_usable_refuses_nothing(schema: dict[str, Any], value: object):
    assert fits(schema, value)
    json.dumps(schema_of(schema, lenient=True).json_schema)


def test_the_inner_occurrence_of_a_recursive_reference_is_any_value():
    schema = {"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert not fits(schema, {"child": {"n": "x"}})
    assert fits(schema, {"child": {"child": {"n": "x"}}})


def test_defaults_are_filled_in_at_every_depth():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "default": 1},
            "b": {"type": "object", "properties": {"c": {"default": [1]}}},
            "d": {"type": "array", "items": {"properties": {"e": {"default": "x"}}}},
            "f": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"g": {"default": 2}}}]},
        },
        "allOf": [{"properties": {"h": {"default": None}}}],
        "required": ["a"],
    }
    parsed: Any = schema_of(schema).parse({"b": {}, "d": [{}, {"e": "y"}], "f": {}})
    assert parsed == {"a": 1, "b": {"c": [1]}, "d": [{"e": "x"}, {"e": "y"}], "f": {"g": 2}, "h": None}
    parsed["b"]["c"].append(2)
    assert schema_of(schema).parse({"b": {}}) == {"a": 1, "b": {"c": [1]}, "h": None}


def test_whole_numbers_arrive_as_integers():
    schema = {"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}
    parsed: Any = schema_of(schema).parse({"n": 3.0, "x": 3.0})
    assert (type(parsed["n"]), type(parsed["x"])) == (int, float)


@pytest.mark.parametrize(
    ("schema", "value", "issues"),
    [
        ({"required": ["a", "b"]}, {}, [Issue("a", "Field required"), Issue("b", "Field required")]),
        (
            {"properties": {}, "additionalProperties": False},
            {"x": 1},
            [Issue("x", "Extra inputs are not permitted")],
        ),
        ({"enum": ["a"]}, "b", [Issue("(root)", "Input should be 'a'")]),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            None,
            [Issue("(root)", "Input should be a valid string or a valid integer, received null")],
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]},
            {"n": "x"},
            [Issue("n", "Input should be a valid integer, received string")],
        ),
        ({"minLength": 2}, "a", [Issue("(root)", "String should have at least 2 characters")]),
        ({"maxItems": 1}, [1, 2], [Issue("(root)", "List should have at most 1 item, not 2")]),
        ({"uniqueItems": True}, [1, 1], [Issue("(root)", "Items should all be different")]),
        ({"minProperties": 1}, {}, [Issue("(root)", "Object should have at least 1 field, not 0")]),
        ({"exclusiveMaximum": 3}, 3, [Issue("(root)", "Input should be less than 3")]),
        ({"multipleOf": 2}, 3, [Issue("(root)", "Input should be a multiple of 2")]),
        ({"pattern": "^a"}, "b", [Issue("(root)", "String should match pattern '^a'")]),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_plain_words(schema: dict[str, Any], value: object, issues: list[Issue]):
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(schema).parse(value)
    assert caught.value.issues == issues


@pytest.mark.parametrize(
    ("schema", "place", "problem"),
    [
        ({"type": "objekt"}, "type", "objekt is not a JSON type"),
        ({"type": "object", "properties": []}, "properties", "maps each field's name to its schema"),
        ({"type": "object", "properties": {"a": {"type": "str"}}}, "a.type", "str is not a JSON type"),
        ({"type": "object", "properties": {"a": "string"}}, "a", "a schema is an object, not string"),
        ({"type": "object", "properties": {"a": str}}, "a", "a schema is an object, not str"),
        ({"type": "object", "required": "a"}, "required", "required is a list of field names"),
        ({"type": "array", "items": {"type": "any"}}, "items.type", "any is not a JSON type"),
        ({"anyOf": [{"type": "int"}]}, "anyOf.0.type", "int is not a JSON type"),
        ({"city": {"type": "string"}}, None, "has fields ('city') where its keywords should be"),
        ({"city": str}, None, "has fields ('city') where its keywords should be"),
        ({"city": "string"}, None, "has fields ('city') where its keywords should be"),
    ],
    ids=str,
)
def test_a_mistake_in_a_written_schema_is_refused_with_its_place(schema: Any, place: str | None, problem: str):
    with pytest.raises(ConfigurationError) as caught:
        schema_of(schema)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", place)
    assert problem in caught.value.detail


def test_a_schema_that_doubles_at_every_step_stays_small():
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n0"}}, "$defs": {}}
    for number in range(60):
        inner = {"$ref": f"#/$defs/n{number + 1}"}
        schema["$defs"][f"n{number}"] = {"type": "object", "properties": {"l": inner, "r": inner}}
    started = time.perf_counter()
    assert fits(schema, {"a": {"l": {"r": {}}}})
    assert not fits(schema, {"a": {"l": 1}})
    assert len(json.dumps(canonical_schema(schema))) < 5_000_000
    assert time.perf_counter() - started < 10


def test_a_schema_nested_without_end_is_cut():
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(20_000):
        schema = {"type": "array", "items": schema}
    assert fits(schema, [[[]]])
    assert not fits(schema, [[1]])
    json.dumps(canonical_schema(schema))


def test_a_pattern_made_to_hang_does_not():
    started = time.perf_counter()
    assert not fits({"pattern": "^(a+)+$"}, "a" * 20_000 + "!")
    assert fits({"pattern": r"^(a|a)*\1$"}, "a" * 20_000 + "!")
    assert time.perf_counter() - started < 5


def test_unique_items_of_a_huge_list_do_not_take_for_ever():
    started = time.perf_counter()
    assert fits({"uniqueItems": True}, [{"a": 1}] * 50_000)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        pytest.param({"title": "T", "$id": "x", "$comment": "c"}, {}, id="what says nothing goes"),
        pytest.param(
            {"properties": {"title": {"type": "string"}}},
            {"type": "object", "properties": {"title": {"type": "string"}}},
            id="a field may be called title",
        ),
        pytest.param(
            {"type": ["string", "null"], "minLength": 2, "description": "d"},
            {"description": "d", "anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
            id="several types are a choice",
        ),
        pytest.param({"type": ["string"]}, {"type": "string"}, id="one type is one"),
        pytest.param(
            {"enum": ["a", 1, None]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}]},
            id="values of several types",
        ),
        pytest.param(
            {"anyOf": [{"type": "null"}, {"anyOf": [{"type": "string"}, {"type": "null"}]}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            id="choices are flat, null last",
        ),
        pytest.param({"const": 3}, {"type": "integer", "enum": [3]}, id="const"),
        pytest.param({"type": "array"}, {"type": "array", "items": {}}, id="array"),
        pytest.param(
            {"type": "array", "items": [{"const": "a"}]},
            {"type": "array", "prefixItems": [{"type": "string", "enum": ["a"]}]},
            id="the older tuple",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": True}, {"type": "object", "properties": {}}, id="extras allowed"
        ),
        pytest.param(
            {"type": "object", "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
            id="extras refused",
        ),
        pytest.param(
            {"allOf": [{"$ref": "#/$defs/A"}], "description": "d", "$defs": {"A": {"type": "string", "title": "A"}}},
            {"type": "string", "description": "d"},
            id="a single allOf",
        ),
        pytest.param(
            {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "null"}}, "required": ["b"]},
                ]
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}}, "required": ["a", "b"]},
            id="objects that agree are one",
        ),
        pytest.param(
            {"properties": {"b": {}, "a": {}}, "required": ["a", "b", "a"]},
            {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["b", "a"]},
            id="required in the order of the fields",
        ),
        pytest.param(
            {"$ref": "#/$defs/N", "$defs": {"N": {"properties": {"next": {"$ref": "#/$defs/N", "nullable": True}}}}},
            {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
                "$defs": {
                    "N": {
                        "type": "object",
                        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
                    }
                },
            },
            id="only what is recursive is defined apart",
        ),
    ],
)
def test_a_schema_has_one_spelling(written: dict[str, Any], canonical: dict[str, Any]):
    shown = canonical_schema(written)
    assert shown == canonical
    assert json.dumps(canonical_schema(shown)) == json.dumps(shown)


KEYWORDS = [
    *("type", "enum", "const", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref"),
    *(
        "additionalProperties",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
    ),
    *("uniqueItems", "multipleOf", "default", "nullable", "$defs", "definitions", "title", "description", "x-other"),
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["string", "integer", "object", "array", "null", "#", "#/$defs/a", "#/properties/a", "^a", "("])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.sampled_from(["a", "b"]), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), JSON, max_size=6), JSON)
def test_no_schema_and_no_value_ever_crash(schema: dict[str, Any], value: object):
    shown = canonical_schema(schema)
    assert canonical_schema(schema) == shown
    json.dumps(shown)
    fits(schema, value)
