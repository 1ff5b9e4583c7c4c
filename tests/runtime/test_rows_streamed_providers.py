"""What a provider of any kind gives to a streamed run, row by row of the streaming page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hostile import asks, chunks, within
from runs import ChunkProvider, collect, of_type, types

from lousho import CancelSignal, LLMProviderError, ModelUsage, create_agent, tool
from lousho.models.provider import Failure, Finish, ModelChunk, ModelRequest, ModelResponse, TextDelta
from lousho.testing import check_event_order


@tool
async def lookup(word: str) -> dict[str, str]:
    """Look a word up."""
    return {"word": word}


class Counting:
    """A provider that notes which of its two ways was used; without `streams` it has no stream at all."""

    name = "counting"
    default_model = "counting-1"

    def __init__(self, *, supports: bool | None = True) -> None:
        self.used: list[str] = []
        self.supports = supports
        self.asked: list[str | None] = []

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.used.append("generate")
        return ModelResponse(text="One two three.", usage=ModelUsage(input_tokens=3, output_tokens=4))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.used.append("stream")
        for piece in ("One ", "two ", "three."):
            yield TextDelta(piece)
        yield Finish("stop", ModelUsage(input_tokens=3, output_tokens=4))

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        self.asked.append(model)
        return bool(self.supports)

    async def get_models(self) -> list[str]:
        return []


class Whole:
    """A provider without `stream()`."""

    name = "whole"
    default_model = "whole-1"

    async def generate(self, request: ModelRequest) -> ModelResponse:
        return ModelResponse(text="One two three.", usage=ModelUsage(input_tokens=3, output_tokens=4))

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


@pytest.mark.spec("STRM-60", "STRM-22")
@pytest.mark.parametrize(
    ("provider", "deltas", "used"),
    [
        (Counting(), ["One ", "two ", "three."], ["stream"]),
        (Counting(supports=False), ["One two three."], ["generate"]),
        (Whole(), ["One two three."], None),
    ],
    ids=["streams", "cannot stream this model", "has no stream()"],
)
async def test_deltas_come_as_the_provider_gives_them_or_the_text_at_once(provider: Any, deltas: list[str], used: Any):
    run = create_agent(provider=provider, model="m-7").stream("go")
    events = await collect(run)
    assert [event.text for event in of_type(events, "text.delta")] == deltas
    assert [event.text for event in of_type(events, "text.done")] == ["One two three."]
    assert (await run.result).usage.total_tokens == 7
    if used is not None:
        assert provider.used == used
        assert set(provider.asked) == {"m-7"}


@pytest.mark.spec("STRM-22")
async def test_send_streams_its_model_calls_only_for_a_listener():
    alone = Counting()
    await create_agent(provider=alone).send("go")
    heard: list[Any] = []
    listened = Counting()
    await create_agent(provider=listened, on_event=heard.append).send("go")
    assert (alone.used, listened.used) == (["generate"], ["stream"])
    assert len(of_type(heard, "text.delta")) == 3


@pytest.mark.spec("STRM-60", "STRM-62")
async def test_a_provider_of_ones_own_streams_text_calls_and_a_finish():
    first = [
        TextDelta("Look"),
        TextDelta("ing."),
        asks("lookup", '{"word": "a"}'),
        asks("lookup", '{"word": "b"}', "c2"),
    ]
    provider = chunks(
        [*first, Finish("tool_calls", ModelUsage(input_tokens=5, output_tokens=6))],
        [TextDelta("Done."), Finish("stop")],
    )
    run = create_agent(provider=provider, tools=[lookup]).stream("go")
    events = await collect(run)
    assert [event.args for event in of_type(events, "tool.start")] == [{"word": "a"}, {"word": "b"}]
    assert [event.text for event in of_type(events, "text.delta")] == ["Look", "ing.", "Done."]
    ends = of_type(events, "step.done")
    assert [event.finish_reason for event in ends] == ["tool_calls", "stop"]
    assert (ends[0].usage.input_tokens, ends[0].usage.output_tokens, ends[0].usage.estimated) == (5, 6, False)
    assert [one.tool_call_id for one in provider.requests[1].messages if one.role == "tool"] == ["c1", "c2"]


@pytest.mark.spec("STRM-62")
async def test_an_error_chunk_fails_the_step_and_nothing_of_it_is_acted_on():
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Do something."""
        ran.append("act")
        return "x"

    provider = chunks([TextDelta("I will "), asks("act"), Failure(ConnectionError("line cut"))])
    run = create_agent(provider=provider, tools=[act]).stream("go", throw_on_error=False)
    events = await collect(run)
    assert types(events) == ["run.start", "step.start", "text.delta", "step.done", "error", "run.done"]
    assert (events[-3].finish_reason, events[-1].finish_reason, ran) == ("error", "error", [])
    with pytest.raises(LLMProviderError, match="line cut"):
        await run.result


@pytest.mark.spec("STRM-63", "STRM-61")
async def test_an_abort_is_heard_between_two_chunks_of_a_model_that_never_waits():
    taken = 0

    async def torrent(_: ModelRequest) -> AsyncIterator[ModelChunk]:
        nonlocal taken
        while True:
            taken += 1
            yield TextDelta("a")

    signal = CancelSignal()
    run = create_agent(provider=ChunkProvider(torrent)).stream("go", signal=signal)
    events: list[Any] = []

    async def read() -> None:
        async for event in run:
            events.append(event)
            if len(events) == 50:
                signal.abort()

    await within(read())
    check_event_order(events)
    assert [(event.type, event.finish_reason) for event in events[-2:]] == [
        ("step.done", "aborted"),
        ("run.done", "aborted"),
    ]
    result = await run.result
    assert result.text == "a" * len(of_type(events, "text.delta"))
    assert result.messages[-1].interrupted
    seen = taken
    await asyncio.sleep(0)
    assert taken == seen
