"""Tools at their worst: what they return, raise, start, leave behind or do from the inside of a run."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator
from typing import Any

import hypothesis
import pytest
from hostile import acting, play, told, within
from nasty_values import HARMLESS, LEAVES, RECIPES, Exits, build, circle, deep_dict, deep_mixture
from runs import WAIT, call, calls, of_type, types
from sizes import sized

from lousho import Agent, ToolContext, create_agent, define_tool, tool
from lousho.testing import check_event_order, mock_model

NOTHING = {"type": "object", "properties": {}}
THREE = calls(("awaited", {}), ("blocking", {}), ("shown", {}))


def three_ways(value: Any) -> list[Any]:
    """Return tools that return the value from the event loop, from a thread, and as the last of two snapshots."""

    async def shown(arguments: Any) -> AsyncIterator[Any]:
        yield value
        yield value

    return [*acting(lambda: value), define_tool(name="shown", description="Show", input=NOTHING, execute=shown)]


async def hand_out(value: Any) -> tuple[list[str], list[Any]]:
    """Run a step that returns the value in three ways; returns what the model and what the listener got."""
    agent = create_agent(provider=mock_model([THREE, "Done.", "Next."]), tools=three_ways(value))
    session = agent.session("s")
    played = await play(session.stream("go"))
    assert (played.ended.text, played.ended.tool_errors) == ("Done.", None)
    shown = [event.output for event in of_type(played.events, "tool.partial")]
    done = {event.tool_name: event.result for event in of_type(played.events, "tool.done")}
    results = [done[name] for name in ("awaited", "blocking", "shown")]
    assert json.dumps(shown) == json.dumps([results[2]] * 2)
    assert await session.load() == played.ended.messages
    assert (await within(session.send("next"))).text == "Next."
    return [str(message.content) for message in played.ended.messages if message.role == "tool"], results


def check_handed_out(texts: list[str], results: list[Any]) -> None:
    assert texts[0] == texts[1] == texts[2]
    for text, result in zip(texts, results, strict=True):
        assert result == results[0]
        if "characters" in text and len(text) > 49_000:  # the middle was cut out
            assert len(text) <= 50_100
        elif isinstance(result, str):
            assert text in (result, "null")
        else:
            assert json.loads(text) == result


@pytest.mark.spec("HAZ-20")
@hypothesis.settings(max_examples=sized(100, 3_000))
@hypothesis.given(RECIPES)
async def test_any_value_of_any_tool_reaches_model_listener_and_session_as_json(recipe):
    texts, results = await hand_out(build(recipe))
    check_handed_out(texts, results)


@pytest.mark.spec("HAZ-20")
@pytest.mark.parametrize("make", [deep_dict, deep_mixture, circle], ids=lambda make: make.__name__)
async def test_what_is_ten_thousand_levels_deep_or_bites_its_tail_comes_back_bounded(make):
    texts, results = await hand_out(make())
    check_handed_out(texts, results)


@pytest.mark.spec("HAZ-20")
async def test_each_odd_value_alone_fails_no_run():
    for number in HARMLESS:
        texts, results = await hand_out(LEAVES[number])
        check_handed_out(texts, results)


async def test_a_value_that_exits_when_it_is_shown_fails_its_own_call_and_no_other():
    tools = [*acting(Exits), define_tool(name="fine", description="Fine", input=NOTHING, execute=lambda args: "fine")]
    model = mock_model([calls(("awaited", {}), ("blocking", {}), ("fine", {})), "Done."])
    played = await play(create_agent(provider=model, tools=tools).stream("go"))
    assert played.ended.text == "Done."
    assert [one if isinstance(one, str) else one["error"] for one in told(played.ended)] == ["SystemExit"] * 2 + [
        "fine"
    ]


@pytest.mark.parametrize("end", ["returns", "raises", "exits", "yields"])
async def test_a_tool_that_goes_on_after_the_run_ended_is_not_heard_and_harms_no_later_turn(end, caplog):
    going, go_on, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
    contexts: list[ToolContext] = []

    async def wait(ctx: ToolContext) -> None:
        contexts.append(ctx)
        going.set()
        while not go_on.is_set():
            try:
                await asyncio.wait_for(go_on.wait(), WAIT)
            except asyncio.CancelledError:
                continue

    @tool
    async def stubborn(ctx: ToolContext) -> str:
        """Go on whatever happens."""
        try:
            await wait(ctx)
            if end == "raises":
                raise LookupError("too late")
            if end == "exits":
                raise SystemExit(3)
            return "too late"
        finally:
            over.set()

    @tool
    async def showing(ctx: ToolContext) -> AsyncIterator[str]:
        """Go on whatever happens, and show it."""
        try:
            await wait(ctx)
            yield "too late"
        finally:
            over.set()

    name = "showing" if end == "yields" else "stubborn"
    heard: list[Any] = []
    agent = create_agent(provider=mock_model([call(name), "Next."]), tools=[stubborn, showing], on_event=heard.append)
    session = agent.session("s")
    run = session.stream("go")
    await within(going.wait())
    run.abort("enough")
    played = await play(run)
    wire, count = played.ended.to_dict(), len(heard)
    following = await within(session.send("next"))
    kept = await session.load()
    go_on.set()
    await within(over.wait())
    for _ in range(10):
        await asyncio.sleep(0)
    gc.collect()
    assert contexts[0].abort_signal.aborted
    assert played.ended.to_dict() == wire
    assert [event.run_id for event in heard[count:]] == [following.run_id] * (len(heard) - count)
    assert await session.load() == kept == following.messages
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def nested_agent(levels: int, how: str) -> Agent:
    """Return an agent whose tool asks the agent itself, so many levels deep."""
    holder: dict[str, Agent] = {}

    @tool
    async def again(level: int) -> str:
        """Ask the same agent again."""
        if how == "stream":
            events: list[Any] = [event async for event in holder["agent"].stream(str(level))]
            return check_event_order(events)[-1].text
        if how == "session":
            return (await holder["agent"].session(f"s{level}").send(str(level))).text
        return (await holder["agent"].send(str(level))).text

    @tool
    def blocking_again(level: int) -> str:
        """Ask the same agent again, from a thread."""
        return holder["agent"].send_sync(str(level)).text

    def turn(request: Any) -> Any:
        last = request.messages[-1]
        if last.role == "tool":
            return f"{last.content}."
        level = int(last.content)
        name = "blocking_again" if how == "blocking" else "again"
        return "bottom" if level == levels else call(name, level=level + 1)

    model = mock_model([turn], on_exhausted="repeat-last")
    holder["agent"] = create_agent(provider=model, tools=[again, blocking_again])
    return holder["agent"]


@pytest.mark.parametrize("how", ["send", "stream", "session", "blocking"])
async def test_an_agent_may_ask_itself_many_levels_deep(how):
    agent = nested_agent(25, how)
    played = await play(agent.stream("0"))
    assert played.ended.text == "bottom" + "." * 25
    assert types(played.events).count("run.start") == 1
    assert len(told(played.ended)) == 1


async def test_a_turn_that_ends_its_own_run_from_the_inside_is_an_aborted_one():
    runs: list[Any] = []

    @tool
    async def leave() -> str:
        """Close the run that this is a part of."""
        await runs[0].aclose()
        return "never"

    runs.append(create_agent(provider=mock_model([call("leave"), "never"]), tools=[leave]).stream("go"))
    played = await play(runs[0])
    assert played.ended.finish_reason == "aborted"


PRELUDE = """
import asyncio, os, subprocess, sys, threading
from lousho import PropagatingToolError, ToolContext, create_agent, tool
from lousho.testing import check_event_order, mock_model

def call(*names):
    return {"tool_calls": [{"name": name} for name in names]}
"""


def program(body: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own, which must end by itself."""
    return subprocess.run(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=40,
        check=False,
    )


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork here")
def test_a_tool_may_fork_and_start_programs():
    done = program(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads is forked

        @tool
        def fork() -> str:
            "Fork."
            child = os.fork()
            if child == 0:
                os._exit(7)
            return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        @tool
        async def start() -> str:
            "Start a program."
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "print('from a child')", stdout=asyncio.subprocess.PIPE
            )
            return (await child.communicate())[0].decode().strip()

        @tool
        def run() -> str:
            "Run a program."
            return subprocess.run([sys.executable, "-c", "print('again')"], capture_output=True, text=True).stdout.strip()

        agent = create_agent(provider=mock_model([call("fork", "start", "run"), "Done."] * 3), tools=[fork, start, run])
        for result in (agent.send_sync("go"), agent.send_sync("go"), asyncio.run(agent.send("go"))):
            print([message.content for message in result.messages[2:]])
        """
    )
    assert done.stdout.splitlines() == ["['7', 'from a child', 'again', 'Done.']"] * 3, done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_tool_prints_is_printed_and_a_run_prints_nothing():
    done = program(
        """
        @tool
        def loud() -> str:
            "Print."
            print("from the tool")
            print("to stderr", file=sys.stderr)
            return "quiet"

        agent = create_agent(provider=mock_model([call("loud", "ghost"), "Done."] * 2), tools=[loud])
        agent.send_sync("go")
        list(agent.stream_sync("go"))
        """
    )
    assert (done.stdout, done.stderr, done.returncode) == ("from the tool\n" * 2, "to stderr\n" * 2, 0)


def test_a_thread_of_a_tool_that_outlives_the_run_may_look_at_its_context():
    go_on, seen = threading.Event(), []

    def later(context: ToolContext) -> None:
        go_on.wait(WAIT)
        seen.append((context.tool_call_id, context.abort_signal.aborted, [one.role for one in context.messages]))

    threads: list[threading.Thread] = []

    @tool
    def spawn(ctx: ToolContext) -> str:
        """Start a thread."""
        threads.append(threading.Thread(target=later, args=(ctx,)))
        threads[-1].start()
        return "started"

    agent = create_agent(provider=mock_model([call("spawn"), "Done."]), tools=[spawn])
    assert agent.session("s").send_sync("go").text == "Done."
    del agent
    gc.collect()
    go_on.set()
    threads[0].join(WAIT)
    assert seen == [("call_1", False, ["user"])]


@pytest.mark.parametrize("kind", ["async def", "def", "generator"])
@pytest.mark.parametrize("error", ["GeneratorExit", "Exit"])
def test_an_exit_raised_in_a_tool_reaches_the_caller_and_the_next_call_works(kind, error):
    body = "yield 1" if kind == "generator" else "pass"
    done = program(
        f"""
        class Exit(BaseException):
            pass

        @tool
        {"async def" if kind == "generator" else kind} leave():
            "Leave."
            {body}
            raise {error}("now")

        events = []
        agent = create_agent(provider=mock_model([call("leave"), "Still here."]), tools=[leave], on_event=events.append)
        try:
            print(agent.send_sync("go").text)
        except BaseException as raised:
            print(type(raised).__name__)
        check_event_order(events)
        print(events[-1].type, events[-1].finish_reason)
        print(agent.send_sync("again").text)
        """
    )
    assert done.stdout.splitlines() == [error, "run.done error", "Still here."], done.stderr
    assert done.returncode == 0


async def test_two_hundred_async_calls_of_one_turn_run_side_by_side():
    together = asyncio.Barrier(200)

    @tool
    async def meet(number: int) -> int:
        """Wait for all the others."""
        await within(together.wait())
        return number

    model = mock_model([calls(*[("meet", {"number": number}) for number in range(200)]), "Done."])
    played = await play(create_agent(provider=model, tools=[meet]).stream("go"))
    assert told(played.ended) == list(range(200))


@pytest.mark.parametrize("limit", [1, 7, "unbounded"])
async def test_two_hundred_blocking_calls_of_one_turn_keep_their_order_and_the_limit(limit):
    lock, running, most = threading.Lock(), 0, 0

    @tool
    def work(number: int) -> int:
        """Count how many run."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            return number
        finally:
            with lock:
                running -= 1

    model = mock_model([calls(*[("work", {"number": number}) for number in range(200)]), "Done."])
    agent = create_agent(provider=model, tools=[work], tool_concurrency=limit)
    played = await play(agent.stream("go"))
    assert told(played.ended) == list(range(200))
    assert most <= (64 if limit == "unbounded" else limit)
    if limit == 1:
        starts = [event.type for event in of_type(played.events, "tool.start", "tool.done")]
        assert starts == ["tool.start", "tool.done"] * 200


async def test_two_hundred_calls_that_wait_for_a_person_are_decided_in_any_order():
    ran: list[int] = []

    @tool(needs_approval=True)
    async def gated(number: int) -> int:
        """Act."""
        ran.append(number)
        return number

    model = mock_model([calls(*[("gated", {"number": number}) for number in range(200)]), "Done."])
    agent = create_agent(provider=model, tools=[gated])
    result = await agent.send("go")
    ids = list(result.approval_ids)
    assert len(set(ids)) == 200
    for index in reversed(range(200)):
        result = await within(agent.approvals.resolve(id=ids[index], approved=index % 2 == 0))
    assert result.text == "Done."
    assert ran == list(range(0, 200, 2))
    assert [one if isinstance(one, int) else one["kind"] for one in told(result)] == [
        number if number % 2 == 0 else "rejected" for number in range(200)
    ]


@pytest.mark.parametrize("kind", ["async def", "def", "generator"])
def test_an_interrupt_raised_in_a_tool_ends_an_event_loop_with_a_whole_stream(kind):
    done = program(
        f"""
        @tool
        {"async def" if kind == "generator" else kind} leave():
            "Leave."
            {"yield 1" if kind == "generator" else "pass"}
            raise KeyboardInterrupt("now")

        events = []
        agent = create_agent(provider=mock_model([call("leave"), "Still here."]), tools=[leave], on_event=events.append)
        try:
            print(asyncio.run(agent.send("go")).text)
        except KeyboardInterrupt:
            print("interrupted")
        check_event_order(events)
        print(asyncio.run(agent.send("again")).text)
        """
    )
    assert (done.stdout.splitlines(), done.returncode) == (["interrupted", "Still here."], 0), done.stderr
