"""Blocking calls and streams that are interrupted, dropped, used in the wrong place or left when the program ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
from hostile import within
from runs import WAIT, call

from lousho import SDKError, create_agent, tool
from lousho.testing import mock_model

PRELUDE = """
import asyncio, sys, threading
from lousho import create_agent, tool
from lousho.testing import mock_model

def call(name):
    return {"tool_calls": [{"name": name}]}
"""


def program(body: str, *, interrupt_at: str | None = None) -> tuple[str, str, int]:
    """Run a program; returns what it printed, its errors and its exit code. Interrupts it when it prints a line."""
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        timer = threading.Timer(30, process.kill)
        timer.start()
        try:
            shown = ""
            assert process.stdout is not None
            assert process.stderr is not None
            while interrupt_at is not None and (line := process.stdout.readline()):
                shown += line
                if line.strip() == interrupt_at:
                    os.kill(process.pid, signal.SIGINT)
                    break
            shown += process.stdout.read()
            errors = process.stderr.read()
            return shown, errors, process.wait()
        finally:
            timer.cancel()


def test_a_program_ends_at_once_with_a_stream_half_read_and_a_tool_that_hangs():
    shown, errors, code = program(
        """
        @tool
        def hang() -> str:
            "Never end."
            threading.Event().wait()

        agent = create_agent(provider=mock_model([call("hang")]), tools=[hang])
        stream = agent.stream_sync("go")
        other = agent.session("s").stream_sync("go")
        print(next(stream).type, next(other).type)
        """
    )
    assert (shown.split(), errors, code) == (["run.start", "run.start"], "", 0)


def test_ctrl_c_in_a_blocking_call_waits_until_the_turn_is_saved():
    shown, errors, code = program(
        """
        @tool
        async def slow() -> str:
            "Take long."
            print("began", flush=True)
            try:
                await asyncio.sleep(60)
            finally:
                print("cleaned up", flush=True)

        agent = create_agent(provider=mock_model([call("slow"), "Next."]), tools=[slow])
        try:
            agent.session("s").send_sync("go")
        except KeyboardInterrupt:
            print("interrupted", [message.role for message in agent.session("s").messages])
        print(agent.session("s").send_sync("next").text)
        """,
        interrupt_at="began",
    )
    lines = shown.splitlines()
    lines.remove("cleaned up")  # the tool is told to stop; whether it is quicker than the run is its own business
    assert lines == ["began", "interrupted ['user', 'assistant', 'tool']", "Next."]
    assert (errors, code) == ("", 0)


def test_ctrl_c_in_a_blocking_stream_stops_the_run_and_waits_for_it():
    shown, errors, code = program(
        """
        @tool
        async def slow() -> str:
            "Take long."
            print("began", flush=True)
            await asyncio.sleep(60)

        agent = create_agent(provider=mock_model([call("slow"), "Next."]), tools=[slow])
        try:
            for event in agent.session("s").stream_sync("go"):
                pass
        except KeyboardInterrupt:
            print("interrupted", [message.role for message in agent.session("s").messages])
        print(agent.session("s").send_sync("next").text)
        """,
        interrupt_at="began",
    )
    assert shown.splitlines() == ["began", "interrupted ['user', 'assistant', 'tool']", "Next."]
    assert (errors, code) == ("", 0)


def test_ctrl_c_in_asyncio_run_saves_the_turn():
    shown, _, code = program(
        """
        @tool
        async def slow() -> str:
            "Take long."
            print("began", flush=True)
            await asyncio.sleep(60)

        agent = create_agent(provider=mock_model([call("slow")]), tools=[slow])
        try:
            asyncio.run(agent.session("s").send("go"))
        except KeyboardInterrupt:
            print("interrupted", [message.role for message in agent.session("s").messages])
        """,
        interrupt_at="began",
    )
    assert (shown.splitlines()[1:], code) == (["interrupted ['user', 'assistant', 'tool']"], 0)


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_tool_that_calls_sys_exit_neither_ends_the_program_nor_the_run(kind):
    shown, errors, code = program(
        f"""
        @tool
        {kind} leave() -> str:
            "Exit."
            sys.exit(3)

        agent = create_agent(provider=mock_model([call("leave"), "Still here."] * 2), tools=[leave])
        print(agent.send_sync("go").text)
        print(asyncio.run(agent.send("go")).text)
        """
    )
    assert (shown.splitlines(), errors, code) == (["Still here."] * 2, "", 0)


def test_a_provider_that_calls_sys_exit_ends_the_program_with_its_code():
    shown, _, code = program(
        """
        def leave(request):
            sys.exit(3)

        agent = create_agent(provider=mock_model([leave]), on_event=lambda event: print(event.type))
        asyncio.run(agent.send("go"))
        """
    )
    assert (shown.splitlines(), code) == (["run.start", "step.start", "step.done", "error", "run.done"], 3)


def hanging() -> tuple[Any, threading.Event, threading.Event]:
    """Return an agent whose tool waits, and events that say that the tool began and that it was stopped."""
    began, stopped = threading.Event(), threading.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return "never"

    return create_agent(provider=mock_model([call("wait")] * 3), tools=[wait]), began, stopped


@pytest.mark.parametrize("how", ["close", "with", "drop", "generator"])
def test_a_blocking_stream_that_is_left_stops_its_run(how):
    agent, began, stopped = hanging()
    stream = agent.stream_sync("go")
    if how == "with":
        with stream:
            assert [next(stream).type for _ in range(3)][-1] == "tool.start"
            assert began.wait(WAIT)
    elif how == "generator":

        def first_three() -> Any:
            for number, event in enumerate(stream, start=1):
                yield event
                if number == 3:
                    assert began.wait(WAIT)
                    return

        assert len(list(first_three())) == 3
        del stream
        gc.collect()
    else:
        assert [next(stream).type for _ in range(3)][-1] == "tool.start"
        assert began.wait(WAIT)
        if how == "close":
            stream.close()
            stream.close()
            assert list(stream) == []
        else:
            del stream
            gc.collect()
    assert stopped.wait(WAIT)


def test_a_blocking_stream_that_fails_raises_once_and_is_over():
    stream = create_agent(provider=mock_model([{"error": OSError("down")}])).stream_sync("go")
    with pytest.raises(SDKError):
        list(stream)
    assert list(stream) == []
    stream.close()


def test_a_stream_outside_of_an_event_loop_says_what_to_use_instead():
    agent = create_agent(provider=mock_model(["x"]))
    for start in (
        lambda: agent.stream("go"),
        lambda: agent.session("s").stream("go"),
        lambda: agent.approvals.stream_resolve(id="ap-1.1", approved=True),
    ):
        with pytest.raises(SDKError) as caught:
            start()
        assert caught.value.code == "LOUSHO_CONFIG_INVALID"
        assert "stream_sync" in caught.value.detail


async def test_a_run_that_nobody_holds_goes_on():
    ended: list[str] = []

    @tool
    async def lonely() -> str:
        """Wait on something that nothing else refers to."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("collected")
        return "never"

    before = asyncio.all_tasks()
    create_agent(provider=mock_model([call("lonely")]), tools=[lonely]).stream("go")
    for _ in range(20):
        await asyncio.sleep(0)
    for _ in range(3):
        gc.collect()
    assert ended == []
    for task in asyncio.all_tasks() - before:
        task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    assert ended == ["collected"]
    assert asyncio.all_tasks() == before


def test_aborting_and_dropping_runs_of_a_closed_event_loop_does_no_harm():
    agent, began, _ = hanging()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # which is told that its tasks were dropped

    async def start() -> Any:
        run = agent.stream("go")
        reader = aiter(run)
        for _ in range(3):
            await anext(reader)
        while not began.is_set():
            await asyncio.sleep(0)
        return run, reader

    run, reader = loop.run_until_complete(start())
    loop.close()
    run.abort("too late")
    del run, reader
    gc.collect()
    assert create_agent(provider=mock_model(["Fine."])).send_sync("go").text == "Fine."


async def test_a_blocking_call_inside_of_an_event_loop_works_on_a_loop_of_its_own():
    agent = create_agent(provider=mock_model(["One.", "Two."]))
    assert agent.send_sync("go").text == "One."
    assert [event.type for event in agent.stream_sync("go")][-1] == "run.done"
    assert (await within(create_agent(provider=mock_model(["Three."])).send("go"))).text == "Three."


def test_blocking_calls_from_many_threads_at_once_do_not_mix():
    agents = [create_agent(provider=mock_model([f"{number}"] * 5), on_event=lambda _: None) for number in range(16)]
    answers: dict[int, list[str]] = {}

    def work(number: int) -> None:
        answers[number] = [agents[number].send_sync("go").text for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 2)
    assert answers == {number: [str(number)] * 5 for number in range(16)}
