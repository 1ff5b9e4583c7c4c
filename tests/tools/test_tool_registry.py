"""Registries: filling one, what it refuses, and agents that share it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from runs import call, calls

import lousho.executor
import lousho.tools
from lousho import ConfigurationError, Tool, create_agent, current_date_tool, define_tool, tool
from lousho.executor import AgentExecutor
from lousho.testing import mock_model
from lousho.tools import ToolRegistry


@tool
async def find_order(order_id: str) -> dict[str, str]:
    """Find an order."""
    return {"id": order_id, "status": "shipped"}


cancel_order = define_tool(
    name="cancel_order",
    description="Cancel an order",
    input={"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    execute=lambda args: f"{args['order_id']} is cancelled",
)
RAW: dict[str, Any] = {"description": "Count orders", "execute": lambda args: len(args)}


def told(result: Any) -> list[str]:
    return [str(message.content) for message in result.messages if message.role == "tool"]


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    return caught.value.detail


@pytest.mark.spec("TOOL-84", "API-33")
def test_tools_and_descriptors_are_registered_one_by_one():
    registry = ToolRegistry()
    assert registry.register(find_order) is find_order
    dated = registry.register("today", current_date_tool)
    counted = registry.register("count_orders", RAW)
    assert isinstance(counted, Tool)
    assert (dated.name, dated.description, counted.name) == (
        "today",
        current_date_tool.description,
        "count_orders",
    )
    assert registry.names() == list(registry) == ["find_order", "today", "count_orders"]
    assert registry.get("find_order") is registry["find_order"] is find_order
    assert (registry.has("today"), "today" in registry, registry.has("nothing"), registry.get("nothing")) == (
        True,
        True,
        False,
        None,
    )
    assert (len(registry), repr(registry)) == (3, "ToolRegistry(['find_order', 'today', 'count_orders'])")
    assert lousho.executor.ToolRegistry is lousho.tools.ToolRegistry


@pytest.mark.spec("TOOL-84")
def test_many_are_registered_from_a_mapping_or_a_list_or_given_at_once():
    registry = ToolRegistry([find_order])
    registry.register_many([cancel_order])
    registry.register_many({"count": RAW, "today": current_date_tool, "find": find_order})
    registry.register_many(iter(()))
    assert registry.names() == ["find_order", "cancel_order", "count", "today", "find"]
    assert ToolRegistry({"count": RAW}).names() == ["count"]


@pytest.mark.spec("TOOL-11", "TOOL-84")
def test_a_name_that_is_taken_is_refused_and_of_many_none_is_added():
    registry = ToolRegistry([find_order])
    assert "'find_order'" in refused(lambda: registry.register(find_order))
    assert "'find_order'" in refused(lambda: registry.register("find_order", RAW))
    assert "'find_order'" in refused(lambda: registry.register_many({"count": RAW, "find_order": RAW}))
    assert "'cancel_order'" in refused(lambda: registry.register_many([cancel_order, cancel_order]))
    assert "is not a tool" in refused(lambda: registry.register_many([cancel_order, wrong(print)]))
    assert registry.names() == ["find_order"]


def wrong(value: object) -> Any:
    """Return `value` for a place where it does not belong."""
    return value


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("find_order",), "register('find_order', descriptor)"),
        ((find_order, "find"), "the name comes first"),
        ((RAW,), "has no name of its own"),
        ((find_order.execute,), "Put @tool above the function"),
        (("a b", RAW), "1 to 64 letters"),
        (("", RAW), "1 to 64 letters"),
        (("count", None), "says no tool"),
        (("count", "text"), "'text' is not a tool"),
        ((None,), "is not a tool"),
    ],
    ids=["a name alone", "the other way round", "no name", "a function", "a space", "empty", "None", "text", "nothing"],
)
def test_what_is_no_tool_is_refused_with_the_right_call(arguments: tuple[Any, ...], says: str):
    registry = ToolRegistry()
    register: Any = registry.register
    assert says in refused(lambda: register(*arguments))
    assert registry.names() == []


@pytest.mark.parametrize("given", [find_order, "find_order", 5, None], ids=["a tool", "a text", "a number", "nothing"])
def test_register_many_takes_lists_and_mappings_only(given: Any):
    assert "for one tool use register()" in refused(lambda: ToolRegistry().register_many(given))


def test_a_tool_can_be_taken_out():
    registry = ToolRegistry([find_order])
    assert "(did you mean 'find_order'?)" in refused(lambda: registry.remove("find_ordr"))
    assert registry.remove("find_order") is find_order
    registry.register(find_order)
    assert registry.names() == ["find_order"]


@pytest.mark.spec("TOOL-84")
async def test_an_agent_takes_a_registry_as_its_tools_as_it_is_then():
    registry = ToolRegistry([find_order])
    model = mock_model([call("find_order", order_id="7"), "Shipped."])
    agent = create_agent(provider=model, tools=registry)
    registry.register(cancel_order)
    result = await agent.send("Where is 7?")
    assert json.loads(told(result)[0]) == {"id": "7", "status": "shipped"}
    assert [one.function.name for one in model.calls[0].tools or []] == ["find_order"]


@pytest.mark.spec("EXEC-05", "TOOL-84")
async def test_two_agents_share_a_registry_and_are_offered_the_tools_they_name():
    registry = ToolRegistry([find_order])
    registry.register("cancel", cancel_order)
    registry.register("count", RAW)
    for names, turn, expected in (
        (["find_order", "count"], calls(("find_order", {"order_id": "7"}), ("count", {"a": 1})), 2),
        (["cancel"], call("cancel", order_id="8"), 1),
    ):
        model = mock_model([turn, "Done."])
        agent: Any = {"name": "clerk", "prompt": "Serve.", "tools": dict.fromkeys(names)}
        result = await AgentExecutor.execute(agent=agent, input="go", provider=model, tool_registry=registry)
        assert [one.function.name for one in model.calls[0].tools or []] == names
        assert len(told(result)) == expected
        assert result.tool_errors is None


@pytest.mark.spec("TOOL-84")
async def test_a_tool_of_the_registry_that_the_agent_does_not_name_is_not_there_for_it():
    registry = ToolRegistry([find_order, cancel_order])
    model = mock_model([call("cancel_order", order_id="8"), "Sorry."])
    agent: Any = {"name": "clerk", "prompt": "Serve.", "tools": {"find_order": None}}
    result = await AgentExecutor.execute(agent=agent, input="go", provider=model, tool_registry=registry)
    assert json.loads(told(result)[0])["kind"] == "not-found"


class Counter:
    """A descriptor written as a class."""

    description = "Count what is sent"
    inputSchema = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}  # noqa: RUF012
    displayName = "Count"
    needsApproval = False

    async def execute(self, args: dict[str, Any], ctx: lousho.ToolContext) -> str:
        return f"{ctx.tool_name} {args['of']}"


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}


def counted(args: dict[str, Any], ctx: Any) -> str:
    return f"{ctx.tool_name} {args['of']}"


DESCRIPTORS: list[tuple[str, Any]] = [
    ("an object", Counter()),
    ("a namespace", SimpleNamespace(description="Count", parameters=SCHEMA, execute=counted, display_name="Count")),
    ("snake_case", {"description": "Count", "input_schema": SCHEMA, "execute": counted, "display_name": "Count"}),
    ("camelCase", {"description": "Count", "inputSchema": SCHEMA, "execute": counted, "displayName": "Count"}),
    (
        "an inner tool",
        {"displayName": "Count", "tool": {"description": "Count", "parameters": SCHEMA, "execute": counted}},
    ),
    (
        "an inner tool in part",
        {
            "displayName": "Count",
            "inputSchema": SCHEMA,
            "execute": counted,
            "tool": {"description": "Count", "parameters": {"type": "object"}, "execute": print},
        },
    ),
    (
        "inner objects",
        SimpleNamespace(
            displayName="Count", tool=SimpleNamespace(description="Count", parameters=SCHEMA, execute=counted)
        ),
    ),
    (
        "its own name",
        {"name": "other", "description": "Count", "input": SCHEMA, "execute": counted, "displayName": "Count"},
    ),
]


@pytest.mark.spec("TOOL-16")
@pytest.mark.parametrize("descriptor", [one for _, one in DESCRIPTORS], ids=[name for name, _ in DESCRIPTORS])
@pytest.mark.parametrize("put", ["agent", "registry"])
async def test_a_descriptor_made_by_hand_is_a_tool_under_its_key(descriptor: Any, put: str):
    tools: Any = {"count": descriptor}
    if put == "registry":
        tools = ToolRegistry()
        tools.register("count", descriptor)
    model = mock_model([calls(("count", {"of": "a"}), ("count", {"of": 5})), "Done."])
    agent = create_agent(provider=model, tools=tools)
    result = await agent.send("go")
    assert told(result)[0] == "count a"
    assert json.loads(told(result)[1])["kind"] == "validation"
    made = agent.options.tools["count"] if isinstance(agent.options.tools, dict) else None
    assert made is not None
    assert (made.display_name, made.input_schema) == ("Count", SCHEMA)


@pytest.mark.spec("TOOL-21")
async def test_without_a_schema_the_arguments_come_as_they_were_sent():
    seen: list[Any] = []
    sent = {"n": "5", "deep": {"list": [1, None, {"x": True}]}, "": 0.5}
    note: dict[str, Any] = {"name": "note", "description": "Note it", "execute": seen.append}
    await create_agent(provider=mock_model([call("note", **sent), "Done."]), tools=[note]).send("go")
    assert seen == [sent]


@pytest.mark.spec("TOOL-16")
async def test_the_gate_of_a_descriptor_holds():
    ran: list[Any] = []
    pay: dict[str, Any] = {
        "description": "Pay",
        "inputSchema": {"type": "object", "properties": {"euros": {"type": "number"}}},
        "execute": ran.append,
        "needsApproval": lambda args: args["euros"] > 10,
    }
    agent = create_agent(provider=mock_model([call("pay", euros=50), "Done."]), tools={"pay": pay})
    paused = await agent.send("go")
    assert (paused.finish_reason, ran) == ("awaiting-approval", [])


BAD: list[tuple[str, Any, str]] = [
    ("a misspelt gate", {**RAW, "requireApproval": True}, "(did you mean 'needs_approval'?)"),
    ("a gate of another library", {**RAW, "requires_confirmation": True}, "(did you mean 'needs_approval'?)"),
    ("a gate on an object", SimpleNamespace(**RAW, requires_approval=True), "(did you mean 'needs_approval'?)"),
    ("tool search", {**RAW, "deferLoading": True}, "is not there yet"),
    ("a field twice", {**RAW, "needsApproval": True, "needs_approval": False}, "'needs_approval' twice"),
    ("no description", {"execute": print}, "the descriptor of the tool 'count' has no description"),
    ("no function", {"description": "Count"}, "the descriptor of the tool 'count' has no execute"),
    ("nothing", {}, "has no description"),
    ("a function that is none", {**RAW, "execute": "print"}, "needs a function as execute"),
    ("a list as its root", {**RAW, "inputSchema": {"type": "array"}}, "the root must be an object"),
    ("a schema that is none", {**RAW, "parameters": 5}, "not a value of type int"),
    ("keys that are no text", {5: 1}, "'5' is not a known option"),
    ("a plain function", find_order.execute, "Put @tool above the function"),
    ("a class", Counter, "is not a tool"),
    ("an object of another kind", object(), "is not a tool"),
    ("a list", [find_order], "a list inside the list"),
    ("None", None, "None is not a tool"),
]


@pytest.mark.parametrize(("descriptor", "says"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_a_descriptor_with_a_mistake_is_refused_where_it_is_given(descriptor: Any, says: str):
    assert says in refused(lambda: create_agent(provider=mock_model([]), tools={"count": descriptor}))
    assert says in refused(lambda: ToolRegistry({"count": descriptor}))


def test_a_descriptor_in_a_list_needs_a_name():
    assert "tools={'name': descriptor}" in refused(lambda: create_agent(provider=mock_model([]), tools=[RAW]))
    agent = create_agent(provider=mock_model([]), tools=[{**RAW, "name": "count"}, find_order])
    assert list(agent.tools) == ["count", "find_order"]
