"""Options of tools as nobody should give them, changed tools, registries and descriptors that lie, and sandboxes."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
import math
import pydoc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from hostile import play, told, within
from runs import call, calls, of_type

import lousho
from lousho import (
    ConfigurationError,
    Tool,
    ToolContext,
    ask_question_tool,
    create_agent,
    create_todo_tools,
    current_date_tool,
    define_tool,
    tool,
)
from lousho.testing import mock_model
from lousho.tools import FunctionTool, ToolRegistry


@tool
def lend(title: str, days: int = 14) -> str:
    """Lend a book.

    Args:
        title: The title.
    """
    return f"{title} for {days} days"


OBJECT = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


class Order:
    """A descriptor that is an object."""

    description = "Order a book"
    input_schema = OBJECT

    def execute(self, arguments: dict[str, Any]) -> str:
        return f"ordered {arguments['title']}"


async def used(tools: Any, name: str, **args: Any) -> Any:
    """Return what a model is told of one call."""
    agent = create_agent(provider=mock_model([call(name, **args), "Done."]), tools=tools)
    return told((await play(agent.stream("go"))).ended)[0]


def options_of(made: Tool) -> dict[str, Any]:
    """Everything that can be seen of a tool."""
    names = (
        "name description execute needs_approval display_name timeout_ms annotations edits_files metadata concurrent"
        " requires_sandbox sandbox_execute pause_kind style input_schema"
    )
    return {name: getattr(made, name) for name in names.split()}


# -- changed tools -------------------------------------------------------------------------------------------------------

EVERY_OPTION: dict[str, Any] = {
    "needs_approval": True,
    "display_name": "Lend it",
    "timeout_ms": 5.5,
    "annotations": {"readOnlyHint": True},
    "edits_files": True,
    "metadata": {"mine": {"deep": 1}},
    "concurrent": False,
    "requires_sandbox": True,
    "sandbox_execute": lambda arguments, sandbox: "inside",
    "description": "Lend any book",
    "name": "lend_any",
}


@pytest.mark.parametrize("option", EVERY_OPTION)
def test_each_option_is_changed_alone_and_the_tool_it_came_from_not_at_all(option: str):
    before = options_of(lend)
    changed = lend.replace(**{option: EVERY_OPTION[option]})
    assert isinstance(changed, FunctionTool)
    after = options_of(changed)
    apart = {name for name, value in after.items() if value != before[name]}
    assert apart - {"metadata", "display_name"} <= {option}
    assert after["metadata" if option == "metadata" else option] == EVERY_OPTION[option]
    assert options_of(lend) == before
    assert changed("Momo") == "Momo for 14 days"
    full = changed.replace(**EVERY_OPTION)
    assert options_of(full) == options_of(lend.replace(**EVERY_OPTION))
    back = full.replace(**{name: value for name, value in lend.to_options().items() if name in EVERY_OPTION})
    assert (back.name, back.description) == ("lend", "Lend a book.")


@pytest.mark.parametrize(
    "made",
    [
        lend,
        lend.replace(**EVERY_OPTION),
        ask_question_tool(),
        current_date_tool,
        create_todo_tools().tools[0],
        ToolRegistry().register("order", Order()),
        ToolRegistry().register("any", {"description": "Take anything", "execute": lambda arguments: "taken"}),
    ],
    ids=lambda made: made.name,
)
def test_the_options_of_every_kind_of_tool_make_it_again(made: Tool):
    assert options_of(define_tool(**made.to_options())) == options_of(made)
    assert options_of(made.replace()) == options_of(made)
    assert options_of(copy.copy(made)) == options_of(made)
    assert made.replace(name=made.name) is not made


def test_what_was_given_and_what_is_shown_can_be_changed_without_changing_the_tool():
    metadata: dict[str, Any] = {"a": 1}
    hints: dict[str, Any] = {"readOnlyHint": True}
    made = lend.replace(metadata=metadata, annotations=hints)
    metadata["b"] = hints["b"] = 2
    options = made.to_options()
    options["metadata"]["c"] = options["annotations"]["c"] = 3
    again = made.replace(name="again")
    for one in (made, again, define_tool(**made.to_options())):
        assert one.metadata == {"a": 1, "mcp": {"annotations": {"readOnlyHint": True}}}
        assert one.annotations == {"readOnlyHint": True}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"need_approval": True}, r"'need_approval' is not a known option \(did you mean 'needs_approval'\?\)"),
        ({"pause_kind": "question"}, "'pause_kind' is not a known option"),
        ({"schema": {}}, r"'schema' is not a known option \(did you mean 'input'\?\)"),
        ({"__class__": int}, "'__class__' is not a known option"),
        ({"name": None}, "The tool name None does not fit"),
        ({"name": "a\n"}, r"The tool name 'a\\n' does not fit"),
        ({"name": "\u00fc"}, "does not fit"),
        ({"name": "a" * 65}, "does not fit"),
        ({"name": ""}, "does not fit"),
        ({"name": b"lend"}, "does not fit"),
        ({"description": None}, "needs a description"),
        ({"description": " \n"}, "needs a description"),
        ({"execute": None}, "needs a function as execute"),
        ({"execute": "lend"}, "needs a function as execute"),
        ({"execute": lambda title, shelf: title}, "execute takes 'shelf', which is no argument of the tool"),
        ({"needs_approval": None}, "needs_approval must be True, False or a function"),
        ({"needs_approval": "yes"}, "needs_approval must be True, False or a function"),
        ({"needs_approval": 1}, "needs_approval must be True, False or a function"),
        ({"needs_approval": lambda title, shelf: True}, "needs_approval takes 'shelf'"),
        ({"timeout_ms": 0}, "timeout_ms must be a number of milliseconds above 0"),
        ({"timeout_ms": -1}, "timeout_ms must be a number of milliseconds above 0"),
        ({"timeout_ms": math.nan}, "timeout_ms must be a number of milliseconds above 0"),
        ({"timeout_ms": math.inf}, "timeout_ms must be a number of milliseconds above 0"),
        ({"timeout_ms": "5"}, "timeout_ms must be a number of milliseconds above 0"),
        ({"timeout_ms": 10**400}, "timeout_ms must be 100 years at most"),
        ({"timeout_ms": 1e300}, "timeout_ms must be 100 years at most"),
        ({"concurrent": "no"}, "concurrent must be True or False"),
        ({"concurrent": None}, "concurrent must be True or False"),
        ({"concurrent": 0}, "concurrent must be True or False"),
        ({"requires_sandbox": "yes"}, "requires_sandbox must be True or False"),
        ({"requires_sandbox": 1}, "requires_sandbox must be True or False"),
        ({"sandbox_execute": "run"}, "sandbox_execute must be a function"),
        ({"edits_files": 1}, "edits_files must be True or False"),
        ({"metadata": [("a", 1)]}, "metadata must be a mapping"),
        ({"annotations": "readOnlyHint"}, "annotations must be a mapping"),
        ({"display_name": 7}, "display_name must be a text"),
        ({"input": {"type": "string"}}, "the root must be an object"),
        ({"input": "object"}, "A schema is a type or a JSON Schema"),
        ({"input": lend}, "which no JSON value can satisfy"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_a_change_that_makes_no_sense_is_refused_with_a_code_and_changes_nothing(changes: dict[str, Any], says: str):
    before = options_of(lend)
    for make in (lend.replace, lambda **given: define_tool(**{**lend.to_options(), **given})):
        if "pause_kind" in changes and make is not lend.replace:
            continue
        with pytest.raises(ConfigurationError, match=says) as caught:
            make(**changes)
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
    assert options_of(lend) == before


async def test_the_longest_and_the_shortest_time_limit_do_what_they_say():
    @tool(timeout_ms=100 * 365.25 * 86_400_000)
    async def patient() -> str:
        """Take a moment."""
        await asyncio.sleep(0)
        return "done"

    @tool(timeout_ms=1e-9)
    async def hurried() -> str:
        """Take for ever."""
        await asyncio.Event().wait()
        return "never"

    assert await used([patient], "patient") == "done"
    assert (await used([hurried], "hurried"))["error"] == "TimeoutError"


class Desk:
    """Functions of every kind."""

    def method(self, title: str) -> str:
        """Lend."""
        return f"method {title}"

    def __call__(self, title: str) -> str:
        """Lend."""
        return f"called {title}"


async def waits(title: str, ctx: ToolContext) -> str:
    """Lend."""
    await asyncio.sleep(0)
    return f"waited {title} {ctx.tool_name}"


async def reports(title: str) -> AsyncIterator[str]:
    """Lend."""
    yield "looking"
    yield f"reported {title}"


@pytest.mark.parametrize(
    ("execute", "result"),
    [
        (lambda title: f"plain {title}", "plain Momo"),
        (lambda arguments: f"one {sorted(arguments)}", "one ['days', 'title']"),
        (lambda: "nothing", "nothing"),
        (lambda **given: f"all {sorted(given)}", "all ['days', 'title']"),
        (waits, "waited Momo lend"),
        (reports, "reported Momo"),
        (Desk().method, "method Momo"),
        (Desk(), "called Momo"),
        (functools.partial(lambda kind, title: f"{kind} {title}", "partial"), "partial Momo"),
        (lend, "Momo for 14 days"),
        (MagicMock(return_value="mocked"), "mocked"),
    ],
    ids=range(11),
)
async def test_any_kind_of_function_takes_the_place_of_another(execute: Any, result: str):
    changed = lend.replace(execute=execute)
    assert await used([changed], "lend", title="Momo") == result
    assert changed.input_schema == lend.input_schema
    assert (await used([changed], "lend", days=3))["kind"] == "validation"


@pytest.mark.parametrize("what", ["tool", "define_tool", "Tool", "create_todo_tools", "create_agent"])
def test_help_says_what_the_options_are(what: str):
    text = pydoc.plain(pydoc.render_doc(getattr(lousho, what)))
    assert "LOUSHO_CONFIG_INVALID" in text
    assert "Source:" in text


def test_help_of_a_tool_is_that_of_its_function():
    assert str(inspect.signature(lend)) == "(title: 'str', days: 'int' = 14) -> 'str'"
    assert "Lend a book." in pydoc.plain(pydoc.render_doc(lend))
    assert (lend.__module__, lend.__doc__) == (__name__, lend.execute.__doc__)


# -- registries ----------------------------------------------------------------------------------------------------------


def breaking_off() -> Iterator[Tool]:
    yield lend
    raise OSError("the cable was pulled")


@pytest.mark.parametrize(
    "act",
    [
        lambda desk: desk.register_many(breaking_off()),
        lambda desk: desk.register_many([current_date_tool, current_date_tool]),
        lambda desk: desk.register_many([lend, lend.replace(name="kept")]),
        lambda desk: desk.register_many({"new": lend, "kept": lend}),
        lambda desk: desk.register_many({"new": lend, 7: lend}),
        lambda desk: desk.register_many({"new": lend, "\u00fc": lend}),
        lambda desk: desk.register_many([lend, "date"]),
        lambda desk: desk.register_many(desk),
        lambda desk: desk.register("kept", lend),
        lambda desk: desk.register("", lend),
        lambda desk: desk.register(7, lend),
        lambda desk: desk.register("new", None),
        lambda desk: desk.register("new", {"description": "x"}),
        lambda desk: desk.register("new", MagicMock()),
        lambda desk: desk.register(int),
        lambda desk: desk.register(lambda: 1),
        lambda desk: desk.remove("never"),
        lambda desk: desk.remove(None),
    ],
    ids=range(18),
)
async def test_a_registry_that_refuses_something_stays_what_it_was(act: Callable[[ToolRegistry], Any]):
    kept = lend.replace(name="kept")
    desk = ToolRegistry([kept])
    with pytest.raises((ConfigurationError, OSError)):
        act(desk)
    assert (desk.names(), desk["kept"] is kept, len(desk)) == (["kept"], True, 1)
    assert await used(desk, "kept", title="Momo") == "Momo for 14 days"


async def test_a_registry_of_a_thousand_tools_that_changes_while_agents_use_it_is_theirs_as_it_was():
    desk = ToolRegistry({f"lend_{number}": lend for number in range(1_000)})

    def change(_: Any) -> Any:
        for name in desk.names():
            desk.remove(name)
        desk.register(lend)
        return call("lend_999", title="Momo")

    agent = create_agent(provider=mock_model([change, call("lend"), "Done."]), tools=desk)
    first, second = told((await play(agent.stream("go"))).ended)
    assert first == "Momo for 14 days"
    assert second["kind"] == "not-found"
    assert desk.names() == ["lend"]


# -- descriptors ---------------------------------------------------------------------------------------------------------


def described(**fields: Any) -> Any:
    """An object with these attributes."""
    return type("Described", (Order,), fields)()


GATED = [
    {"description": "x", "execute": str, "require_approval": True},
    {"description": "x", "execute": str, "requiresApproval": True},
    {"description": "x", "execute": str, "needApproval": True},
    {"description": "x", "execute": str, "confirm": True},
    {"description": "x", "execute": str, "needs_approval": False, "needsApproval": True},
    {"description": "x", "execute": str, "NEEDSAPPROVAL": True, "needs_approval": False},
    {"tool": {"description": "x", "execute": str, "needsApproval": True}},
    {"tool": {"tool": {"description": "x", "execute": str}}},
    described(require_approval=True),
    described(requiresConfirmation=lambda self, arguments: True),
    described(needs_approval=False, needsApproval=True),
    described(execute=None, tool={"execute": str}, requires_approval=True),
    described(needs_approval="yes"),
    {"description": "x", "execute": str, "needs_approval": "yes"},
]


@pytest.mark.parametrize("descriptor", GATED, ids=range(len(GATED)))
def test_a_gate_in_a_descriptor_that_would_be_missed_is_an_error(descriptor: Any):
    with pytest.raises(ConfigurationError):
        ToolRegistry().register("gated", descriptor)


@pytest.mark.parametrize(
    "descriptor",
    [
        described(needsApproval=True),
        described(needs_approval=True),
        described(needs_approval=True, needsApproval=True),
        described(needs_approval=lambda self, arguments: True),
        {"description": "x", "execute": str, "NeedsApproval": True},
        {"tool": described(needsApproval=True)},
        {"tool": lend.replace(needs_approval=True)},
        {"needsApproval": True, "tool": {"description": "x", "execute": str}},
    ],
    ids=range(8),
)
async def test_a_gate_in_a_descriptor_holds_wherever_it_stands(descriptor: Any):
    model = mock_model([call("gated", title="Momo")])
    result = await create_agent(provider=model, tools={"gated": descriptor}).send("go")
    assert result.finish_reason == "awaiting-approval"


def endless() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["self"] = schema
    return schema


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        endless(),
        deep(3_000),
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(5_000)}},
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"enum": []}}},
        {"type": "object", "properties": {"a": {"minLength": -1, "maxLength": "x"}}},
        {"type": "object", "properties": {"a\ud800": {"type": "string"}}},
        {"properties": {"a": {}}},
        {},
    ],
    ids=range(14),
)
async def test_a_schema_of_another_hand_can_be_told_checked_and_called_in_no_time(schema: Any):
    made = ToolRegistry().register("x", {"description": "x", "parameters": schema, "execute": lambda arguments: "ran"})
    text = json.dumps(made.input_schema)
    assert len(text) < 1_000_000
    answer = await within(used([made], "x", a="a" * 40 + "!"))
    assert answer == "ran" or answer["kind"] == "validation"


# -- sandboxes -----------------------------------------------------------------------------------------------------------


def inside(ran: list[str], **options: Any) -> Tool:
    return define_tool(
        name="shell",
        description="Run a command",
        input={"type": "object"},
        execute=lambda _: ran.append("outside"),
        requires_sandbox=True,
        sandbox_execute=lambda arguments, sandbox: ran.append("inside"),
        **options,
    )


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("limit", [None, 50])
async def test_a_tool_that_needs_a_sandbox_runs_in_no_way_without_one_and_asks_nobody(gate: bool, limit: Any):
    ran: list[str] = []
    shell = inside(ran, needs_approval=gate, timeout_ms=limit)
    forms: list[Any] = [
        [shell],
        [shell.replace(concurrent=False)],
        {"shell": shell.replace(name="other")},
        {"shell": {"description": "Run", "execute": lambda _: ran.append("outside"), "requiresSandbox": True}},
        {"shell": {"tool": shell}},
        ToolRegistry([shell]),
    ]
    for tools in forms:
        agent = create_agent(provider=mock_model([call("shell", command="ls"), "Done."]), tools=tools)
        played = await play(agent.stream("go"))
        (answer,) = told(played.ended)
        assert (answer["kind"], answer["error"]) == ("sandbox", "SandboxRequiredError")
        assert of_type(played.events, "approval.requested") == []
    assert ran == []


async def test_a_call_that_was_approved_before_its_tool_needed_a_sandbox_does_not_run():
    ran: list[str] = []
    shell = inside(ran, needs_approval=True)
    model = mock_model([calls(("shell", {}), ("shell", {"n": 2})), "Done."])
    agent = create_agent(provider=model, tools=[shell.replace(requires_sandbox=False)])
    result = await agent.send("go")
    stricter = create_agent(provider=model, tools=[shell], approval_store=agent.approval_store)
    for approval_id in result.approval_ids:
        result = await stricter.approvals.resolve(id=approval_id, approved=True)
    assert [one["kind"] for one in told(result)] == ["sandbox"] * 2
    assert ran == []


# -- where long results go -----------------------------------------------------------------------------------------------


class OfBytes:
    def __fspath__(self) -> bytes:
        return b"/tmp/results"


@pytest.mark.parametrize("place", [OfBytes(), b"/tmp/results", "", " ", "a\x00b", 7, None, ["results"]], ids=range(8))
def test_a_place_for_results_that_is_none_is_refused_with_a_code(place: Any):
    with pytest.raises(ConfigurationError, match="'spill_dir' must be the path of a folder"):
        create_agent(provider=mock_model([]), tools=[lend], tool_results={"spill_dir": place})
