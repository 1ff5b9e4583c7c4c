"""The web tools inside a run: an abort ends their request, and their failures are plain sentences."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hostile import told, within
from runs import call

from lousho import (
    CancelSignal,
    SDKError,
    ToolContext,
    ask_question_tool,
    create_agent,
    create_http_tool,
    create_web_fetch_tool,
    http_tool,
    web_fetch_tool,
)
from lousho.testing import mock_model

MAKERS = {"http_request": create_http_tool, "web_fetch": create_web_fetch_tool}


@pytest.mark.spec("RUN-12")
@pytest.mark.parametrize("name", list(MAKERS))
async def test_an_abort_closes_the_connection_of_a_request_that_waits(name: str):
    asked, gone = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()  # until the other side is gone
        gone.set()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        web = MAKERS[name](allow_private=["127.0.0.1"])
        model = mock_model([call(name, url=f"http://127.0.0.1:{port}/"), "never"])
        signal = CancelSignal()
        task = asyncio.ensure_future(create_agent(provider=model, tools=[web]).send("go", signal=signal))
        await within(asked.wait())
        assert not gone.is_set()
        signal.abort()
        result = await within(task)
        await within(gone.wait())
    assert (result.finish_reason, told(result)[0]["kind"], len(model.calls)) == ("aborted", "cancelled", 1)


def context(name: str) -> ToolContext:
    return ToolContext(tool_call_id="c1", tool_name=name, abort_signal=CancelSignal())


def dead_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.spec("ERR-04")
@pytest.mark.parametrize("name", ["http_request", "web_fetch", "ask_question"])
async def test_what_fails_while_a_built_in_tool_runs_is_one_line_with_a_code(name: str):
    if name == "ask_question":
        used: Any = ask_question_tool()
        args: dict[str, Any] = {"question": "Which?"}
    else:
        used = MAKERS[name](allow_private=["127.0.0.1"])
        args = {"url": f"http://127.0.0.1:{dead_port()}/"}
    with pytest.raises(SDKError) as caught:
        work = used.execute(used.parse(args), context(name))
        if asyncio.iscoroutine(work):
            await within(work)
    assert caught.value.code == "LOUSHO_TOOL_EXECUTION_FAILED"
    assert len(str(caught.value).splitlines()) == 1
    assert "LOUSHO_" not in str(caught.value)


@pytest.mark.spec("ERR-04")
@pytest.mark.parametrize("web", [http_tool, web_fetch_tool], ids=lambda tool: tool.name)
async def test_the_model_reads_no_help_line_of_a_built_in_tool(web: Any):
    model = mock_model([call(web.name, url="http://10.0.0.1/"), "Done."])
    (answer,) = told(await within(create_agent(provider=model, tools=[web]).send("go")))
    assert answer["kind"] == "execution"
    assert "10.0.0.1" in answer["message"]
    assert "\n" not in answer["message"]
    assert "LOUSHO_" not in answer["message"]
