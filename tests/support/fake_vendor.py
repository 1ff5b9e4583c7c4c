"""A fake model vendor on a real socket, which sends exactly the bytes a test wrote down, in exactly those pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from lousho.core.messages import FunctionCall, Message, ToolCall
from lousho.models.provider import FunctionDefinition, ModelChunk, ModelRequest, ToolDefinition


@dataclass
class Received:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What to send: raw pieces, each written and flushed by itself; then wait for the client, reset, or close."""

    pieces: Sequence[bytes]
    then: str = "close"


@dataclass
class FakeVendor:
    """The running server. `replies` are used up in order; the last one is used again."""

    url: str = ""
    replies: list[Reply | Callable[[Received], Reply]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client has closed a connection."""

    def answers(self, *replies: Reply | Callable[[Received], Reply]) -> None:
        self.replies = list(replies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.hung_up.set()
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Received(method, path, headers, body)
        self.received.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if not isinstance(reply, Reply):
            reply = reply(request)
        for piece in reply.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if reply.then == "wait":
            await reader.read(1)
        elif reply.then == "reset":
            writer.transport.abort()
        return reply.then == "keep"


@asynccontextmanager
async def fake_vendor() -> AsyncGenerator[FakeVendor, None]:
    """Run a fake vendor; its address is `.url`."""
    fake = FakeVendor()
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    fake.url = f"http://{host}:{port}"
    try:
        yield fake
    finally:
        server.close()


def http(status: int | str, body: bytes | str | dict[str, Any] | list[Any] = b"", **headers: str) -> Reply:
    """A whole answer with a length."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status if isinstance(status, str) else f'{status} Status'}", f"content-length: {len(raw)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Reply(["\r\n".join([*lines, "", ""]).encode() + raw], "keep")


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(pieces: Sequence[bytes], *, complete: bool = True, then: str = "close") -> Reply:
    """A stream whose pieces are chunks of their own, which the client sees one by one; `complete` ends it properly."""
    parts = [f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces if piece]
    return Reply([STREAM_HEAD, *parts, *([b"0\r\n\r\n"] if complete else [])], then)


def events(*data: dict[str, Any] | str, newline: str = "\n", named: bool = False) -> list[bytes]:
    """Server-sent events as bytes, one each; `named` adds the `event:` line of the data's type."""
    out: list[bytes] = []
    for item in data:
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        name = f"event: {item['type']}{newline}" if named and isinstance(item, dict) else ""
        out.append(f"{name}data: {text}{newline}{newline}".encode())
    return out


def request(*messages: Message, **options: Any) -> ModelRequest:
    """A model request; a user message when none is given."""
    return ModelRequest(messages=list(messages) or [Message("user", "Hello")], **options)


def tool(name: str = "get_weather") -> ToolDefinition:
    return ToolDefinition(
        FunctionDefinition(
            name,
            "Get the weather",
            {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        )
    )


def called(call_id: str, name: str = "get_weather", arguments: str = '{"city":"Paris"}') -> ToolCall:
    return ToolCall(call_id, FunctionCall(name, arguments))


async def collect(stream: AsyncIterator[ModelChunk]) -> list[ModelChunk]:
    """All chunks of a stream, within five seconds."""
    async with asyncio.timeout(5):
        return [chunk async for chunk in stream]


def text_in(chunks: Sequence[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if chunk.type == "text-delta")
