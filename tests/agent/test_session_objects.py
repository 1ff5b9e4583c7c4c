"""The session objects of an agent: one per id while anybody holds it, none kept for ever, their turns in order."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

from runs import WAIT

from lousho import Agent, create_agent
from lousho.testing import mock_model


def library(turn: Any) -> Agent:
    return create_agent(provider=mock_model([turn], on_exhausted="repeat-last"))


async def test_sessions_that_nobody_holds_are_let_go_and_their_words_stay():
    agent = library("Hello!")
    for number in range(50):
        await agent.session(f"s-{number}").send("Hi")
    first = agent.session("s-0")
    assert [message.content for message in first.messages] == ["Hi", "Hello!"]
    assert agent.session("s-0") is first
    gone = weakref.ref(agent.session("s-1"))
    gc.collect()
    assert gone() is None
    assert [message.content for message in agent.session("s-1").messages] == ["Hi", "Hello!"]


async def test_turns_of_two_holders_still_take_turns_when_neither_keeps_the_session():
    inside, most = 0, 0

    async def answer(_: Any) -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(3):
            await asyncio.sleep(0)
        inside -= 1
        return "Hello!"

    agent = library(answer)
    runs = [agent.session("s").send(str(number)) for number in range(10)]
    streams = [agent.session("s").stream(str(number)) for number in range(10, 20)]
    gc.collect()
    await asyncio.wait_for(asyncio.gather(*runs, *(run.result for run in streams)), WAIT)
    asked = [message.content for message in agent.session("s").messages if message.role == "user"]
    assert most == 1
    assert sorted(map(str, asked), key=int) == [str(number) for number in range(20)]


def test_threads_that_ask_for_one_session_at_once_get_one():
    agent = library("Hello!")
    ready, got = threading.Barrier(8), list[Any]()

    def fetch() -> None:
        ready.wait(WAIT)
        got.append(agent.session("s"))

    threads = [threading.Thread(target=fetch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert len({id(session) for session in got}) == 1
