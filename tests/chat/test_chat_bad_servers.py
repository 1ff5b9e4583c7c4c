"""`lousho chat` against a server on a real socket that misbehaves: each turn fails with a code, and the chat goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from agent_files import write_files
from fake_vendor import Reply, called, chunked, events, fake_vendor, http

MODULE = """
import pathlib

from lousho import tool
from lousho.models.{vendor} import {name}


@tool
def get_weather(city: str = "nowhere") -> str:
    \"\"\"Get the weather.\"\"\"
    pathlib.Path("ran").touch()
    return "21 degrees"


agent = {{"provider": {name}(base_url="{url}", api_key="k-12345", timeout={timeout}), "tools": [get_weather]}}
"""
NAMES = {"openai": "OpenAIProvider", "anthropic": "AnthropicProvider"}


def openai(*deltas: dict[str, object], finish: str | None = None) -> list[bytes]:
    """The events of a stream; one without `finish` is cut off."""
    chunks = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    end = [{"choices": [{"delta": {}, "finish_reason": finish}]}] if finish else []
    return events(*chunks, *end)


def anthropic(*blocks: dict[str, object], finish: str | None = None) -> list[bytes]:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    opened = [
        {"type": "content_block_start", "index": index, "content_block": block} for index, block in enumerate(blocks)
    ]
    end = [{"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 4}}]
    return events(start, *opened, *([*end, {"type": "message_stop"}] if finish else []), named=True)


CUT = {
    "openai": openai({"content": "Let me look."}, {"tool_calls": [{**called("c1").to_dict(), "index": 0}]}),
    "anthropic": anthropic(
        {"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}
    ),
}
GOOD = {
    "openai": openai({"content": "Still here."}, finish="stop"),
    "anthropic": anthropic({"type": "text", "text": "Still here."}, finish="end_turn"),
}


def bad(kind: str, vendor: str) -> Reply:
    """An answer that is none."""
    if kind == "nonsense":
        return chunked([b"<html><body>It works!</body></html>"])
    if kind == "no JSON":
        return http(200, "{not json", content_type="application/json")
    if kind == "cut off":
        return chunked(CUT[vendor])
    if kind == "dropped":
        return chunked(CUT[vendor], complete=False, then="reset")
    return Reply(chunked(CUT[vendor][:2], complete=False).pieces, "wait")  # silent from then on


async def chat(folder: Path, lines: str) -> tuple[int | None, str, str]:
    """Run the command without blocking the server, which lives in this process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lousho_cli", "chat", "agent.py"),
        cwd=folder,
        env=dict(os.environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(50):
        out, err = await process.communicate(lines.encode("utf-8"))
    return process.returncode, out.decode("utf-8"), err.decode("utf-8")


@pytest.mark.spec("BEY-15")
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_every_kind_of_bad_answer_is_a_coded_error_runs_no_tool_and_the_next_turn_works(
    tmp_path: Path, vendor: str
) -> None:
    kinds = ("nonsense", "no JSON", "cut off", "dropped", "silent")
    async with fake_vendor() as server:
        server.answers(*(reply for kind in kinds for reply in (bad(kind, vendor), chunked(GOOD[vendor]))))
        module = MODULE.format(vendor=vendor, name=NAMES[vendor], url=server.url, timeout=2_000)
        write_files(tmp_path, {"agent.py": module})
        code, out, err = await chat(tmp_path, "".join(f"{kind}\nagain\n" for kind in kinds))

    assert (code, out.count("Still here.")) == (0, len(kinds)), err
    assert err.count("\n[LOUSHO_PROVIDER_REQUEST_FAILED] ") == len(kinds)
    assert err.count("error: ") == len(kinds)
    assert len(server.received) == 2 * len(kinds)
    assert "get_weather" not in err
    assert not (tmp_path / "ran").exists()
    assert "Traceback" not in err
