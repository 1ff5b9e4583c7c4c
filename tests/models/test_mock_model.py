"""The scripted model: turns, recorded requests, running out."""

from __future__ import annotations

import asyncio
import copy
import json
import selectors
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from fake_vendor import collect, request
from fake_vendor import tool as definition

from lousho import create_agent, tool
from lousho.core.cancel import CancelSignal
from lousho.core.errors import CompactedLLMProviderError, ConfigurationError, LLMProviderError, SDKError
from lousho.core.messages import ImagePart, Message, ReasoningBlock, TextPart
from lousho.core.usage import ModelUsage
from lousho.models.provider import Finish, LLMProvider, ReasoningDelta, ReasoningEnd, TextDelta
from lousho.testing import mock_model


@tool
def get_weather(city: str) -> dict[str, Any]:
    """Get the weather for a city."""
    return {"city": city, "tempC": 21}


@pytest.mark.spec("TEST-01")
async def test_each_text_of_a_script_is_one_answer():
    model = mock_model(["Hello! How can I help?", "Bye."])
    agent = create_agent(instructions="You are friendly.", provider=model)
    assert [(await agent.send("hi")).text, (await agent.send("bye")).text] == ["Hello! How can I help?", "Bye."]
    assert isinstance(model, LLMProvider)


@pytest.mark.spec("TEST-01", "TEST-02", "QS-14")
async def test_a_scripted_tool_call_is_run_and_its_result_sent_back():
    model = mock_model(
        [{"toolCalls": [{"name": "get_weather", "args": {"city": "Paris"}}]}, {"text": "It is 21°C in Paris."}]
    )
    agent = create_agent(instructions="You report the weather.", provider=model, tools=[get_weather])
    result = await agent.send("Weather in Paris?")
    assert result.text == "It is 21°C in Paris."
    assert len(model.calls) == 2
    last = model.calls[1].messages[-1]
    assert (last.role, last.tool_call_id, json.loads(str(last.content))) == (
        "tool",
        "call_1",
        {"city": "Paris", "tempC": 21},
    )
    model.assert_exhausted()


@pytest.mark.spec("TEST-02")
@pytest.mark.parametrize("camel", [False, True], ids=["snake_case", "camelCase"])
async def test_every_key_of_a_turn_is_heard(camel: bool):
    turn: dict[str, Any] = {
        "text": "Let me look.",
        "tool_calls": [{"name": "a"}, {"name": "b", "args": {"n": [1, "ü"]}}, {"name": "c", "id": "mine"}],
        "usage": {"input_tokens": 3, "output_tokens": 5, "cached_input_tokens": 1},
        "finish_reason": "length",
        "reasoning": [{"text": "hm", "signature": "s"}],
        "delay_ms": 0,
    }
    if camel:
        names = {"tool_calls": "toolCalls", "finish_reason": "finishReason", "delay_ms": "delayMs"}
        turn = {names.get(key, key): value for key, value in turn.items()}
        turn["usage"] = {"inputTokens": 3, "outputTokens": 5, "cachedInputTokens": 1}
    response = await mock_model([turn]).generate(request())
    assert response.text == "Let me look."
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [
        ("call_1", "a", "{}"),
        ("call_2", "b", '{"n": [1, "ü"]}'),
        ("mine", "c", "{}"),
    ]
    assert response.usage == ModelUsage(input_tokens=3, output_tokens=5, cached_input_tokens=1)
    assert (response.finish_reason, response.reasoning) == ("length", (ReasoningBlock("hm", "s"),))


@pytest.mark.spec("TEST-02")
async def test_keys_that_are_left_out_have_their_defaults_and_ids_go_on_counting():
    model = mock_model(
        [{}, {"tool_calls": [{"name": "a"}]}, {"tool_calls": [{"name": "a"}, {"name": "b", "id": "call_3"}]}]
    )
    first, second, third = [await model.generate(request()) for _ in range(3)]
    assert (first.text, first.tool_calls, first.finish_reason) == ("", (), "stop")
    assert (second.finish_reason, [call.id for call in second.tool_calls]) == ("tool_calls", ["call_1"])
    assert [call.id for call in third.tool_calls] == ["call_2", "call_3"]


@pytest.mark.spec("TEST-03")
async def test_a_turn_without_usage_is_estimated():
    agent = create_agent(provider=mock_model(["Hello there"]))
    assert (await agent.send("hi")).usage.estimated
    counted = create_agent(provider=mock_model([{"text": "x", "usage": {"input_tokens": 7, "output_tokens": 2}}]))
    usage = (await counted.send("hi")).usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (7, 2, False)


@pytest.mark.spec("TEST-02", "TEST-04")
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_an_error_turn_fails_the_call_and_is_recorded(streamed: bool):
    error = LLMProviderError("upstream 503", status_code=503)
    model = mock_model([{"error": error}])
    agent = create_agent(provider=model, on_event=(lambda _: None) if streamed else None)
    with pytest.raises(CompactedLLMProviderError, match="upstream 503") as failed:
        await agent.send("hi")
    assert failed.value.cause is error
    assert len(model.calls) == 1
    with pytest.raises(LLMProviderError) as raised:
        twin = mock_model([{"error": error}])
        await (collect(twin.stream(request())) if streamed else twin.generate(request()))
    assert raised.value is error


@pytest.mark.spec("TEST-05")
async def test_recorded_requests_never_change():
    parameters = {"type": "object", "properties": {"tags": {"enum": ["a"]}}}
    tools = [definition()]
    sent = request(Message("user", "one", metadata={"n": {"deep": [1]}}), tools=tools, stop=["x"], tool_choice="auto")
    model = mock_model(["a", "b"], on_exhausted="repeat-last")
    sent.tools[0].function.parameters["properties"]["city"]["enum"] = ["Paris"]  # type: ignore[index]
    await model.generate(sent)
    sent.messages[0].metadata["n"]["deep"].append(2)  # type: ignore[index]
    sent.messages.append(Message("user", "two"))
    sent.tools[0].function.parameters["properties"]["city"]["enum"].append("Rome")
    sent.tools.append(definition("later"))
    sent.stop.append("y")  # type: ignore[union-attr]
    sent.response_format = {"type": "json", "schema": parameters}
    await model.generate(sent)
    first, second = model.calls
    assert [message.content for message in first.messages] == ["one"]
    assert first.messages[0].metadata == {"n": {"deep": [1]}}
    assert [tool.function.name for tool in first.tools] == ["get_weather"]
    assert first.tools[0].function.parameters["properties"]["city"]["enum"] == ["Paris"]
    assert first.stop == ("x",)
    assert second.tools[0].function.parameters["properties"]["city"]["enum"] == ["Paris", "Rome"]
    assert model.last_call is second
    assert json.loads(json.dumps(second.response_format)) == {"type": "json", "schema": parameters}


@pytest.mark.spec("TEST-05")
@pytest.mark.parametrize(
    "write",
    [
        lambda call: setattr(call, "temperature", 1),
        lambda call: setattr(call.messages[0], "content", "x"),
        lambda call: call.messages.append(1),
        lambda call: call.messages[0].metadata.update(a=1),
        lambda call: call.messages[0].metadata["n"].append(1),
        lambda call: call.tools[0].function.parameters["properties"].pop("city"),
        lambda call: call.tools[0].function.parameters["required"].append("x"),
        lambda call: call.tools[0].function.parameters.__setitem__("type", "x"),
        lambda call: call.tools[0].function.parameters["required"].sort(),
        lambda call: call.response_format.clear(),
    ],
)
async def test_writing_to_a_recorded_request_raises(write: Callable[[Any], Any]):
    model = mock_model(["a"])
    assert model.last_call is None
    await model.generate(
        request(Message("user", "x", metadata={"n": [1]}), tools=[definition()], response_format={"type": "json"})
    )
    before = copy.deepcopy(model.calls[0])
    with pytest.raises((FrozenInstanceError, TypeError, AttributeError)):
        write(model.calls[0])
    assert model.calls[0] == before


@pytest.mark.spec("TEST-06")
async def test_a_recorded_request_has_the_settings_and_tools_as_sent():
    model = mock_model(["ok"])
    agent = create_agent(
        instructions="Be brief.", provider=model, model="m1", tools=[get_weather], model_settings={"temperature": 0.2}
    )
    await agent.send("hi", model_settings={"max_tokens": 9, "seed": 1})
    call = model.last_call
    assert call is not None
    assert (call.model, call.temperature, call.max_tokens, call.seed, call.top_p) == ("m1", 0.2, 9, 1, None)
    assert [message.role for message in call.messages] == ["system", "user"]
    assert [tool.function.name for tool in call.tools] == ["get_weather"]


@pytest.mark.spec("TEST-07")
async def test_a_function_turn_gets_the_request_and_returns_a_text_or_a_turn():
    async def slow(call: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"text": f"async {call.messages[-1].content}", "finish_reason": "length"}

    model = mock_model([lambda call: f"You said: {call.messages[-1].content}", slow])
    first = await model.generate({"messages": [{"role": "user", "content": "ping"}]})
    second = await model.generate({"messages": [{"role": "user", "content": "pong"}], "maxTokens": 5})
    assert first.text == "You said: ping"
    assert (second.text, second.finish_reason) == ("async pong", "length")
    assert model.calls[1].max_tokens == 5


@pytest.mark.spec("TEST-08")
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_a_call_beyond_the_script_says_which_it_was_and_reaches_the_caller_untouched(streamed: bool):
    model = mock_model([{"tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}}]}])
    agent = create_agent(provider=model, tools=[get_weather], on_event=(lambda _: None) if streamed else None)
    with pytest.raises(SDKError) as failed:
        await agent.send("hi")
    assert not isinstance(failed.value, CompactedLLMProviderError)
    assert failed.value.code == "LOUSHO_TEST_FAILED"
    assert "unexpected model call 2" in failed.value.detail
    assert "the script has 1 turn." in failed.value.detail
    assert 'tool: \'{"city":"Oslo","tempC":21}\'' in failed.value.detail
    assert "Add a turn to the script" in failed.value.detail


@pytest.mark.spec("TEST-08")
async def test_repeat_last_plays_the_last_turn_for_ever():
    model = mock_model(["a", "b"], on_exhausted="repeat-last")
    assert [(await model.generate(request())).text for _ in range(5)] == ["a", "b", "b", "b", "b"]
    model.assert_exhausted()


async def test_an_empty_script_has_nothing_to_repeat():
    with pytest.raises(SDKError, match="unexpected model call 1; the script has 0 turns"):
        await mock_model([], on_exhausted="repeat-last").generate(request())


@pytest.mark.spec("TEST-09", "QS-14", "ERR-101")
async def test_unused_turns_are_a_failed_test_and_reset_starts_over():
    model = mock_model([{"tool_calls": [{"name": "a"}]}, "second"])
    await model.generate(request())
    with pytest.raises(SDKError, match="1 of 2 scripted turns was used") as failed:
        model.assert_exhausted()
    assert failed.value.code == "LOUSHO_TEST_FAILED"
    model.reset()
    assert (model.calls, model.last_call) == ((), None)
    assert (await model.generate(request())).tool_calls[0].id == "call_1"
    await model.generate(request())
    model.assert_exhausted()


class JumpingClock(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.offset = 0.0
        inner = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None = None) -> Any:
            if timeout:
                self.offset += timeout
            return inner(0)

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return super().time() + self.offset


@pytest.mark.spec("TEST-02", "TEST-10")
def test_a_delay_is_time_of_the_event_loop_so_a_fake_clock_skips_it():
    order: list[str] = []

    async def ask(model: Any, name: str) -> None:
        await model.generate(request(signal=CancelSignal()) if name == "hour" else request())
        order.append(name)

    async def main() -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        hour, minute = (
            mock_model([{"text": "a", "delay_ms": 3_600_000}]),
            mock_model([{"text": "b", "delayMs": 60_000}]),
        )
        await asyncio.gather(ask(hour, "hour"), ask(minute, "minute"))
        return loop.time() - start

    with asyncio.Runner(loop_factory=JumpingClock) as runner:
        assert 3600 <= runner.run(main()) < 3610
    assert order == ["minute", "hour"]


async def test_a_delay_ends_when_the_run_is_stopped():
    signal = CancelSignal()
    call = asyncio.create_task(mock_model([{"delay_ms": 60_000}]).generate(request(signal=signal)))
    await asyncio.sleep(0)
    signal.abort(RuntimeError("stop"))
    with pytest.raises(RuntimeError, match="stop"):
        await asyncio.wait_for(call, 5)


@pytest.mark.spec("TEST-11")
async def test_a_stream_gives_words_then_tool_calls_then_the_finish():
    turn = {
        "text": "It is  21°C\nin Paris.",
        "reasoning": "hm",
        "tool_calls": [{"name": "a"}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    chunks = await collect(mock_model([turn]).stream(request()))
    assert chunks[:2] == [ReasoningDelta("hm"), ReasoningEnd(ReasoningBlock("hm"))]
    assert chunks[2:7] == [TextDelta(word) for word in ("It ", "is  ", "21°C\n", "in ", "Paris.")]
    assert [chunk.type for chunk in chunks[7:]] == ["tool-call", "finish"]
    assert chunks[-1] == Finish("tool_calls", ModelUsage(input_tokens=1, output_tokens=2))


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("Hello", "list of turns"),
        ([42], "a turn is a text, a mapping or a function; got int"),
        ([{"txt": "x"}], "'txt' is not a known key of a turn (did you mean 'text'?)"),
        ([{"text": 3}], "text must be a string"),
        ([{"toolCall": [{"name": "a"}]}], "did you mean 'tool_calls'?"),
        ([{"tool_calls": {"name": "a"}}], "tool_calls must be a list"),
        ([{"tool_calls": [{"args": {}}]}], "script[0].tool_calls[0]: a tool call needs a 'name'"),
        ([{"tool_calls": [{"name": "a", "args": {1, 2}}]}], "args must be JSON values"),
        ([{"tool_calls": [{"name": "a", "arguments": {}}]}], "pass values as 'args'"),
        ([{"finish_reason": "done"}], "finish_reason must be one of stop, length"),
        ([{"usage": {"input": 1}}], "'input' is not a known key of usage"),
        ([{"usage": {"input_tokens": -1}}], "usage.input_tokens must be a number"),
        ([{"delay_ms": "soon"}], "delay_ms must be a number"),
        ([{"error": 5}], "error must be an exception"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused_when_it_is_written(script: Any, problem: str):
    with pytest.raises(ConfigurationError) as refused:
        mock_model(script)
    assert refused.value.code == "LOUSHO_CONFIG_INVALID"
    assert problem in refused.value.detail


async def test_a_function_turn_that_returns_nonsense_is_named_by_its_call():
    with pytest.raises(ConfigurationError, match="function for call 1 returned"):
        await mock_model([lambda _: None]).generate(request())  # pyright: ignore[reportArgumentType]


async def test_arguments_may_be_the_raw_text_of_a_sloppy_model():
    response = await mock_model([{"tool_calls": [{"name": "a", "arguments": '{"city": '}]}]).generate(request())
    assert response.tool_calls[0].arguments == '{"city": '


async def test_the_last_message_is_shown_by_its_text():
    model = mock_model([])
    with pytest.raises(SDKError, match="user: 'Look: at it'"):
        await model.generate(request(Message("user", (TextPart("Look: "), ImagePart(b"x"), TextPart("at it")))))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("hi", "got str"),
        ({"messages": [], "tempratur": 1}, "did you mean 'temperature'"),
        ({"messages": [{"content": "x"}]}, "'role'"),
        ({"messages": [], "tools": [{"name": "x"}]}, "A tool of a model request"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(call: Any, problem: str):
    with pytest.raises(ConfigurationError) as refused:
        await mock_model(["a"]).generate(call)
    assert problem in refused.value.detail
