"""The small tools that come along, and the helper that makes error results of one's own."""

from __future__ import annotations

import datetime
import json
import locale
import logging
from pathlib import Path
from typing import Any

import pytest
from runs import call, calls

from lousho import (
    ToolArgumentsValidationError,
    create_agent,
    current_date_tool,
    day_name_tool,
    load_spec,
    spec_to_agent,
    tool_error_result,
)
from lousho.core.errors import Issue
from lousho.testing import mock_model


def told(result: Any) -> list[Any]:
    return [json.loads(str(message.content)) for message in result.messages if message.role == "tool"]


@pytest.mark.spec("TOOL-69", "API-36")
async def test_date_and_day_are_given_in_utc_under_the_keys_an_agent_uses():
    turn = calls(("today", {}), ("day", {"date": "2026-02-03"}), ("day", {}))
    agent = create_agent(provider=mock_model([turn, "Done."]), tools={"today": current_date_tool, "day": day_name_tool})
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    date, day, today = told(await agent.send("go"))
    at = datetime.datetime.fromisoformat(date["iso"])
    assert before <= at <= datetime.datetime.now(datetime.UTC)
    assert (date["date"], date["timezone"], date["iso"][-1]) == (at.date().isoformat(), "UTC", "Z")
    assert day == {"date": "2026-02-03", "day": "Tuesday"}
    assert today["day"] == datetime.date.fromisoformat(today["date"]).strftime("%A")


@pytest.mark.spec("TOOL-69", "API-36")
async def test_date_and_day_are_taken_in_a_list_too():
    turn = calls(("current_date", {}), ("day_name", {"date": "2026-02-28T23:59:59-11:00"}))
    agent = create_agent(provider=mock_model([turn, "Done."]), tools=[current_date_tool, day_name_tool])
    date, day = told(await agent.send("go"))
    assert sorted(date) == ["date", "iso", "timezone"]
    assert day == {"date": "2026-02-28", "day": "Saturday"}


@pytest.mark.spec("TOOL-69")
def test_a_spec_names_the_built_in_tools(tmp_path: Path):
    spec = tmp_path / "agent.yaml"
    spec.write_text(
        "name: clerk\nprovider: {type: mock, model: mock-1}\nprompt: Help.\ntools: [http, web-fetch, current-date, day-name]\n",
        encoding="utf-8",
    )
    agent = spec_to_agent(load_spec(spec))
    assert sorted(agent.tools) == ["current_date", "day_name", "http_request", "web_fetch"]


@pytest.mark.parametrize("date", ["tomorrow", "2026-02-30", "2026-13-01", "0000-01-01"])
async def test_a_date_that_is_none_is_a_failed_call(date: str):
    agent = create_agent(provider=mock_model([call("day_name", date=date), "Done."]), tools=[day_name_tool])
    (failed,) = told(await agent.send("go"))
    assert (failed["kind"], failed["message"]) == ("execution", f"{date!r} is not a date: write it as YYYY-MM-DD.")


def test_the_day_is_english_whatever_the_machine_speaks():
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert day_name_tool({"date": "2026-02-03"})["day"] == "Tuesday"
    finally:
        locale.setlocale(locale.LC_TIME, before)


@pytest.mark.spec("TOOL-52")
def test_an_error_result_has_what_its_error_knows_and_no_field_is_overwritten():
    error = ToolArgumentsValidationError("order", [Issue("count", "Field required")])
    assert tool_error_result(tool_name="order", error=error) == {
        "error": "ToolArgumentsValidationError",
        "toolName": "order",
        "message": "Invalid arguments for tool 'order': 1 issue (count: Field required)",
        "kind": "validation",
        "issues": [{"path": "count", "message": "Field required"}],
    }
    made = tool_error_result(
        tool_name="order", error="closed", details={"message": "other", "kind": "other", "note": None, "until": 9}
    )
    assert made == {"error": "Error", "toolName": "order", "message": "closed", "kind": "execution", "until": 9}


@pytest.mark.spec("TOOL-52")
def test_the_id_of_the_call_is_for_the_debug_log(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG, logger="lousho.tools"):
        made = tool_error_result(tool_name="order", error=KeyError("shoe"), tool_call_id="call_7")
    assert made == {"error": "KeyError", "toolName": "order", "message": "'shoe'", "kind": "execution"}
    assert [(record.message, record.exc_info is not None) for record in caplog.records] == [
        ("tool order failed (call call_7)", True)
    ]


@pytest.mark.spec("TOOL-52")
@pytest.mark.parametrize(("kind", "taken"), [("stock", "stock"), ("", "execution"), (7, "execution")])
def test_an_error_picks_its_kind_by_an_attribute(kind: Any, taken: str):
    error = OSError("x")
    error.__dict__["tool_error_kind"] = kind
    assert tool_error_result(tool_name="order", error=error)["kind"] == taken
