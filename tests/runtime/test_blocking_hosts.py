"""The blocking calls in difficult places: forked processes, programs that are ending, threads with loops, Ctrl-C."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from programs import FORKED, QUIET, run_program
from runs import WAIT, call
from sizes import sized

from lousho import Agent, create_agent, tool
from lousho.testing import check_event_order, mock_model

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    await asyncio.sleep(0)
    return a + b


@tool
def subtract(a: int, b: int) -> int:
    """Subtract."""
    return a - b


@tool(needs_approval=True)
async def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


def use_all(agent: Agent, name: str) -> list[Any]:
    """Ask an agent that echoes in every blocking way there is; returns the answers."""
    run: list[Any] = list(agent.stream_sync(f"{name} stream"))
    check_event_order(run)
    session = agent.session(name)
    first = session.send_sync(f"{name} first")
    second: list[Any] = list(session.stream_sync(f"{name} second"))
    check_event_order(second)
    paused = session.send_sync(f"wipe {name}")
    waiting = [item for item in agent.approvals.list_sync() if item.session_id == name]
    assert [item.id for item in waiting] == paused.approval_ids
    decided = agent.approvals.resolve_sync(id=waiting[0].id, approved=True)
    return [
        agent.send_sync(f"{name} plain").text,
        run[-1].text,
        first.text,
        second[-1].text,
        decided.text,
        [str(one.content) for one in session.messages if one.role == "user"],
        session.clear_sync(),
    ]


def answers(name: str) -> list[Any]:
    """Return what `use_all()` gives when nothing went wrong."""
    asked = [f"{name} first", f"{name} second", f"wipe {name}"]
    return [
        f"re {name} plain: 3 -1",
        f"re {name} stream: 3 -1",
        f"re {name} first: 3 -1",
        f"re {name} second: 3 -1",
        f"re wipe {name}: wiped {name}",
        asked,
        14,
    ]


def echo_agent() -> Agent:
    """Return an agent that calls both calculators, or the gated tool, and then says what it was asked and told."""

    def turn(request: Any) -> Any:
        last = request.messages[-1]
        if last.role == "user" and str(last.content).startswith("wipe "):
            return call("wipe", disk=str(last.content).removeprefix("wipe "))
        if last.role == "user":
            return {"tool_calls": [{"name": name, "args": {"a": 1, "b": 2}} for name in ("add", "subtract")]}
        asked = [str(one.content) for one in request.messages if one.role == "user"][-1]
        back = [index for index, one in enumerate(request.messages) if one.role == "user"][-1]
        told = " ".join(str(one.content) for one in request.messages[back:] if one.role == "tool")
        return f"re {asked}: {told}"

    model = mock_model([turn], on_exhausted="repeat-last")
    return create_agent(provider=model, tools=[add, subtract, wipe])


def test_one_agent_is_used_in_every_blocking_way_from_many_threads_at_once():
    agent = echo_agent()
    rounds = sized(3, 100)
    together = threading.Barrier(12)

    def work(number: int) -> list[Any]:
        together.wait(WAIT)
        return [use_all(agent, f"t{number}-{turn}") for turn in range(rounds)]

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(work, range(12), timeout=WAIT * sized(6, 60)))
    assert found == [[answers(f"t{number}-{turn}") for turn in range(rounds)] for number in range(12)]


def test_threads_with_event_loops_of_their_own_block_them_and_go_on():
    agent = echo_agent()
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        async def inside() -> None:
            ticking = asyncio.ensure_future(asyncio.sleep(0))
            first = use_all(agent, f"a{number}")
            await ticking
            awaited = (await agent.send(f"a{number} plain")).text
            found[number] = [first, awaited, use_all(agent, f"b{number}")]

        asyncio.run(inside())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 4)
    assert found == {
        number: [answers(f"a{number}"), f"re a{number} plain: 3 -1", answers(f"b{number}")] for number in range(6)
    }


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@pytest.mark.parametrize("how", ["send", "stream", "session", "decision"])
def test_tools_see_the_context_variables_of_whoever_asked(how):
    @tool
    async def look() -> str:
        """Look."""
        return VARIABLE.get()

    @tool
    def look_in_a_thread() -> str:
        """Look."""
        return VARIABLE.get()

    gate = create_agent(
        provider=mock_model([{"tool_calls": [{"name": "look"}, {"name": "look_in_a_thread"}]}, "Done."] * 2),
        tools=[look, look_in_a_thread],
        permissions=[{"tool": "*", "action": "ask"}] if how == "decision" else None,
    )

    def ask() -> list[Any]:
        if how == "stream":
            events: list[Any] = list(gate.stream_sync("go"))
            return [event.result for event in events if event.type == "tool.done"]
        if how == "decision":
            paused = gate.send_sync("go")
            for approval_id in paused.approval_ids:
                paused = gate.approvals.resolve_sync(id=approval_id, approved=True)
            return [one.content for one in paused.messages if one.role == "tool"]
        result = gate.session("s").send_sync("go") if how == "session" else gate.send_sync("go")
        return [one.content for one in result.messages if one.role == "tool"]

    VARIABLE.set("somebody else's")

    def within(value: str) -> list[Any]:
        VARIABLE.set(value)
        return ask()

    assert contextvars.copy_context().run(within, "mine") == ["mine", "mine"]
    assert VARIABLE.get() == "somebody else's"


@needs_fork
@pytest.mark.parametrize("before", [True, False], ids=["used before", "fresh"])
def test_a_forked_child_uses_them_and_so_does_its_own_child_and_the_parent_goes_on(before):
    ended = run_program(
        FORKED
        + f"""
if {before}:
    use("before")

def fork(name, inside=lambda: None):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            use(name)
            inside()
            code = 0
        finally:
            os._exit(code)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

fork("child", lambda: fork("grandchild"))
thread = threading.Thread(target=fork, args=("thread-child",))
thread.start()
thread.join()
print(use("parent"))
""",
        options=QUIET,
    )
    assert ended.lines == ["grandchild 0", "child 0", "thread-child 0", "parent"], ended.errors
    assert (ended.errors, ended.code) == ("", 0)


@needs_fork
def test_an_event_loop_that_is_forked_leaves_the_child_a_working_one():
    ended = run_program(
        FORKED
        + """
async def main():
    await agent.send("go")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert agent.send_sync("go").text == "Done."
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, (await agent.send("go")).text

print(asyncio.run(main()))
""",
        options=QUIET,
    )
    assert (ended.lines, ended.code) == (["(0, 'Done.')"], 0), ended.errors


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_workers_of_a_process_pool_use_them(tmp_path, method):
    import multiprocessing
    import subprocess
    import sys

    from programs import PRELUDE

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    script = tmp_path / "pool.py"
    script.write_text(
        f"{PRELUDE}\n{FORKED}\nimport multiprocessing\n"
        'if __name__ == "__main__":\n'
        '    use("parent")\n'
        f'    with multiprocessing.get_context("{method}").Pool(2) as pool:\n'
        "        print(pool.map(use, [str(number) for number in range(6)]))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, *QUIET, str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == (str([str(number) for number in range(6)]), 0), done.stderr


@pytest.mark.parametrize("tools", ["async", "blocking"])
def test_a_program_that_is_ending_may_still_ask(tools):
    ended = run_program(
        f"""
        import atexit

        @tool
        {"async def" if tools == "async" else "def"} note() -> str:
            "Note."
            return "noted"

        agent = create_agent(provider=mock_model([call("note"), "Bye."], on_exhausted="repeat-last"), tools=[note])

        def bye():
            print(shown(agent.send_sync("bye"))[-1], flush=True)
            print(list(agent.stream_sync("bye"))[-1].text, flush=True)

        atexit.register(bye)
        print(agent.send_sync("hello").text)
        """
    )
    assert (ended.lines, ended.errors, ended.code) == (["Bye."] * 3, "", 0)


def test_a_program_that_asks_for_the_first_time_when_it_is_ending_ends():
    ended = run_program(
        """
        import atexit

        agent = create_agent(provider=mock_model(["Bye."]))

        def bye():
            try:
                print(agent.send_sync("bye").text)
            except RuntimeError:  # from Python 3.12 on, no thread can begin any more
                print("Bye.")

        atexit.register(bye)
        """
    )
    assert (ended.lines, ended.code) == (["Bye."], 0)
    assert "Traceback" not in ended.errors


def test_a_program_ends_while_threads_of_it_are_in_the_middle_of_blocking_calls():
    ended = run_program(
        """
        @tool
        async def hang() -> str:
            "Hang."
            ready.release()
            await asyncio.Event().wait()

        @tool
        def hang_in_a_thread() -> str:
            "Hang."
            ready.release()
            threading.Event().wait()

        ready = threading.Semaphore(0)
        agent = create_agent(
            provider=mock_model([call("hang"), call("hang_in_a_thread")] * 2), tools=[hang, hang_in_a_thread]
        )
        for _ in range(2):
            threading.Thread(target=agent.send_sync, args=("go",), daemon=True).start()
            threading.Thread(target=lambda: list(agent.stream_sync("go")), daemon=True).start()
        for _ in range(4):
            ready.acquire(timeout=10)
        print("ready")
        """
    )
    assert (ended.lines, ended.errors, ended.code) == (["ready"], "", 0)


INTERRUPTED = """
@tool(needs_approval=os.environ["HOW"] == "resolve_sync")
async def slow() -> str:
    "Take long, and clean up."
    print("began", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up", flush=True)

agent = create_agent(provider=mock_model([call("slow"), "never"]), tools=[slow])
session = agent.session("s")
how = os.environ["HOW"]
if how == "send_sync":
    agent.send_sync("go")
elif how == "stream_sync":
    list(agent.stream_sync("go"))
elif how == "session.send_sync":
    session.send_sync("go")
elif how == "session.stream_sync":
    list(session.stream_sync("go"))
else:
    paused = agent.send_sync("go")
    agent.approvals.resolve_sync(id=paused.approval_id, approved=True)
"""
CALLS = ["send_sync", "stream_sync", "session.send_sync", "session.stream_sync", "resolve_sync"]


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a POSIX signal")
@pytest.mark.parametrize("how", CALLS)
def test_ctrl_c_ends_a_blocking_call_at_once_and_its_tool_cleans_up(how):
    ended = run_program(INTERRUPTED, interrupt_at="began", env={"HOW": how})
    assert ended.lines == ["began", "cleaned up"]
    assert ended.code == -signal.SIGINT
    assert ended.errors.splitlines()[-1] == "KeyboardInterrupt"
    assert "never retrieved" not in ended.errors
    assert ended.seconds_after_interrupt < WAIT


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a POSIX signal")
@pytest.mark.parametrize("interrupts", [1, 5])
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_ctrl_c_does_not_wait_for_a_tool_that_does_not_listen(kind, interrupts):
    wait = "threading.Event().wait()" if kind == "def" else "await forever()"
    ended = run_program(
        f"""
        async def forever():
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass

        @tool
        {kind} deaf() -> str:
            "Do not listen."
            os.write(1, b"began\\n")  # Python does not survive an end while print() holds the lock of stdout
            {wait}

        agent = create_agent(provider=mock_model([call("deaf"), "Next."]), tools=[deaf])
        agent.send_sync("go")
        """,
        interrupt_at="began",
        interrupts=interrupts,
    )
    assert ended.lines == ["began"]
    assert ended.code == -signal.SIGINT
    assert ended.seconds_after_interrupt < WAIT


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a POSIX signal")
def test_ctrl_c_while_a_stream_is_read_elsewhere_stops_only_what_is_waited_for():
    ended = run_program(
        """
        @tool
        async def slow() -> str:
            "Take long."
            print("began", flush=True)
            await asyncio.Event().wait()

        release = threading.Event()

        @tool
        def other() -> str:
            "Wait for the end of the first."
            assert release.wait(10)
            return "ok"

        first = create_agent(provider=mock_model([call("slow"), "never"]), tools=[slow])
        second = create_agent(provider=mock_model([call("other"), "Done."]), tools=[other])
        texts = []
        thread = threading.Thread(target=lambda: texts.append(second.send_sync("go").text))
        thread.start()
        try:
            first.send_sync("go")
        except KeyboardInterrupt:
            print("interrupted")
        release.set()
        thread.join()
        print(texts)
        """,
        interrupt_at="began",
    )
    assert (ended.lines, ended.errors, ended.code) == (["began", "interrupted", "['Done.']"], "", 0)
