"""The first things a newcomer does with an agent, in the order the quickstart shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from runs import call, collect, of_type

from lousho import ConfigurationError, create_agent, create_mock_provider, define_tool, tool
from lousho.testing import mock_model


@pytest.mark.spec("QS-07")
async def test_instructions_are_optional_and_prompt_is_another_name_for_them():
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "You are a helpful assistant."),
        ({"instructions": "Be brief."}, "Be brief."),
        ({"prompt": "Be brief."}, "Be brief."),
    ]
    for options, expected in cases:
        model = mock_model(["ok"])
        await create_agent(provider=model, **options).send("hi")
        assert (model.calls[0].messages[0].role, model.calls[0].messages[0].content) == ("system", expected)


@pytest.mark.spec("QS-08")
async def test_the_arguments_of_a_tool_are_typed_and_validated_from_its_hints():
    seen: list[object] = []

    @tool
    async def book(city: str, nights: int = 1, breakfast: bool = False) -> str:
        """Book a room."""
        seen.append((city, nights, breakfast))
        return "booked"

    model = mock_model(
        [call("book", nights=2), call("book", city="Paris", nights="two"), call("book", city="Paris"), "Done."]
    )
    result = await create_agent(provider=model, tools=[book]).send("book")
    told = [json.loads(str(request.messages[-1].content)) for request in model.calls[1:3]]
    assert [(issue["path"]) for answer in told for issue in answer["issues"]] == ["city", "nights"]
    assert [answer["kind"] for answer in told] == ["validation", "validation"]
    assert seen == [("Paris", 1, False)]
    assert (result.text, result.tool_errors) == ("Done.", 2)
    schema = model.calls[0].tools[0].function.parameters
    assert schema["properties"]["nights"]["type"] == "integer"
    assert schema["required"] == ["city"]


@pytest.mark.spec("QS-10")
@pytest.mark.parametrize(
    ("name", "fits"),
    [
        pytest.param("a" * 64, True, id="64 characters"),
        pytest.param("get-Weather_2", True, id="letters, digits, dash, underscore"),
        pytest.param("a" * 65, False, id="65 characters"),
        pytest.param("a b", False, id="a space"),
        pytest.param("", False, id="empty"),
        pytest.param("größe", False, id="a letter outside ASCII"),
        pytest.param("name\n", False, id="a line end"),
    ],
)
def test_tool_names_have_1_to_64_plain_characters(name, fits):
    def make() -> object:
        return define_tool(name=name, description="Does it", execute=lambda: None)

    if fits:
        assert make()
    else:
        with pytest.raises(ConfigurationError, match="64 letters"):
            make()


@pytest.mark.spec("QS-11")
async def test_a_stream_yields_typed_events_and_the_result_of_send():
    agent = create_agent(provider=create_mock_provider(responses=["Streaming works word by word."]))
    run = agent.stream("Tell me something.")
    text = "".join(event.text for event in of_type(await collect(run), "text.delta"))
    result = await run.result
    assert (text, result.text, result.finish_reason) == ("Streaming works word by word.",) * 2 + ("stop",)
    sent = await create_agent(provider=create_mock_provider(responses=["Streaming works word by word."])).send(
        "Tell me"
    )
    assert (sent.text, sent.finish_reason) == (result.text, result.finish_reason)
    assert sent.to_dict().keys() == result.to_dict().keys()


@pytest.mark.spec("QS-12")
async def test_send_starts_empty_and_a_session_remembers():
    agent = create_agent(provider=mock_model(["Nice to meet you.", "Your name is Ali.", "I do not know."]))
    session = agent.session()
    await session.send("My name is Ali.")
    answer = await session.send("What is my name?")
    assert answer.text == "Your name is Ali."
    assert len(session.messages) == 4
    alone = await agent.send("What is my name?")
    assert [message.role for message in alone.messages] == ["user", "assistant"]
