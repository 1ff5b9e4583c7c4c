"""Runs that wait while everything around them changes: functions that fail, tools and models that are gone, transcripts that
others wrote. A decision that cannot go on leaves the call undecided, and no call runs whose turn could not be kept.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hostile import play, within
from runs import call, calls

from lousho import AgentStore, CancelSignal, InMemoryApprovalStore, RunConfigContext, SDKError, create_agent, tool
from lousho.stores.memory import memory_store
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model

PAY = call("pay", to="sam")


class Till:
    """A tool that needs a person, and what it paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

        @tool(needs_approval=True)
        async def pay(to: str) -> str:
            """Pay somebody."""
            self.paid.append(to)
            return f"paid {to}"

        self.pay = pay

    def agent(self, *script: Any, **options: Any) -> Any:
        given: dict[str, Any] = {
            "provider": mock_model([*script] or ["Done."], on_exhausted="repeat-last"),
            "tools": [self.pay],
            **options,
        }
        return create_agent(**{key: value for key, value in given.items() if value is not None})


class LiveStore:
    """A store that hands out the very records it keeps."""

    def __init__(self) -> None:
        self.steps: dict[str, PausedStepRecord] = {}

    async def save(self, step: PausedStepRecord) -> bool:
        stored = self.steps.get(step.id)
        if (0 if stored is None else stored.revision) != step.revision:
            return False
        step.revision += 1
        self.steps[step.id] = step
        return True

    async def load(self, step_id: str) -> PausedStepRecord | None:
        return self.steps.get(step_id)

    async def claim(self, step_id: str, revision: int) -> bool:
        if step_id not in self.steps or self.steps[step_id].revision != revision:
            return False
        del self.steps[step_id]
        return True

    async def list(self) -> list[PausedStepRecord]:
        return list(self.steps.values())


def down(ctx: RunConfigContext) -> Any:
    raise ConnectionError("down")


async def cancels(ctx: RunConfigContext) -> Any:
    raise asyncio.CancelledError


CHANGES = [
    pytest.param({"tools": down}, "LOUSHO_CONFIG_RESOLVER_FAILED", id="its tools cannot be chosen"),
    pytest.param({"instructions": cancels}, "LOUSHO_CONFIG_RESOLVER_FAILED", id="its instructions cancel"),
    pytest.param({"tools": lambda ctx: []}, "LOUSHO_RESUME_TOOL_MISSING", id="its tool is not chosen"),
    pytest.param({"tools": []}, "LOUSHO_RESUME_TOOL_MISSING", id="its tool is gone"),
    pytest.param({"model": "mock/demo", "provider": None}, "LOUSHO_PROVIDER_UNKNOWN", id="its model is gone"),
]


@pytest.mark.parametrize("store", [LiveStore, InMemoryApprovalStore])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("change", "code"), CHANGES)
async def test_a_decision_that_cannot_go_on_leaves_the_call_undecided_in_any_store(
    change: dict[str, Any], code: str, streamed: bool, store: Callable[[], Any]
):
    till, approvals = Till(), store()
    paused = await till.agent(PAY, model=lambda ctx: "gone/m-1", approval_store=approvals).send("go")
    changed = till.agent(**{"approval_store": approvals, **change})
    for approved in (True, False):
        decision = {"id": paused.approval_id, "approved": approved}
        with pytest.raises(SDKError) as caught:
            if streamed:
                played = await play(changed.approvals.stream_resolve(**decision))
                assert played.error is not None
                raise played.error
            await changed.approvals.resolve(**decision)
        assert caught.value.code == code
    assert [one.id for one in await changed.approvals.list()] == [paused.approval_id]
    right = till.agent(approval_store=approvals)
    assert (await right.approvals.resolve(id=paused.approval_id, approved=True)).text == "Done."
    assert (till.paid, [one.model for one in right.provider.calls]) == (["sam"], ["gone/m-1"])


async def test_a_model_whose_key_is_gone_keeps_the_pause(clean_env: Any):
    till, approvals = Till(), InMemoryApprovalStore()
    paused = await till.agent(PAY, model=lambda ctx: "openai/gpt-x", approval_store=approvals).send("go")
    elsewhere = till.agent(provider=None, model="mock/demo", approval_store=approvals)
    with pytest.raises(SDKError) as caught:
        await elsewhere.approvals.resolve(id=paused.approval_id, approved=True)
    assert (caught.value.code, till.paid) == ("LOUSHO_PROVIDER_MISSING_API_KEY", [])
    assert len(await elsewhere.approvals.list()) == 1


@pytest.mark.parametrize("size", [1, 10_000_000])
async def test_a_context_that_json_cannot_hold_is_told_alike_before_and_after_the_pause(size: int):
    told: list[Any] = []

    def instructions(ctx: RunConfigContext) -> str:
        told.append((ctx.input, dict(ctx.metadata or {})))
        ctx.metadata["spoilt"] = True  # type: ignore[index]
        return "Pay."

    till, approvals = Till(), InMemoryApprovalStore()
    metadata = {"plan": object, "rate": float("nan"), "half": "\ud800", "big": "x" * size, 1: {2, 3}, "raw": b"\xff"}
    options: dict[str, Any] = {"instructions": instructions, "approval_store": approvals}
    paused = await till.agent(PAY, **options).send("go \ud800", metadata=metadata)
    [step] = await approvals.list()
    json.loads(step.state.encode("utf-8"))
    await till.agent(**options).approvals.resolve(id=paused.approval_id, approved=True)
    assert told[0] == told[1]
    assert (told[0][0], told[0][1]["rate"], len(told[0][1]["big"]), told[0][1]["1"]) == (
        "go \ufffd",
        None,
        size,
        [2, 3],
    )


async def test_an_abort_while_the_tools_of_a_continuation_are_chosen_is_an_abort():
    chosen = asyncio.Event()

    async def never(ctx: RunConfigContext) -> Any:
        chosen.set()
        await asyncio.Event().wait()

    till, approvals = Till(), InMemoryApprovalStore()
    paused = await till.agent(PAY, tools=[], approval_store=approvals).send("go", extra_tools=[till.pay])
    signal = CancelSignal()
    agent = till.agent(tools=never, approval_store=approvals)
    work = asyncio.ensure_future(
        agent.approvals.resolve(
            id=paused.approval_id, approved=True, signal=signal, tools=["other"], extra_tools=[till.pay]
        )
    )
    await within(chosen.wait())
    signal.abort("enough")
    assert ((await within(work)).finish_reason, till.paid) == ("aborted", [])


# Sessions whose transcript somebody else wrote


def apart(till: Till) -> tuple[Any, Any]:
    """Two agents on the same transcripts that do not see each other's pauses; the first one pauses."""
    shared = memory_store()
    alone = AgentStore(sessions=shared.sessions, approvals=InMemoryApprovalStore())
    two = calls(("pay", {"to": "sam"}), ("pay", {"to": "kim"}))
    return till.agent(two, "Done.", "Later.", store=alone), till.agent("Other.", store=shared)


@pytest.mark.parametrize("streamed", [False, True])
async def test_no_call_runs_whose_turn_the_transcript_could_not_take_any_more(streamed: bool):
    till = Till()
    agent, other = apart(till)
    session = agent.session("s")
    first, second = (await session.send("go")).approval_ids
    await other.session("s").send("Hi")
    await agent.approvals.resolve(id=first, approved=True)
    for _ in range(2):
        with pytest.raises(SDKError, match="still undecided; approved=False drops the turn") as caught:
            if streamed:
                await agent.approvals.stream_resolve(id=second, approved=True).result
            else:
                await agent.approvals.resolve(id=second, approved=True)
        assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert (till.paid, [one.id for one in await agent.approvals.list()]) == ([], [second])

    with pytest.raises(SDKError, match="the turn was dropped") as dropped:
        await agent.approvals.resolve(id=second, approved=False)
    assert dropped.value.code == "LOUSHO_SESSION_BUSY"
    assert (till.paid, await agent.approvals.list(), len(agent.provider.calls)) == ([], [], 1)
    assert [message.content for message in await session.load()] == ["Hi", "Other."]
    assert (await session.send("Again")).text == "Done."


async def test_of_many_decisions_on_a_turn_of_a_session_one_counts_and_the_others_are_told_so():
    async def tools(ctx: RunConfigContext) -> Any:
        await asyncio.sleep(0.001)
        return [till.pay]

    till = Till()
    agent = till.agent(PAY, "Done.", tools=tools)
    paused = await agent.session("s").send("go")
    decisions = (agent.approvals.resolve(id=paused.approval_id, approved=True) for _ in range(50))
    outcomes = await within(asyncio.gather(*decisions, return_exceptions=True))
    codes = [getattr(outcome, "code", None) for outcome in outcomes]
    assert (codes.count(None), till.paid) == (1, ["sam"])
    assert set(codes) - {None} <= {"LOUSHO_APPROVAL_CONFLICT", "LOUSHO_APPROVAL_NOT_FOUND"}
    assert len(await agent.session("s").load()) == 4
