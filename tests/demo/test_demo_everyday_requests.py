"""Requests a newcomer types at tools such as people write, and what the demo model makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from everyday_tools import HOME, OFFICE, get_weather
from made_up import NOW

from lousho.agent import Agent, create_agent
from lousho.models.demo import DemoProvider

Calls = list[tuple[str, dict[str, Any]]]


def agent_with(tools: Any, **options: Any) -> Agent:
    return create_agent(provider=DemoProvider(clock=lambda: NOW), tools=tools, **options)


async def calls_for(agent: Agent, request: str) -> Calls:
    result = await agent.send(request)
    return [(call.name, json.loads(call.arguments)) for call in result.tool_calls]


OFFICE_REQUESTS: list[tuple[str, Calls]] = [
    ("What's the weather in Paris?", [("get_weather", {"city": "Paris"})]),
    ("weather in lisbon and porto", [("get_weather", {"city": "lisbon"}), ("get_weather", {"city": "porto"})]),
    ("How's the weather in New York? And in Rome?", [("get_weather", {"city": "New York"}), ("get_weather", {"city": "Rome"})]),
    ("show me the Paris weather in fahrenheit", [("get_weather", {"city": "Paris", "unit": "fahrenheit"})]),
    ("WEATHER IN TOKYO", [("get_weather", {"city": "TOKYO"})]),
    ("wheather in Madrid pls", [("get_weather", {"city": "Madrid"})]),
    ("Hello, what's the weather in São Paulo today? Thanks!", [("get_weather", {"city": "São Paulo"})]),
    ("convert 5 km to miles", [("convert_units", {"value": 5, "from_unit": "km", "to_unit": "miles"})]),
    ("how many miles is 5km?", [("convert_units", {"value": 5, "from_unit": "km", "to_unit": "miles"})]),
    (
        "convert 5km to miles and 10 kg to pounds",
        [
            ("convert_units", {"value": 5, "from_unit": "km", "to_unit": "miles"}),
            ("convert_units", {"value": 10, "from_unit": "kg", "to_unit": "pounds"}),
        ],
    ),
    ("what is 2 + 2?", [("calculate", {"expression": "2 + 2"})]),
    ("12 * 7", [("calculate", {"expression": "12 * 7"})]),
    (
        "Book a meeting called Design Review tomorrow at 3pm with Ann and Bob",
        [("book_meeting", {"title": "Design Review", "start": "2026-12-01T15:00:00", "attendees": [{"name": "Ann"}, {"name": "Bob"}]})],
    ),
    (
        "schedule a design review meeting with Ann (ann@example.com) on friday at 15:00 for 2 hours",
        [
            (
                "book_meeting",
                {
                    "title": "design review",
                    "start": "2026-12-04T15:00:00",
                    "duration_minutes": 120,
                    "attendees": [{"name": "Ann", "email": "ann@example.com"}],
                },
            )
        ],
    ),
    ("add buy milk and eggs to my todo list", [("add_todo", {"text": "buy milk and eggs"})]),
    ("todo: water the plants", [("add_todo", {"text": "water the plants"})]),
    ("remind me to call mom tomorrow", [("add_todo", {"text": "call mom", "due": "2026-12-01"})]),
    ("what's on my todo list?", [("list_todos", {})]),
    ("show all my todos", [("list_todos", {"status": "all"})]),
    ("mark todo 2 as done", [("complete_todo", {"id": 2})]),
    ("list my todos and mark 1 as done", [("list_todos", {}), ("complete_todo", {"id": 1})]),
    ("where is order A-1042?", [("find_order", {"order_id": "A-1042"})]),
    ("order A-7 status", [("find_order", {"order_id": "A-7"})]),
    (
        "What's the weather in Oslo and where is order A-7?",
        [("get_weather", {"city": "Oslo"}), ("find_order", {"order_id": "A-7"})],
    ),
    (
        "Email ann@example.com with subject Hello and body How are you?",
        [("send_email", {"to": "ann@example.com", "subject": "Hello", "body": "How are you?"})],
    ),
    (
        "send an email to bob@example.com about the launch saying we ship on Friday",
        [("send_email", {"to": "bob@example.com", "subject": "launch", "body": "we ship on Friday"})],
    ),
    ("search my notes for vpn setup", [("search_notes", {"query": "vpn setup"})]),
    ("find 3 notes about the meeting with Ann on friday", [("search_notes", {"query": "meeting with Ann on friday", "limit": 3})]),
    ("tell me a joke", []),
    ("find me a recipe", []),
    ("remove todo 1", []),
    ("What is the capital of France?", []),
    ("good morning", []),
]  # fmt: skip
HOME_REQUESTS: list[tuple[str, Calls]] = [
    ("turn on the light in the kitchen", [("turn_on_light", {"room": "kitchen"})]),
    ("switch off the bedroom light", [("turn_off_light", {"room": "bedroom"})]),
    ("dim the kitchen light to 30 percent", [("turn_on_light", {"room": "kitchen", "brightness": 30})]),
    (
        "turn off the lights in the kitchen and the bedroom",
        [("turn_off_light", {"room": "kitchen"}), ("turn_off_light", {"room": "bedroom"})],
    ),
    (
        "find flights from Berlin to Madrid tomorrow for 2 passengers",
        [("search_flights", {"origin": "Berlin", "destination": "Madrid", "departure_date": "2026-12-01", "passengers": 2})],
    ),
    (
        "flights to madrid from berlin next monday",
        [("search_flights", {"origin": "berlin", "destination": "madrid", "departure_date": "2026-12-07"})],
    ),
    ('write "hello world" to out.txt', [("write_file", {"path": "out.txt", "content": "hello world"})]),
    ("open the file src/app.py", [("read_file", {"path": "src/app.py"})]),
    ("read a.txt and b.txt", [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]),
    (
        "create an invoice for Ann Lee (ann@example.com) with 3 apples and 2 pears",
        [
            (
                "create_invoice",
                {
                    "customer": {"name": "Ann Lee", "email": "ann@example.com"},
                    "lines": [{"product": "apples", "quantity": 3}, {"product": "pears", "quantity": 2}],
                },
            )
        ],
    ),
    (
        "invoice customer name: Ann Lee, customer email: ann@example.com, lines: 2 chairs and 1 desk, express: yes",
        [
            (
                "create_invoice",
                {
                    "customer": {"name": "Ann Lee", "email": "ann@example.com"},
                    "lines": [{"product": "chairs", "quantity": 2}, {"product": "desk", "quantity": 1}],
                    "express": True,
                },
            )
        ],
    ),
]  # fmt: skip


@pytest.mark.spec("BEY-02")
@pytest.mark.parametrize(("request_text", "expected"), OFFICE_REQUESTS, ids=[text for text, _ in OFFICE_REQUESTS])
async def test_an_office_request_leads_to_its_calls(request_text: str, expected: Calls):
    assert await calls_for(agent_with(OFFICE), request_text) == expected


@pytest.mark.parametrize(("request_text", "expected"), HOME_REQUESTS, ids=[text for text, _ in HOME_REQUESTS])
async def test_a_request_at_home_leads_to_its_calls(request_text: str, expected: Calls):
    assert await calls_for(agent_with(HOME), request_text) == expected


@pytest.mark.spec("BEY-02")
async def test_a_whole_conversation_keeps_its_thread():
    agent = agent_with(OFFICE)
    session = agent.session()
    told: list[tuple[str, Calls, str]] = []
    for said in (
        "What's the weather in Paris?",
        "and in Rome?",
        "find order A-17",
        "email it to bob@example.com",
        "book a meeting with Ann",
        "Roadmap, tomorrow at 3pm",
    ):
        result = await session.send(said)
        told.append((said, [(call.name, json.loads(call.arguments)) for call in result.tool_calls], result.text))
    assert [calls for _, calls, _ in told] == [
        [("get_weather", {"city": "Paris"})],
        [("get_weather", {"city": "Rome"})],
        [("find_order", {"order_id": "A-17"})],
        [
            (
                "send_email",
                {
                    "to": "bob@example.com",
                    "subject": "Find order: A-17",
                    "body": "- order id: A-17\n- status: shipped\n- total: 49.9\n- customer: name: Ann, email: ann@example.com",
                },
            )
        ],
        [],
        [("book_meeting", {"attendees": [{"name": "Ann"}], "title": "Roadmap", "start": "2026-12-01T15:00:00"})],
    ]
    assert "I still need" in told[4][2]
    assert told[5][2] == "Booked Roadmap at 2026-12-01T15:00:00."


async def test_what_was_found_goes_into_the_next_call():
    expected = [
        ("search_notes", {"query": "vpn"}),
        (
            "send_email",
            {
                "to": "bob@example.com",
                "subject": "Search notes: vpn",
                "body": "- heading: VPN setup, text: Install WireGuard, then import the profile.",
            },
        ),
    ]
    assert (
        await calls_for(agent_with(OFFICE), "search notes for vpn and email the result to bob@example.com") == expected
    )


async def test_an_it_that_means_nothing_sends_nothing_found_before():
    session = agent_with(OFFICE).session()
    await session.send("find order A-17")
    result = await session.send("email ann@example.com that the meeting moved and it is cancelled tomorrow")
    assert (result.tool_calls, "subject" in result.text) == ([], True)


async def test_a_question_can_be_called_off():
    session = agent_with(OFFICE).session()
    assert "I still need" in (await session.send("refund order")).text
    assert (await session.send("never mind")).text == "All right, I leave “refund order” alone."


@pytest.mark.spec("BEY-02")
async def test_a_rejected_refund_is_said_and_not_asked_for_again():
    agent = agent_with(OFFICE)
    paused = await agent.send("Refund $20 of order A-17 because it arrived broken")
    pending = (await agent.approvals.list())[0]
    assert dict(pending.args) == {"order_id": "A-17", "amount": 20, "reason": "arrived broken"}
    assert paused.approval_id is not None
    result = await agent.approvals.resolve(id=paused.approval_id, approved=False, note="ask Carla first")
    assert (result.finish_reason, result.text) == (
        "stop",
        "“refund order” was not approved, so I did not run it and will not try it again. The reason given: ask Carla first.",
    )


@pytest.mark.spec("BEY-02")
async def test_a_denied_call_is_explained():
    rules = [{"tool": "get_weather", "action": "deny", "reason": "No weather on Mondays"}]
    result = await agent_with(OFFICE, permissions=rules).send("weather in Paris")
    assert result.text == "I am not allowed to run “get weather” here. No weather on Mondays."


async def test_what_follows_a_failed_step_is_left_out():
    result = await agent_with(OFFICE).send("find order A-0, then email it to bob@example.com")
    assert [call.name for call in result.tool_calls] == ["find_order"]
    assert result.text == (
        "Sorry, “find order” failed: There is no order A-0. I did not try it again.\n\n"
        "I left out “send email”, because it needed the step before it."
    )


async def test_a_small_object_is_read_out_and_not_dumped():
    result = await agent_with([get_weather]).send("weather in Paris")
    assert result.text == "Get weather:\n- city: Paris\n- temperature: 21\n- unit: celsius\n- sky: clear"
