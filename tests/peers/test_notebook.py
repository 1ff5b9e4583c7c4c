"""Agents in a notebook's kernel, in IPython and on uvloop: awaited and blocking, interrupted, and left in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from peer_servers import PEERS
from programs import PRELUDE

NOTEBOOK = PEERS / "notebook"
DRIVER = Path(__file__).parent / "notebook_driver.py"
SECONDS = 5.0
"""The longest that anything takes that should happen at once."""

PRELUDE_OF_CELLS = f"""{PRELUDE}
@tool
async def add(a: int, b: int) -> int:
    "Add."
    print("adding")
    return a + b

@tool
def subtract(a: int, b: int) -> int:
    "Subtract, in a thread."
    return a - b

@tool(needs_approval=True)
def wipe(a: int, b: int) -> str:
    "Wipe a disk."
    return "wiped"

@tool
async def slow() -> str:
    "Take long."
    print("began", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up", flush=True)

def answer(request):
    last = request.messages[-1]
    if last.role == "tool":
        return f"re {{last.content}}"
    return call(*last.content.split(), **({{}} if last.content == "slow" else {{"a": 1, "b": 2}}))

async def tick():
    while True:
        await asyncio.sleep(0.05)

agent = create_agent(provider=mock_model([answer], on_exhausted="repeat-last"), tools=[add, subtract, wipe, slow])
session = agent.session("s")
"""


@pytest.fixture(scope="session", autouse=True)
def notebook_packages() -> None:
    """Stop every test of this file when the packages are missing: a skip, and a failure in CI."""
    if not (NOTEBOOK / "ipykernel").is_dir():
        reason = "ipykernel is not installed: run make test-peers, which puts it into .peers"
        if os.environ.get("LOUSHO_TEST_CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def environment() -> dict[str, str]:
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(NOTEBOOK))))
    return {**os.environ, "PYTHONPATH": paths, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def python(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(),
        timeout=55,
        check=False,
    )


def run_cells(*cells: str | tuple[str, str]) -> list[dict[str, Any]]:
    """Run cells in one kernel; a pair is a cell and the line at which it is interrupted. Returns what each cell gave."""
    asked = [{"code": PRELUDE_OF_CELLS}]
    for cell in cells:
        code, moment = cell if isinstance(cell, tuple) else (cell, None)
        asked.append({"code": textwrap.dedent(code), **({"interrupt_at": moment} if moment else {})})
    done = python(str(DRIVER), given=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["cells"][0]["error"] is None, found
    assert found["shutdown"] < SECONDS
    return found["cells"][1:]


@pytest.mark.spec("BEY-38")
def test_cells_block_and_await_in_turn_and_share_agents_and_sessions():
    cells = run_cells(
        'agent.send_sync("add").text',
        '(await agent.send("add")).text',
        'agent.send_sync("subtract").text',
        'session.send_sync("add").text',
        '(await session.send("subtract")).text',
        '[event.type for event in session.stream_sync("add")][-1]',
        """
        async with session.stream("subtract") as run:
            async for event in run:
                pass
        (await run.result).text
        """,
        "[message.role for message in session.messages].count('user')",
        """
        paused = agent.send_sync("wipe")
        agent.approvals.resolve_sync(id=paused.approval_id, approved=True).text
        """,
        """
        paused = await agent.send("wipe")
        (await agent.approvals.resolve(id=paused.approval_id, approved=True)).text
        """,
        'asyncio.create_task(agent.send("subtract")); None',
        'agent.send_sync("subtract").text',
    )
    assert [cell["error"] for cell in cells] == [None] * len(cells)
    assert [cell["result"] for cell in cells] == [
        "'re 3'",
        "'re 3'",
        "'re -1'",
        "'re 3'",
        "'re -1'",
        "'run.done'",
        "'re -1'",
        "4",
        "'re wiped'",
        "'re wiped'",
        None,
        "'re -1'",
    ]


def test_what_a_tool_prints_stands_below_the_cell_that_asked():
    cells = run_cells('agent.send_sync("add"); None', '(await agent.send("add")); None', 'print("after")')
    assert [cell["out"] for cell in cells] == ["adding\n", "adding\n", "after\n"]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param('agent.send_sync("slow")', id="send_sync"),
        pytest.param('list(agent.stream_sync("slow"))', id="stream_sync"),
        pytest.param('session.send_sync("slow")', id="session.send_sync"),
        pytest.param('await agent.send("slow")', id="send"),
        pytest.param(
            """
            async with session.stream("slow") as run:
                async for event in run:
                    pass
            """,
            id="session.stream",
        ),
    ],
)
def test_the_stop_button_ends_the_run_and_the_next_cell_works(code):
    _, stopped, blocking, awaiting = run_cells(
        "ticking = asyncio.create_task(tick())",  # a kernel hears the button only when its event loop wakes up
        (code, "began"),
        'session.send_sync("add").text',
        '(await agent.send("add")).text',
    )
    assert stopped["error"] in ("KeyboardInterrupt", "CancelledError")
    assert stopped["seconds"] < SECONDS
    assert (blocking["error"], blocking["result"]) == (None, "'re 3'")
    assert (awaiting["error"], awaiting["result"]) == (None, "'re 3'")


def test_a_kernel_shuts_down_at_once_in_the_middle_of_runs():
    cells = run_cells(
        """
        @tool
        def hang() -> str:
            "Never end."
            threading.Event().wait()

        hanging = create_agent(provider=mock_model([call("hang")]), tools=[hang])
        threading.Thread(target=hanging.send_sync, args=("go",), daemon=True).start()
        stream = agent.stream_sync("slow")
        run = agent.stream("slow")
        next(stream).type
        """
    )
    assert (cells[0]["error"], cells[0]["result"]) == (None, "'run.start'")


def test_ipython_awaits_and_blocks():
    body = f"""{PRELUDE_OF_CELLS}
print("blocked", agent.send_sync("add").text)
result = await agent.send("add")
print("awaited", result.text)
async for event in session.stream("subtract"):
    pass
print(event.type, session.send_sync("add").text)
"""
    done = python("-m", "IPython", "--no-banner", "--colors=NoColor", "-c", body)
    lines = [line for line in done.stdout.splitlines() if line != "adding"]
    assert lines == ["blocked re 3", "awaited re 3", "run.done re 3"], done.stdout + done.stderr
    assert done.returncode == 0


def test_a_contract_is_kept_on_another_event_loop():
    done = python(
        "-X",
        "dev",
        "-c",
        """
import random, uvloop
from run_model import KINDS, Call, Script, Turn, predict, told_by_id
from run_world import STYLES, WAYS, play

def script(chance):
    kinds = [kind for kind in KINDS if kind != "halts"]
    turns = [
        Turn("text", tuple(Call(chance.choice(kinds), chance.randrange(3), chance.random() < 0.5) for _ in range(4)), "tool_calls")
        for _ in range(chance.randrange(3))
    ]
    return Script((*turns, Turn("The end.")), 50, chance.choice([1, 2, "unbounded"]), chance.randrange(2), chance.randrange(5))

async def main():
    for number in range(60):
        chance = random.Random(number)
        one = script(chance)
        expected = predict(one)
        outcome = await play(one, WAYS[number % len(WAYS)], STYLES[number % len(STYLES)])
        assert told_by_id(outcome.ended.messages) == expected.told
        assert (outcome.ended.text, outcome.ended.finish_reason, outcome.ended.steps) == ("The end.", "stop", expected.steps)
        stopped = await play(one, WAYS[number % len(WAYS)], stop_at=1 + number % 20)
        assert stopped.ended.finish_reason in ("aborted", "stop")

uvloop.run(main())
print("kept")
""",
    )
    assert (done.stdout, done.returncode) == ("kept\n", 0), done.stderr


def test_blocking_calls_work_beside_another_event_loop():
    done = python(
        "-c",
        f"""{PRELUDE_OF_CELLS}
import uvloop

async def main():
    print(agent.send_sync("add").text, list(session.stream_sync("subtract"))[-1].text)
    print((await agent.send("add")).text, (await asyncio.to_thread(agent.send_sync, "subtract")).text)
    aborted = await agent.send("slow", signal=CancelSignal.timeout(50))
    print(aborted.finish_reason, aborted.abort_reason["name"])
    try:
        await asyncio.wait_for(agent.send("slow"), 0.05)
    except TimeoutError:
        print("cancelled")

uvloop.run(main())
print(agent.send_sync("add").text)
""",
    )
    lines = [line for line in done.stdout.splitlines() if line not in ("adding", "began", "cleaned up")]
    assert lines == ["re 3 re -1", "re 3 re -1", "aborted TimeoutError", "cancelled", "re 3"], done.stderr
    assert done.returncode == 0
