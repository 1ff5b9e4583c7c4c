"""Replaying: each call is answered from the file, if it is the call that was recorded.

No network, no key, no vendor package. A call that differs is a `CassetteMismatchError`, which says where.
Source: testing page ("What replay checks").
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from lousho.core.cancel import CancelSignal
from lousho.core.errors import CassetteMismatchError
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse
from lousho.models.waiting import bounded, pause
from lousho.testing.cassettes.cassette_file import Cassette, read_cassette
from lousho.testing.cassettes.differences import Difference, first_difference
from lousho.testing.cassettes.exchanges import Exchange
from lousho.testing.cassettes.options import CassetteOptions, Source
from lousho.testing.cassettes.redaction import redact_keys, redact_strings
from lousho.testing.cassettes.requests import comparable_request, recorded_request, request_from_recording
from lousho.testing.cassettes.schemas import one_sided_patterns

MAX_STOP_WAIT_MS = 30_000
"""How long a call that was stopped while recording waits to be stopped again."""
MAX_GAP_MS = 600_000
"""The longest wait before a chunk that `replay_timing` reproduces."""


class Replayer:
    """One replay: which entries are used up, and what each call is compared with."""

    def __init__(self, source: Source, options: CassetteOptions) -> None:
        self._source = source
        self._options = options
        self._lock = threading.Lock()
        self._calls = 0
        self._used: set[int] = set()
        self._cassette: Cassette | None = None
        self._comparable: dict[int, dict[str, Any]] = {}
        self._reading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[Cassette]] = WeakKeyDictionary()

    def cassette(self) -> Cassette:
        """Return the recording, read on first use; blocking. Raises `LOUSHO_CASSETTE_INVALID`."""
        if self._cassette is None:
            read = read_cassette(self._options.path, fix=self._options.hint)
            with self._lock:
                self._cassette = self._cassette or read
        return self._cassette

    @property
    def default_model(self) -> str | None:
        """The model of requests that name none: the given provider's own, else the recorded one."""
        if self._source.given is not None:
            return self._source.given.default_model
        return self.cassette().provider.get("defaultModel")

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer a call with the recorded reply, or raise the recorded rejection."""
        number = self._next_number()
        exchange = await self._answer(number, request)
        await self._stopped_again(number, exchange, request.signal)
        failure = exchange.failure()
        if failure is not None:
            raise failure
        return exchange.whole()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Answer a call with the recorded chunks."""
        return self._stream(self._next_number(), request)

    async def _stream(self, number: int, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        exchange = await self._answer(number, request)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for at_ms, chunk in exchange.pieces():
            left = min(at_ms, MAX_GAP_MS) - (loop.time() - began) * 1000 if self._options.replay_timing else 0
            # Also without timing the loop gets its turn, as it does while a real stream is read.
            await pause(max(0.0, left), request.signal)
            yield chunk
        await self._stopped_again(number, exchange, request.signal)
        failure = exchange.failure()
        if failure is not None:
            raise failure

    async def _read(self) -> None:
        """Read the file in a thread. Calls that wait for it go on in the order they came, so they match in that order."""
        if self._cassette is not None:
            return
        loop = asyncio.get_running_loop()
        reading = self._reading.get(loop)
        if reading is None or reading.done():
            reading = self._reading[loop] = loop.run_in_executor(None, self.cassette)
        await asyncio.shield(reading)

    def _next_number(self) -> int:
        with self._lock:
            self._calls += 1
            return self._calls

    async def _answer(self, number: int, request: ModelRequest) -> Exchange:
        """Return the entry that answers the call, and use it up. Raises `LOUSHO_CASSETTE_INVALID`."""
        await self._read()
        entries = self.cassette().entries
        recorded = recorded_request(request, request.model or self.default_model, self._options.redact)
        actual = self._compared(recorded, self.default_model)
        if self._options.match == "request":
            return self._any_entry(number, entries, actual)
        if number > len(entries):
            many = f"{len(entries)} call{'' if len(entries) == 1 else 's'}"
            raise self._error(
                number,
                f"Call #{number} has no recorded answer in {self._options.path}: the cassette holds {many}.",
                _last_message(actual),
            )
        difference = _difference(self._recorded(number - 1), actual)
        if difference is not None:
            raise self._error(
                number,
                f"Call #{number} does not match the recorded request in {self._options.path}.",
                difference.describe(),
            )
        return entries[number - 1]

    def _any_entry(self, number: int, entries: list[Exchange], actual: dict[str, Any]) -> Exchange:
        closest: tuple[int, int, Difference] | None = None
        with self._lock:
            for index, entry in enumerate(entries):
                if index in self._used:
                    continue
                recorded = self._recorded(index)
                difference = _difference(recorded, actual)
                if difference is None:
                    self._used.add(index)
                    return entry
                likeness = _likeness(recorded, actual)
                if closest is None or likeness > closest[0]:
                    closest = (likeness, index, difference)
        if closest is None:
            raise self._error(
                number,
                f"Call #{number} has no recorded answer in {self._options.path}: all {len(entries)} are used.",
                _last_message(actual),
            )
        raise self._error(
            number,
            f"Call #{number} does not match any unused recorded request in {self._options.path};"
            f" the closest is entry {closest[1] + 1}.",
            closest[2].describe(),
        )

    def _recorded(self, index: int) -> dict[str, Any]:
        known = self._comparable.get(index)
        if known is None:
            cassette = self.cassette()
            # The keys that are taken out may be more than the writer of the file knew.
            request = redact_strings(cassette.entries[index].request, redact_keys)
            known = self._comparable[index] = self._compared(request, cassette.provider.get("defaultModel"))
        return known

    def _compared(self, recorded: dict[str, Any], default_model: str | None) -> dict[str, Any]:
        """Return a request as it is compared; `normalize` sees of both sides what a cassette keeps of a request."""
        if self._options.normalize is not None:
            normalized = self._options.normalized(request_from_recording(recorded))
            recorded = recorded_request(normalized, normalized.model, str)
        return comparable_request(recorded, default_model)

    async def _stopped_again(self, number: int, exchange: Exchange, signal: CancelSignal | None) -> None:
        """Wait to be stopped, where the recorded call was stopped by its caller before it was over."""
        if not exchange.aborted:
            return

        def nobody_did() -> CassetteMismatchError:
            return self._error(
                number,
                f"Call #{number} was stopped by its caller when {self._options.path} was recorded, and now it was not.",
                "",
            )

        await bounded(asyncio.Event().wait(), signal=signal, timeout_ms=MAX_STOP_WAIT_MS, timed_out=nobody_did)

    def _error(self, number: int, headline: str, body: str) -> CassetteMismatchError:
        fix = f"If the change is intentional, re-record the cassette ({self._options.hint})."
        lines = [line for line in (headline, body, fix) if line]
        return CassetteMismatchError("\n".join(lines), cassette=self._options.path, call_number=number)


def _difference(recorded: dict[str, Any], actual: dict[str, Any]) -> Difference | None:
    """Return where two comparable requests differ first, field by field in the order they are documented."""
    for key in ("model", "messages", "tools", "temperature", "maxTokens"):
        ignore = one_sided_patterns if key == "tools" else None
        one = {key: recorded[key]} if key in recorded else {}
        other = {key: actual[key]} if key in actual else {}
        found = first_difference(one, other, "request", ignore)
        if found is not None:
            return found
    return None


def _likeness(recorded: dict[str, Any], actual: dict[str, Any]) -> int:
    """Return how many messages from the start two requests share."""
    pairs = zip(recorded.get("messages", []), actual.get("messages", []), strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), len(actual.get("messages", [])))


def _last_message(actual: dict[str, Any]) -> str:
    messages: list[dict[str, Any]] = actual.get("messages") or [{}]
    content: Any = messages[-1].get("content", "")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return f"  last message: {messages[-1].get('role', 'none')} {json.dumps(shown, ensure_ascii=False)}"
