"""Turns that are asked for from inside of turns: refused where they would wait for themselves, and never a deadlock."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hostile import play, within
from runs import ChunkProvider, call

from lousho import SDKError, create_agent, tool
from lousho.models.provider import ModelRequest
from lousho.testing import mock_model


def nesting(how: str, agents: dict[str, Any]) -> Any:
    """Return a tool that asks for a turn of the session it runs in."""

    def session() -> Any:
        return agents["agent"].session("s")

    @tool
    async def awaited() -> str:
        """Ask, and wait for it."""
        return (await session().send("inner")).text

    @tool
    async def streamed() -> str:
        """Ask for a stream, and read it."""
        return (await session().stream("inner").result).text

    @tool
    async def deep() -> str:
        """Ask in a task of a task."""

        async def ask() -> str:
            return (await asyncio.create_task(session().send("inner"))).text

        return await asyncio.create_task(ask())

    @tool
    def blocking() -> str:
        """Ask from a thread."""
        return session().send_sync("inner").text

    @tool
    def looped() -> str:
        """Ask from an event loop of its own."""
        return asyncio.run(session().send("inner")).text

    @tool
    async def cleared() -> str:
        """Clear the session."""
        return str(await session().clear())

    found = {"awaited": awaited, "streamed": streamed, "deep": deep, "blocking": blocking, "looped": looped}
    return {**found, "cleared": cleared}[how]


@pytest.mark.parametrize("how", ["awaited", "streamed", "deep", "blocking", "looped", "cleared"])
@pytest.mark.parametrize("outside", ["send", "stream", "send_sync"])
async def test_a_turn_asked_for_from_inside_a_turn_of_its_session_is_refused_and_never_hangs(how, outside):
    agents: dict[str, Any] = {}
    model = mock_model([call(how), "Outer."])
    agents["agent"] = agent = create_agent(provider=model, tools=[nesting(how, agents)])
    session = agent.session("s")
    if outside == "send":
        result = await within(session.send("outer"))
    elif outside == "stream":
        result = (await play(session.stream("outer"))).ended
    else:
        result = await within(asyncio.to_thread(session.send_sync, "outer"))
    assert result.text == "Outer."
    told = json.loads(str(result.messages[2].content))
    assert told["kind"] == "execution"
    if outside != "send_sync" or how != "blocking":
        assert "session 's'" in told["message"].lower()
    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "assistant"]


async def test_the_refusal_has_a_code_and_says_what_to_do():
    caught: list[SDKError] = []

    @tool
    async def nested() -> str:
        """Ask for a turn of the session it runs in."""
        try:
            return (await agent.session("s").send("inner")).text
        except SDKError as error:
            caught.append(error)
            raise

    agent = create_agent(provider=mock_model([call("nested"), "Outer."]), tools=[nested])
    await within(agent.session("s").send("outer"))
    assert caught[0].code == "LOUSHO_SESSION_BUSY"
    assert "after that turn has ended" in caught[0].detail


async def test_a_turn_of_another_session_or_no_session_may_run_inside_a_turn():
    @tool
    async def nested() -> str:
        """Ask elsewhere."""
        other = (await agent.session("other").send("inner")).text
        return other + (await agent.send("inner")).text

    agent = create_agent(provider=mock_model([call("nested"), "Other.", "Plain.", "Outer."]), tools=[nested])
    result = await within(agent.session("s").send("outer"))
    assert [message.content for message in result.messages] == ["outer", "", "Other.Plain.", "Outer."]


async def test_two_sessions_that_ask_each_other_at_the_same_time_do_not_wait_for_ever():
    inside = asyncio.Barrier(2)

    @tool
    async def ask(whom: str) -> str:
        """Ask the other session."""
        await within(inside.wait())
        return (await agent.session(whom).send("inner")).text

    class Script(ChunkProvider):
        def stream(self, request: ModelRequest) -> Any:
            last = request.messages[-1]
            whom = {"a": "b", "b": "a"}.get(str(last.content))
            model = mock_model([call("ask", whom=whom) if whom else f"re {last.content}"])
            return model.stream(request)

    agent = create_agent(provider=Script(), tools=[ask], on_event=lambda _: None)
    turns = [agent.session(name).send(name) for name in ("a", "b")]
    results = await within(asyncio.gather(*turns))
    told = [json.loads(m.content) if m.content.startswith("{") else m.content for r in results for m in r.messages[2:3]]
    refused = [item for item in told if isinstance(item, dict)]
    assert len(refused) == 1
    assert "re inner" in told
    assert all(result.finish_reason == "stop" for result in results)


async def test_a_turn_that_a_tool_starts_for_later_runs_after_the_turn():
    later: list[asyncio.Task[Any]] = []
    go = asyncio.Event()

    async def after() -> Any:
        await within(go.wait())
        return await agent.session("s").send("inner")

    @tool
    async def schedule() -> str:
        """Start a turn that begins when this one is over."""
        later.append(asyncio.create_task(after()))
        return "ok"

    agent = create_agent(provider=mock_model([call("schedule"), "Outer.", "Inner."]), tools=[schedule])
    await within(agent.session("s").send("outer"))
    go.set()
    assert (await within(later[0])).text == "Inner."
