"""The handle of a streamed run, row by row of the streaming page: its events, its result, and leaving it early."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import chunks, within
from runs import ChunkProvider, call, calls, collect, of_type, types

from lousho import (
    CancelSignal,
    ConfigurationError,
    LLMProviderError,
    PropagatingToolError,
    SDKError,
    ToolContext,
    create_agent,
    tool,
)
from lousho.models.provider import Failure, ModelChunk, ModelRequest, TextDelta
from lousho.testing import check_event_order, mock_model


@tool
async def lookup(word: str) -> dict[str, str]:
    """Look a word up."""
    return {"word": word}


@tool(needs_approval=True)
async def deploy(to: str) -> str:
    """Deploy somewhere."""
    return f"deployed to {to}"


def endless(*pieces: str) -> ChunkProvider:
    """A model that says `pieces` and then nothing more."""

    async def turn(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        for piece in pieces:
            yield TextDelta(piece)
        await asyncio.Event().wait()

    return ChunkProvider(turn)


def plain(result: Any) -> dict[str, Any]:
    """A result as data, without what differs from run to run."""
    return {key: value for key, value in result.to_dict().items() if key not in ("runId", "approvalId", "approvalIds")}


ENDINGS = {
    "stop": ["Hello there."],
    "a tool": [{"text": "Let me see.", **call("lookup", word="a")}, "A word."],
    "calls that fail": [calls(("lookup", {}), ("ghost", {}), ("lookup", {"word": "b"})), "Some failed."],
    "max-steps": [call("lookup", word=str(n)) for n in range(10)],
    "a pause": [calls(("lookup", {"word": "a"}), ("deploy", {"to": "prod"}))],
}


@pytest.mark.spec("STRM-01", "STRM-02", "STRM-61")
@pytest.mark.parametrize("script", ENDINGS.values(), ids=list(ENDINGS))
async def test_a_stream_has_the_result_of_send_and_events_that_are_plain_json(script: list[Any]):
    def agent() -> Any:
        return create_agent(provider=mock_model(script), tools=[lookup, deploy])

    options: dict[str, Any] = {"metadata": {"user": 7}, "instructions": "Be brief.", "model_settings": {"seed": 3}}
    run = agent().stream("go", **options)
    events = await collect(run)
    streamed = await run.result
    assert plain(streamed) == plain(await agent().send("go", **options))
    assert {event.run_id for event in events} == {run.run_id} == {streamed.run_id}
    for event in events:
        wire = event.to_dict()
        assert json.loads(json.dumps(wire, allow_nan=False)) == wire
        assert not any("_" in key for key in wire)


@pytest.mark.spec("STRM-01")
def test_the_blocking_twin_is_iterated_without_an_event_loop():
    agent = create_agent(provider=mock_model(ENDINGS["a tool"]), tools=[lookup])
    events = list(agent.stream_sync("go"))
    check_event_order(events)
    assert types(events)[-3:] == ["text.done", "step.done", "run.done"]
    assert events[-1].to_dict()["text"] == "A word."


@pytest.mark.spec("STRM-03", "STRM-08")
async def test_a_run_goes_on_without_a_reader_and_keeps_every_event_for_a_late_one():
    begun = asyncio.Event()

    @tool
    async def note() -> str:
        """Say that it runs."""
        begun.set()
        return "noted"

    words = " ".join(str(n) for n in range(2_000))
    run = create_agent(provider=mock_model([call("note"), words]), tools=[note]).stream("go")
    await within(begun.wait())  # nobody has iterated or awaited anything of it yet
    result = await within(run.result)
    assert result.text == words
    events = await collect(run)
    assert [event.seq for event in events] == list(range(len(events)))
    assert "".join(event.text for event in of_type(events, "text.delta")) == words
    assert len(of_type(events, "text.delta")) == 2_000


@pytest.mark.spec("STRM-08")
async def test_the_run_does_not_wait_for_a_slow_reader():
    run = create_agent(provider=mock_model(["One two three four five.", "never"])).stream("go")
    reader = aiter(run)
    first = await anext(reader)
    result = await within(run.result)  # over, though its reader has taken one event
    rest = [event async for event in reader]
    assert result.finish_reason == "stop"
    check_event_order([first, *rest])
    assert "".join(event.text for event in of_type(rest, "text.delta")) == "One two three four five."


class Boom(PropagatingToolError):
    pass


@tool
async def explode() -> str:
    """End the run."""
    raise Boom("bang")


FAILURES = {
    "a tool": (lambda: mock_model([call("explode")]), Boom),
    "a model": (lambda: mock_model([{"error": LLMProviderError("down", provider="mock")}]), LLMProviderError),
    "a chunk": (lambda: chunks([TextDelta("a"), Failure(RuntimeError("cut"))]), LLMProviderError),
}


@pytest.mark.spec("STRM-04", "STRM-05")
@pytest.mark.parametrize(("provider", "error"), FAILURES.values(), ids=list(FAILURES))
async def test_a_failed_run_yields_its_end_and_then_raises_what_send_raises(provider: Any, error: type[Exception]):
    with pytest.raises(error) as sent:
        await create_agent(provider=provider(), tools=[explode], on_event=lambda _: None).send("go")

    run = create_agent(provider=provider(), tools=[explode]).stream("go")
    events: list[Any] = []
    with pytest.raises(error) as iterated:
        async for event in run:
            events.append(event)
    check_event_order(events)
    assert [event.type for event in events[-2:]] == ["error", "run.done"]
    assert (events[-1].finish_reason, events[-1].text) == ("error", "")
    with pytest.raises(error) as awaited:
        await run.result
    assert awaited.value is iterated.value
    assert str(awaited.value) == str(sent.value)
    assert getattr(awaited.value, "code", None) == getattr(sent.value, "code", None)

    quiet = create_agent(provider=provider(), tools=[explode]).stream("go", throw_on_error=False)
    assert types(await collect(quiet)) == types(events)  # ends normally
    with pytest.raises(error):
        await quiet.result


@pytest.mark.spec("STRM-04")
async def test_a_result_that_nobody_awaits_leaves_no_trace_in_the_log(caplog: pytest.LogCaptureFixture):
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    with caplog.at_level(logging.WARNING):
        for provider in (mock_model([call("explode")]), mock_model(["Fine."])):
            run = create_agent(provider=provider, tools=[explode]).stream("go", throw_on_error=False)
            await collect(run)
            del run
            gc.collect()
            await asyncio.sleep(0)
        unread = create_agent(provider=mock_model([call("explode")]), tools=[explode]).stream("go")
        while not unread.done:
            await asyncio.sleep(0)
        del unread
        gc.collect()
        await asyncio.sleep(0)
    assert complaints == []
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.spec("STRM-04", "STRM-06")
async def test_aborts_and_pauses_are_results_and_raise_nowhere():
    agent = create_agent(provider=mock_model([call("deploy", to="a"), call("deploy", to="b")]), tools=[deploy])
    paused = agent.stream("go")
    await collect(paused)
    result = await paused.result
    assert (result.finish_reason, result.approval_id) == ("awaiting-approval", result.approval_ids[0])
    assert [one.id for one in await agent.approvals.list()] == [result.approval_id]

    signal = CancelSignal()
    run = create_agent(provider=endless("Half ")).stream("go", signal=signal)
    async for event in run:
        if event.type == "text.delta":
            signal.abort()
    assert ((await run.result).finish_reason, (await run.result).text) == ("aborted", "Half ")


@pytest.mark.spec("STRM-06")
async def test_streams_of_sessions_and_decisions_end_normally_though_the_run_fails():
    broken = create_agent(provider=mock_model([call("explode")]), tools=[explode])
    turn = broken.session("s").stream("go")
    assert types(await collect(turn))[-2:] == ["error", "run.done"]
    with pytest.raises(Boom):
        await turn.result

    agent = create_agent(provider=mock_model([call("deploy", to="a"), call("explode")]), tools=[deploy, explode])
    paused = await agent.send("go")
    decided = agent.approvals.stream_resolve(id=str(paused.approval_id), approved=True)
    assert types(await collect(decided))[-2:] == ["error", "run.done"]
    with pytest.raises(Boom):
        await decided.result
    unknown = agent.approvals.stream_resolve(id="ap-none.1", approved=True)
    assert types(await collect(unknown)) == ["run.start", "error", "run.done"]
    with pytest.raises(SDKError, match="LOUSHO_APPROVAL_NOT_FOUND"):
        await unknown.result


@pytest.mark.spec("STRM-06", "STRM-07")
@pytest.mark.parametrize("how", ["break", "aclose of the run", "aclose of the iterator", "async with"])
async def test_leaving_early_aborts_the_run_as_a_signal_would(how: str):
    seen: list[CancelSignal] = []

    @tool
    async def wait(ctx: ToolContext) -> str:
        """Wait for ever."""
        seen.append(ctx.abort_signal)
        await asyncio.Event().wait()
        return "x"

    model = mock_model([{"text": "One moment.", **call("wait")}, "never"])
    run = create_agent(provider=model, tools=[wait]).stream("go")
    reader = aiter(run)
    async for event in reader:
        if event.type == "tool.start":
            break
    while not seen:
        await asyncio.sleep(0)
    if how == "aclose of the run":
        await within(run.aclose())
    elif how == "aclose of the iterator":
        await within(reader.aclose())
    elif how == "async with":
        async with run:
            pass
        assert run.done
    else:
        del reader
        gc.collect()
    result = await within(run.result)
    assert (result.finish_reason, result.text, len(model.calls)) == ("aborted", "One moment.", 1)
    assert [one.aborted for one in seen] == [True]
    assert json.loads(str(result.messages[-1].content))["kind"] == "cancelled"


@pytest.mark.spec("STRM-09")
async def test_a_run_is_iterated_once():
    run = create_agent(provider=mock_model(["Hi."])).stream("go")
    events = await collect(run)
    with pytest.raises(SDKError) as caught:
        aiter(run)
    assert caught.value.code == "LOUSHO_RUN_ALREADY_ITERATED"
    assert (await run.result).text == "Hi."
    assert events[-1].type == "run.done"


@pytest.mark.spec("STRM-10")
@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("go", {"max_steps": 0}),
        ("go", {"signal": "now"}),
        ("go", {"metadata": [1]}),
        ("go", {"instructions": 7}),
        ("go", {"model_settings": {"temprature": 1}}),
        (7, {}),
        ([{"role": "wizard", "content": "x"}], {}),
    ],
    ids=repr,
)
async def test_options_that_make_no_sense_raise_from_the_call_itself(given: Any, options: dict[str, Any]):
    model = mock_model(["never"])
    agent = create_agent(provider=model)
    for start in (agent.stream, agent.session("s").stream):
        with pytest.raises(SDKError) as caught:
            start(given, **options)
        assert caught.value.code.startswith("LOUSHO_")
    with pytest.raises(ConfigurationError):
        create_agent(provider=model, tool_concurrency=0)
    await asyncio.sleep(0)
    assert model.calls == ()
