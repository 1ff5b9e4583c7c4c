"""Defining a tool: where name, description and schema come from, each option, and what is refused with which fix."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypedDict

import pydantic
import pytest
from runs import call, collect, of_type

from lousho import ConfigurationError, Tool, create_agent, define_tool, tool
from lousho.executor import AgentBuilder, AgentExecutor, ToolRegistry
from lousho.testing import mock_model

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


class Letter(pydantic.BaseModel):
    to: str
    copies: int = 1


class LetterDict(TypedDict):
    to: str
    copies: int


@dataclasses.dataclass
class LetterRecord:
    to: str
    copies: int = 1


LETTER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "default": 1}},
    "required": ["to"],
}


@tool
async def send_letter(to: str, copies: int = 1) -> str:
    """Send a letter.

    Args:
        to: The name on the envelope.
    """
    return f"{copies} to {to}"


@tool
def post_letter(to: str, copies: int = 1) -> str:
    """Post a letter."""
    return f"{copies} posted to {to}"


def spoken(args: Any) -> str:
    return f"{args['copies']} said to {args['to']}"


say_letter = define_tool(name="say_letter", description="Say a letter", input=LETTER_SCHEMA, execute=spoken)


async def results(*tools: Any, turns: list[Any], **options: Any) -> list[Any]:
    """Run an agent with these tools and return what each tool message says."""
    agent = create_agent(provider=mock_model([*turns, "Done."]), tools=list(tools), **options)
    result = await agent.send("go")
    contents = [str(message.content) for message in result.messages if message.role == "tool"]
    return [json.loads(text) if text[:1] in "[{" else text for text in contents]


def refused(make: Callable[[], object]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    return caught.value


def defined(**options: Any) -> Any:
    """Define a tool with some options changed."""
    given: dict[str, Any] = {"name": "act", "description": "Act", "input": EMPTY, "execute": lambda args: "x"}
    return define_tool(**{**given, **options})


@pytest.mark.spec("TOOL-01")
async def test_a_typed_function_says_all_that_a_tool_needs_wherever_it_is_put():
    assert (send_letter.name, send_letter.description) == ("send_letter", "Send a letter.")
    assert send_letter.input_schema == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The name on the envelope."},
            "copies": {"type": "integer", "default": 1},
        },
        "required": ["to"],
    }
    assert (say_letter.name, say_letter.description, say_letter.input_schema) == (
        "say_letter",
        "Say a letter",
        LETTER_SCHEMA,
    )
    tools = [send_letter, post_letter, say_letter]
    turns = [call("send_letter", to="Ada"), call("post_letter", to="Bo", copies="2"), call("say_letter", to="Cy")]
    expected = ["1 to Ada", "2 posted to Bo", "1 said to Cy"]
    assert await results(*tools, turns=turns) == expected

    registry = ToolRegistry()
    builder = AgentBuilder.create().set_name("post office")
    for one in tools:
        registry.register(one)
        builder.add_tool(one)
    named: Any = {"name": "post office", "tools": dict.fromkeys(registry.names())}
    for agent in (named, builder.build()):
        model = mock_model([*turns, "Done."])
        result = await AgentExecutor.execute(agent=agent, input="go", provider=model, tool_registry=registry)
        assert [message.content for message in result.messages if message.role == "tool"] == expected


@pytest.mark.spec("TOOL-02")
@pytest.mark.parametrize(
    ("source", "read"),
    [
        (Letter, lambda value: (value.to, value.copies)),
        (LetterRecord, lambda value: (value.to, value.copies)),
        (LETTER_SCHEMA, lambda value: (value["to"], value["copies"])),
    ],
    ids=["pydantic", "dataclass", "JSON Schema"],
)
async def test_a_default_that_the_model_left_out_reaches_the_function_and_its_gate(source: Any, read: Any):
    seen: list[Any] = []

    def gate(value: Any) -> bool:
        seen.append(("gate", *read(value)))
        return False

    act = define_tool(
        name="act",
        description="Act",
        input=source,
        execute=lambda value: seen.append(("execute", *read(value))),
        needs_approval=gate,
    )
    await results(act, turns=[call("act", to="Ada")])
    assert seen == [("gate", "Ada", 1), ("execute", "Ada", 1)]


@pytest.mark.spec("TOOL-02")
async def test_typed_dicts_and_hints_are_coerced_before_function_and_gate_see_them():
    seen: list[Any] = []

    def keep(value: LetterDict) -> None:
        seen.append(dict(value))

    by_dict = define_tool(name="by_dict", description="Act", input=LetterDict, execute=keep)

    @tool(needs_approval=lambda copies: copies > 5)
    def by_hint(to: str, copies: int = 2) -> None:
        """Act."""
        seen.append((to, copies))

    await results(by_dict, by_hint, turns=[call("by_dict", to="Ada", copies="3"), call("by_hint", to="Bo")])
    assert seen == [{"to": "Ada", "copies": 3}, ("Bo", 2)]


@pytest.mark.spec("TOOL-03")
@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"name": "a b"}, "name", "use 1 to 64 letters of a to z, digits, '_' or '-'"),
        ({"name": "x" * 65}, "name", "1 to 64 letters"),
        ({"name": "größe"}, "name", "1 to 64 letters"),
        ({"name": ""}, "name", "1 to 64 letters"),
        ({"name": 7}, "name", "The tool name 7 does not fit"),
        ({"description": ""}, "description", "the model reads it to decide when to call the tool"),
        ({"description": " \n"}, "description", "needs a description"),
        ({"description": None}, "description", "needs a description"),
        ({"input": 5}, None, "a type or a JSON Schema, not a value of type int"),
        ({"input": len}, None, "not a function"),
        ({"input": {"type": "object", "properties": {"day": {"type": "date"}}}}, "day.type", "date is not"),
        ({"input": {"day": str}}, None, "'type': 'object', 'properties'"),
        ({"execute": None}, "execute", "needs a function as execute"),
        ({"execute": "act"}, "execute", "needs a function as execute; got 'act'"),
        ({"needs_approval": "yes"}, "needs_approval", "True, False or a function of the arguments; got 'yes'"),
        ({"timeout_ms": 0}, "timeout_ms", "a number of milliseconds above 0; got 0"),
        ({"timeout_ms": True}, "timeout_ms", "a number of milliseconds above 0"),
        ({"timeout_ms": float("inf")}, "timeout_ms", "a number of milliseconds above 0"),
        ({"timeout_ms": float("nan")}, "timeout_ms", "a number of milliseconds above 0"),
        ({"display_name": 3}, "display_name", "a text"),
        ({"annotations": ["readOnlyHint"]}, "annotations", "a mapping, such as {'readOnlyHint': True}"),
        ({"metadata": "x"}, "metadata", "a mapping"),
        ({"edits_files": "no"}, "edits_files", "True or False; got 'no'"),
        ({"concurrent": 0}, "concurrent", "True or False; got 0"),
        ({"requires_sandbox": "no"}, "requires_sandbox", "True or False"),
        ({"sandbox_execute": True}, "sandbox_execute", "a function of (arguments, sandbox)"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_what_is_wrong_with_a_definition_is_said_at_once(options: dict[str, Any], field: str | None, says: str):
    error = refused(lambda: defined(**options))
    assert (error.field, says in error.detail) == (field, True), error.detail


@pytest.mark.spec("TOOL-03", "API-34")
def test_names_of_1_and_64_characters_are_fine():
    assert [defined(name=name).name for name in ("a", "x" * 64, "A-b_9")] == ["a", "x" * 64, "A-b_9"]


@pytest.mark.spec("TOOL-04", "API-35")
def test_the_display_name_is_the_name_unless_it_is_given():
    plain, shown = defined(), defined(display_name="Do it")
    assert (plain.display_name, shown.display_name) == ("act", "Do it")
    assert (plain.renamed("other").display_name, shown.renamed("other").display_name) == ("other", "Do it")


@pytest.mark.spec("TOOL-05")
@pytest.mark.parametrize("gate", [True, lambda to: to == "Ada", lambda args, ctx: args["to"] == "Ada"])
async def test_needs_approval_pauses_the_run_before_the_call(gate: Any):
    sent: list[str] = []

    @tool(needs_approval=gate)
    def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    agent = create_agent(provider=mock_model([call("send", to="Ada"), "Done."]), tools=[send])
    run = agent.stream("go")
    events = await collect(run)
    paused = await run.result
    assert (paused.finish_reason, len(of_type(events, "approval.requested")), sent) == ("awaiting-approval", 1, [])
    await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert sent == ["Ada"]


@pytest.mark.spec("TOOL-05")
async def test_a_gate_that_says_no_lets_the_call_run():
    async def to_the_boss(to: str) -> bool:
        return to == "the boss"

    careful = tool(needs_approval=to_the_boss)(lambda_free_send)
    assert await results(careful, turns=[call("lambda_free_send", to="Ada")]) == ["sent to Ada"]


def lambda_free_send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@pytest.mark.spec("TOOL-06", "TOOL-08")
def test_hints_and_the_mark_of_an_editor_are_kept_in_the_metadata():
    hints = {"readOnlyHint": True, "title": "Look"}
    act = defined(annotations=hints, edits_files=True, metadata={"team": "post", "mcp": {"server": "s"}})
    assert act.annotations == hints
    assert act.edits_files is True
    assert act.metadata == {
        "team": "post",
        "mcp": {"server": "s", "annotations": hints},
        "editsFiles": True,
    }
    assert defined().metadata == {}
    assert defined(metadata={"mcp": {"annotations": hints}}).annotations == hints


@pytest.mark.spec("TOOL-11")
def test_two_tools_of_one_name_are_refused_by_name():
    other = defined(name="send_letter")
    error = refused(lambda: create_agent(provider=mock_model([]), tools=[send_letter, other]))
    assert "'send_letter'" in error.detail
    error = refused(lambda: ToolRegistry([send_letter, other]))
    assert "'send_letter'" in error.detail


SUGGESTIONS = [
    ("require_approval", "'require_approval' is not a known option (did you mean 'needs_approval'?)"),
    ("requireApproval", "'requireApproval' is not a known option (did you mean 'needs_approval'?)"),
    ("needs_aproval", "'needs_aproval' is not a known option (did you mean 'needs_approval'?)"),
    ("needsApproval", "'needsApproval' is not a known option (did you mean 'needs_approval'?)"),
    ("requires_confirmation", "(did you mean 'needs_approval'?)"),
    ("input_schema", "'input_schema' is not a known option (did you mean 'input'?)"),
    ("inputSchema", "'inputSchema' is not a known option (did you mean 'input'?)"),
    ("parameters", "'parameters' is not a known option (did you mean 'input'?)"),
    ("timeout", "(did you mean 'timeout_ms'?)"),
    ("require_sandbox", "(did you mean 'requires_sandbox'?)"),
    ("defer_loading", "'defer_loading' is not there yet: this version has no tool search"),
    ("deferLoading", "'deferLoading' is not there yet"),
    ("colour", "'colour' is not a known option."),
]


@pytest.mark.spec("TOOL-12")
@pytest.mark.parametrize(("option", "says"), SUGGESTIONS, ids=[option for option, _ in SUGGESTIONS])
def test_an_unknown_option_is_refused_with_the_one_that_was_meant(option: str, says: str):
    wrong: dict[str, Any] = {option: True}
    makers: list[tuple[str, Callable[[], object]]] = [
        ("define_tool", lambda: defined(**wrong)),
        ("tool", lambda: tool(**wrong)),
        ("replace", lambda: send_letter.replace(**wrong)),
    ]
    for where, make in makers:
        error = refused(make)
        assert error.detail.startswith(f"{where}: ")
        assert says in error.detail
        assert error.field == option


@pytest.mark.spec("TOOL-12")
def test_a_misspelt_option_is_named_before_one_that_is_missing():
    wrong: Any = {"nam": "act", "description": "Act", "handler": print}
    make: Any = define_tool
    assert "'nam' is not a known option (did you mean 'name'?)" in refused(lambda: make(**wrong)).detail
    assert (
        "'handler' is not a known option (did you mean 'execute'?)"
        in refused(lambda: make(name="act", description="Act", handler=print)).detail
    )
    assert "define_tool needs execute=" in refused(lambda: make(name="act", description="Act")).detail
    assert "takes its options by name" in refused(lambda: make("act", "Act", print)).detail
    assert "(did you mean" not in refused(lambda: make(**{"x" * 500: 1})).detail
    execute: Any = {"execute": print}
    assert "'execute' is not a known option" in refused(lambda: tool(**execute)).detail


@pytest.mark.spec("TOOL-13")
async def test_a_defined_tool_can_be_spread_into_another_with_its_own_function():
    async def fake(args: dict[str, Any]) -> str:
        return f"fake {args['to']}"

    options = post_letter.replace(display_name="Post", needs_approval=True, timeout_ms=500).to_options()
    changed: dict[str, Any] = {**options, "execute": fake, "needs_approval": False}
    again = define_tool(**changed)
    assert (again.name, again.description, again.input_schema) == (
        "post_letter",
        "Post a letter.",
        post_letter.input_schema,
    )
    assert (again.display_name, again.timeout_ms, again.needs_approval) == ("Post", 500, False)
    assert await results(again, turns=[call("post_letter", to="Ada")]) == ["fake Ada"]


@pytest.mark.spec("TOOL-13")
@pytest.mark.parametrize(
    "fake",
    [
        lambda to, copies: f"{copies} fake {to}",
        lambda to, copies=9, size="A4": f"{copies} fake {to}",
        lambda args: f"{args['copies']} fake {args['to']}",
        lambda args, ctx: f"{args['copies']} fake {args['to']}{ctx.tool_name[:0]}",
        lambda **given: f"{given['copies']} fake {given['to']}",
    ],
    ids=["by name", "by name with more", "one value", "value and context", "keywords"],
)
async def test_a_replaced_function_gets_the_same_arguments_the_way_it_takes_them(fake: Any):
    changed = send_letter.replace(execute=fake)
    assert send_letter.execute is not changed.execute
    assert await results(changed, turns=[call("send_letter", to="Ada")]) == ["1 fake Ada"]


@pytest.mark.spec("TOOL-13")
async def test_a_replaced_function_needs_not_take_anything_and_may_bring_its_own_schema():
    assert await results(send_letter.replace(execute=lambda: "quiet"), turns=[call("send_letter", to="Ada")]) == [
        "quiet"
    ]

    def count(sheets: int) -> str:
        return f"{sheets} sheets"

    counted = send_letter.replace(name="count", execute=count, input=None)
    assert counted.input_schema["properties"] == {"sheets": {"type": "integer"}}
    assert counted.display_name == "count"
    assert await results(counted, turns=[call("count", sheets=3)]) == ["3 sheets"]


def test_a_replaced_question_still_asks():
    from lousho import ask_question_tool

    asks = ask_question_tool()
    assert asks.replace(description="Ask the reader").pause_kind == "question"
    assert define_tool(**asks.to_options()).pause_kind == "question"


@pytest.mark.spec("TOOL-16")
def test_a_tool_is_a_descriptor_and_carries_its_schema_and_its_function():
    from lousho import ToolDescriptor

    assert isinstance(say_letter, ToolDescriptor)
    assert (say_letter.input_schema, say_letter.execute) == (LETTER_SCHEMA, spoken)
    assert not isinstance(spoken, ToolDescriptor)


@pytest.mark.spec("API-35")
async def test_a_tool_with_every_option_carries_them_all():
    async def in_sandbox(args: dict[str, Any], sandbox: object) -> str:
        return "sandboxed"

    async def execute(args: dict[str, Any]) -> dict[str, str]:
        return {"messageId": f"{args['to']}:{args['subject']}"}

    send_email = define_tool(
        name="send_email",
        description="Send an email",
        input={
            "type": "object",
            "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
            "required": ["to", "subject"],
        },
        display_name="Send mail",
        needs_approval=lambda args: not args["to"].endswith("@mycompany.com"),
        requires_sandbox=False,
        sandbox_execute=in_sandbox,
        execute=execute,
    )
    assert (send_email.display_name, send_email.requires_sandbox) == ("Send mail", False)
    assert send_email.sandbox_execute is in_sandbox
    assert send_email.execute is execute
    assert send_email.input_schema["required"] == ["to", "subject"]
    inside = call("send_email", to="a@mycompany.com", subject="Hi")
    assert await results(send_email, turns=[inside]) == [{"messageId": "a@mycompany.com:Hi"}]
    outside = create_agent(provider=mock_model([call("send_email", to="a@b.c", subject="Hi")]), tools=[send_email])
    assert (await outside.send("go")).finish_reason == "awaiting-approval"
    confined = send_email.replace(requires_sandbox=True)
    assert (confined.requires_sandbox, confined.sandbox_execute) == (True, in_sandbox)


async def test_calling_a_tool_calls_its_function():
    assert post_letter("Ada", copies=2) == "2 posted to Ada"
    assert await send_letter("Ada") == "1 to Ada"
    assert await send_letter.execute(to="Bo") == "1 to Bo"
    assert say_letter({"to": "Cy", "copies": 3}) == "3 said to Cy"


def test_a_tool_does_not_change_but_can_be_copied():
    with pytest.raises(ConfigurationError, match=r"tool\.replace\(needs_approval=\.\.\.\)"):
        setattr(send_letter, "needs_approval", False)  # noqa: B010 - what a type checker would refuse, too
    with pytest.raises(ConfigurationError, match=r"cannot be changed"):
        delattr(send_letter, "name")
    for one in (copy.copy(send_letter), copy.deepcopy(send_letter)):
        assert isinstance(one, Tool)
        assert (one.name, one.input_schema) == ("send_letter", send_letter.input_schema)
    assert repr(send_letter) == "Tool('send_letter')"


def test_options_above_a_tool_change_it():
    changed = tool(timeout_ms=50, name="slow_letter")(send_letter)
    assert (changed.name, changed.timeout_ms, changed.input_schema) == ("slow_letter", 50, send_letter.input_schema)
    assert tool(send_letter).name == "send_letter"
