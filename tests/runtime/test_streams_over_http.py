"""The endpoint of the streaming page on a real server: events as lines, and a client that goes away stops the run."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from runs import WAIT, ChunkProvider

from lousho import create_agent
from lousho.models.provider import Finish, ModelChunk, ModelRequest, TextDelta
from lousho.testing import mock_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streaming.md"


def endpoint(agent: Any) -> Any:
    """The application of the page, with another agent."""
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "Route(" in block
    )
    names: dict[str, Any] = {"desk": lambda *_: agent, "FIND_MOMO": None}
    exec(compile(code, str(PAGE), "exec", dont_inherit=True), names)
    return names["app"]


class Served:
    """An application on a free port of this machine, in a thread of its own."""

    def __init__(self, app: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(WAIT)
        self._socket.close()

    def ask(self) -> socket.socket:
        """Send a request and return the connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        connection.sendall(b"GET /chat?q=Where HTTP/1.1\r\nHost: desk\r\nConnection: close\r\n\r\n")
        return connection


def lines_of(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """The events of a response, as they arrive."""
    with connection.makefile("rb") as response:
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def test_every_event_is_one_line_of_the_response():
    with Served(endpoint(create_agent(provider=mock_model(["On shelf B2."])))) as served, served.ask() as connection:
        events = list(lines_of(connection))
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"], events[-1]["text"]) == ("run.start", "run.done", "On shelf B2.")


@pytest.mark.parametrize("when", ["while words come", "while the model thinks"])
def test_a_client_that_goes_away_stops_the_run(when: str):
    stopped = threading.Event()

    async def answer(request: ModelRequest) -> AsyncIterator[ModelChunk]:
        assert request.signal is not None
        request.signal.add_listener(lambda _: stopped.set())
        yield TextDelta("Momo ")
        while when == "while words come":
            await asyncio.sleep(0.005)
            yield TextDelta("and ")
        await asyncio.sleep(60)
        yield Finish("stop")

    with Served(endpoint(create_agent(provider=ChunkProvider(answer)))) as served:
        with served.ask() as connection:
            assert next(event for event in lines_of(connection) if event["type"] == "text.delta")["text"] == "Momo "
        assert stopped.wait(WAIT)
