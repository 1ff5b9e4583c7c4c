"""What all vendors reached over HTTP share: options, the call itself, and the rule for files.

A vendor adds three things in three files of its own: how a request is written, how a reply is read, how a stream is
read. Source: providers page.
"""

from __future__ import annotations

import json
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from lousho.core.errors import CompactedLLMProviderError, ConfigurationError, LLMProviderError
from lousho.core.messages import FilePart
from lousho.models.chunks import chunks_of
from lousho.models.errors import VendorError, provider_failure, redact, snippet_of, vendor_error_of
from lousho.models.http import DEFAULT_TIMEOUT_MS, MAX_ERROR_BYTES, EventStream, VendorHttp, VendorReply
from lousho.models.loose import mapping_of, mappings_of
from lousho.models.media import file_note, media_type
from lousho.models.provider import ModelChunk, ModelRequest, ModelResponse
from lousho.models.requests import request_of

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger("lousho.models")

TRAILER_MS = 5_000
"""How long a complete answer waits for the token counts that may follow it, in milliseconds."""

UnsupportedFiles = Literal["error", "text-note"]


class StreamReader(Protocol):
    """Turns the events of one stream into chunks. It never waits and does no I/O."""

    answered: bool
    """True once the vendor said why the model stopped: what follows is only bookkeeping."""
    done: bool
    """True once nothing more will come."""

    def feed(self, data: Mapping[str, Any]) -> list[ModelChunk]:
        """Return the chunks that one event completes."""
        ...

    def end(self) -> list[ModelChunk]:
        """Return what is left when the stream is over: tool calls and the finish. Called only when `answered`."""
        ...


class HttpProvider(ABC):
    """A model vendor reached over HTTP. Subclass `OpenAIProvider` or `AnthropicProvider`, not this."""

    vendor: ClassVar[str]
    """The vendor's name, and the provider's unless it is given another."""
    accepts_file_parts: ClassVar[bool] = False
    """Set it in a subclass whose model takes files of every media type."""

    def __init__(
        self,
        *,
        name: str | None,
        base_url: str,
        api_key: str,
        default_model: str,
        timeout: float = DEFAULT_TIMEOUT_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        unsupported_files: UnsupportedFiles = "error",
    ) -> None:
        self.name: str = name or self.vendor
        self.default_model: str = default_model
        self.base_url: str = _checked_url(base_url, self.name)
        self._extra_headers = dict(headers or {})
        if unsupported_files not in ("error", "text-note"):
            raise ConfigurationError(
                f"unsupported_files must be 'error' or 'text-note'; got {unsupported_files!r}.",
                field="unsupported_files",
            )
        self._unsupported_files = unsupported_files
        self._warned: set[str] = set()
        self._http = VendorHttp(
            self.name,
            timeout_ms=timeout,
            transport=transport,
            secrets=(api_key, *(value for key, value in self._extra_headers.items() if _is_secret(key))),
        )
        self._api_key = api_key

    async def generate(self, request: ModelRequest | Mapping[str, Any]) -> ModelResponse:
        """Return a whole model turn. Raises `LOUSHO_PROVIDER_REQUEST_FAILED` and the other codes of a failed call."""
        wanted = request_of(request)
        body = self.request_body(wanted, stream=False)
        async with self._http.send(
            "POST", self.call_url(), headers=self._headers(), body=_encoded(body), signal=wanted.signal
        ) as reply:
            if not reply.ok:
                raise await self._refused(reply)
            return self._parsed(reply, await reply.read())

    async def stream(self, request: ModelRequest | Mapping[str, Any]) -> AsyncIterator[ModelChunk]:
        """Return the model turn as chunks. Tool calls come last, once the vendor said that the turn is complete."""
        wanted = request_of(request)
        body = self.request_body(wanted, stream=True)
        headers = {**self._headers(), "accept": "text/event-stream"}
        async with self._http.send(
            "POST", self.call_url(), headers=headers, body=_encoded(body), signal=wanted.signal
        ) as reply:
            if not reply.ok:
                raise await self._refused(reply)
            events = EventStream(reply)
            whole = await events.whole_body()
            if whole is not None:
                # Some servers answer a streaming request with one plain reply.
                for chunk in chunks_of(self._parsed(reply, whole)):
                    yield chunk
                return
            async with aclosing(self._chunks(reply, events)) as chunks:
                async for chunk in chunks:
                    yield chunk

    def supports_tools(self, model: str | None = None) -> bool:
        """True: tools are offered to every model of the vendor."""
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        """True."""
        return True

    async def get_models(self) -> list[str]:
        """Return the ids that `GET <base>/models` lists; empty where the server has no such list."""
        async with self._http.send("GET", self.url_of("models"), headers=self._headers()) as reply:
            if reply.status in (404, 405, 501):
                return []
            if not reply.ok:
                raise await self._refused(reply)
            data = _json(await reply.read())
        entries = mappings_of(mapping_of(data).get("data") if isinstance(data, Mapping) else data)
        return [str(entry["id"]) for entry in entries if entry.get("id")]

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The provider stays usable; it opens new ones."""
        await self._http.aclose()

    def file_media_types(self) -> tuple[str, ...]:
        """Return the media types that are sent as files. Override it where a model takes more."""
        return ()

    def file_note_for(self, part: FilePart, *, problem: str = "") -> str | None:
        """Return the text to send in place of a file, or `None` when the file itself can be sent.

        `problem` says why this file cannot, whatever its type. Raises `LOUSHO_UNSUPPORTED_CONTENT`.
        """
        kind = media_type(part.mime_type)
        if not problem:
            if self.accepts_file_parts or kind in self.file_media_types():
                return None
            taken = ", ".join(self.file_media_types()) or "no files"
            problem = f"{self.name} does not take files of type {kind or '(none)'} (it takes {taken})"
        if self._unsupported_files == "text-note":
            self.warn_once(f"file {kind}", f"{problem}; a text note is sent in its place.")
            return file_note(part)
        shown = f"the file {part.filename!r}" if part.filename else f"a file ({kind or 'no media type'})"
        raise LLMProviderError(
            f"{problem}: {shown} was not sent, and neither was the request.",
            provider=self.name,
            code="LOUSHO_UNSUPPORTED_CONTENT",
        )

    def warn_once(self, topic: str, message: str) -> None:
        """Log `message` as a warning the first time this provider has something to say about `topic`."""
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning("%s: %s", self.name, message)

    def url_of(self, path: str) -> str:
        """Return the address of `path` below the base URL; the base URL's query is kept."""
        base, mark, query = self.base_url.partition("?")
        return f"{base.rstrip('/')}/{path}{mark}{query}"

    @abstractmethod
    def call_url(self) -> str:
        """Return the address that model calls go to."""

    @abstractmethod
    def auth_headers(self, api_key: str) -> dict[str, str]:
        """Return the headers that carry the key and the vendor's API version."""

    @abstractmethod
    def request_body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        """Return the vendor's request. Raises before anything is sent when content cannot be."""

    @abstractmethod
    def read_reply(self, data: Mapping[str, Any], fail: FailureMaker) -> ModelResponse:
        """Return the turn in the vendor's reply; `fail` makes the error for a reply that has none."""

    @abstractmethod
    def stream_reader(self, fail: FailureMaker) -> StreamReader:
        """Return a reader for one stream."""

    def failed_inside(self, error: VendorError) -> CompactedLLMProviderError:
        """Return the error for a failure that a vendor reports inside an answer with status 200."""
        return provider_failure(
            self.name,
            error.message or "the provider reported an error without a reason",
            status=error.status or 502,
            kind=f"{error.kind} {error.code}",
            secrets=self._http.secrets,
        )

    async def _chunks(self, reply: VendorReply, events: EventStream) -> AsyncGenerator[ModelChunk, None]:
        reader = self.stream_reader(reply.failure)
        seen = False
        while not reader.done:
            try:
                event = await events.next(at_most_ms=TRAILER_MS if reader.answered else None)
            except CompactedLLMProviderError:
                # Once the vendor said why the model stopped, a lost connection costs the token counts at most.
                if reader.answered:
                    break
                raise
            if event is None or event.data == "[DONE]":
                break
            if event.data:
                seen = True
                for chunk in reader.feed(self._event_data(reply, event.data)):
                    yield chunk
        if not reader.answered:
            if not seen:
                shown = snippet_of(events.beginning)
                raise reply.failure(
                    f"the answer is not a stream of events: {shown}" if shown else "the answer was empty"
                )
            raise reply.failure("the stream ended before the answer was complete; nothing of it was used")
        for chunk in reader.end():
            yield chunk
        await events.drain()

    def _event_data(self, reply: VendorReply, text: str) -> Mapping[str, Any]:
        data = _json(text)
        self._raise_error_inside(data)
        if not isinstance(data, Mapping):
            shown = snippet_of(text.encode("utf-8", "replace"))
            raise reply.failure(f"the stream holds something that is not a JSON object: {shown}")
        return cast("Mapping[str, Any]", data)

    def _parsed(self, reply: VendorReply, body: bytes) -> ModelResponse:
        data = _json(body)
        self._raise_error_inside(data)
        if not isinstance(data, Mapping):
            shown = snippet_of(body)
            raise reply.failure(f"the answer is not JSON: {shown}" if shown else "the answer was empty")
        return self.read_reply(cast("Mapping[str, Any]", data), reply.failure)

    def _raise_error_inside(self, data: Any) -> None:
        """Raise what a vendor reports as an error in an answer whose status was 200."""
        if isinstance(data, Mapping):
            event = cast("Mapping[str, Any]", data)
            if not (event.get("error") or "error" in (event.get("object"), event.get("type"))):
                return
        error = vendor_error_of(data)
        if error is not None:
            raise self.failed_inside(error)

    async def _refused(self, reply: VendorReply) -> CompactedLLMProviderError:
        try:
            body = await reply.read(MAX_ERROR_BYTES, cut=True)
        except CompactedLLMProviderError:
            body = b""  # the status alone says enough
        error = vendor_error_of(_json(body))
        message = error.message if error else ""
        if not message:
            status_line = f"{reply.status} {reply.reason}".strip()
            if 300 <= reply.status < 400:
                status_line += f" (a redirect to {reply.headers.get('location', 'nowhere')}; set base_url to it)"
            shown = snippet_of(body)
            message = f"{status_line}: {shown}" if shown else status_line
        return provider_failure(
            self.name,
            message,
            status=reply.status,
            kind=f"{error.kind} {error.code}" if error else "",
            headers=reply.headers,
            secrets=self._http.secrets,
        )

    def _headers(self) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "accept": "application/json",
            "user-agent": "lousho",
            **self.auth_headers(self._api_key),
            **self._extra_headers,
        }


class FailureMaker(Protocol):
    """Makes the error for an answer that makes no sense."""

    def __call__(self, message: str, *, retryable: bool | None = None) -> CompactedLLMProviderError: ...


def given(value: str | None, variable: str, default: str = "") -> str:
    """Return `value`, or what the environment says when it was not given, or `default`; an empty variable says nothing.

    An empty `value` stays empty and is refused: falling back would send one vendor's key to another's address.
    """
    return value if value is not None else os.environ.get(variable) or default


def checked_key(api_key: str, variable: str, vendor: str) -> str:
    """Return the key to send. Raises `LOUSHO_PROVIDER_MISSING_API_KEY`, or `LOUSHO_CONFIG_INVALID` for one no header takes."""
    key = api_key.strip()
    if not key:
        raise ConfigurationError(
            f"The {vendor} provider needs an API key: set {variable}, or pass api_key= (local servers take any text). To"
            " try an agent without a key, use --model mock/demo.",
            field="api_key",
            code="LOUSHO_PROVIDER_MISSING_API_KEY",
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(
            f"The key in {variable} holds a character that no HTTP header can carry, such as a line break or a"
            " typographic quote. Copy it again.",
            field="api_key",
        )
    return key


def _checked_url(base_url: str, name: str) -> str:
    from urllib.parse import urlsplit

    text = base_url.strip() if isinstance(base_url, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        shown = redact(re.sub(r"//[^/@]*@", "//[REDACTED]@", text[:100]))
        raise ConfigurationError(
            f"The base URL of the {name} provider must look like http://localhost:1234/v1 or"
            f" https://api.example.com/v1; got {shown!r}.",
            field="base_url",
        )
    return text.rstrip("/")


def _is_secret(header: str) -> bool:
    return any(word in header.lower() for word in ("auth", "key", "token", "secret", "cookie"))


def _encoded(body: Mapping[str, Any]) -> bytes:
    # A lone surrogate, which a broken file name can bring in, must not stop the call.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


def _json(body: bytes | str) -> Any:
    """Return the JSON value of a text, or `None` when it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
