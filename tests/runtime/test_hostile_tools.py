"""Tools that raise anything, return anything, never end or go on after the end: one result each, and the run goes on."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import threading
from typing import Any

import pytest
from hostile import ANSWER, act_in_both, acting, asks, chunks, play, told, within, wrong
from pydantic import BaseModel, field_validator
from runs import WAIT, call, calls, of_type, types

from lousho import CancelSignal, PropagatingToolError, SDKError, ToolContext, create_agent, define_tool, tool
from lousho.models.provider import Finish
from lousho.testing import mock_model


class Odd(BaseException):
    """Neither an `Exception` nor one of Python's own exits."""


class Mute(Exception):
    """Cannot be shown, in whatever way it is tried."""

    def __str__(self) -> str:
        raise ValueError("no text for you")

    __repr__ = __str__

    @property
    def name(self) -> str:
        raise ValueError("no name either")

    @property
    def tool_error_kind(self) -> str:
        raise ValueError("nor a kind")

    @property
    def never_wrap(self) -> bool:
        raise ValueError("nor this")


def raising(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        pytest.param(asyncio.CancelledError(), "CancelledError", "cancelled", id="CancelledError"),
        pytest.param(SystemExit(2), "SystemExit", "2", id="SystemExit"),
        pytest.param(StopAsyncIteration("x"), "StopAsyncIteration", "x", id="StopAsyncIteration"),
        pytest.param(StopIteration("x"), "RuntimeError", "StopIteration", id="StopIteration"),
        pytest.param(ExceptionGroup("g", [KeyError("k"), ValueError("v")]), "KeyError", "k", id="ExceptionGroup"),
        pytest.param(
            BaseExceptionGroup("g", [asyncio.CancelledError(), ValueError("v")]),
            "ValueError",
            "v",
            id="BaseExceptionGroup",
        ),
        pytest.param(Mute(), "Mute", "Mute", id="an exception without text"),
        pytest.param(ValueError("x" * 1_000_000), "ValueError", "(truncated)", id="a message of a megabyte"),
        pytest.param(ValueError("\ud800"), "ValueError", "\ufffd", id="half a surrogate pair"),
        pytest.param(RecursionError("deep"), "RecursionError", "deep", id="RecursionError"),
        pytest.param(MemoryError(), "MemoryError", "MemoryError", id="MemoryError"),
    ],
)
async def test_whatever_a_tool_raises_is_told_to_the_model_and_the_run_goes_on(error, name, message):
    played = await act_in_both(raising(error))
    assert played.ended.text == "Done."
    for result in told(played.ended):
        assert (result["error"], result["kind"]) == (name, "execution")
        assert message in result["message"]
        assert len(result["message"]) <= 2_000
    assert [event.error.name for event in of_type(played.events, "tool.error")] == [name, name]
    assert played.ended.tool_errors == 2


@pytest.mark.parametrize("error", [Odd("odd"), GeneratorExit()], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", ["awaited", "blocking"])
async def test_an_exit_that_is_no_exception_ends_the_run_with_a_whole_stream(error, name):
    model = mock_model([call(name), "never"])
    played = await play(create_agent(provider=model, tools=acting(raising(error))).stream("go"))
    assert type(played.error) is type(error)
    assert types(played.events)[-3:] == ["step.done", "error", "run.done"]


@pytest.mark.parametrize("name", ["awaited", "blocking"])
async def test_an_error_that_stops_the_run_stops_it_out_of_a_group_too(name):
    class Stop(PropagatingToolError):
        """Stop."""

    error = ExceptionGroup("g", [ValueError("v"), ExceptionGroup("inner", [Stop("enough")])])
    model = mock_model([call(name), "never"])
    with pytest.raises(Stop, match="enough"):
        await create_agent(provider=model, tools=acting(raising(error))).send("go")


async def test_a_tool_that_cancels_its_own_task_cancels_only_itself():
    @tool
    async def suicide() -> str:
        """Cancel the task it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    agent = create_agent(provider=mock_model([call("suicide"), "Done."]), tools=[suicide])
    played = await play(agent.stream("go"))
    assert played.ended.text == "Done."
    assert told(played.ended)[0]["error"] == "CancelledError"


async def test_a_generator_tool_that_ignores_the_abort_is_not_heard_any_more():
    going = asyncio.Event()
    heard_late = asyncio.Event()

    @tool
    async def stubborn():
        """Never stop."""
        yield "one"
        while True:
            try:
                going.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                yield "after the abort"
                heard_late.set()
                return

    signal = CancelSignal()
    events: list[Any] = []
    agent = create_agent(provider=mock_model([call("stubborn")]), tools=[stubborn], on_event=events.append)
    run = agent.stream("go", signal=signal)
    await within(going.wait())
    signal.abort("enough")
    played = await play(run)
    for _ in range(10):
        await asyncio.sleep(0)
    assert played.ended.finish_reason == "aborted"
    assert [event.output for event in of_type(events, "tool.partial")] == ["one"]
    assert events[-1].type == "run.done"


async def test_a_generator_tool_that_raises_while_it_is_closed_ends_as_cancelled():
    going = asyncio.Event()

    @tool
    async def sore():
        """Raise when told to stop."""
        try:
            yield "one"
            going.set()
            await asyncio.sleep(60)
        finally:
            raise ValueError("never stop me")

    run = create_agent(provider=mock_model([call("sore")]), tools=[sore]).stream("go")
    await within(going.wait())
    run.abort("enough")
    played = await play(run)
    assert told(played.ended)[0]["kind"] == "cancelled"


async def test_a_listener_of_the_abort_signal_that_raises_does_not_keep_the_run_from_stopping():
    going = asyncio.Event()

    def sore(_: object) -> None:
        raise ValueError("never stop me")

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait."""
        ctx.abort_signal.add_listener(sore)
        going.set()
        await asyncio.sleep(60)
        return "never"

    run = create_agent(provider=mock_model([call("wait")]), tools=[wait]).stream("go")
    await within(going.wait())
    run.abort("enough")
    assert (await play(run)).ended.finish_reason == "aborted"


@pytest.mark.parametrize("stop", ["abort", "cancel"])
async def test_calls_that_wait_for_a_place_never_start_after_a_stop(stop):
    started: list[str] = []
    going = asyncio.Event()

    @tool
    async def first(name: str) -> str:
        """Take a while."""
        started.append(name)
        if len(started) == 2:
            going.set()
        await asyncio.sleep(60)
        return name

    model = mock_model([calls(*[("first", {"name": name}) for name in "abcde"])])
    agent = create_agent(provider=model, tools=[first], tool_concurrency=2)
    signal = CancelSignal()
    task = asyncio.ensure_future(agent.session("s").send("go", signal=signal))
    await within(going.wait())
    if stop == "abort":
        signal.abort("enough")
        assert (await within(task)).finish_reason == "aborted"
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert started == ["a", "b"]
    kept = await agent.session("s").load()
    assert [json.loads(str(message.content))["kind"] for message in kept[2:]] == ["cancelled"] * 5


async def test_a_sync_call_that_waits_for_a_thread_never_starts_after_a_stop():
    release = threading.Event()
    begun = threading.Semaphore(0)
    started: list[int] = []

    @tool
    def hold(number: int) -> int:
        """Take a thread."""
        started.append(number)
        begun.release()
        release.wait(WAIT)
        return number

    model = mock_model([calls(*[("hold", {"number": number}) for number in range(100)])])
    signal = CancelSignal()
    task = asyncio.ensure_future(create_agent(provider=model, tools=[hold]).send("go", signal=signal))
    try:
        for _ in range(64):
            assert await asyncio.to_thread(begun.acquire, timeout=WAIT)
        signal.abort("enough")
        assert (await within(task)).finish_reason == "aborted"
    finally:
        release.set()

    @tool
    def after() -> str:
        """Run when the threads are free."""
        return "free"

    later = create_agent(provider=mock_model([call("after"), "Done."]), tools=[after])
    await within(later.send("go"))
    assert len(started) == 64


async def test_a_gate_that_stops_the_run_waits_for_the_calls_that_run():
    order: list[str] = []
    going = asyncio.Event()

    @tool
    async def slow() -> str:
        """Take a while."""
        await within(going.wait())
        order.append("slow ended")
        return "ok"

    class Stop(PropagatingToolError):
        """Stop."""

    def gate(arguments: object) -> bool:
        going.set()
        raise Stop("enough")

    gated = define_tool(
        name="gated", description="Never", input={"type": "object"}, execute=lambda arguments: 1, needs_approval=gate
    )
    model = mock_model([calls(("slow", {}), ("gated", {}))])
    played = await play(create_agent(provider=model, tools=[slow, gated]).stream("go"))
    assert isinstance(played.error, Stop)
    assert order == ["slow ended"]


async def cancels_itself(*_: object) -> bool:
    raise asyncio.CancelledError


def exits(*_: object) -> bool:
    sys.exit(3)


@pytest.mark.parametrize("answer", [cancels_itself, exits, lambda *_: "perhaps", lambda *_: 1 / 0])
@pytest.mark.parametrize("place", ["needs_approval", "when"])
async def test_a_gate_or_rule_that_fails_denies_its_call_and_nothing_else(answer, place):
    ran: list[str] = []
    gated = define_tool(
        name="gated",
        description="Act",
        input={"type": "object"},
        execute=lambda arguments: ran.append("gated"),
        needs_approval=answer if place == "needs_approval" else False,
    )
    rules = [{"tool": "gated", "action": "deny", "when": answer}] if place == "when" else None
    model = mock_model([calls(("gated", {}), ("gated", {})), "Done."])
    played = await play(create_agent(provider=model, tools=[gated], permissions=rules).stream("go"))
    assert ran == []
    assert played.ended.text == "Done."
    assert played.ended.tool_errors == 2


async def test_a_validator_that_fails_by_itself_is_the_calls_failure():
    class Input(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def check(cls, value: str) -> str:
            raise LookupError("no dictionary")

    ran: list[Any] = []
    lookup = define_tool(name="lookup", description="Look up", input=Input, execute=ran.append)
    model = mock_model([call("lookup", word="cat"), "Done."])
    played = await play(create_agent(provider=model, tools=[lookup]).stream("go"))
    assert ran == []
    assert (told(played.ended)[0]["error"], told(played.ended)[0]["kind"]) == ("LookupError", "execution")


async def test_what_listeners_rules_and_tools_do_to_arguments_changes_nothing_of_the_call():
    seen: list[Any] = []

    def vandal(event: Any) -> None:
        if hasattr(event, "args") and event.args:
            event.args["to"].append("listener")

    def rule(args: Any, context: object) -> bool:
        args["to"].append("rule")
        return False

    def gate(args: Any) -> bool:
        seen.append(list(args["to"]))
        args["to"].append("gate")
        return True

    def send(args: Any) -> str:
        seen.append(list(args["to"]))
        args["to"].append("tool")
        return "sent"

    schema = {"type": "object", "properties": {"to": {"type": "array"}}}
    mail = define_tool(name="mail", description="Send", input=schema, execute=send, needs_approval=gate)
    agent = create_agent(
        provider=mock_model([call("mail", to=["a"]), "Done."]),
        tools=[mail],
        permissions=[{"tool": "mail", "action": "allow", "when": rule}],
        on_event=vandal,
    )
    paused = await play(agent.stream("go"))
    pending = (await agent.approvals.list())[0]
    pending.args["to"].append("list")
    continued = await play(agent.approvals.stream_resolve(id=pending.id, approved=True))
    assert seen == [["a"], ["a"]]
    assert json.loads(paused.ended.tool_calls[0].arguments) == {"to": ["a"]}
    assert continued.ended.text == "Done."


async def test_unknown_tools_and_arguments_of_every_bad_kind_are_answered_side_by_side():
    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    sent = ["", "null", "[]", "7", "{", '{"a": 1}', '{"a": "x", "b": []}', '{"a": 1e999, "b": 1}', "\x00", "NaN", '"x"']
    turn = [asks("add", text, f"c{number}") for number, text in enumerate(sent)]
    provider = chunks(
        [*turn, asks("ghost", "{}", "ghost"), asks("add", '{"a": 1, "b": 2}', "ok"), Finish("tool_calls")], ANSWER
    )
    played = await play(create_agent(provider=provider, tools=[add]).stream("go"))
    results = told(played.ended)
    assert [result["kind"] for result in results[:-1]] == ["validation"] * len(sent) + ["not-found"]
    assert results[-1] == 3


async def test_an_agent_without_tools_answers_a_call_too():
    played = await play(create_agent(provider=chunks([asks("ghost"), Finish("tool_calls")], ANSWER)).stream("go"))
    assert told(played.ended)[0]["message"] == "There is no tool 'ghost'. Tools: none."


def test_a_timeout_that_is_no_number_is_refused():
    for bad in ("5", True, math.nan, 0, -1):
        with pytest.raises(SDKError) as caught:
            define_tool(
                name="t", description="T", input={"type": "object"}, execute=lambda arguments: 1, timeout_ms=wrong(bad)
            )
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"


async def test_a_generator_tool_without_end_that_never_waits_can_be_stopped():
    @tool
    async def endless():
        """Never stop, never wait."""
        while True:
            yield "x"

    agent = create_agent(provider=mock_model([call("endless")]), tools=[endless])
    played = await play(agent.stream("go", signal=CancelSignal.timeout(50)))
    assert played.ended.finish_reason == "aborted"
    assert told(played.ended)[0]["kind"] == "cancelled"


async def test_reasons_notes_and_messages_of_any_length_reach_the_model_bounded():
    long = "x" * 1_000_000

    def deny(args: object) -> Any:
        return {"deny": long}

    schema = {"type": "object", "properties": {}}
    tools = [
        define_tool(name="denied", description="Act", input=schema, execute=lambda args: 1, needs_approval=deny),
        define_tool(name="asked", description="Act", input=schema, execute=lambda args: 1, needs_approval=True),
        define_tool(name="broken", description="Act", input=schema, execute=lambda args: 1 / 0),
    ]
    model = mock_model([calls(("denied", {}), ("broken", {}), ("asked", {})), "Done."])
    agent = create_agent(provider=model, tools=tools, tool_error_message=lambda error, info: long)
    paused = await agent.send("go")
    result = await agent.approvals.resolve(id=str(paused.approval_id), approved=False, note=long)
    assert [told_one["kind"] for told_one in told(result)] == ["denied", "execution", "rejected"]
    assert all(len(str(message.content)) < 60_000 for message in result.messages)
    assert len(told(result)[1]["message"]) == 2_000
