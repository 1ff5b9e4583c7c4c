"""Turns of one session that are raced, cancelled, aborted, nested or cut off: none hangs, none is lost, none is doubled."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hostile import play, within
from runs import WAIT, ChunkProvider, call, calls, types

from lousho import CancelSignal, SDKError, create_agent, tool
from lousho.models.provider import Finish, ModelRequest, TextDelta
from lousho.stores.memory import InMemoryApprovalStore, InMemorySessionStore
from lousho.stores.protocol import AgentStore
from lousho.testing import mock_model


def echo(ticks: int = 0) -> Any:
    """Return a provider that answers with the last user message, after giving way some times."""

    class Echo(ChunkProvider):
        def stream(self, request: ModelRequest) -> Any:
            return self._answer(request)

        async def _answer(self, request: ModelRequest) -> Any:
            text = str([message.content for message in request.messages if message.role == "user"][-1])
            for _ in range(ticks):
                await asyncio.sleep(0)
            yield TextDelta(f"re {text}")
            yield Finish("stop")

    return Echo()


def whole_turns(messages: Any) -> list[str]:
    """Return the user texts of a transcript, each of which is followed by its answer or by what was left of it."""
    texts: list[str] = []
    for message in messages:
        if message.role == "user":
            texts.append(str(message.content))
        elif message.role == "assistant" and not message.interrupted:
            assert message.content == f"re {texts[-1]}"
    return texts


@hypothesis.given(
    st.lists(
        st.tuples(
            st.sampled_from(["send", "stream", "leave"]),
            st.sampled_from(["run", "cancel", "abort"]),
            st.integers(0, 12),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 3),
)
async def test_turns_stopped_at_any_moment_leave_the_session_usable_and_lose_no_other_turn(plan, ticks):
    agent = create_agent(provider=echo(ticks), on_event=lambda _: None)
    session = agent.session("s")
    signals = [CancelSignal() for _ in plan]
    turns: list[asyncio.Task[Any]] = []

    async def streamed(text: str, signal: CancelSignal) -> Any:
        return (await play(session.stream(text, signal=signal))).ended

    async def left(text: str, signal: CancelSignal) -> Any:
        async with session.stream(text, signal=signal) as run:
            async for _ in run:
                break
        return await run.result

    how = {"send": lambda text, signal: session.send(text, signal=signal), "stream": streamed, "leave": left}
    for number, (kind, _, _) in enumerate(plan):
        turns.append(asyncio.ensure_future(how[kind](str(number), signals[number])))
    for tick in range(13):
        for number, (_, fate, moment) in enumerate(plan):
            if moment == tick and fate == "cancel":
                turns[number].cancel()
            elif moment == tick and fate == "abort":
                signals[number].abort("enough")
        await asyncio.sleep(0)
    outcomes = await within(asyncio.gather(*turns, return_exceptions=True))
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, BaseException):
            assert isinstance(outcome, asyncio.CancelledError)
            assert plan[number][1] == "cancel"
        elif plan[number][:2] == ("send", "run"):
            assert outcome.text == f"re {number}"
    last = await within(session.send("last"))
    kept = whole_turns(last.messages)
    assert kept == [*sorted(kept[:-1], key=int), "last"]
    finished = {str(n) for n, outcome in enumerate(outcomes) if getattr(outcome, "finish_reason", "") == "stop"}
    assert finished <= set(kept)
    assert session.messages == last.messages == await session.load()


async def test_a_turn_that_is_aborted_while_it_waits_leaves_the_queue_at_once():
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "ok"

    model = mock_model([call("wait"), "One.", "Three."])
    session = create_agent(provider=model, tools=[wait]).session("s")
    first = asyncio.ensure_future(session.send("a"))
    await asyncio.sleep(0)
    signal = CancelSignal()
    second = asyncio.ensure_future(session.send("b", signal=signal))
    streamed = session.stream("c")
    third = asyncio.ensure_future(session.send("d"))
    for _ in range(5):
        await asyncio.sleep(0)
    signal.abort("enough")
    result = await within(second)
    assert (result.finish_reason, result.steps) == ("aborted", 0)
    await within(streamed.aclose())
    assert types([event async for event in streamed]) == ["run.start", "run.done"]
    assert not first.done()
    release.set()
    assert (await within(first)).text == "One."
    assert (await within(third)).text == "Three."
    assert [message.content for message in session.messages if message.role == "user"] == ["a", "d"]


async def test_a_stream_takes_its_turn_when_it_is_asked_for():
    session = create_agent(provider=echo(), on_event=lambda _: None).session("s")
    runs = [session.stream("a"), session.stream("b")]
    await within(session.send("c"))
    assert [run.done for run in runs] == [True, True]
    assert whole_turns(session.messages) == ["a", "b", "c"]


async def test_a_stream_whose_task_is_cancelled_before_it_begins_gives_its_turn_back():
    session = create_agent(provider=echo()).session("s")
    before = asyncio.all_tasks()
    run = session.stream("a")
    for task in asyncio.all_tasks() - before:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.result
    assert (await within(session.send("b"))).text == "re b"


async def test_a_turn_that_is_aborted_before_the_model_was_asked_leaves_nothing():
    session = create_agent(provider=mock_model(["Hi."])).session("s")
    signal = CancelSignal()
    signal.abort()
    assert (await session.send("a", signal=signal)).finish_reason == "aborted"
    assert session.messages == []
    await session.send("b")
    assert [message.content for message in session.messages] == ["b", "Hi."]


def test_a_session_whose_event_loop_was_closed_in_the_middle_of_a_turn_goes_on():
    @tool
    async def forever() -> str:
        """Never end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    agent = create_agent(provider=mock_model([call("forever"), "Next."]), tools=[forever])
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # which is told that its tasks were dropped
    began = asyncio.Event()
    held = [loop.create_task(agent.session("s").send("cut off"))]
    loop.run_until_complete(asyncio.wait_for(began.wait(), WAIT))
    loop.close()
    assert agent.session("s").send_sync("next").text == "Next."
    assert [message.content for message in agent.session("s").messages] == ["next", "Next."]
    # What is left of that loop goes quietly, and its end frees nothing that is not its own.
    held.clear()
    gc.collect()
    assert agent.session("s").clear_sync() == 2


def test_turns_from_many_threads_and_loops_are_all_kept_in_some_order():
    agent = create_agent(provider=echo(), on_event=lambda _: None)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            session = agent.session("s")
            for step in range(5):
                if (number + step) % 2:
                    session.send_sync(f"{number}.{step}")
                else:
                    asyncio.run(session.send(f"{number}.{step}"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT * 4)
    assert failures == []
    texts = whole_turns(agent.session("s").messages)
    assert sorted(texts) == sorted(f"{number}.{step}" for number in range(8) for step in range(5))


class SlowSessions(InMemorySessionStore):
    """Gives way inside of every call, as a database does, and can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.saving = asyncio.Event()
        self.release = asyncio.Event()
        self.fails = False

    async def save(self, record: Any) -> bool:
        self.saving.set()
        await self.release.wait()
        if self.fails:
            raise OSError("the disk is full")
        return await super().save(record)


def slow_agent(script: list[Any], **options: Any) -> tuple[Any, SlowSessions]:
    sessions = SlowSessions()
    store = AgentStore(sessions=sessions, approvals=InMemoryApprovalStore())
    return create_agent(provider=mock_model(script), store=store, **options), sessions


async def test_a_cancellation_while_the_turn_is_saved_waits_for_the_save_and_changes_nothing_of_it():
    heard: list[Any] = []
    agent, sessions = slow_agent(["Hello."], on_event=heard.append)
    task = asyncio.ensure_future(agent.session("s").send("hi"))
    await within(sessions.saving.wait())
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    sessions.release.set()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert heard[-1].finish_reason == "stop"
    assert [message.content for message in agent.session("s").messages] == ["hi", "Hello."]


@pytest.mark.parametrize("stop", ["none", "abort", "cancel"])
async def test_a_save_that_fails_is_told_whatever_ended_the_turn(stop):
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        began.set()
        if stop != "none":
            await asyncio.sleep(60)
        return "ok"

    heard: list[Any] = []
    agent, sessions = slow_agent([call("wait"), "Done."], tools=[wait], on_event=heard.append)
    sessions.fails = True
    sessions.release.set()
    signal = CancelSignal()
    task = asyncio.ensure_future(agent.session("s").send("go", signal=signal))
    await within(began.wait())
    if stop == "abort":
        signal.abort("enough")
    elif stop == "cancel":
        task.cancel()
    with pytest.raises(asyncio.CancelledError if stop == "cancel" else OSError):
        await within(task)
    assert types(heard)[-2:] == ["error", "run.done"]
    assert agent.session("s").messages == []
    sessions.fails = False
    agent = agent.with_options(provider=mock_model(["Fine."]))
    assert (await within(agent.session("s").send("again"))).text == "Fine."


async def test_two_agents_on_one_store_see_each_others_turns_and_never_overwrite_one():
    release = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await release.wait()
        return "ok"

    first = create_agent(provider=mock_model([call("wait"), "Lost."]), tools=[wait])
    second = first.with_options(provider=mock_model(["Kept."]))
    slow = asyncio.ensure_future(first.session("s").send("a"))
    await asyncio.sleep(0)
    await within(second.session("s").send("b"))
    release.set()
    with pytest.raises(SDKError) as caught:
        await within(slow)
    assert caught.value.code == "LOUSHO_SESSION_BUSY"
    assert [message.content for message in await first.session("s").load()] == ["b", "Kept."]


async def test_a_cancelled_task_stays_cancelled_in_a_timeout():
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.sleep(60)
        return "never"

    agent = create_agent(provider=mock_model([call("forever"), "Next."]), tools=[forever])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await agent.session("s").send("go")
    assert len(agent.session("s").messages) == 3
    assert (await within(agent.session("s").send("next"))).text == "Next."


async def test_calls_of_a_turn_that_is_cancelled_at_any_tick_have_one_result_each():
    @tool
    async def work(number: int) -> int:
        """Give way a few times."""
        for _ in range(number):
            await asyncio.sleep(0)
        return number

    for ticks in range(40):
        step = calls(*[("work", {"number": number}) for number in range(4)])
        agent = create_agent(provider=mock_model([step, step, "Done."]), tools=[work], tool_concurrency=1 + ticks % 3)
        session = agent.session("s")
        task = asyncio.ensure_future(session.send("go"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        transcript = session.messages
        asked = [call.id for message in transcript for call in message.tool_calls]
        answered = [message.tool_call_id for message in transcript if message.role == "tool"]
        assert answered == asked
        assert not task.cancelled() or transcript == [] or transcript[0].content == "go"


async def test_random_stops_of_many_sessions_at_once_leave_nothing_behind():
    chance = random.Random(7)
    agent = create_agent(provider=echo(2), on_event=lambda _: None)
    before = asyncio.all_tasks()

    async def one(number: int) -> None:
        session = agent.session(f"s{number % 10}")
        task = asyncio.ensure_future(session.send(str(number)))
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            task.cancel()
        await asyncio.wait([task])

    await within(asyncio.gather(*[one(number) for number in range(200)]))
    assert asyncio.all_tasks() == before
    for number in range(10):
        whole_turns((await within(agent.session(f"s{number}").send("0"))).messages)
