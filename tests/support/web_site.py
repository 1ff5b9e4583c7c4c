"""A small web server on a real socket for tests of the web tools: it says exactly what a test wrote down."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lousho.core.errors import ToolExecutionError

DATA = Path(__file__).parent.parent / "tools" / "data"
WAIT = 10.0
"""Seconds any single wait in these tests may take."""


@dataclass
class Asked:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """What to send. `Content-Length` is added unless the headers have a framing, or `pieces` follow instead of `body`."""

    body: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    status: int = 200
    pieces: AsyncIterator[bytes] | None = None
    """Sent as they come, after the headers and without a length, until the client hangs up."""
    raw: bytes | None = None
    """Sent instead of everything else."""
    after_s: float = 0
    """How slow the server is, in seconds."""
    silent: bool = False
    """Send nothing and wait for the client to hang up."""


def page(text: str, content_type: str = "text/html; charset=utf-8", **more: Any) -> Answer:
    """Return an answer with a text."""
    return Answer(text.encode("utf-8"), [("Content-Type", content_type)], **more)


def moved(to: str, status: int = 302) -> Answer:
    """Return a redirect."""
    return Answer(headers=[("Location", to)], status=status)


Route = Answer | Callable[[Asked], Answer]


@dataclass
class Site:
    """A running server."""

    routes: Mapping[str, Route]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client has closed a connection."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request has been read."""
    server_names: list[str | None] = field(default_factory=list)
    """The names that TLS clients asked for."""

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            self.hung_up.set()
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(method, target, headers, body)
        self.asked.append(asked)
        self.arrived.set()
        route = self.routes.get(target.partition("?")[0]) or self.routes.get("*") or Answer(status=404)
        return await self._send(route if isinstance(route, Answer) else route(asked), asked, reader, writer)

    async def _send(
        self, answer: Answer, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if answer.after_s:
            await asyncio.sleep(answer.after_s)
        if answer.silent:
            await reader.read()
            return False
        if answer.raw is not None:
            writer.write(answer.raw)
            await writer.drain()
            return False
        names = {name.lower() for name, _ in answer.headers}
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in answer.headers)]
        if answer.pieces is None and not names & {"content-length", "transfer-encoding"}:
            lines.append(f"Content-Length: {len(answer.body)}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if asked.method != "HEAD":
            writer.write(answer.body)
        await writer.drain()
        if answer.pieces is None:
            return True
        sending = asyncio.ensure_future(_sent(answer.pieces, writer))
        hung_up = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait([sending, hung_up], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            hung_up.cancel()
            await asyncio.gather(sending, hung_up, return_exceptions=True)
        return False


async def _sent(pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for piece in pieces:
        writer.write(piece)
        await writer.drain()


@asynccontextmanager
async def web_site(
    routes: Mapping[str, Route] | Route, *, host: str = "127.0.0.1", port: int = 0, tls: bool = False
) -> AsyncGenerator[Site]:
    """Serve `routes`, answers by path (`*` for the rest); one answer stands for all paths."""
    site = Site(routes if isinstance(routes, Mapping) else {"*": routes})
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / "secure-test.pem")
        context.sni_callback = lambda _, name, __: site.server_names.append(name)
    server = await asyncio.start_server(site.serve, host, port, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()


class Names:
    """A resolver with the answers a test gives it: each lookup of a name takes the next, the last one again and again."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.lookups: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        given = self.answers.get(host, [[]])
        return given[0] if len(given) == 1 else given.pop(0)


async def refused(call: Awaitable[Any]) -> str:
    """Return what a failed call tells the model; it must be a plain sentence without a help line."""
    with pytest.raises(ToolExecutionError) as caught:
        await asyncio.wait_for(call, WAIT)
    assert str(caught.value) == caught.value.detail
    return caught.value.detail
