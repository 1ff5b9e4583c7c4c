"""Somebody else runs the server: what it leaves on a connection, how long it goes on, and whether we let go of it."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sizes import sized
from web_site import WAIT, Answer, Names, moved, page, refused, web_site

from lousho import CancelSignal, Tool, create_http_tool, create_web_fetch_tool
from lousho.core.errors import ToolExecutionError
from lousho.testing import tool_context

Factory = Callable[..., Tool]
both = pytest.mark.parametrize("create", [create_http_tool, create_web_fetch_tool], ids=["http_request", "web_fetch"])
LOCAL: dict[str, Any] = {"allow_private": ["127.0.0.1", "a.test", "secure.test"]}
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
EVIL = OK + b"Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nevil"
REAL = OK + b"Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nreal"


def text(result: dict[str, Any]) -> str:
    """Return the text of either tool's result."""
    return result.get("content") or result.get("body") or ""


Talk = Callable[["Peer", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """A server that says what it likes, and sees when its clients are gone."""

    talk: Talk
    port: int = 0
    connections: int = 0
    open: int = 0
    received: int = 0
    """Bytes of bodies."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a head of a request was read by `request`."""
    listen: asyncio.Event = field(default_factory=asyncio.Event)
    """For a test to say when to go on."""
    alone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no connection is open."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.alone.clear()
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self.talk(self, reader, writer)
        self.open -= 1
        if self.open == 0:
            self.alone.set()
        writer.close()

    async def request(self, reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.heard.set()


@asynccontextmanager
async def peer(talk: Talk) -> AsyncGenerator[Peer]:
    """Run a server whose connections `talk` handles."""
    running = Peer(talk)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


def floods(begin: bytes, piece: bytes) -> Talk:
    """Say one thing, and then another for ever."""

    async def talk(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await peer.request(reader)
        writer.write(begin)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return talk


def says(first: bytes) -> Talk:
    """Say something as the very first answer, and the real one ever after."""

    async def talk(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = first if peer.connections == 1 else REAL
        while True:
            await peer.request(reader)
            writer.write(answer)
            answer = REAL

    return talk


@both
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK + b"Content-Length: 2\r\n\r\nok" + EVIL, id="a second answer"),
        pytest.param(OK + b"Content-Length: 2\r\n\r\nok\xc3\xa4 and more", id="a length that is too short"),
        pytest.param(CHUNKED + b"2\r\nok\r\n0\r\n\r\n" + EVIL, id="something behind the last chunk"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n" + EVIL, id="a body that cannot be"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\n\r\n" + EVIL, id="a body of nothing new"),
        pytest.param(b"HTTP/1.1 302 X\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n" + EVIL, id="behind a redirect"),
        pytest.param(
            OK + b"Content-Type: image/png\r\nContent-Length: 2\r\n\r\nok" + EVIL, id="behind what is not shown"
        ),
        pytest.param(OK + b"Content-Length: 2\r\n\r\nok\r\n", id="a line break too many"),
    ],
)
async def test_what_a_server_sends_behind_its_answer_is_not_the_next_answer(create: Factory, answer: bytes):
    async with peer(says(answer)) as server:
        tool = create(**LOCAL)
        assert "evil" not in text(await tool({"url": server.url}))
        assert text(await tool({"url": server.url})) == "real"
        assert server.connections == 2


async def test_a_body_behind_the_answer_to_head_is_not_the_next_answer():
    async with peer(says(OK + b"Content-Length: %d\r\n\r\n" % len(EVIL) + EVIL)) as server:
        tool = create_http_tool(**LOCAL)
        assert (await tool({"url": server.url, "method": "HEAD"}))["body"] is None
        assert (await tool({"url": server.url}))["body"] == "real"


@both
@pytest.mark.parametrize("late", [EVIL, b"", b"x"], ids=["another answer", "hanging up", "a byte"])
async def test_what_a_server_says_on_an_idle_connection_ends_it(create: Factory, late: bytes):
    async def talk(server: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = server.connections == 1
        await server.request(reader)
        writer.write(REAL)
        if first:
            await server.listen.wait()
            writer.write(late)
        if late or not first:
            await reader.read()

    async with peer(talk) as server, web_site(page("else")) as other:
        tool = create(**LOCAL)
        assert text(await tool({"url": server.url})) == "real"
        server.listen.set()
        await tool({"url": other.url()})  # what was said has arrived meanwhile
        assert text(await tool({"url": server.url})) == "real"
        assert server.connections == 2


@both
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50, id="100"),
        pytest.param(b"", b"HTTP/1.1 103 Early\r\nLink: " + b"a" * 50_000 + b"\r\n\r\n", id="103 with long headers"),
        pytest.param(OK, b"X-A: b\r\n" * 100, id="headers"),
        pytest.param(OK, b"A:\r\n", id="headers, one by one"),
        pytest.param(b"", b"\r\n" * 1000, id="line breaks"),
        pytest.param(b"HTTP/1.1 200 ", b"x" * 1000, id="a reason"),
        pytest.param(b"HTTP/1.1 302 X\r\nLocation: /", b"x" * 1000, id="a Location"),
        pytest.param(CHUNKED + b"1;", b"x" * 1000, id="a chunk extension"),
        pytest.param(CHUNKED, b"0" * 1000, id="a chunk size"),
        pytest.param(CHUNKED + b"1\r\na\r\n0\r\n", b"X: y\r\n" * 100, id="a trailer"),
    ],
)
async def test_a_head_without_an_end_is_given_up_soon(create: Factory, begin: bytes, piece: bytes):
    async with peer(floods(begin, piece)) as server:
        told = await refused(create(**LOCAL, timeout_ms=WAIT * 1000)({"url": server.url}))
        assert told == f"The answer of '127.0.0.1:{server.port}' is not valid HTTP, or its headers are too long."
        await asyncio.wait_for(server.alone.wait(), WAIT)


@both
async def test_chunks_with_long_extensions_end_at_the_deadline(create: Factory):
    async with peer(floods(CHUNKED, b"1;" + b"x" * 60_000 + b"\r\na\r\n")) as server:
        told = await refused(create(**LOCAL, timeout_ms=300)({"url": server.url}))
        assert "did not answer completely within 300 ms" in told
        await asyncio.wait_for(server.alone.wait(), WAIT)


@both
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"hello, this is HTTP/0.9", id="HTTP/0.9"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"ICY 200 OK\r\n\r\n", id="ICY"),
        pytest.param(
            b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nabc", id="an upgrade nobody asked for"
        ),
        pytest.param(b"HTTP/1.1 000 X\r\n\r\n", id="status 000"),
        pytest.param(b"HTTP/1.1 -20 X\r\n\r\n", id="a negative status"),
        pytest.param(b"HTTP/1.1 20 X\r\n\r\n", id="a short status"),
        pytest.param(b"HTTP/1.1 " + b"2" * 5000 + b" X\r\n\r\n", id="a long status"),
        pytest.param(OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", id="an endless length"),
        pytest.param(OK + b"Content-Length: 99999999999999999999\r\n\r\nabc", id="a huge length"),
        pytest.param(OK + b"Content-Length: -5\r\n\r\nabc", id="a negative length"),
        pytest.param(OK + b"Content-Length: +3\r\n\r\nabc", id="a signed length"),
        pytest.param(OK + b"Content-Length: 0x3\r\n\r\nabc", id="a hexadecimal length"),
        pytest.param(OK + b"Content-Length: 3, 4\r\n\r\nabc", id="two lengths in one"),
        pytest.param(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="another coding"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", id="chunked twice"),
        pytest.param(CHUNKED + b"-5\r\nhello\r\n", id="a negative chunk"),
        pytest.param(CHUNKED + b"0x5\r\nhello\r\n", id="a hexadecimal chunk"),
        pytest.param(CHUNKED + b"f" * 21 + b"\r\nhello\r\n", id="an endless chunk size"),
        pytest.param(CHUNKED + b"f" * 20 + b"\r\nhello\r\n", id="a huge chunk"),
        pytest.param(CHUNKED + b"5\r\nhelloXX0\r\n\r\n", id="a chunk that is longer"),
        pytest.param(CHUNKED + b"5\r\nhello\n0\r\n\r\n", id="a bare line feed"),
        pytest.param(CHUNKED + b"\r\n\r\n", id="no chunk size"),
        pytest.param(OK + b"X: a\x00b\r\n\r\n", id="NUL in a header"),
        pytest.param(OK + b"X: a\rLocation: b\r\n\r\n", id="CR in a header"),
        pytest.param(OK + b"X Y: a\r\n\r\n", id="a space in a name"),
        pytest.param(OK + b"X : a\r\n\r\n", id="a space behind a name"),
        pytest.param(OK + b": a\r\n\r\n", id="no name"),
        pytest.param(OK + b" folded\r\n\r\n", id="a fold at the beginning"),
        pytest.param(bytes(range(256)) * 10, id="anything"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", id="TLS"),
    ],
)
async def test_what_is_no_answer_is_an_error_that_names_the_host(create: Factory, raw: bytes):
    async with web_site(Answer(raw=raw)) as site:
        told = await refused(create(**LOCAL)({"url": site.url("/?key=hunter2")}))
        assert f"'127.0.0.1:{site.port}'" in told
        assert "hunter2" not in told


@both
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nhello", id="HTTP/1.0"),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", id="HTTP/1.0 kept"
        ),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", id="no reason"),
        pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", id="bare line feeds"),
        pytest.param(OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", id="the same length twice"),
        pytest.param(OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", id="both"),
        pytest.param(CHUNKED + b"5;a=b;c\r\nhello\r\n0\r\nX: trailer\r\n\r\n", id="extension and trailer"),
        pytest.param(
            b"HTTP/1.1 100 X\r\n\r\n" * 20 + OK + b"Content-Length: 5\r\n\r\nhello", id="some interim answers"
        ),
        pytest.param(OK + b"X: a\r\n b\r\n\tc\r\nContent-Length: 5\r\n\r\nhello", id="a folded header"),
        pytest.param(b"HTTP/1.1 999 X\r\nContent-Length: 5\r\n\r\nhello", id="an odd status"),
    ],
)
async def test_an_odd_answer_that_can_only_mean_one_thing_is_read(create: Factory, raw: bytes):
    async with web_site(Answer(raw=raw)) as site:
        assert text(await create(**LOCAL)({"url": site.url()})) == "hello"


def uploads_to(answer: bytes) -> Talk:
    """Read the head of a request, say `answer`, and read nothing of the body until `Peer.listen` is set."""

    async def talk(peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await peer.request(reader)
        writer.write(answer)
        await peer.listen.wait()
        while data := await reader.read(1 << 20):
            peer.received += len(data)

    return talk


BIG = "x" * 9_000_000


@pytest.mark.parametrize("turns", range(6))
async def test_an_upload_that_is_cancelled_twice_hangs_up(turns: int):
    async with peer(uploads_to(b"")) as server:
        call = asyncio.ensure_future(create_http_tool(**LOCAL)({"url": server.url, "method": "POST", "body": BIG}))
        await asyncio.wait_for(server.heard.wait(), WAIT)
        call.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        server.listen.set()
        await asyncio.wait_for(server.alone.wait(), WAIT)
        assert server.received < len(BIG)


@pytest.mark.parametrize("aborted", [False, True], ids=["at the deadline", "on abort"])
async def test_an_upload_that_nobody_reads_ends(aborted: bool):
    signal = CancelSignal()
    async with peer(uploads_to(b"")) as server:
        tool = create_http_tool(**LOCAL, timeout_ms=30_000 if aborted else 300)
        arguments = {"url": server.url, "method": "POST", "body": BIG}
        call = asyncio.ensure_future(tool(arguments, tool_context(abort_signal=signal)))
        await asyncio.wait_for(server.heard.wait(), WAIT)
        if aborted:
            signal.abort("enough")
        with pytest.raises(Exception, match="enough" if aborted else "did not answer completely within 300 ms"):
            await asyncio.wait_for(call, WAIT)
        server.listen.set()
        await asyncio.wait_for(server.alone.wait(), WAIT)


async def test_an_answer_that_comes_before_the_upload_is_over_is_read():
    early = b"HTTP/1.1 413 Too Large\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nfull"
    async with peer(uploads_to(early)) as server:
        result = await create_http_tool(**LOCAL)({"url": server.url, "method": "POST", "body": BIG})
        assert (result["status"], result["body"]) == (413, "full")
        server.listen.set()
        await asyncio.wait_for(server.alone.wait(), WAIT)
        assert server.received < len(BIG)  # what was not sent is not sent any more


async def never(host: str, port: int) -> list[str]:
    """Resolve no name, ever."""
    await asyncio.Event().wait()
    return []


@both
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
async def test_a_call_can_be_cancelled_at_any_moment_and_leaves_nothing_behind(
    create: Factory, scheme: str, twice: bool
):
    names = Names(a_test=[["127.0.0.1", "127.0.0.1", "127.0.0.3"]])
    options = {**LOCAL, **({"validate_ssl": False} if create is create_http_tool else {})}
    async with web_site({"/": moved("/b"), "/b": page("end")}, tls=scheme == "https") as site:
        tool = create(resolver=names, **options)
        cancelled = 0
        for turns in range(sized(60, 300)):
            call = asyncio.ensure_future(tool({"url": site.url(host="a.test", scheme=scheme)}))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.sleep(0)
            if twice:
                call.cancel()
            with suppress(asyncio.CancelledError, ToolExecutionError):
                await call
            cancelled += call.cancelled()
        assert cancelled > 5
        while site.open > 1:  # a kept one; a server hears of the others a little later
            await asyncio.wait_for(site.hung_up.wait(), WAIT)
            site.hung_up.clear()
        del tool
        gc.collect()
        while site.open:
            await asyncio.wait_for(site.hung_up.wait(), WAIT)
            site.hung_up.clear()


def open_files() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@both
async def test_any_number_of_good_and_bad_requests_leaves_no_socket_open(create: Factory, free_port: int):
    routes = {
        "/ok": page("fine"),
        "/cut": page("x" * 10_000),
        "/loop": moved("/loop"),
        "/away": moved("http://10.0.0.1/"),
        "/broken": Answer(raw=b"nonsense\r\n\r\n"),
        "/short": Answer(raw=OK + b"Content-Length: 100\r\n\r\nhalf"),
        "/behind": Answer(raw=REAL + EVIL),
    }
    async with web_site(routes) as site:
        tools = [create(**LOCAL, max_bytes=1000), create(**LOCAL, timeout_ms=1)]
        urls = [*map(site.url, routes), f"http://127.0.0.1:{free_port}/"]

        async def once(number: int) -> None:
            hasty = number % 10 == 0
            with suppress(ToolExecutionError):
                await tools[hasty]({"url": site.url("/silent", scheme="https") if hasty else urls[number % len(urls)]})

        await asyncio.gather(*(once(number) for number in range(50)))
        before = open_files()
        for begin in range(0, sized(400, 2000), 50):
            await asyncio.gather(*(once(number) for number in range(begin, begin + 50)))
        tools.clear()
        gc.collect()
        while site.open:
            await asyncio.wait_for(site.hung_up.wait(), WAIT)
            site.hung_up.clear()
        assert open_files() <= before


@both
async def test_a_hundred_fetches_at_once_do_not_harm_each_other(create: Factory):
    async with (
        peer(floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50)) as endless,
        web_site(lambda asked: page(asked.target)) as site,
    ):
        tool = create(**LOCAL, resolver=never)

        async def one(number: int) -> str:
            if number % 3 == 0:
                return await refused(tool({"url": endless.url}))
            if number % 3 == 1:
                call = asyncio.ensure_future(tool({"url": "http://a.test/"}))
                await asyncio.sleep(0.01)
                call.cancel()
                await asyncio.wait([call])
                return ""
            return text(await tool({"url": site.url(f"/{number}")}))

        said = await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(100))), WAIT * 2)
        assert [said[number] for number in range(2, 100, 3)] == [f"/{number}" for number in range(2, 100, 3)]
        await asyncio.wait_for(endless.alone.wait(), WAIT)


async def _output_of(program: str, *, strict: bool = True) -> tuple[str, str]:
    warnings = ("-W", "error") if strict else ()
    child = await asyncio.create_subprocess_exec(
        sys.executable, *warnings, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(child.communicate(), 30)
    return out.decode(), err.decode()


@both
async def test_names_that_are_never_answered_hold_up_neither_other_work_nor_the_end(create: Factory):
    program = f"""
import asyncio, socket, threading, time
known = socket.getaddrinfo
def getaddrinfo(host, *more, **options):
    if host == "tarpit.test":
        threading.Event().wait()
    return known(host, *more, **options)
socket.getaddrinfo = getaddrinfo
from lousho import {create.__name__}
async def main():
    tool = {create.__name__}(timeout_ms=300)
    calls = [tool({{"url": "http://tarpit.test/"}}) for _ in range(60)]
    for error in await asyncio.gather(*calls, return_exceptions=True):
        assert str(error) == "'tarpit.test' did not answer completely within 300 ms.", error
    print(await asyncio.wait_for(asyncio.to_thread(lambda: "other work"), 5))
    try:
        await {create.__name__}()({{"url": "http://nowhere.invalid/"}})
    except Exception as error:
        print(error)
asyncio.run(main())
print("done")
"""
    out, err = await _output_of(program)
    assert out.splitlines() == [
        "other work",
        "The host name 'nowhere.invalid' was not found: check its spelling.",
        "done",
    ]
    assert err == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@both
async def test_a_tool_works_on_both_sides_of_a_fork(create: Factory):
    async with web_site(lambda _: page("x")) as site:
        program = f"""
import asyncio, os
from lousho import {create.__name__}
tool = {create.__name__}(allow_private=["localhost"])
def visit():
    async def twice():
        for _ in range(2):
            assert (await tool({{"url": "http://localhost:{site.port}/"}}))["status"] == 200
    asyncio.run(twice())
visit()
child = os.fork()
visit()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        out, _ = await _output_of(program, strict=False)  # newer Pythons warn of forks
        assert (out, len(site.asked), site.connections) == ("7\n", 6, 3)
