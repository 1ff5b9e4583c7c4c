"""How runs end and how they are stopped, row by row of the runs page."""

from __future__ import annotations

import asyncio
import threading
import typing
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import asks, check_transcript, chunks, play, told, within
from runs import ChunkProvider, call, calls, collect, of_type, types

from lousho import (
    CancelSignal,
    ExecutionFinishReason,
    ToolContext,
    create_agent,
    tool,
)
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta
from lousho.testing import mock_model

REASONS = {
    *("stop", "length", "tool_calls", "content_filter", "error", "other", "awaiting-approval", "aborted", "max-steps"),
    *("output-invalid", "budget-exceeded", "guardrail"),
}


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


# -- how a run ends ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-01", "RUN-06")
@pytest.mark.parametrize(
    ("turn", "options", "reason"),
    [
        pytest.param("Hello.", {}, "stop", id="stop"),
        pytest.param({"text": "Half a", "finish_reason": "length"}, {}, "length", id="length"),
        pytest.param({"text": "", "finish_reason": "content_filter"}, {}, "content_filter", id="content_filter"),
        pytest.param({"text": "Oh.", "finish_reason": "error"}, {}, "error", id="error"),
        pytest.param({"text": "Hm.", "finish_reason": "other"}, {}, "other", id="other"),
        pytest.param(call("deploy", to="prod"), {}, "awaiting-approval", id="awaiting-approval"),
        pytest.param(call("lookup", word="a"), {"max_steps": 1}, "max-steps", id="max-steps"),
        pytest.param("never", {"signal": CancelSignal.any()}, "aborted", id="aborted"),
    ],
)
async def test_the_result_and_run_done_say_why_the_run_ended(turn: Any, options: dict[str, Any], reason: str):
    if "signal" in options:
        options["signal"].abort()
    assert set(typing.get_args(ExecutionFinishReason)) == REASONS
    agent = create_agent(provider=mock_model([turn] * 2), tools=[lookup, deploy])
    run = agent.stream("go", **options)
    events = await collect(run)
    result = await run.result
    sent = await agent.send("go", **options)
    assert result.finish_reason == sent.finish_reason == reason
    assert (events[-1].type, events[-1].finish_reason) == ("run.done", reason)
    assert result.to_dict()["finishReason"] == events[-1].to_dict()["finishReason"] == reason


@pytest.mark.spec("RUN-02")
@pytest.mark.parametrize("reason", ["weird", "STOP", "", None, "max-steps", "aborted", "awaiting-approval"])
async def test_a_reason_that_no_provider_can_have_becomes_other(reason: Any):
    played = await play(create_agent(provider=chunks([TextDelta("Hm."), Finish(reason)])).stream("go"))
    assert (played.ended.finish_reason, played.ended.text) == ("other", "Hm.")
    assert played.events[-1].to_dict()["finishReason"] == "other"


@pytest.mark.spec("RUN-04")
async def test_ten_steps_are_the_limit_and_the_text_of_a_run_that_reaches_it_explains_why():
    model = mock_model([{"text": f"Step {n}.", **call("lookup", word="a")} for n in range(1, 12)])
    result = await create_agent(provider=model, tools=[lookup]).send("go")
    assert (result.finish_reason, result.steps, len(model.calls)) == ("max-steps", 10, 10)
    assert result.text.startswith("Step 10.")
    assert "10 steps" in result.text.removeprefix("Step 10.")
    assert result.messages[-1].role == "tool"  # the last step's calls ran, and nobody asked the model again

    silent = await create_agent(provider=mock_model([call("lookup", word="a")]), tools=[lookup], max_steps=1).send("go")
    assert (silent.finish_reason, silent.steps) == ("max-steps", 1)
    assert silent.text.strip()


@pytest.mark.spec("RUN-04")
@pytest.mark.parametrize(("options", "steps"), [({}, 10), ({"max_steps": 3}, 3)])
async def test_a_run_that_ends_by_itself_on_the_last_step_keeps_its_reason(options: dict[str, Any], steps: int):
    model = mock_model([*[call("lookup", word="a")] * (steps - 1), "Done."])
    result = await create_agent(provider=model, tools=[lookup], **options).send("go")
    assert (result.finish_reason, result.text, result.steps) == ("stop", "Done.", steps)


@pytest.mark.spec("RUN-05")
async def test_the_steps_before_a_pause_count_for_the_limit_and_in_the_result():
    turns = [call("lookup", word="a"), call("deploy", to="prod"), call("lookup", word="b"), "never"]
    model = mock_model(turns)
    agent = create_agent(provider=model, tools=[lookup, deploy], max_steps=3)
    paused = await agent.send("go")
    assert (paused.finish_reason, paused.steps) == ("awaiting-approval", 2)
    done = await agent.approvals.resolve(id=str(paused.approval_id), approved=True)
    assert (done.finish_reason, done.steps, len(model.calls)) == ("max-steps", 3, 3)


# -- stopping a run --------------------------------------------------------------------------------------------------------


class Silent:
    """A provider that waits for its signal and then fails the way HTTP clients do."""

    name = "silent"
    default_model = "silent-1"

    def __init__(self, error: BaseException | None = None) -> None:
        self.begun = asyncio.Event()
        self.signals: list[Any] = []
        self.error = error

    async def generate(self, request: ModelRequest) -> Any:
        self.signals.append(request.signal)
        self.begun.set()
        assert request.signal is not None
        await request.signal.wait()
        raise self.error or ConnectionError("the connection was closed")

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return False

    async def get_models(self) -> list[str]:
        return []

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        raise NotImplementedError


@pytest.mark.spec("RUN-11", "RUN-13", "RUN-15")
async def test_an_abort_in_the_middle_of_a_text_keeps_it_and_ends_the_events():
    async def endless(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        yield TextDelta("Half an ")
        await asyncio.sleep(3600)
        yield TextDelta("answer")

    def once(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        return chunks([asks("lookup", '{"word": "a"}'), Finish("tool_calls")]).stream(_)

    signal = CancelSignal()
    agent = create_agent(provider=ChunkProvider(once, endless), tools=[lookup])
    run = agent.stream("go", signal=signal)
    events: list[Any] = []
    async for event in run:
        events.append(event)
        if event.type == "text.delta":
            signal.abort()
    result = await within(run.result)  # it returns, and does not raise
    assert (result.finish_reason, result.text, result.steps) == ("aborted", "Half an ", 2)
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    last = result.messages[-1]
    assert (last.content, last.interrupted, last.to_dict()["interrupted"]) == ("Half an ", True, True)
    assert not any(message.interrupted for message in result.messages[:-1])
    assert [(event.type, event.finish_reason) for event in events[-2:]] == [
        ("step.done", "aborted"),
        ("run.done", "aborted"),
    ]
    check_transcript(result)


@pytest.mark.spec("RUN-12")
async def test_the_signal_is_looked_at_before_each_call_and_given_to_the_model_and_to_tools():
    signal = CancelSignal()
    seen: list[CancelSignal] = []
    ran: list[str] = []

    @tool
    async def stop(ctx: ToolContext) -> str:
        """Stop the run."""
        seen.append(ctx.abort_signal)
        ran.append("stop")
        signal.abort("enough")
        return "stopped"

    @tool
    async def later() -> str:
        """Never begin."""
        ran.append("later")
        return "x"

    model = mock_model([call("lookup", word="a"), calls(("stop", {}), ("later", {})), "never"])
    agent = create_agent(provider=model, tools=[lookup, stop, later], tool_concurrency=1)
    result = await within(agent.send("go", signal=signal))
    assert (result.finish_reason, ran, len(model.calls)) == ("aborted", ["stop"], 2)
    assert [one.aborted for one in seen] == [True]
    assert all(one.signal is not None and one.signal.aborted for one in model.calls)
    assert told(result)[:2] == ["A", "stopped"]
    assert told(result)[2]["kind"] == "cancelled"


@pytest.mark.spec("RUN-12", "RUN-14")
@pytest.mark.parametrize("error", [ConnectionError("closed"), asyncio.CancelledError(), KeyError("odd")], ids=repr)
async def test_what_the_abort_makes_a_provider_raise_is_no_failure(error: BaseException):
    provider = Silent(error)
    signal = CancelSignal()
    heard: list[Any] = []
    agent = create_agent(provider=provider, on_event=heard.append)
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    await within(provider.begun.wait())
    signal.abort("left")
    result = await within(task)
    assert (result.finish_reason, result.abort_reason) == ("aborted", {"name": "AbortError", "message": "left"})
    assert len(provider.signals) == 1  # asked once: not again
    assert provider.signals[0].aborted
    assert types(heard) == ["run.start", "step.start", "step.done", "run.done"]  # no error among them


@pytest.mark.spec("RUN-16")
async def test_a_provider_that_ignores_the_abort_is_left_behind_and_what_it_says_later_is_dropped():
    begun, release, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        begun.set()
        try:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            yield TextDelta("too late")
            yield asks("lookup", '{"word": "late"}')
            yield Finish("tool_calls")
        finally:
            over.set()

    provider = ChunkProvider(stubborn)
    heard: list[Any] = []
    agent = create_agent(provider=provider, tools=[lookup], on_event=heard.append)
    signal = CancelSignal()
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    await within(begun.wait())
    signal.abort()
    result = await within(task)
    ended = len(heard)
    release.set()
    await within(over.wait())
    assert (result.finish_reason, result.text, len(provider.requests)) == ("aborted", "", 1)
    assert [message.role for message in result.messages] == ["user"]
    assert (len(heard), heard[-1].type) == (ended, "run.done")
    assert of_type(heard, "text.delta", "tool.start") == []


@pytest.mark.spec("RUN-16", "RUN-37")
async def test_tools_that_ignore_the_abort_go_on_alone_and_results_that_had_arrived_are_kept():
    release, ended = threading.Event(), threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool
    def hang() -> str:
        """Block a thread."""
        loop.call_soon_threadsafe(begun.set)
        release.wait(30)
        ended.set()
        return "too late"

    @tool
    async def quick(word: str) -> str:
        """Answer at once."""
        return word

    heard: list[Any] = []
    both = asyncio.Event()

    def hear(event: Any) -> None:
        heard.append(event)
        if len(of_type(heard, "tool.done")) == 2:
            both.set()

    model = mock_model([calls(("quick", {"word": "first"}), ("hang", {}), ("quick", {"word": "last"})), "never"])
    agent = create_agent(provider=model, tools=[hang, quick], on_event=hear)
    signal = CancelSignal()
    task = asyncio.ensure_future(agent.send("go", signal=signal))
    try:
        await within(begun.wait())
        await within(both.wait())
        signal.abort()
        result = await within(task)
        assert not ended.is_set()
    finally:
        release.set()
    assert await asyncio.to_thread(ended.wait, 5)  # it went on by itself
    first, middle, last = told(result)
    assert (first, last) == ("first", "last")
    assert (middle["kind"], middle["error"]) == ("cancelled", "ToolCancelledError")
    assert "cancelled" in middle["message"]
    assert (result.finish_reason, len(model.calls)) == ("aborted", 1)
    assert heard[-1].type == "run.done"
    check_transcript(result)


@pytest.mark.spec("RUN-16")
async def test_a_result_that_lands_together_with_the_abort_is_kept():
    signal = CancelSignal()

    @tool
    async def last_words() -> str:
        """Abort, then answer."""
        signal.abort()
        return "kept"

    model = mock_model([call("last_words"), "never"])
    result = await within(create_agent(provider=model, tools=[last_words]).send("go", signal=signal))
    assert (result.finish_reason, told(result), len(model.calls)) == ("aborted", ["kept"], 1)


class Overloaded(Exception):
    """A reason of the application's own."""


@pytest.mark.spec("RUN-17")
@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        pytest.param(lambda s: s.abort("user left"), {"name": "AbortError", "message": "user left"}, id="a text"),
        pytest.param(lambda s: s.abort(Overloaded("busy")), {"name": "Overloaded", "message": "busy"}, id="an error"),
    ],
)
async def test_the_reason_of_an_abort_is_in_the_result(stop: Any, reason: dict[str, str]):
    provider, signal = Silent(), CancelSignal()
    task = asyncio.ensure_future(create_agent(provider=provider).send("go", signal=signal))
    await within(provider.begun.wait())
    stop(signal)
    result = await within(task)
    assert result.abort_reason == result.to_dict()["abortReason"] == reason


@pytest.mark.spec("RUN-17")
async def test_an_abort_without_a_reason_and_one_by_the_clock_have_their_names():
    for signal, name in ((CancelSignal(), "AbortError"), (CancelSignal.timeout(20), "TimeoutError")):
        provider = Silent()
        task = asyncio.ensure_future(create_agent(provider=provider).send("go", signal=signal))
        await within(provider.begun.wait())
        if name == "AbortError":
            signal.abort()
        reason = (await within(task)).abort_reason
        assert reason is not None
        assert reason["name"] == name
        assert reason["message"].strip()
    finished = await create_agent(provider=mock_model(["Hi."])).send("go", signal=CancelSignal())
    assert finished.abort_reason is None
    assert "abortReason" not in finished.to_dict()


@pytest.mark.spec("RUN-19")
async def test_a_signal_that_was_aborted_before_ends_the_run_at_once():
    signal = CancelSignal()
    signal.abort("before")
    model = mock_model(["never"])
    agent = create_agent(provider=model)
    run = agent.stream("go", signal=signal)
    assert types(await collect(run)) == ["run.start", "run.done"]
    for result in (
        await run.result,
        await agent.send("go", signal=signal),
        await agent.session("s").send("go", signal=signal),
    ):
        assert (result.finish_reason, result.steps, result.text) == ("aborted", 0, "")
    assert model.calls == ()
    assert await agent.session("s").load() == []


@pytest.mark.spec("RUN-10")
async def test_sends_streams_turns_and_decisions_take_a_signal():
    signal = CancelSignal()
    signal.abort("stopped")
    agent = create_agent(provider=mock_model([call("deploy", to="a"), *["never"] * 9]), tools=[deploy])
    paused = await agent.send("go")
    results = [
        await agent.send("go", signal=signal),
        await agent.stream("go", signal=signal).result,
        await agent.session("a").send("go", signal=signal),
        await agent.session("b").stream("go", signal=signal).result,
        await agent.approvals.resolve(id=str(paused.approval_id), approved=True, signal=signal),
    ]
    assert {(one.finish_reason, (one.abort_reason or {})["message"]) for one in results} == {("aborted", "stopped")}
