"""Recording: every call goes to the real provider, and the file is written after each one.

A session begins with the first call, starts from nothing and replaces the old file. Calls keep the order they began
in, however they end, so that parallel calls record without mixing. Source: testing page ("When the cassette is written").
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lousho.core.errors import CassetteMismatchError, SDKError, never_wrap
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse
from lousho.testing.cassettes.cassette_file import (
    Cassette,
    CassetteWriteError,
    dump_cassette,
    dump_entry,
    prepare_place,
    read_bytes_or_none,
    read_cassette,
    same_exchanges,
    write_whole,
)
from lousho.testing.cassettes.exchanges import (
    Exchange,
    TimedChunk,
    recorded_chunks,
    recorded_error,
    recorded_response,
)
from lousho.testing.cassettes.options import CassetteOptions, Source
from lousho.testing.cassettes.requests import RecordedRequest, recorded_request

_NOT_SENT = frozenset(
    {
        "LOUSHO_PEER_MISSING",
        "LOUSHO_PROVIDER_MISSING_API_KEY",
        "LOUSHO_PROVIDER_SPEC_INVALID",
        "LOUSHO_PROVIDER_UNKNOWN",
    }
)
"""Failures of this machine rather than of the model: recording them would replace a good cassette by a mishap."""

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Slot:
    """The place of one call; empty until the call has ended."""

    request: RecordedRequest
    kind: Literal["generate", "stream"]
    exchange: Exchange | None = None
    _text: str = ""

    def written(self) -> str:
        """Return the entry as the text it has in the file; made once, outside of the event loop."""
        if not self._text and self.exchange is not None:
            self._text = dump_entry(self.exchange)
        return self._text


class Recorder:
    """One recording session."""

    def __init__(self, source: Source, options: CassetteOptions) -> None:
        self._source = source
        self._options = options
        self._slots: list[_Slot] = []
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._revision = 0
        self._written = 0
        self._header: Cassette | None = None
        self._old: Cassette | None = None
        self._old_bytes: bytes | None = None
        self._stamp: _Stamp | None = None

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Call the real provider and record what came of it."""
        provider = self._source.provider()
        slot = self._open("generate", request)
        await asyncio.to_thread(self._prepare)
        try:
            response = await provider.generate(request)
        except BaseException as error:
            await self._failed(slot, request, error, [])
            raise
        self._settle(slot, response=recorded_response(response, self._options.redact))
        await self._write()
        return response

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        """Read the real stream to its end, record it, then return it."""
        return self._stream(self._open("stream", request), request)

    async def _stream(self, slot: _Slot, request: ModelRequest) -> AsyncIterator[ModelChunk]:
        await asyncio.to_thread(self._prepare)
        loop = asyncio.get_running_loop()
        began = loop.time()
        chunks: list[TimedChunk] = []
        failure: Exception | None = None
        try:
            async for chunk in self._source.provider().stream(request):
                # One by one: what came before a failure is part of the recording.
                chunks.append(TimedChunk((loop.time() - began) * 1000, chunk))  # noqa: PERF401
        except BaseException as error:
            await self._failed(slot, request, error, chunks)
            if not isinstance(error, Exception) or slot.exchange is None:
                raise
            failure = error
        else:
            self._settle(slot, chunks=self._chunks(chunks))
            await self._write()
        for _, chunk in chunks:
            yield chunk
        if failure is not None:
            raise failure

    async def save(self) -> None:
        """Write the file now, also when nothing was recorded."""
        await asyncio.to_thread(self._prepare)
        await self._write(force=True)

    def _open(self, kind: Literal["generate", "stream"], request: ModelRequest) -> _Slot:
        """Take the next place. The request is read now: the run goes on changing its transcript."""
        model = request.model or self._source.provider().default_model
        slot = _Slot(recorded_request(request, model, self._options.redact), kind)
        with self._lock:
            self._slots.append(slot)
        return slot

    def _settle(self, slot: _Slot, **outcome: Any) -> None:
        exchange = Exchange(kind=slot.kind, request=slot.request, **outcome)
        with self._lock:
            slot.exchange = exchange
            self._revision += 1

    async def _failed(self, slot: _Slot, request: ModelRequest, error: BaseException, chunks: list[TimedChunk]) -> None:
        """Record how a call failed; what is not the provider's doing leaves no entry."""
        cancelled = isinstance(error, asyncio.CancelledError)
        stopped = cancelled or (request.signal is not None and request.signal.aborted)
        if not (cancelled or isinstance(error, Exception)) or (not stopped and _is_not_a_reply(error)):
            return
        told = error if isinstance(error, Exception) else Exception("The call was cancelled.")
        outcome: dict[str, Any] = {
            "error": recorded_error(told, self._options.redact, self._source.provider().name, aborted=stopped)
        }
        if slot.kind == "stream":
            outcome["chunks"] = self._chunks(chunks)
        self._settle(slot, **outcome)
        if not cancelled:
            await self._write()
            return
        try:
            await asyncio.shield(self._write())
        except CassetteWriteError:
            # A task that is told to stop stops; the next write or `save()` reports it.
            return

    def _chunks(self, chunks: list[TimedChunk]) -> list[dict[str, Any]]:
        return recorded_chunks(chunks, self._options.redact, self._source.provider().name)

    async def _write(self, *, force: bool = False) -> None:
        await asyncio.to_thread(self._write_now, force)

    def _prepare(self) -> None:
        """Begin the session: see that the place can be written, and remember what it held."""
        with self._file_lock:
            if self._header is not None:
                return
            path = self._options.path
            prepare_place(path)
            self._old_bytes = read_bytes_or_none(path)
            if self._old_bytes is not None:
                try:
                    self._old = read_cassette(path)
                except CassetteMismatchError:
                    self._old = None
            self._stamp = _stamp_of(path)
            self._header = self._new_header()

    def _new_header(self) -> Cassette:
        from datetime import UTC, datetime

        provider = self._source.provider()
        known = {"name": provider.name}
        if provider.default_model is not None:
            known["defaultModel"] = provider.default_model
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Cassette(entries=[], recorded_at=now, sdk_version=_sdk_version(), provider=known)

    def _write_now(self, force: bool) -> None:
        with self._file_lock:
            with self._lock:
                revision = self._revision
                done = [slot for slot in self._slots if slot.exchange is not None]
            if self._header is None or (revision <= self._written and not force):
                return
            path = self._options.path
            if _stamp_of(path) not in (None, self._stamp):
                raise CassetteWriteError(
                    f"Another recording is writing {path} at the same time. Give each test and each provider a cassette"
                    " of its own.",
                    cassette=path,
                )
            self._header.entries = [slot.exchange for slot in done if slot.exchange is not None]
            write_whole(path, self._content([slot.written() for slot in done]))
            self._stamp = _stamp_of(path)
            self._written = revision

    def _content(self, texts: list[str]) -> bytes:
        assert self._header is not None
        same = (
            self._old is not None
            and self._old_bytes is not None
            and len(self._old.entries) == len(texts)
            and same_exchanges(self._old, self._header)
        )
        return self._old_bytes if same and self._old_bytes is not None else dump_cassette(self._header, texts)


def _is_not_a_reply(error: BaseException) -> bool:
    if never_wrap(error):
        return True
    return isinstance(error, SDKError) and (error.code in _NOT_SENT or error.code.startswith("LOUSHO_CONFIG_"))


def _stamp_of(path: str) -> _Stamp | None:
    """Return what tells one version of a file from the next, or None when there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _sdk_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lousho")
    except PackageNotFoundError:
        return "0.0.0"
