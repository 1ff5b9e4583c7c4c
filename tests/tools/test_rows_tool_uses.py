"""Where a tool can be put, and tools of odd kinds: without a schema, or for a sandbox that is not there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hostile import told, within
from runs import call, calls

from lousho import (
    ConfigurationError,
    SDKError,
    create_agent,
    current_date_tool,
    day_name_tool,
    define_tool,
    load_spec,
    spec_to_agent,
    tool,
)
from lousho.executor import AgentBuilder, AgentExecutor, ToolRegistry
from lousho.testing import mock_model


class Order(pydantic.BaseModel):
    """What is ordered."""

    item: str
    count: int = 1


async def place(order: Order) -> str:
    """Order something."""
    assert isinstance(order, Order)
    return f"{order.count} x {order.item}"


@tool
async def order_by_hint(item: str, count: int = 1) -> str:
    """Order something."""
    assert (type(item), type(count)) == (str, int)
    return f"{count} x {item}"


order_by_model = define_tool(name="order_by_model", description="Order something", input=Order, execute=place)
BOTH = [order_by_hint, order_by_model]
TURNS = [calls(("order_by_hint", {"item": "tea"}), ("order_by_model", {"item": "tea", "count": 2})), "Ordered."]


async def in_an_agent() -> Any:
    return await create_agent(provider=mock_model(TURNS), tools=BOTH).send("go")


async def in_a_registry() -> Any:
    registry = ToolRegistry()
    for one in BOTH:
        registry.register(one)
    agent = {"name": "clerk", "prompt": "Take orders.", "tools": {one.name: None for one in BOTH}}
    return await AgentExecutor.execute(agent=agent, input="go", provider=mock_model(TURNS), tool_registry=registry)


async def in_a_builder() -> Any:
    builder = AgentBuilder.create().set_name("clerk").set_prompt("Take orders.")
    for one in BOTH:
        builder.add_tool(one)
    return await AgentExecutor.execute(agent=builder.build(), input="go", provider=mock_model(TURNS))


@pytest.mark.spec("API-33")
@pytest.mark.parametrize("run", [in_an_agent, in_a_registry, in_a_builder])
async def test_both_kinds_of_tools_go_into_agents_registries_and_builders(run: Any):
    result = await within(run())
    assert (told(result), result.text) == (["1 x tea", "2 x tea"], "Ordered.")


@pytest.mark.spec("API-34")
@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65, "a\n"], ids=repr)
def test_a_name_that_does_not_fit_is_refused_when_the_tool_is_defined(name: str):
    with pytest.raises(ConfigurationError, match="1 to 64 letters") as caught:
        define_tool(name=name, description="Act", input=Order, execute=place)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    if name:
        with pytest.raises(ConfigurationError, match="1 to 64 letters"):
            tool(name=name, description="Act")(place)


@pytest.mark.spec("API-34")
@pytest.mark.parametrize("name", ["a", "A-1_b", "x" * 64])
def test_a_name_that_fits_is_taken(name: str):
    assert define_tool(name=name, description="Act", input=Order, execute=place).name == name


@pytest.mark.spec("API-34")
@pytest.mark.parametrize(
    ("options", "named"),
    [({"description": " "}, "description"), ({"input": "a text"}, "schema"), ({"input": list[int]}, "input")],
    ids=["description", "input", "a list"],
)
def test_a_description_or_an_input_that_is_none_is_refused_at_once(options: dict[str, Any], named: str):
    with pytest.raises(ConfigurationError, match=named) as caught:
        given: dict[str, Any] = {"name": "act", "description": "Act", "input": Order, "execute": place, **options}
        define_tool(**given)
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"


@pytest.mark.spec("API-34")
def test_a_name_that_a_registry_has_is_refused_by_name_and_changes_nothing():
    registry = ToolRegistry([order_by_hint])
    with pytest.raises(ConfigurationError, match="'order_by_hint'"):
        registry.register(order_by_hint)
    with pytest.raises(ConfigurationError, match="'order_by_hint'"):
        registry.register("order_by_hint", order_by_model)
    assert (registry.names(), registry["order_by_hint"]) == (["order_by_hint"], order_by_hint)


@pytest.mark.spec("TOOL-21")
async def test_a_tool_without_a_schema_gets_its_arguments_as_they_are():
    seen: list[Any] = []

    async def note(args: dict[str, Any]) -> str:
        seen.append(args)
        return "noted"

    registry = ToolRegistry()
    registry.register("note", {"description": "Note anything", "execute": note})
    odd = {"count": "5", "nested": {"list": [1, None, "x"], "flag": True}, "": 0.5}
    model = mock_model([call("note", **odd), call("note"), "Done."])
    result = await create_agent(provider=model, tools=registry).send("go")
    assert seen == [odd, {}]
    assert told(result) == ["noted", "noted"]


@pytest.mark.spec("TOOL-48")
@pytest.mark.parametrize("gated", [False, True])
async def test_a_tool_for_a_sandbox_never_runs_outside_of_one(gated: bool):
    ran: list[str] = []

    async def run(args: dict[str, Any]) -> str:
        ran.append("outside")
        return "x"

    shell = define_tool(
        name="shell",
        description="Run a command",
        input={"type": "object", "properties": {}},
        execute=run,
        requires_sandbox=True,
        needs_approval=gated,
    )
    agent = create_agent(provider=mock_model([call("shell"), "Done."]), tools=[shell])
    result = await agent.send("go")
    if result.approval_id is not None:
        result = await agent.approvals.resolve(id=result.approval_id, approved=True)
    (answer,) = told(result)
    assert (answer["kind"], answer["error"], answer["toolName"]) == ("sandbox", "SandboxRequiredError", "shell")
    assert answer["message"].strip()
    assert (ran, result.finish_reason, result.tool_errors) == ([], "stop", 1)


SPEC = """
name: clock
prompt: Tell the time.
provider: {type: mock, model: small}
tools: [http, web-fetch, current-date, day-name]
"""


@pytest.mark.spec("TOOL-69")
async def test_the_date_tools_stand_under_the_key_they_are_given():
    tools = {"current_date": current_date_tool, "weekday": day_name_tool}
    model = mock_model([calls(("current_date", {}), ("weekday", {"date": "2026-10-01"}), ("weekday", {})), "Thursday."])
    before = datetime.now(UTC)
    result = await create_agent(provider=model, tools=tools).send("go")
    now, day, today = told(result)
    moment = datetime.fromisoformat(now["iso"])
    assert now["iso"].endswith("Z")
    assert before - timedelta(milliseconds=1) <= moment <= datetime.now(UTC)
    assert (day["day"], today["date"]) == ("Thursday", moment.date().isoformat())
    assert [one.function.name for one in model.calls[0].tools] == ["current_date", "weekday"]


@pytest.mark.spec("TOOL-69")
def test_a_spec_names_the_built_in_tools(tmp_path: Path):
    file = tmp_path / "clock.yaml"
    file.write_text(SPEC, encoding="utf-8")
    agent = spec_to_agent(load_spec(file))
    assert sorted(agent.tools) == ["current_date", "day_name", "http_request", "web_fetch"]
    for misspelt in ("web_fetch", "current_date", "htp"):
        file.write_text(SPEC.replace("web-fetch", misspelt), encoding="utf-8")
        with pytest.raises(SDKError, match=f"'{misspelt}'"):
            spec_to_agent(load_spec(file))
