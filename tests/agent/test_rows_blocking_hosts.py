"""The blocking twins in every kind of program they are called from: the same results as the async calls, again and again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from runs import call

from lousho import create_agent, tool
from lousho.testing import check_event_order, mock_model

SCRIPT = [call("add", a=1, b=2), call("wipe", disk="sda"), "Wiped."]


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


@tool(needs_approval=True)
def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


def agent() -> Any:
    question = call("ask_question", question="Which?")
    script = [*SCRIPT, *SCRIPT, "Hello.", question, "That one.", question, "The other."]
    return create_agent(provider=mock_model(script), tools=[add, wipe], ask_question=True)


def shown(*results: Any) -> str:
    """Results as one text, without what differs from run to run."""
    moving = ("runId", "approvalId", "approvalIds")
    return json.dumps([{k: v for k, v in one.to_dict().items() if k not in moving} for one in results])


async def by_awaiting() -> str:
    one = agent()
    paused = await one.send("go")
    decided = await one.approvals.resolve(id=paused.approval_id, approved=True)
    session = one.session("s")
    waits = await session.send("go")
    events = [event.type async for event in one.approvals.stream_resolve(id=waits.approval_id, approved=True)]
    turn = [event.type async for event in session.stream("hello")]
    asked = [event.type async for event in one.stream("which?")]
    pending = await one.approvals.list()
    answered = await one.approvals.answer(id=pending[0].id, answer="that")
    cleared = await session.clear()
    again = await one.send("which?")
    last = [event.type async for event in one.approvals.stream_answer(id=again.approval_id, answer="other")]
    return json.dumps([shown(paused, decided, waits, answered, again), events, turn, asked, cleared, last])


def by_blocking() -> str:
    one = agent()
    paused = one.send_sync("go")
    decided = one.approvals.resolve_sync(id=paused.approval_id, approved=True)
    session = one.session("s")
    waits = session.send_sync("go")
    resolved = list(one.approvals.stream_resolve_sync(id=waits.approval_id, approved=True))
    check_event_order(resolved)
    turn = [event.type for event in session.stream_sync("hello")]
    asked = [event.type for event in one.stream_sync("which?")]
    pending = one.approvals.list_sync()
    answered = one.approvals.answer_sync(id=pending[0].id, answer="that")
    cleared = session.clear_sync()
    again = one.send_sync("which?")
    last = [event.type for event in one.approvals.stream_answer_sync(id=again.approval_id, answer="other")]
    events = [event.type for event in resolved]
    return json.dumps([shown(paused, decided, waits, answered, again), events, turn, asked, cleared, last])


def in_a_thread(work: Callable[[], str]) -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(timeout=30)
    return found[0]


def in_a_running_loop(work: Callable[[], str]) -> str:
    async def inside() -> str:
        return work()

    return asyncio.run(inside())


def in_a_thread_of_a_loop(work: Callable[[], str]) -> str:
    async def inside() -> str:
        return await asyncio.to_thread(work)

    return asyncio.run(inside())


def in_a_web_server(work: Callable[[], str]) -> str:
    """Once in an endpoint that is plain, which runs in a thread, and once in one that is async."""
    import httpx
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    def plain(request: Request) -> PlainTextResponse:
        return PlainTextResponse(work())

    async def coroutine(request: Request) -> PlainTextResponse:
        return PlainTextResponse(work())

    app = Starlette(routes=[Route("/plain", plain), Route("/async", coroutine)])

    async def ask() -> list[str]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return [(await client.get(path)).text for path in ("/plain", "/async")]

    first, second = asyncio.run(ask())
    assert first == second
    return first


HOSTS: dict[str, Callable[[Callable[[], str]], str]] = {
    "a plain program": lambda work: work(),
    "a thread": in_a_thread,
    "a running event loop": in_a_running_loop,
    "a thread of an event loop": in_a_thread_of_a_loop,
    "a web server": in_a_web_server,
}


@pytest.mark.spec("BEY-38")
@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
def test_the_blocking_twins_give_what_awaiting_gives_twice_in_a_row(host: Callable[[Callable[[], str]], str]):
    awaited = asyncio.run(by_awaiting())
    assert host(by_blocking) == awaited
    assert host(by_blocking) == awaited


@pytest.mark.spec("BEY-38")
async def test_they_work_in_an_async_test_too():
    assert by_blocking() == await by_awaiting()


PROGRAM = """
from lousho import create_agent, tool
from lousho.testing import mock_model

agent = create_agent(provider=mock_model(["One.", "Two.", "Three."]))
print(agent.send_sync("a").text)
print("".join(event.text for event in agent.stream_sync("b") if event.type == "text.delta"))

import asyncio
async def main():
    print((await agent.send("c")).text)
asyncio.run(main())
"""


@pytest.mark.spec("BEY-38")
def test_a_program_may_use_both_kinds_one_after_the_other_and_ends_by_itself():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["One.", "Two.", "Three."], "")
