"""The demo model as a provider: what it streams, reports, refuses to do twice, and says of itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from everyday_tools import OFFICE, find_order, get_weather
from made_up import NOW

from lousho.agent import create_agent
from lousho.core.cancel import AbortError, CancelSignal
from lousho.core.messages import FunctionCall, Message, ToolCall
from lousho.models.demo import DemoProvider
from lousho.models.demo.phrases import INTRODUCTION
from lousho.models.provider import (
    Finish,
    FunctionDefinition,
    LLMProvider,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ToolCallChunk,
    ToolDefinition,
)
from lousho.models.resolve import resolve_provider
from lousho.tools import define_tool

CITY = {
    "type": "object",
    "properties": {"place": {"type": "string", "description": "The place"}},
    "required": ["place"],
}
FORECAST = ToolDefinition(FunctionDefinition("forecast", "Tell the forecast for a place.", CITY))
ASK = ToolDefinition(
    FunctionDefinition(
        "ask_question",
        "Ask the user a question.",
        {
            "type": "object",
            "properties": {"question": {"type": "string"}, "options": {"type": "array", "items": {"type": "string"}}},
            "required": ["question"],
        },
    )
)


def demo() -> DemoProvider:
    return DemoProvider(clock=lambda: NOW)


async def respond(*messages: Message, tools: list[ToolDefinition] | None = None, **options: Any) -> ModelResponse:
    offered = [FORECAST] if tools is None else tools
    return await demo().generate(ModelRequest(messages=[*messages], tools=offered, **options))


def user(text: str) -> Message:
    return Message("user", text)


def called(response: ModelResponse) -> Message:
    return Message("assistant", response.text, tool_calls=response.tool_calls)


def result(response: ModelResponse, content: Any, *, is_error: bool = False) -> Message:
    text = content if isinstance(content, str) else json.dumps(content)
    return Message("tool", text, tool_call_id=response.tool_calls[-1].id, is_error=is_error)


def failure(kind: str, message: str, **more: Any) -> Mapping[str, Any]:
    return {"error": "Failure", "toolName": "forecast", "message": message, "kind": kind, **more}


def arguments(response: ModelResponse) -> list[Any]:
    return [json.loads(call.arguments) for call in response.tool_calls]


@pytest.mark.spec("BEY-02")
def test_the_name_mock_demo_resolves_to_it():
    provider = resolve_provider("mock/demo")
    assert (type(provider), provider.name, provider.default_model) == (DemoProvider, "mock", "demo")
    assert isinstance(provider, LLMProvider)


async def test_an_answer_streams_word_by_word_and_reports_no_usage():
    chunks = [chunk async for chunk in demo().stream(ModelRequest(messages=[user("hello")], tools=[FORECAST]))]
    words, finish = chunks[:-1], chunks[-1]
    assert all(isinstance(chunk, TextDelta) and len(chunk.text.split()) == 1 for chunk in words)
    assert finish == Finish("stop", None)
    whole = await respond(user("hello"))
    assert "".join(chunk.text for chunk in words if isinstance(chunk, TextDelta)) == whole.text


async def test_calls_come_as_chunks_before_the_finish():
    request = ModelRequest(messages=[user("forecast for Oslo and Rome")], tools=[FORECAST])
    chunks = [chunk async for chunk in demo().stream(request)]
    calls = [chunk.tool_call for chunk in chunks if isinstance(chunk, ToolCallChunk)]
    assert [json.loads(call.arguments) for call in calls] == [{"place": "Oslo"}, {"place": "Rome"}]
    assert chunks[-1] == Finish("tool_calls", None)
    assert len({call.id for call in calls}) == 2


async def test_the_same_request_gives_the_same_turn():
    messages = [user("forecast for Oslo, then forecast for Rome")]
    assert await respond(*messages) == await respond(*messages)


@pytest.mark.spec("BEY-02")
async def test_it_says_once_what_it_is():
    first = await respond(user("who are you?"))
    assert first.text.endswith(INTRODUCTION)
    assert "rules" in INTRODUCTION
    assert "not a language model" in INTRODUCTION
    second = await respond(user("who are you?"), Message("assistant", first.text), user("what can you do?"))
    assert INTRODUCTION not in second.text
    assert "Tell the forecast for a place. Try: “forecast, place: 'something'”" in second.text


async def test_without_tools_it_says_so():
    response = await respond(user("forecast for Oslo"), tools=[])
    assert "no tools" in response.text
    assert response.tool_calls == ()


@pytest.mark.spec("BEY-02")
async def test_a_call_that_failed_is_not_made_again():
    asked = user("forecast for Oslo")
    first = await respond(asked)
    for kind in (
        "execution",
        "mcp",
        "sandbox",
        "denied",
        "rejected",
        "not-found",
        "not-run",
        "cancelled",
        "something-new",
    ):
        second = await respond(asked, called(first), result(first, failure(kind, "the reason"), is_error=True))
        assert second.tool_calls == (), kind
        assert second.text, kind


async def test_issues_that_name_the_right_value_are_followed_once():
    asked = user("forecast for Osloo")
    first = await respond(asked)
    assert arguments(first) == [{"place": "Osloo"}]
    issues = [{"path": "place", "message": "Input should be 'Oslo', 'Rome' or 'Lima'"}]
    refused = result(first, failure("validation", "bad", issues=issues), is_error=True)
    second = await respond(asked, called(first), refused)
    assert arguments(second) == [{"place": "Oslo"}]
    again = await respond(
        asked,
        called(first),
        refused,
        called(second),
        result(second, failure("validation", "bad", issues=issues), is_error=True),
    )
    assert again.tool_calls == ()
    assert "was not accepted" in again.text


async def test_issues_without_a_hint_lead_to_a_question_that_repeats_them():
    asked = user("forecast for Oslo")
    first = await respond(asked)
    issues = [{"path": "place", "message": "is too far north"}]
    refused = result(first, failure("validation", "bad", issues=issues), is_error=True)
    second = await respond(asked, called(first), refused)
    assert second.tool_calls == ()
    assert "The place was not accepted (is too far north)" in second.text
    third = await respond(asked, called(first), refused, called(second), user("Rome"))
    assert arguments(third) == [{"place": "Rome"}]


@pytest.mark.parametrize("between", ["; forecast for ", " and ", ", "])
async def test_it_never_makes_more_than_eight_calls_for_one_message(between: str):
    places = "Aar Bol Cuz Dax Evo Fib Gar Hul Ijo Jek Kom Lut".split()
    messages = [user(f"forecast for {between.join(places)}")]
    made = 0
    for _ in range(12):
        response = await respond(*messages)
        if not response.tool_calls:
            break
        made += len(response.tool_calls)
        messages.append(called(response))
        messages += [Message("tool", '"fine"', tool_call_id=call.id) for call in response.tool_calls]
    assert made == 8
    assert messages[-1].role == "tool"
    assert "at most 8 calls" in (await respond(*messages)).text


@pytest.mark.spec("BEY-02")
async def test_a_missing_value_is_asked_for_through_the_agents_own_tool():
    agent = create_agent(provider=demo(), tools=OFFICE, ask_question=True)
    paused = await agent.send("convert 5 from km")
    (pending,) = await agent.approvals.list()
    assert pending.kind == "question"
    assert pending.question is not None
    assert pending.question["options"] == ["km", "miles", "kg", "pounds"]
    assert "to unit" in pending.question["text"]
    assert paused.approval_id is not None
    answered = await agent.approvals.answer(id=paused.approval_id, answer="miles")
    assert [json.loads(call.arguments) for call in answered.tool_calls if call.name == "convert_units"] == [
        {"value": 5, "from_unit": "km", "to_unit": "miles"}
    ]
    assert answered.text == "Convert units: 3.106855."


async def test_a_declined_question_ends_the_matter():
    agent = create_agent(provider=demo(), tools=[get_weather], ask_question=True)
    paused = await agent.send("what's the weather")
    assert paused.approval_id is not None
    declined = await agent.approvals.resolve(id=paused.approval_id, approved=False)
    assert (declined.finish_reason, declined.text) == ("stop", "All right, I leave “get weather” alone.")


async def test_two_tools_that_fit_alike_are_asked_about():
    schema = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
    tools = [
        ToolDefinition(FunctionDefinition(f"store_{noun}", f"Store a {noun}.", schema)) for noun in ("memo", "draft")
    ]
    asked = user("store 'lunch at noon'")
    first = await respond(asked, tools=tools)
    assert first.tool_calls == ()
    assert "1. store memo: Store a memo.\n2. store draft: Store a draft." in first.text
    for reply in ("the second one", "2", "draft"):
        second = await respond(asked, called(first), user(reply), tools=tools)
        assert [(call.name, json.loads(call.arguments)) for call in second.tool_calls] == [
            ("store_draft", {"words": "lunch at noon"})
        ], reply


@pytest.mark.parametrize(
    ("choice", "name"),
    [("required", "forecast"), ({"type": "tool", "toolName": "current"}, "current"), ("none", None)],
    ids=["required", "one tool", "none"],
)
async def test_the_tool_choice_is_kept(choice: Any, name: str | None):
    tools = [FORECAST, ToolDefinition(FunctionDefinition("current", "The current state.", {"type": "object"}))]
    response = await respond(user("hmm, forecast"), tools=tools, tool_choice=choice)
    assert [call.name for call in response.tool_calls] == ([name] if name else [])
    if name:
        after = await respond(
            user("hmm, forecast"), called(response), result(response, "fine"), tools=tools, tool_choice=choice
        )
        assert after.tool_calls == ()


async def test_a_wanted_json_reply_has_the_wanted_shape():
    schema = {
        "type": "object",
        "properties": {
            "temperature": {"type": "number"},
            "sky": {"enum": ["clear", "grey"]},
            "place": {"type": "string"},
            "tips": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["temperature", "sky", "place", "tips"],
    }
    asked = user("forecast for Oslo")
    first = await respond(asked)
    told = result(first, {"place": "Oslo", "temperature": -3.5, "sky": "grey"})
    reply = await respond(asked, called(first), told, response_format={"type": "json", "schema": schema})
    assert json.loads(reply.text) == {"temperature": -3.5, "sky": "grey", "place": "Oslo", "tips": []}


async def test_an_aborted_signal_stops_it():
    signal = CancelSignal()
    signal.abort("enough")
    with pytest.raises(AbortError, match="enough"):
        await respond(user("hello"), signal=signal)


async def test_results_are_written_for_people():
    asked = user("forecast for Oslo")
    first = await respond(asked)
    for content, expected in (
        ("sunny, with some wind", "Sunny, with some wind."),
        ("sunny", "Forecast: sunny."),
        ("21.50", "Forecast: 21.5."),
        ("true", "Forecast: yes."),
        ("null", "Forecast: done."),
        ("[]", "Forecast: nothing was found."),
        ('["red", "green", "blue"]', "Forecast: red, green and blue."),
        ('{"sky": "clear", "wind": {"speed": 3, "from": "west"}, "gone": null}', "Forecast:\n- sky: clear\n- wind: speed: 3, from: west"),
        ('[{"id": 1, "done": false}, {"id": 2, "done": true}]', "Forecast:\n- id: 1, done: no\n- id: 2, done: yes"),
        ('{"error": "no such place"}', "“forecast” answered with a problem: no such place."),
    ):  # fmt: skip
        assert (await respond(asked, called(first), result(first, content))).text == expected
    long = await respond(
        asked, called(first), result(first, {"rows": [{"n": n, "note": "x" * 300} for n in range(400)]})
    )
    assert len(long.text) < 3_000
    assert "388 more" in long.text


async def test_a_transcript_of_another_model_does_not_disturb_it():
    earlier = [
        user("do something"),
        Message("assistant", "", tool_calls=(ToolCall("c1", FunctionCall("unknown", "{broken")),)),
        Message("tool", "?!", tool_call_id="c1"),
        Message("assistant", "Done!"),
        Message("tool", "an orphan", tool_call_id="nobody"),
    ]
    response = await respond(*earlier, user("forecast for Oslo"))
    assert arguments(response) == [{"place": "Oslo"}]


async def test_a_long_text_is_handed_on_whole():
    schema = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
    store = ToolDefinition(FunctionDefinition("store_memo", "Store a memo.", schema))
    text = "lorem ipsum dolor sit amet " * 2_000
    response = await respond(user(f"store memo: {text}"), tools=[store])
    assert arguments(response) == [{"words": text.strip()}]


async def test_a_huge_message_does_not_hold_up_the_event_loop():
    tools = [
        ToolDefinition(FunctionDefinition(f"tool_{n}", f"Handles number {n} of many things", CITY)) for n in range(120)
    ]
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.005)

    pulse = asyncio.create_task(beat())
    await respond(user("foo bar, and then baz " * 40_000), tools=tools)
    pulse.cancel()
    assert beats > 3


@pytest.mark.spec("BEY-02")
async def test_a_tool_that_fails_in_the_runtime_ends_the_turn_with_an_explanation():
    result = await create_agent(provider=demo(), tools=[find_order]).send("find order A-0")
    assert (result.finish_reason, result.tool_errors) == ("stop", 1)
    assert result.text == "Sorry, “find order” failed: There is no order A-0. I did not try it again."


async def test_it_runs_through_every_step_of_a_chain_in_a_session():
    log: list[str] = []

    def step(name: str, answer: Any) -> Any:
        def execute(given: dict[str, Any]) -> Any:
            log.append(f"{name} {json.dumps(given)}")
            return answer

        schema = {"type": "object", "properties": {"ticket_id": {"type": "string"}}, "required": ["ticket_id"]}
        opening = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
        return define_tool(
            name=name,
            description=f"{name.replace('_', ' ').capitalize()}.",
            input=opening if name.startswith("open") else schema,
            execute=execute,
        )

    tools = [
        step("open_case", {"ticket_id": "T-9"}),
        step("escalate_case", "escalated"),
        step("archive_case", "archived"),
    ]
    result = await create_agent(provider=demo(), tools=tools).send(
        "open a case about printers, then escalate the case and then archive the case"
    )
    assert log == [
        'open_case {"topic": "printers"}',
        'escalate_case {"ticket_id": "T-9"}',
        'archive_case {"ticket_id": "T-9"}',
    ]
    assert result.finish_reason == "stop"
