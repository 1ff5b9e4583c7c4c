"""A model that sends nearly everything wrong: what it meant is read, what it may have meant is not guessed at."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hostile import ANSWER, asks, chunks, play, told
from pydantic import BaseModel, Field
from runs import call, calls

from lousho import Agent, create_agent, define_tool, deny, tool
from lousho.models.provider import Finish
from lousho.testing import MockModel, mock_model

# -- arguments in another type -------------------------------------------------------------------------------------------


def keeper(kept: list[Any], schema: dict[str, Any]) -> Any:
    return define_tool(
        name="keep",
        description="Keep the arguments",
        input=schema,
        execute=lambda arguments: kept.append(arguments) or "kept",
    )


def schema_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


INTEGER = {"type": "integer"}


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize("lenient", [False, True], ids=["a tool", "a descriptor"])
@pytest.mark.parametrize(
    ("schema", "value", "meant"),
    [
        ({"type": ["integer", "null"]}, "5", 5),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "integer", "nullable": True}, "None", None),
        ({"oneOf": [INTEGER, {"type": "boolean"}]}, "true", True),
        ({"allOf": [INTEGER]}, "5", 5),
        ({"anyOf": [{"anyOf": [INTEGER]}, {"type": "null"}]}, "5", 5),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": [True, False]}, "false", False),
        ({"enum": [1, "1"]}, "1", "1"),
        ({"const": 5}, "5", 5),
        ({"$ref": "#/$defs/number"}, "5", 5),
        (INTEGER, "12.0", 12),
        ({"type": "number"}, "1e5", 100000.0),
        ({"type": "array"}, "[1, 'two',]", [1, "two"]),
        ({"type": "object"}, "{a: 1}", {"a": 1}),
        ({"type": "string"}, "5", "5"),
        (True, "5", "5"),
    ],
    ids=str,
)
async def test_a_value_is_fitted_in_every_dialect_of_schemas(schema: Any, value: str, meant: Any, lenient: bool):
    kept: list[Any] = []
    whole = {**schema_of(x=schema), "$defs": {"number": INTEGER}}
    tools: Any = [keeper(kept, whole)]
    if lenient:
        tools = {"keep": {"description": "Keep", "parameters": whole, "execute": tools[0].execute}}
    result = await create_agent(provider=mock_model([call("keep", x=value), "Ok."]), tools=tools).send("go")
    assert (told(result), kept) == (["kept"], [{"x": meant}])
    assert type(kept[0]["x"]) is type(meant)


@pytest.mark.spec("BEY-33")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INTEGER, "12.5"),
        (INTEGER, "1_000"),
        (INTEGER, "0x10"),
        (INTEGER, "012"),
        (INTEGER, "+5"),
        (INTEGER, "\u0665"),
        (INTEGER, ""),
        (INTEGER, True),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, "1e999"),
        ({"type": "boolean"}, 1),
        ({"type": "boolean"}, "yes"),
        ({"type": "boolean"}, ""),
        ({"type": "string"}, 5),
        ({"type": "null"}, "nil"),
        ({"type": "array"}, "[1"),
        ({"type": "array"}, "[1] and [2]"),
        ({"type": "array"}, "1, 2"),
        ({"type": "array"}, {"0": 1}),
        ({"type": "object"}, "{'a': 1, 'a': 2}"),
        ({"type": "object"}, "{'a': open('x')}"),
        ({"type": "object"}, "{" * 100),
        ({"oneOf": [INTEGER, {"type": "boolean"}]}, "1"),
        ({"type": "array", "items": INTEGER}, '["1"]'),
        (schema_of(y=INTEGER), {"y": "five"}),
    ],
    ids=str,
)
async def test_a_value_that_does_not_fit_in_exactly_one_way_is_refused(schema: Any, value: Any):
    kept: list[Any] = []
    model = mock_model([call("keep", x=value), "Ok."])
    result = await create_agent(provider=model, tools=[keeper(kept, schema_of(x=schema))]).send("go")
    assert (kept, told(result)[0]["kind"]) == ([], "validation")


class Size(Enum):
    SMALL = 1
    LARGE = "large"


class Order(BaseModel):
    euros: float
    paid: bool = False


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ({"size": "1"}, Size.SMALL),
        ({"size": "large"}, Size.LARGE),
        ({"order": '{"euros": "3"}'}, Order(euros=3)),
        ({"order": "{'euros': 3, 'paid': True}"}, Order(euros=3, paid=True)),
        ({"orders": '[{"euros": 1}]'}, [Order(euros=1)]),
        ({"both": "[1, 2]"}, [1, 2]),
        ({"both": "7"}, 7),
        ({"pair": "[1, 2]"}, (1, 2)),
        ({"level": "2"}, 2),
        ({"maybe": "null"}, None),
        ({"price": "1.50"}, Decimal("1.50")),
        ({"anything": "true"}, "true"),
    ],
    ids=str,
)
async def test_type_hints_of_every_kind_are_fitted(args: dict[str, Any], meant: Any):
    kept: dict[str, Any] = {}

    @tool
    async def keep(
        size: Size = Size.SMALL,
        order: Order | None = None,
        orders: list[Order] | None = None,
        both: int | list[int] = 0,
        pair: tuple[int, int] = (0, 0),
        level: Literal[1, 2] = 1,
        maybe: int | None = 5,
        price: Annotated[Decimal, Field(gt=0)] = Decimal(1),
        anything: Any = None,
    ) -> str:
        """Keep the arguments."""
        kept.update(locals())
        return "kept"

    result = await create_agent(provider=mock_model([call("keep", **args), "Ok."]), tools=[keep]).send("go")
    assert told(result) == ["kept"]
    assert kept[next(iter(args))] == meant


@pytest.mark.parametrize("text", ["nan", "NaN", " nan ", "inf", "-inf", "Infinity", "1e999", "1_0e4_00"])
@pytest.mark.parametrize("place", ["alone", "in a model", "in a list", "in JSON text"])
async def test_no_text_is_taken_for_a_number_that_no_limit_holds(text: str, place: str):
    """A gate such as `euros > 50` would let NaN pass."""
    ran: list[Any] = []

    @tool(needs_approval=lambda euros, orders: euros > 50 or any(one.euros > 50 for one in orders))
    async def pay(euros: float = 0.0, orders: list[Order] = []) -> str:  # noqa: B006 - a default in a schema
        """Pay."""
        ran.append((euros, orders))
        return "paid"

    args = {
        "alone": {"euros": text},
        "in a model": {"orders": [{"euros": text}]},
        "in a list": {"orders": [{"euros": 1}, {"euros": text}]},
        "in JSON text": {"orders": json.dumps([{"euros": text}])},
    }[place]
    result = await create_agent(provider=mock_model([call("pay", **args), "Ok."]), tools=[pay]).send("go")
    assert (ran, told(result)[0]["kind"]) == ([], "validation")


# -- names ---------------------------------------------------------------------------------------------------------------


async def asked_for(name: str, *tools: str) -> Any:
    made = [
        define_tool(name=one, description="Say it", input={"type": "object"}, execute=lambda _, one=one: one)
        for one in tools
    ]
    provider = chunks([asks(name), Finish("tool_calls")], ANSWER)
    return told((await play(create_agent(provider=provider, tools=made).stream("go"))).ended)[0]


MANY = tuple(f"read_{kind}_{number}" for kind in ("page", "file", "table", "note", "mail") for number in range(100))


@pytest.mark.spec("BEY-32")
@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("read_flie_42", "(did you mean 'read_file_42'?)"),
        ("readFile42", "(did you mean 'read_file_42'?)"),
        ("functions.read-file-42", "(did you mean 'read_file_42'?)"),
        ("42_file_read", "(did you mean 'read_file_42'?)"),
        ("", ""),
        (" ", ""),
        ("...", ""),
        ("<|", ""),
        ("\u8aad\u3080", ""),
        ("\U0001f4d6" * 100, ""),
        ("a" * 100_000, ""),
        (".".join(["read"] * 50_000), "(did you mean "),
        ("a\x00b", ""),
        ("'; DROP TABLE tools; --", ""),
        ("__class__", ""),
        ("keys", ""),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_among_five_hundred_tools_the_nearest_is_named_and_any_name_at_all_is_answered(asked: str, hint: str):
    began = time.perf_counter()
    result = await asked_for(asked, *MANY)
    assert time.perf_counter() - began < 3
    assert (result["kind"], result["error"]) == ("not-found", "ToolNotFoundError")
    assert (hint in result["message"]) if hint else ("did you mean" not in result["message"])
    assert 0 < len(result["toolName"]) <= 64
    assert result["toolName"].isascii()
    assert len(result["message"]) <= 2_000


async def test_a_name_that_fits_several_tools_with_a_prefix_runs_the_longest_and_none_runs_by_likeness():
    tools = ("post", "slack__post", "slack__Post")
    assert await asked_for("mcp.slack.post", *tools) == "slack__post"
    assert await asked_for("x.slack.post", *tools) == "slack__post"
    assert await asked_for("other.post", *tools) == "post"
    assert (await asked_for("POST", *tools))["kind"] == "not-found"
    assert (await asked_for("slack_post", *tools))["kind"] == "not-found"


# -- a call that is repeated ---------------------------------------------------------------------------------------------


class Desk:
    """An agent with a tool that always fails and one that works, and a record of what ran."""

    def __init__(self, *script: Any, **options: Any) -> None:
        self.ran: list[Any] = []
        ran = self.ran

        @tool
        async def broken(text: str = "x", number: float = 0) -> str:
            """Fail."""
            ran.append(text)
            raise LookupError(f"no {text}")

        free = define_tool(
            name="free",
            description="Fail with any arguments",
            input={"type": "object"},
            execute=lambda arguments: ran.append(arguments) or [].pop(),  # type: ignore[func-returns-value]
        )

        @tool
        async def works() -> str:
            """Work."""
            return "fine"

        self.model: MockModel = mock_model(script)
        options.setdefault("max_steps", 20)
        self.agent: Agent = create_agent(provider=self.model, tools=[broken, free, works], **options)

    async def kinds(self) -> list[str]:
        self.result = (await play(self.agent.stream("go"))).ended
        return [one["kind"] if isinstance(one, dict) else one for one in told(self.result)]


def written(name: str, *texts: str) -> list[Any]:
    return [{"tool_calls": [{"name": name, "arguments": text}]} for text in texts]


@pytest.mark.spec("BEY-34")
@pytest.mark.parametrize(
    "texts",
    [
        ('{"text":"a","number":1}', '{ "number" : 1 , "text" : "a" }', "```\n{'number': 1, text: 'a',}\n```"),
        ('{"text":"\\u00e9"}', '{"text":"\u00e9"}', "{'text': '\u00e9'}"),
        ('{"number":"2"}', '{"number": "2" }', '{"number":"2",}'),
        ("", "{}", " "),
    ],
    ids=["order and space", "escapes", "a text for a number", "nothing"],
)
async def test_one_call_in_three_spellings_is_one_call(texts: tuple[str, ...]):
    desk = Desk(*written("broken", *texts), "Done.")
    assert await desk.kinds() == ["execution", "execution", "denied"]
    assert len(desk.ran) == 2


@pytest.mark.spec("BEY-34")
@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([call("broken", text="a"), call("broken", text="b")], id="two failing calls in turn"),
        pytest.param([call("broken"), call("ghost")], id="two tools in turn"),
        pytest.param([call("free", nonce=number) for number in range(12)], id="another field each time"),
        pytest.param([call("broken", text=f"x{' ' * number}") for number in range(12)], id="another text each time"),
    ],
)
async def test_calls_that_differ_are_not_refused_and_the_steps_still_end(turns: list[Any]):
    desk = Desk(*[turns[number % len(turns)] for number in range(12)], max_steps=12)
    assert "denied" not in await desk.kinds()
    assert (desk.result.finish_reason, desk.result.steps) == ("max-steps", 12)
    assert all(request.tools for request in desk.model.calls)


@pytest.mark.spec("BEY-34")
async def test_a_failing_call_is_noticed_among_others_that_change_each_time():
    turns = [calls(("broken", {"text": f"{number}"}), ("broken", {"text": "same"})) for number in range(5)]
    desk = Desk(*turns, "Done.")
    assert (await desk.kinds())[1::2] == ["execution", "execution", "denied", "denied", "denied"]
    assert desk.ran.count("same") == 2
    assert not desk.model.calls[-1].tools


@pytest.mark.spec("BEY-34")
async def test_parallel_identical_calls_in_every_step_count_once_a_step():
    desk = Desk(*[calls(*[("broken", {})] * 3)] * 5, "Done.")
    assert await desk.kinds() == ["execution"] * 6 + ["denied"] * 9
    assert (desk.result.text, len(desk.ran)) == ("Done.", 6)


@pytest.mark.spec("BEY-34")
@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 6])
async def test_a_step_limit_below_the_last_answer_ends_the_run_as_ever(most: int):
    desk = Desk(*[call("broken")] * 5, "Done.", max_steps=most)
    await desk.kinds()
    ended = ("stop", "Done.") if most == 6 else ("max-steps", desk.result.text)
    assert (desk.result.finish_reason, desk.result.text) == ended
    assert desk.result.steps == most
    assert desk.result.text


@pytest.mark.spec("BEY-34")
@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(call("ghost"), id="not-found"),
        pytest.param(call("broken", number="many"), id="validation"),
        pytest.param(call("works"), id="denied"),
        pytest.param(written("broken", "{{")[0], id="no JSON"),
    ],
)
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "broken"}}, None], ids=str)
async def test_every_kind_of_failure_ends_in_a_last_answer_without_tools_and_without_a_choice_of_them(
    turn: Any, choice: Any
):
    settings = {} if choice is None else {"tool_choice": choice}
    desk = Desk(*[turn] * 5, "Done.", permissions=[deny("works")], model_settings=settings)
    kinds = await desk.kinds()
    assert kinds[2:] == ["denied"] * 3
    assert "failed 2 times in a row" in told(desk.result)[2]["message"]
    last = desk.model.calls[-1]
    assert (bool(last.tools), last.tool_choice) == (False, None)
    assert [bool(request.tools) for request in desk.model.calls[:-1]] == [True] * 5
    assert (desk.result.text, desk.result.finish_reason) == ("Done.", "stop")


@pytest.mark.spec("BEY-34")
async def test_the_count_survives_a_pause_and_its_journey_through_json():
    ran: list[str] = []

    @tool
    async def broken() -> str:
        """Fail."""
        ran.append("broken")
        raise LookupError("no")

    @tool(needs_approval=True)
    async def asked() -> str:
        """Fail, after asking."""
        ran.append("asked")
        raise LookupError("no")

    both = calls(("broken", {}), ("asked", {}))
    model = mock_model([both, both, both, both, both, "Done."])
    agent = create_agent(provider=model, tools=[broken, asked])
    result = await agent.send("go")
    while result.finish_reason == "awaiting-approval":
        store = agent.approval_store
        (step,) = await store.list()
        step.state = json.dumps(json.loads(step.state), indent=1)  # as another program would write it
        assert await store.save(step)
        result = await agent.approvals.resolve(id=str(result.approval_id), approved=True)
    assert (result.text, result.finish_reason) == ("Done.", "stop")
    assert ran == ["broken", "asked"] * 2  # and nobody was asked about a call that is refused
    assert not model.calls[-1].tools


# -- calls side by side --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 7, "unbounded"])
@pytest.mark.parametrize("pattern", ["aaxaa", "xxx", "axaxa", "xaaax", "sxsgxgs", "gsxasgxx", "fxfaxf"])
async def test_in_every_mixture_a_call_that_runs_alone_is_alone_and_the_limit_holds(pattern: str, most: Any):
    """x runs alone; a is async, s sync, g a generator, f fails."""
    running: list[str] = []
    crowds: list[list[str]] = []
    loop = asyncio.get_running_loop()

    def enter(kind: str) -> None:
        running.append(kind)
        crowds.append(sorted(running))

    async def step(kind: str) -> None:
        enter(kind)
        for _ in range(3):
            await asyncio.sleep(0)
        running.remove(kind)

    @tool
    async def a() -> str:
        """Wait a little."""
        await step("a")
        return "a"

    @tool
    async def f() -> str:
        """Fail in the end."""
        await step("f")
        raise LookupError("f")

    @tool(concurrent=False)
    async def x() -> str:
        """Run alone."""
        await step("x")
        return "x"

    @tool
    def s() -> str:
        """Run in a thread."""
        asyncio.run_coroutine_threadsafe(step("s"), loop).result(5)
        return "s"

    @tool
    async def g() -> Any:
        """Report."""
        enter("g")
        yield "g0"
        await asyncio.sleep(0)
        running.remove("g")
        yield "g"

    model = mock_model([calls(*[(kind, {}) for kind in pattern]), "Done."])
    agent = create_agent(provider=model, tools=[a, f, x, s, g], tool_concurrency=most)
    played = await play(agent.stream("go"))
    answers = [one if isinstance(one, str) else one["message"] for one in told(played.ended)]
    assert "".join(answers) == pattern
    assert [crowd for crowd in crowds if "x" in crowd] == [["x"]] * pattern.count("x")
    assert max(len(crowd) for crowd in crowds) <= (len(pattern) if most == "unbounded" else most)
    assert running == []
