"""Calls of a tool that shares something with all others run alone; the calls of the step keep their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import play, told, within
from runs import calls, of_type

from lousho import CancelSignal, PropagatingToolError, ToolContext, create_agent, tool
from lousho.testing import mock_model


class Ledger:
    """Tools that write down when they begin and end, and who ran beside whom."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.order: list[str] = []
        self.beside: dict[str, set[str]] = {}

        @tool
        async def free(name: str) -> str:
            """Run beside others."""
            return await self._work(name, 20)

        @tool(concurrent=False)
        async def alone(name: str) -> str:
            """Run alone."""
            return await self._work(name, 5)

        @tool(concurrent=False)
        async def alone_reporting(name: str) -> AsyncIterator[str]:
            """Run alone and say so in between."""
            yield "begun"
            yield await self._work(name, 5)

        self.tools: list[Any] = [free, alone, alone_reporting]

    async def _work(self, name: str, turns: int) -> str:
        self.order.append(name)
        for other in self.running:
            self.beside.setdefault(other, set()).add(name)
            self.beside.setdefault(name, set()).add(other)
        self.running.add(name)
        for _ in range(turns):
            await asyncio.sleep(0)
        self.running.remove(name)
        return name


@pytest.mark.spec("BEY-37")
@pytest.mark.parametrize("limit", ["unbounded", 2, 5, 1])
@pytest.mark.parametrize("kind", ["alone", "alone_reporting"])
async def test_such_a_call_waits_for_those_before_it_and_those_after_it_wait_for_it(limit: Any, kind: str):
    ledger = Ledger()
    plan = [("free", "a"), ("free", "b"), (kind, "C"), ("free", "d"), ("free", "e"), (kind, "F"), (kind, "G")]
    model = mock_model([calls(*[(name, {"name": label}) for name, label in plan]), "Done."])
    played = await play(create_agent(provider=model, tools=ledger.tools, tool_concurrency=limit).stream("go"))
    assert told(played.ended) == ledger.order == ["a", "b", "C", "d", "e", "F", "G"]
    assert ledger.beside == ({} if limit == 1 else {"a": {"b"}, "b": {"a"}, "d": {"e"}, "e": {"d"}})
    moments = [(event.type, event.tool_call_id) for event in of_type(played.events, "tool.start", "tool.done")]
    assert moments.index(("tool.start", "call_3")) > max(moments.index(("tool.done", f"call_{n}")) for n in (1, 2))
    assert moments.index(("tool.done", "call_3")) < moments.index(("tool.start", "call_4"))


@pytest.mark.spec("BEY-37")
async def test_approved_calls_run_alone_as_well():
    ledger = Ledger()

    @tool(concurrent=False, needs_approval=True)
    async def asked(name: str) -> str:
        """Ask first, then run alone."""
        return await ledger.tools[1].execute(name)

    @tool(needs_approval=True)
    async def asked_free(name: str) -> str:
        """Ask first."""
        return await ledger.tools[0].execute(name)

    plan = calls(("asked_free", {"name": "a"}), ("asked_free", {"name": "b"}), ("asked", {"name": "C"}))
    agent = create_agent(provider=mock_model([plan, "Done."]), tools=[asked, asked_free])
    result = await agent.send("go")
    for approval_id in result.approval_ids:
        result = await agent.approvals.resolve(id=approval_id, approved=True)
    assert (result.text, ledger.order, ledger.beside) == ("Done.", ["a", "b", "C"], {"a": {"b"}, "b": {"a"}})


@pytest.mark.parametrize("stop", ["abort", "error"])
async def test_a_call_that_waits_to_run_alone_never_starts_after_a_stop(stop: str):
    ran: list[str] = []
    signal = CancelSignal()

    @tool
    async def stops(ctx: ToolContext) -> str:
        """End the run."""
        await asyncio.sleep(0)
        if stop == "error":
            raise PropagatingToolError("enough")
        signal.abort("enough")
        await asyncio.sleep(60)
        return "never"

    @tool(concurrent=False)
    async def alone() -> str:
        """Run alone."""
        ran.append("alone")
        return "ran"

    model = mock_model([calls(("stops", {}), ("alone", {}))])
    run = create_agent(provider=model, tools=[stops, alone]).stream("go", signal=signal)
    played = await play(run)
    assert ran == []
    assert [event.tool_name for event in of_type(played.events, "tool.start")] == ["stops"]
    if stop == "error":
        assert isinstance(played.error, PropagatingToolError)
    else:
        assert [one["kind"] for one in told(played.ended)] == ["cancelled", "cancelled"]


@pytest.mark.spec("RUN-32")
async def test_a_call_is_announced_only_when_it_has_a_place():
    going = asyncio.Event()
    release = asyncio.Event()
    started: list[str] = []

    @tool
    async def hold(name: str) -> str:
        """Hold a place."""
        started.append(name)
        if len(started) == 2:
            going.set()
        await release.wait()
        return name

    heard: list[str] = []

    def hear(event: Any) -> None:
        if event.type == "tool.start":
            heard.append(event.args["name"])

    model = mock_model([calls(*[("hold", {"name": name}) for name in "abc"]), "Done."])
    agent = create_agent(provider=model, tools=[hold], tool_concurrency=2, on_event=hear)
    task = asyncio.ensure_future(agent.send("go"))
    await within(going.wait())
    for _ in range(20):
        await asyncio.sleep(0)
    assert heard == ["a", "b"]
    release.set()
    assert told(await within(task)) == heard == ["a", "b", "c"]
