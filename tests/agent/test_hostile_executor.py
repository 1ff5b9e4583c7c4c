"""The executor under attack: wrong parts, broken stores, registries that change, observers that spoil, sessions of others.

Nothing but coded errors comes of what was given wrongly, no call runs whose turn could not be kept, and what fails before
a call runs can be decided again.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hostile import play, within
from hostile_values import KEY, VALUES, check_refusal
from post_office import SEND, Desk
from runs import call, types

from lousho import InMemoryApprovalStore, SDKError, create_agent, tool
from lousho.agent.executor_options import ResumeExecuteOptions, StreamExecuteOptions
from lousho.executor import (
    AgentBuilder,
    AgentConfig,
    AgentExecutor,
    ToolRegistry,
    resume_after_approval,
    stream_resume_after_approval,
)
from lousho.stores.memory import memory_store
from lousho.stores.protocol import PausedStepRecord
from lousho.testing import mock_model

LOOK = call("look_up", name="sam")


def talking(*script: Any) -> Any:
    return mock_model([*script] or ["Hello!"], on_exhausted="repeat-last")


def parts(desk: Desk, *script: Any, **options: Any) -> dict[str, Any]:
    return {"agent": desk.agent, "input": "Hi", "provider": talking(*script), "tool_registry": desk.registry, **options}


@pytest.mark.parametrize("option", ["agent", "input", "provider", *StreamExecuteOptions.__annotations__])
async def test_an_option_of_a_run_works_or_is_refused_by_the_call_itself(option: str):
    for value in VALUES:
        given = parts(Desk(), **{option: value})
        try:
            run = AgentExecutor.stream(**given)
        except SDKError as error:
            check_refusal(error, value)
        else:
            json.dumps((await play(run)).ended.to_dict())


@pytest.mark.parametrize("option", ["agent", *ResumeExecuteOptions.__annotations__])
async def test_an_option_of_a_decision_works_or_is_refused_and_the_call_can_be_decided_again(option: str):
    desk = Desk()
    for value in VALUES:
        paused = await desk.pause(talking(SEND))
        decision = {"id": paused.approval_id, "approved": True}
        resumed: dict[str, Any] = {option: value}
        try:
            await resume_after_approval(decision, desk.store, desk.registry, talking(), **resumed)
        except SDKError as error:
            check_refusal(error, value)
            assert desk.sent == []
            await resume_after_approval(decision, desk.store, desk.registry, talking())
        assert desk.sent == ["sam@example.com"]
        desk.sent.clear()


async def test_any_wrong_part_of_a_decision_leaves_the_call_undecided():
    desk = Desk()
    paused = await desk.pause(talking(SEND))
    right: list[Any] = [{"id": paused.approval_id, "approved": True}, desk.store, desk.registry, talking()]
    for place in range(len(right)):
        for value in VALUES:
            arguments: list[Any] = [*right[:place], value, *right[place + 1 :]]
            with pytest.raises(SDKError) as caught:
                await resume_after_approval(*arguments)
            check_refusal(caught.value, value)
    assert (desk.sent, len(await desk.store.list())) == ([], 1)
    names = ["decision", "approval_store", "tool_registry", "provider", "id", "approved", "note", "max_steps"]
    for name in names:
        misspelt: dict[str, Any] = {f"{name}q": 1}
        with pytest.raises(SDKError, match=rf"'{name}q' is not a known option \(did you mean '{name}'"):
            await resume_after_approval(*right, **misspelt)
    assert (await resume_after_approval(*right)).finish_reason == "stop"


@pytest.mark.parametrize("kwargs", [{"agnt": 1}, {"inputs": 1}, {"providr": 1}, {"tool_registri": 1}, {"session": "s"}])
async def test_a_run_tells_names_that_do_not_exist(kwargs: dict[str, Any]):
    with pytest.raises(SDKError, match="is not a known option .did you mean '"):
        await AgentExecutor.execute(**parts(Desk(), **kwargs))


# Stores


class Sized(InMemoryApprovalStore):
    """A store that counts as false while it is empty."""

    def __len__(self) -> int:
        return len(self._steps)


async def test_a_store_that_counts_as_false_while_it_is_empty_keeps_the_pause():
    desk = Desk()
    desk.store = Sized()
    paused = await desk.pause(talking(SEND))
    assert len(desk.store) == 1
    decision = {"id": paused.approval_id, "approved": True}
    await resume_after_approval(decision, desk.store, desk.registry, talking())
    assert (len(desk.store), desk.sent) == (0, ["sam@example.com"])


class Failing(InMemoryApprovalStore):
    """A store one of whose methods fails."""

    broken = ""

    def _use(self, method: str) -> None:
        if self.broken == method:
            raise ConnectionError(method)

    async def save(self, step: PausedStepRecord) -> bool:
        self._use("save")
        return await super().save(step)

    async def load(self, step_id: str) -> PausedStepRecord | None:
        self._use("load")
        return await super().load(step_id)

    async def claim(self, step_id: str, revision: int) -> bool:
        self._use("claim")
        return await super().claim(step_id, revision)

    async def list(self) -> list[PausedStepRecord]:
        self._use("list")
        return await super().list()


@pytest.mark.parametrize(("broken", "asked"), [("list", 0), ("save", 1)])
async def test_a_store_that_fails_fails_the_run_before_the_call(broken: str, asked: int):
    desk, store = Desk(), Failing()
    store.broken = broken
    given = parts(desk, SEND, approval_store=store, session_id="s")
    played = await play(AgentExecutor.stream(**given))
    assert isinstance(played.error, ConnectionError)
    assert types(played.events)[-2:] == ["error", "run.done"]
    assert (desk.sent, len(given["provider"].calls)) == ([], asked)


@pytest.mark.parametrize("broken", ["load", "claim"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_store_that_fails_a_decision_leaves_the_call_undecided(broken: str, streamed: bool):
    desk, store = Desk(), Failing()
    desk.store = store
    paused = await desk.pause(talking(SEND))
    decision = {"id": paused.approval_id, "approved": True}
    store.broken = broken
    with pytest.raises(ConnectionError):
        if streamed:
            await stream_resume_after_approval(decision, store, desk.registry, talking()).result
        else:
            await resume_after_approval(decision, store, desk.registry, talking())
    store.broken = ""
    assert (await resume_after_approval(decision, store, desk.registry, talking())).text == "Hello!"
    assert desk.sent == ["sam@example.com"]


# Registries


async def test_a_registry_that_another_thread_fills_and_one_that_a_tool_empties_give_a_run_the_tools_it_began_with():
    registry, stop = ToolRegistry(), threading.Event()

    @tool
    async def leave() -> str:
        """Leave."""
        registry.remove("stay")
        return "left"

    @tool
    async def stay() -> str:
        """Stay."""
        return "stayed"

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            registry.register(f"t{number}", {"description": "d", "execute": print})
            if number > 50:
                registry.remove(f"t{number - 50}")

    registry.register(leave)
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        agent = AgentBuilder.create().add_tools(["leave", "stay"]).build()
        for _ in range(50):
            registry.register(stay)
            model = mock_model([call("leave"), call("stay"), "Done."])
            result = await AgentExecutor.execute(agent=agent, input="Hi", provider=model, tool_registry=registry)
            assert [one.content for one in result.messages if one.role == "tool"] == ["left", "stayed"]
            assert [len(one.tools) for one in model.calls] == [2, 2, 2]
    finally:
        stop.set()
        thread.join()


async def test_runs_of_two_agents_on_one_registry_at_the_same_time_keep_to_their_tools():
    desk = Desk()
    reader = AgentConfig(name="Reader", tools={"look_up": None})
    model = talking(LOOK, "Done.")
    runs = [
        AgentExecutor.execute(agent=agent, input="Hi", provider=model, tool_registry=desk.registry)
        for agent in [desk.agent, reader] * 50
    ]
    results = await within(asyncio.gather(*runs))
    assert {(one.agent_name, one.finish_reason) for one in results} == {("Mailer", "stop"), ("Reader", "stop")}
    assert {len(one.tools) for one in model.calls} == {1, 2}


# Observers


def spoil(seen: Any) -> None:
    """Change whatever can be changed about what an observer is told."""
    for name in ("args", "messages", "result", "tools", "tool_calls"):
        value = getattr(seen, name, None)
        if isinstance(value, (dict, list)):
            value.clear()
    for name in ("text", "tool_name", "model", "temperature", "messages", "tools", "tool_calls", "args", "result"):
        if hasattr(seen, name):
            setattr(seen, name, None)


def cancel(seen: Any) -> None:
    raise asyncio.CancelledError


def fail(seen: Any) -> None:
    raise RuntimeError(KEY)


@pytest.mark.parametrize("observe", [spoil, cancel, fail])
async def test_observers_that_spoil_what_they_are_told_or_fail_change_nothing_of_the_run(
    observe: Callable[[Any], None],
):
    async def run(**watching: Any) -> Any:
        given = parts(Desk(), {"text": "Looking.", **LOOK}, "Done.", **watching)
        result = await AgentExecutor.execute(**given)
        sent = [[message.to_dict() for message in one.messages] for one in given["provider"].calls]
        return result.text, [message.to_dict() for message in result.messages], result.tool_errors, sent

    watching = ("on_agent_event", "on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result")
    assert await run(**dict.fromkeys(watching, observe)) == await run()


# Sessions of an agent


def clerk(desk: Desk, store: Any, *script: Any) -> Any:
    """An agent with the tools of the desk, whose sessions and pauses are in `store`."""
    desk.store = store.approvals
    return create_agent(provider=talking(*script), tools=[*desk.registry.values()], store=store)


async def test_an_agent_does_not_run_a_call_of_the_executor_whose_turn_its_session_could_not_take():
    desk, store = Desk(), memory_store()
    agent = clerk(desk, store)
    await agent.session("s").send("Hi")
    paused = await desk.pause(talking(SEND), session_id="s")
    for decide in (agent.approvals.resolve, agent.approvals.stream_resolve):
        with pytest.raises(SDKError, match=r"still undecided.*resume_after_approval\(\) goes on with it") as caught:
            decided = decide(id=paused.approval_id, approved=True)
            await getattr(decided, "result", decided)
        assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert (desk.sent, len(await agent.approvals.list())) == ([], 1)

    decision = {"id": paused.approval_id, "approved": True}
    assert (await resume_after_approval(decision, store.approvals, desk.registry, talking("Done."))).text == "Done."
    assert desk.sent == ["sam@example.com"]
    assert [message.role for message in await agent.session("s").load()] == ["user", "assistant"]


async def test_a_no_lets_go_of_a_turn_that_the_session_could_not_take():
    desk, store = Desk(), memory_store()
    agent = clerk(desk, store)
    await agent.session("s").send("Hi")
    paused = await desk.pause(talking(SEND), session_id="s")
    asked = len(agent.provider.calls)
    with pytest.raises(SDKError, match="the turn was dropped") as caught:
        await agent.approvals.resolve(id=paused.approval_id, approved=False)
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert (desk.sent, await agent.approvals.list(), len(agent.provider.calls)) == ([], [], asked)
    assert (await agent.session("s").send("Hi again")).text == "Hello!"


async def test_a_run_of_the_executor_becomes_the_first_turn_of_a_session_that_has_none():
    desk, store = Desk(), memory_store()
    agent = clerk(desk, store, "Done.")
    paused = await desk.pause(talking(SEND), session_id="s")
    assert (await agent.approvals.resolve(id=paused.approval_id, approved=True)).text == "Done."
    assert [message.role for message in await agent.session("s").load()] == ["user", "assistant", "tool", "assistant"]


async def test_the_executor_does_not_decide_a_turn_of_an_agents_session():
    desk, store = Desk(), memory_store()
    agent = clerk(desk, store, SEND)
    paused = await agent.session("s").send("Email the report")
    decision = {"id": paused.approval_id, "approved": True}
    givens: list[dict[str, Any]] = [{}, {"agent": desk.agent}]
    for given in givens:
        with pytest.raises(SDKError, match="whose session it belongs to") as caught:
            await resume_after_approval(decision, store.approvals, desk.registry, talking(), **given)
        assert caught.value.code == "LOUSHO_CONFIG_MISSING_AGENT"
    with pytest.raises(SDKError) as busy:
        await desk.pause(talking(SEND), session_id="s")
    assert busy.value.code == "LOUSHO_SESSION_AWAITING_APPROVAL"
    assert (desk.sent, len(await agent.approvals.list())) == ([], 1)


async def test_a_stream_that_never_began_names_the_agent_by_its_id_all_the_same():
    desk = Desk()
    agent = AgentConfig(name="Mailer", id="mailer-1", version="2", tools=desk.agent.tools)
    await desk.pause(talking(SEND), session_id="s")
    run = AgentExecutor.stream(**parts(desk, agent=agent, approval_store=desk.store, session_id="s"))
    played = await play(run)
    assert types(played.events) == ["run.start", "error", "run.done"]
    start = played.events[0].to_dict()
    assert (start["agentName"], start["agentId"], start["version"]) == ("Mailer", "mailer-1", "2")
