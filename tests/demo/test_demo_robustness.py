"""Whatever is said, offered or answered, the demo model ends its turn, and what it calls fits the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from made_up import NOW

from lousho.core.messages import Message
from lousho.models.demo.provider import respond
from lousho.models.provider import FunctionDefinition, ModelRequest, ToolDefinition

WORDS = (
    "hello get the weather in Paris and to with 5 3.5 12km A-17 ann@example.com https://example.com tomorrow at 3pm"
    " 2026-12-01 \"quoted\" 'it's' : = , . ? ! ( ) not without yes no then it first last high order todo add remove show"
    " list for of saying that 日本語 🙂 \u202e é #12 [1,2] a=1 -5 1e9 $5 50% 25:99 / ' \" -- ... \ud800 /etc/passwd null"
    " true monday no. Mr. and and ;"
).split()
NAMES = st.sampled_from("place order_id dueDate amount to from is_open priority rows customer a b tags when".split())
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3, "maxLength": 9},
        {"type": "string", "description": "An order, like A-17"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "email"},
        {"type": "string", "format": "email", "maxLength": 8},
        {"type": "string", "format": "date-time", "maxLength": 12},
        {"type": "string", "pattern": "^[A-Z]-[0-9]+$"},
        {"type": "integer", "minimum": 1, "maximum": 10},
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["high", "low"]},
        {"enum": [1, 2, None]},
        {"enum": []},
        {"const": "x"},
        {},
        {"type": ["integer", "null"]},
        {"$ref": "#/nowhere"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": False},
    ]
)


def objects(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, needed: {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in needed],
        },
        st.dictionaries(NAMES, parts, max_size=4),
        st.sets(NAMES, max_size=6),
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        objects(inner)
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)
TOOLS = st.lists(
    st.builds(
        lambda name, description, schema: ToolDefinition(FunctionDefinition(name, description, schema)),
        st.sampled_from("get_weather add_todo list_orders remove_todo sendMail x find-it".split()),
        st.sampled_from(["", "Get the weather for a place.", "Add a todo.", "Find an order by id", "日本語 天気"]),
        objects(SCHEMAS),
    ),
    max_size=4,
    unique_by=lambda tool: tool.function.name,
)
MESSAGES = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
RESULTS = st.sampled_from(
    [
        ("ok", False),
        ("null", False),
        ('{"order_id": "A-1", "rows": [{"a": 1}]}', False),
        ('{"error": "nope"}', False),
        ("{broken", False),
        ('{"error": "E", "toolName": "t", "message": "m", "kind": "execution"}', True),
        ('{"error": "E", "toolName": "t", "message": "m", "kind": "rejected"}', True),
        ('{"error": "E", "kind": "validation", "issues": [{"path": "place", "message": "must be \'Rome\' or \'Oslo\'"}]}', True),
        ('{"error": "E", "kind": "validation", "issues": [{"path": "order_id", "message": "Field required"}, 7]}', True),
        ('{"error": "E", "kind": "validation", "issues": "?"}', True),
    ]
)  # fmt: skip


@given(
    tools=TOOLS, said=st.lists(MESSAGES, min_size=1, max_size=3), results=st.lists(RESULTS, min_size=12, max_size=12)
)
@pytest.mark.timeout(600)
def test_every_turn_ends_and_every_call_fits_its_schema(
    tools: list[ToolDefinition], said: list[str], results: list[tuple[str, bool]]
):
    parameters = {tool.function.name: dict(tool.function.parameters) for tool in tools}
    messages: list[Message] = []
    for text in said:
        messages.append(Message("user", text))
        failed: set[tuple[str, str]] = set()
        for step in range(12):
            response = respond(ModelRequest(messages=messages, tools=tools), NOW)
            messages.append(Message("assistant", response.text, tool_calls=response.tool_calls))
            if not response.tool_calls:
                assert response.text.strip()
                break
            for call in response.tool_calls:
                fits(parameters[call.name], json.loads(call.arguments))
                assert (call.name, call.arguments) not in failed, "a call that failed was made again"
                content, is_error = results[step]
                if is_error:
                    failed.add((call.name, call.arguments))
                messages.append(Message("tool", content, tool_call_id=call.id, name=call.name, is_error=is_error))
        else:
            pytest.fail("the turn did not end")


def fits(schema: dict[str, Any], arguments: Any) -> None:
    """Fail unless the arguments are valid; what a broken reference leaves open cannot be held against them."""
    if "$ref" not in json.dumps(schema):
        Draft202012Validator(schema).validate(arguments)
