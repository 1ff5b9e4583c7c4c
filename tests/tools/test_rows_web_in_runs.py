"""The web tools inside a run: an abort ends their request, and their failures are plain sentences."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from hostile import told, within
from runs import call, calls

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


LOOPBACK = """
127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 127.0.0.1. 0 0.0.0.0 [::1] [::] [::ffff:127.0.0.1]
[::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [64:ff9b::127.0.0.1] [2002:7f00:1::] [::127.0.0.1] localhost LOCALHOST localhost.
user@127.0.0.1 user:secret@localhost １２７.0.0.1 127。0。0。1 ⑫7.0.0.1
""".split()


@pytest.mark.spec("BEY-40")
@pytest.mark.parametrize("name", list(MAKERS))
async def test_no_way_of_writing_this_machine_reaches_a_server_on_it(name: str):
    reached: list[Any] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(writer.get_extra_info("peername"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        urls = [f"http://{host}:{port}/" for host in LOOPBACK]
        model = mock_model([calls(*[(name, {"url": url}) for url in urls]), "Done."])
        result = await within(create_agent(provider=model, tools=[MAKERS[name]()]).send("go"))
    answers = told(result)
    assert [one["kind"] for one in answers] == ["execution"] * len(urls)
    assert reached == []


@pytest.mark.spec("BEY-40")
@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "0x7f000002", "[::1]", "169.254.169.254"])
async def test_a_redirect_to_a_private_address_is_refused_before_it_is_followed(name: str, host: str):
    reached: list[str] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0]
        reached.append(line)
        place = f"http://{host}:{port}/inside"
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        web = MAKERS[name](allow_private=["127.0.0.1"])
        model = mock_model([call(name, url=f"http://127.0.0.1:{port}/"), "Done."])
        (answer,) = told(await within(create_agent(provider=model, tools=[web]).send("go")))
    assert [line.split()[1] for line in reached] == ["/"]
    assert answer["kind"] == "execution"
    assert "public" in answer["message"]
