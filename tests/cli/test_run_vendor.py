"""`lousho run` against a vendor on a real socket: what a person's script sees when the vendor answers, refuses, or breaks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from agent_files import write_files
from fake_vendor import Reply, called, chunked, events, fake_vendor, http

from lousho.testing import check_event_order

KEY = "sk-proj-0123456789abcdefghij"


async def run(folder: Path, url: str, *args: str, env: dict[str, str] | None = None) -> tuple[int | None, str, str]:
    """Run the command without blocking the server, which lives in this process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lousho_cli", "run", ".", *args),
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url, **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, out.decode(), err.decode()


def stream(*deltas: dict[str, object], finish: str | None = "stop") -> list[bytes]:
    chunks = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    end = [{"choices": [{"delta": {}, "finish_reason": finish}]}, "[DONE]"] if finish else []
    return events(*chunks, *end)


CALL = stream(
    {"tool_calls": [{**called("c1", arguments='{"city":"Paris"}').to_dict(), "index": 0}]}, finish="tool_calls"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(
        tmp_path / "agent",
        {
            "agent.json": json.dumps({"model": "openai/gpt-4.1-mini"}),
            "instructions.md": "Be brief.",
            "tools/weather.py": '''
                from lousho import tool


                @tool
                def get_weather(city: str) -> str:
                    """Get the weather."""
                    return f"21 degrees in {city}"
                ''',
        },
    )


@pytest.mark.spec("BEY-20", "BEY-21")
async def test_an_agent_directory_calls_its_tool_and_answers(folder: Path) -> None:
    async with fake_vendor() as vendor:
        vendor.answers(chunked(CALL, then="keep"), chunked(stream({"content": "Warm "}, {"content": "today."})))
        code, out, err = await run(folder, vendor.url, "Weather in Paris?", "--output", "stream-json")

    lines = [json.loads(line) for line in out.splitlines()]
    check_event_order(lines)
    assert (code, err) == (0, "")
    assert (lines[-1]["type"], lines[-1]["text"]) == ("run.done", "Warm today.")
    assert [message["role"] for message in vendor.received[1].json["messages"]][-2:] == ["assistant", "tool"]
    assert vendor.received[1].json["messages"][-1]["content"] == "21 degrees in Paris"


@pytest.mark.spec("BEY-25")
async def test_the_model_flag_is_what_the_vendor_is_asked_for(folder: Path) -> None:
    async with fake_vendor() as vendor:
        vendor.answers(chunked(stream({"content": "Hi."})))
        code, out, err = await run(folder, vendor.url, "hello", "--model", "openai/gpt-other")

    assert (code, out, err) == (0, "Hi.\n", "")
    assert vendor.received[0].json["model"] == "gpt-other"


@pytest.mark.spec("BEY-22")
@pytest.mark.parametrize(
    ("reply", "said", "says"),
    [
        pytest.param(
            http(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
            "",
            "(auth-failure, HTTP 401)",
            id="401",
        ),
        pytest.param(
            chunked(stream({"content": "Half an ans"}, finish=None)), "Half an ans\n", "error: ", id="cut off"
        ),
        pytest.param(
            chunked(stream({"content": "Half an ans"}, finish=None), complete=False, then="reset"),
            "Half an ans\n",
            "error: ",
            id="reset",
        ),
    ],
)
async def test_a_vendor_that_fails_is_exit_1_and_what_it_had_said_is_kept(
    folder: Path, reply: Reply, said: str, says: str
) -> None:
    async with fake_vendor() as vendor:
        vendor.answers(reply)
        text = await run(folder, vendor.url, "hello")
        document = await run(folder, vendor.url, "hello", "--output", "json")

    parsed = json.loads(document[1])
    assert (text[0], text[1], document[0]) == (1, said, 1)
    assert says in text[2]
    assert "\n[LOUSHO_PROVIDER_REQUEST_FAILED] " in text[2]
    assert (parsed["text"], parsed["error"]["code"]) == (said.strip(), "LOUSHO_PROVIDER_REQUEST_FAILED")
    assert KEY not in "".join((text[1], text[2], document[1], document[2]))


@pytest.mark.spec("BEY-25")
async def test_a_vendor_that_stays_silent_is_left_at_the_time_limit(folder: Path) -> None:
    async with fake_vendor() as vendor:
        vendor.answers(Reply(chunked(stream({"content": "Half an ans"}, finish=None), complete=False).pieces, "wait"))
        code, out, err = await run(folder, vendor.url, "hello", "--timeout", "1.5")
        await asyncio.wait_for(vendor.hung_up.wait(), 5)

    assert (code, out) == (1, "Half an ans\n")
    assert err.startswith("error: The run did not finish within 1.5 seconds (--timeout)\n")


@pytest.mark.spec("BEY-26", "BEY-27")
async def test_inspect_shows_what_the_vendor_would_get_and_asks_it_nothing(folder: Path) -> None:
    async def inspect(*args: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lousho_cli", "inspect", ".", *args),
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": vendor.url},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, err) == (0, b"")
        return out.decode()

    async with fake_vendor() as vendor:
        page, prompt, tools, document = [await inspect(*flag) for flag in ([], ["--prompt"], ["--tools"], ["--json"])]
        assert vendor.connections == 0
        vendor.answers(chunked(stream({"content": "Hi."})))
        await run(folder, vendor.url, "hello")

    sent = vendor.received[0].json
    assert KEY not in page + prompt + tools + document
    assert prompt.rstrip("\n") == sent["messages"][0]["content"]
    agent = json.loads(document)["agent"]
    assert agent["instructions"] == sent["messages"][0]["content"]
    assert agent["model"] == sent["model"]
    offered = [tool["function"] for tool in sent["tools"]]
    assert [
        {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
        for tool in agent["tools"]
    ] == offered
    for function in offered:
        assert f"{function['name']} (" in tools
        assert function["description"] in tools
        assert json.dumps(function["parameters"], indent=2) in tools
