"""What a run of the executor can be told: limits, sampling, listeners, observers - and what is refused, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest
from runs import call, calls, collect, of_type, types

import lousho
from lousho import ConfigurationError, Message, SDKError, tool
from lousho.executor import AgentBuilder, AgentConfig, AgentExecutor
from lousho.models.provider import Finish, ModelChunk, ModelRequest, ModelResponse, TextDelta
from lousho.testing import check_event_order, mock_model


@tool
async def lookup(word: str) -> str:
    """Look a word up."""
    return word.upper()


@tool
async def broken(word: str) -> str:
    """Look a word up in a library that burned down."""
    raise RuntimeError("no books left")


def librarian(*tools: Any) -> AgentConfig:
    return AgentBuilder.create().set_name("Librarian").set_prompt("You look words up.").add_tools(tools).build()


@pytest.mark.spec("EXEC-06")
async def test_limits_and_sampling_are_options_of_the_call():
    model = mock_model([call("lookup", word="a")] * 3)
    agent = dataclasses.replace(librarian(lookup), model_settings={"temperature": 1, "top_p": 0.5})
    result = await AgentExecutor.execute(
        agent=agent, input="a", provider=model, max_steps=2, temperature=0.25, max_tokens=77, model_settings={"seed": 3}
    )
    assert (result.finish_reason, result.steps, len(model.calls)) == ("max-steps", 2, 2)
    sent = model.calls[0]
    assert (sent.temperature, sent.max_tokens, sent.top_p, sent.seed) == (0.25, 77, 0.5, 3)
    with pytest.raises(ConfigurationError) as caught:
        await AgentExecutor.execute(
            agent=agent, input="a", provider=model, temperature=0.1, model_settings={"temperature": 0.2}
        )
    assert caught.value.code == "LOUSHO_CONFIG_CONFLICTING_OPTIONS"


@pytest.mark.spec("RUN-05")
@pytest.mark.parametrize(
    ("before", "reason", "asked", "steps"),
    [(0, "stop", 3, 3), (2, "max-steps", 2, 4), (4, "max-steps", 0, 4), (9, "max-steps", 0, 9)],
)
async def test_steps_taken_before_count_for_the_limit_and_in_the_result(
    before: int, reason: str, asked: int, steps: int
):
    model = mock_model([call("lookup", word="a"), call("lookup", word="b"), "Done."])
    events: list[Any] = []
    result = await AgentExecutor.execute(
        agent=librarian(lookup),
        input="a",
        provider=model,
        max_steps=4,
        initial_steps=before,
        on_agent_event=events.append,
    )
    assert (result.finish_reason, len(model.calls), result.steps) == (reason, asked, steps)
    check_event_order(events)
    assert [event.step for event in of_type(events, "step.start")] == list(range(before + 1, before + asked + 1))


class Chunked:
    """A provider that says how it was asked."""

    name = "chunked"
    default_model = "chunked-1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.asked.append("generate")
        return ModelResponse(text="One two")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        self.asked.append("stream")
        for piece in ("One", " two"):
            yield TextDelta(piece)
        yield Finish("stop")

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


@pytest.mark.spec("EXEC-08", "STRM-22")
async def test_a_listener_makes_the_model_stream_unless_whole_steps_are_asked_for():
    async def deltas(**options: Any) -> tuple[list[str], int]:
        provider, events = Chunked(), []
        await AgentExecutor.execute(
            agent=AgentConfig(), input="Hi", provider=provider, on_agent_event=events.append, **options
        )
        check_event_order(events)
        return provider.asked, len(of_type(events, "text.delta"))

    assert await deltas() == (["stream"], 2)
    assert await deltas(stream_model_calls=True) == (["stream"], 2)
    assert await deltas(stream_model_calls=False) == (["generate"], 1)
    unheard = Chunked()
    await AgentExecutor.execute(agent=AgentConfig(), input="Hi", provider=unheard)
    assert unheard.asked == ["generate"]
    for listener in (None, print):
        streamed = Chunked()
        run = AgentExecutor.stream(
            agent=AgentConfig(), input="Hi", provider=streamed, stream_model_calls=False, on_agent_event=listener
        )
        assert len(of_type(await collect(run), "text.delta")) == 2
        assert streamed.asked == ["stream"]


@pytest.mark.spec("EXEC-07", "STRM-20")
async def test_the_listener_hears_every_event_as_an_iteration_would():
    def options(heard: list[Any]) -> dict[str, Any]:
        model = mock_model([{"text": "Wait.", **calls(("lookup", {"word": "a"}), ("broken", {"word": "b"}))}, "Done."])
        return {"agent": librarian(lookup, broken), "input": "a", "provider": model, "on_agent_event": heard.append}

    def shape(events: list[Any]) -> list[dict[str, Any]]:
        moving = ("runId", "timestamp", "durationMs")
        return [{key: value for key, value in one.to_dict().items() if key not in moving} for one in events]

    executed: list[Any] = []
    await AgentExecutor.execute(**options(executed))
    check_event_order(executed)
    streamed: list[Any] = []
    iterated = await collect(AgentExecutor.stream(**options(streamed)))
    assert streamed == iterated  # the very events
    assert shape(executed) == shape(iterated)
    assert (executed[0].type, executed[-1].type) == ("run.start", "run.done")
    assert {"step.start", "tool.start", "tool.done", "tool.error", "text.delta", "text.done", "step.done"} <= set(
        types(executed)
    )


@pytest.mark.spec("STRM-21")
async def test_a_listener_that_raises_is_logged_once_and_the_run_goes_on(caplog: pytest.LogCaptureFixture):
    def listener(event: Any) -> None:
        raise LookupError("not today")

    model = mock_model([call("lookup", word="a"), "Done."])
    result = await AgentExecutor.execute(agent=librarian(lookup), input="a", provider=model, on_agent_event=listener)
    assert result.text == "Done."
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.spec("EXEC-11")
async def test_observers_see_every_model_call_and_every_tool_call():
    seen: list[tuple[str, Any]] = []

    def note(kind: str) -> Any:
        return lambda what: seen.append((kind, what))

    model = mock_model([calls(("lookup", {"word": "a"}), ("broken", {"word": "b"})), "Done."])
    result = await AgentExecutor.execute(
        agent=librarian(lookup, broken),
        input="a",
        provider=model,
        tool_concurrency=1,
        on_llm_request=note("request"),
        on_llm_response=note("response"),
        on_tool_call=note("call"),
        on_tool_result=note("result"),
    )
    assert result.text == "Done."
    assert [kind for kind, _ in seen] == [
        *("request", "response", "call", "result", "call", "result", "request", "response"),
    ]
    assert seen[0][1].messages[-1] == Message("user", "a")
    assert [one.text for kind, one in seen if kind == "response"] == ["", "Done."]
    assert [(one.tool_name, one.args) for kind, one in seen if kind == "call"] == [
        ("lookup", {"word": "a"}),
        ("broken", {"word": "b"}),
    ]
    assert [one.type for kind, one in seen if kind == "result"] == ["tool.done", "tool.error"]


@pytest.mark.spec("EXEC-11")
async def test_an_observer_that_raises_does_not_fail_the_run():
    def bad(what: Any) -> None:
        raise LookupError("not today")

    watching: dict[str, Any] = dict.fromkeys(
        ("on_llm_request", "on_llm_response", "on_tool_call", "on_tool_result"), bad
    )
    model = mock_model([call("lookup", word="a"), "Done."])
    result = await AgentExecutor.execute(agent=librarian(lookup), input="a", provider=model, **watching)
    assert result.text == "Done."


@pytest.mark.spec("STRM-25")
@pytest.mark.parametrize("start", [AgentExecutor.execute, AgentExecutor.stream])
async def test_the_old_listener_is_an_unknown_option_and_its_event_names_are_gone(start: Any):
    with pytest.raises(ConfigurationError) as caught:
        await start(agent=AgentConfig(), input="a", provider=mock_model([]), on_event=print)
    assert (caught.value.code, caught.value.field) == ("LOUSHO_CONFIG_INVALID", "on_event")
    assert "did you mean 'on_agent_event'?" in caught.value.detail
    events: list[Any] = []
    model = mock_model([call("lookup", word="a"), "Done."])
    await AgentExecutor.execute(agent=librarian(lookup), input="a", provider=model, on_agent_event=events.append)
    old = {"start", "text-delta", "text-complete", "tool-call", "tool-result", "abort", "finish"}
    assert {event.type for event in events} & old == set()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"maxSteps": 3}, "did you mean 'max_steps'?", id="camelCase"),
        pytest.param({"temprature": 0}, "did you mean 'temperature'?", id="a typo"),
        pytest.param({"imput": "a"}, "did you mean 'input'?", id="a part"),
        pytest.param({"tools": []}, "belongs to the agent: AgentBuilder.add_tool()", id="of the agent"),
        pytest.param({"store": object()}, "did you mean 'approval_store'?", id="of create_agent"),
        pytest.param({"throw_on_error": False}, "not of this call", id="of the stream"),
        pytest.param({"limits": {"max_tokens": 9}}, "'limits' (budgets) is not available in this version", id="later"),
        pytest.param({"checkpoint_store": object()}, "'checkpoint_store' (", id="checkpoints"),
        pytest.param({"max_steps": 0}, "max_steps must be a whole number", id="a value"),
        pytest.param({"initial_steps": -1}, "initial_steps must be a whole number", id="before the first"),
        pytest.param({"tool_concurrency": 1.5}, "tool_concurrency must be", id="half a call"),
        pytest.param({"on_tool_call": 7}, "on_tool_call must be a plain function", id="no function"),
        pytest.param({"stream_model_calls": "no"}, "stream_model_calls must be True or False", id="a word"),
        pytest.param({"approval_store": lousho.memory_store()}, "pass its `approvals`", id="a whole store"),
        pytest.param({"metadata": 7}, "metadata must be a mapping", id="metadata"),
        pytest.param({"session_id": "a/b"}, "a/b", id="a session id"),
        pytest.param({"signal": 7}, "signal must be a CancelSignal", id="a signal"),
    ],
)
async def test_what_cannot_be_meant_is_refused_before_the_model_is_asked(options: dict[str, Any], says: str):
    model = mock_model(["never"])
    with pytest.raises(SDKError) as caught:
        await AgentExecutor.execute(agent=AgentConfig(), input="a", provider=model, **options)
    assert says in caught.value.detail
    assert "create_agent" not in caught.value.detail
    assert model.calls == ()


async def test_an_async_listener_is_refused_because_nobody_would_wait_for_it():
    async def listener(event: Any) -> None: ...

    with pytest.raises(ConfigurationError, match="on_agent_event must be a plain function"):
        await AgentExecutor.execute(agent=AgentConfig(), input="a", provider=mock_model([]), on_agent_event=listener)


@pytest.mark.parametrize("provider", ["openai/gpt-4.1-mini", 7, object()])
async def test_what_is_no_provider_is_refused(provider: Any):
    with pytest.raises(ConfigurationError) as caught:
        await AgentExecutor.execute(agent=AgentConfig(), input="a", provider=provider)
    assert caught.value.detail.startswith("AgentExecutor.execute: provider must be a provider object")
