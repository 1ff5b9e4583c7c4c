"""Arguments in the wrong JSON type: taken where they can be read in one way, and refused where not."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hostile import ANSWER, asks, chunks, play, told
from pydantic import Field
from runs import call, calls, of_type

from lousho import create_agent, define_tool, tool
from lousho.models.provider import Finish, TextDelta
from lousho.testing import mock_model

SHAPE = {
    "type": "object",
    "properties": {
        "on": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 0},
        "ratio": {"type": "number"},
        "names": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"tag": {"type": "string"}}, "additionalProperties": False},
        "until": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "text": {"type": "string"},
    },
}


def shaped(kept: list[Any], kind: str) -> Any:
    """One tool in both dialects: a JSON Schema and type hints."""
    if kind == "schema":
        return define_tool(
            name="keep", description="Keep", input=SHAPE, execute=lambda arguments: kept.append(arguments) or "kept"
        )

    @tool
    async def keep(
        on: bool = False,
        count: Annotated[int, Field(ge=0)] = 0,
        ratio: float = 0.5,
        names: list[str] | None = None,
        filter: dict[str, Any] | None = None,
        until: int | None = None,
        either: int | bool = 0,
        text: str = "",
        level: Literal[1, 2, 3] = 1,
    ) -> str:
        """Keep the arguments."""
        kept.append({"on": on, "count": count, "ratio": ratio, "names": names, "filter": filter, "until": until})
        return "kept"

    return keep


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize("kind", ["schema", "hints"])
@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ({"on": "true"}, {"on": True}),
        ({"on": "False"}, {"on": False}),
        ({"on": "1"}, {"on": True}),
        ({"count": "12"}, {"count": 12}),
        ({"ratio": " -1.5e2 "}, {"ratio": -150.0}),
        ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ({"names": "['a', 'b',]"}, {"names": ["a", "b"]}),
        ({"filter": '{"tag": "x"}'}, {"filter": {"tag": "x"}}),
        ({"until": "null"}, {"until": None}),
        ({"on": "true", "names": "[]", "count": "3"}, {"on": True, "names": [], "count": 3}),
    ],
)
async def test_a_value_in_the_wrong_type_is_taken_in_the_one_that_the_schema_wants(args: Any, meant: Any, kind: str):
    kept: list[Any] = []
    provider = chunks([asks("keep", json.dumps(args)), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=[shaped(kept, kind)]).stream("go"))
    assert told(played.ended) == ["kept"]
    assert {name: kept[0][name] for name in meant} == meant
    start = of_type(played.events, "tool.start")[0]
    if start.raw_args is not None:  # pydantic reads some by itself
        assert (start.raw_args, start.args) == (json.dumps(args), {**args, **meant})


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize("kind", ["schema", "hints"])
@pytest.mark.parametrize(
    "args",
    [
        {"on": "yes"},
        {"on": "2"},
        {"on": 2},
        {"count": "12 pieces"},
        {"count": "-1"},
        {"count": "1e400"},
        {"names": "a, b"},
        {"names": '["a", 1]'},
        {"names": '{"a": 1}'},
        {"filter": "[]"},
        {"on": "true", "count": "many"},
    ],
    ids=str,
)
async def test_what_fits_no_type_or_not_the_rest_of_the_schema_is_refused_as_it_was_sent(args: Any, kind: str):
    kept: list[Any] = []
    provider = chunks([asks("keep", json.dumps(args)), Finish("tool_calls")], ANSWER)
    played = await play(create_agent(provider=provider, tools=[shaped(kept, kind)]).stream("go"))
    assert kept == []
    assert told(played.ended)[0]["kind"] == "validation"
    start = of_type(played.events, "tool.start")[0]
    assert (start.args, start.raw_args) == (args, None)


async def test_a_text_that_could_be_two_of_the_wanted_types_is_not_guessed_at():
    kept: list[Any] = []
    model = mock_model(
        [calls(("keep", {"either": "1"}), ("keep", {"either": "7"}), ("keep", {"either": "true"})), "Ok."]
    )
    result = await create_agent(provider=model, tools=[shaped(kept, "schema")]).send("go")
    assert told(result)[0]["kind"] == "validation"
    assert told(result)[1:] == ["kept", "kept"]
    assert kept == [{"either": 7}, {"either": True}]


async def test_a_text_where_a_text_is_wanted_stays_one():
    kept: list[Any] = []
    model = mock_model([call("keep", text="true", on="true"), "Ok."])
    await create_agent(provider=model, tools=[shaped(kept, "schema")]).send("go")
    assert kept == [{"text": "true", "on": True}]


@pytest.mark.spec("BEY-33")
async def test_types_are_not_repaired_when_that_is_not_wanted():
    kept: list[Any] = []
    model = mock_model([call("keep", on="true"), "Ok."])
    agent = create_agent(provider=model, tools=[shaped(kept, "schema")], repair_arguments=False)
    assert told(await agent.send("go"))[0]["kind"] == "validation"
    assert kept == []


async def test_repaired_arguments_are_what_gates_and_approvals_see_and_what_runs_after_them():
    seen: list[Any] = []

    def gate(arguments: Any) -> bool:
        seen.append(arguments)
        return True

    wipe = define_tool(
        name="wipe",
        description="Wipe",
        input={"type": "object", "properties": {"all": {"type": "boolean"}}},
        execute=lambda arguments: seen.append(arguments) or "wiped",
        needs_approval=gate,
    )
    provider = chunks([TextDelta("Hm."), asks("wipe", "{'all': 'true',}"), Finish("tool_calls")], ANSWER)
    agent = create_agent(provider=provider, tools=[wipe])
    played = await play(agent.stream("go"))
    assert of_type(played.events, "approval.requested")[0].args == {"all": True}
    result = await agent.approvals.resolve(id=str(played.ended.approval_id), approved=True)
    assert result.text == "Done."
    assert seen == [{"all": True}, {"all": True}]
