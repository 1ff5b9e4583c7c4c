"""The one module that speaks HTTP to model vendors; nothing else imports httpx.

It owns what every vendor needs alike: one client an event loop, closed with that loop; proxies and certificates of the
environment; the idle timeout; limits on what is read; errors without keys. There is no other timeout than the
provider's own. Source: providers page ("Request timeout", "A custom fetch").
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from lousho.core.cancel import CancelSignal
from lousho.core.errors import CompactedLLMProviderError, ConfigurationError, MissingDependencyError
from lousho.core.errors import TimeoutError as OperationTimeoutError
from lousho.models.errors import network_error, provider_failure
from lousho.models.kept_client import KeptClient, close_all
from lousho.models.network import network_failure_of
from lousho.models.sse import EventDecoder, EventTooLarge, ServerSentEvent
from lousho.models.waiting import bounded

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

MAX_BODY_BYTES = 32 * 1024 * 1024
"""The longest answer that is read whole."""
MAX_ERROR_BYTES = 64 * 1024
"""What is read of the body of a refused call."""
MAX_STREAM_BYTES = 256 * 1024 * 1024
"""The longest stream that is read."""
DEFAULT_TIMEOUT_MS = 600_000
DRAIN_MS = 100
"""How long the end of a finished stream is waited for, in milliseconds."""
NO_TIMEOUT = None
"""The library's own timeouts are off: they would cut a long generation short behind the provider's back."""

_CERTIFICATES: dict[tuple[str | None, str | None], ssl.SSLContext] = {}
_LOOPBACK = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class VendorHttp:
    """The HTTP side of one provider.

    `timeout_ms` is the longest wait for an answer to start and between two of its chunks; 0 or infinity turns it off.
    `transport` (an `httpx.AsyncBaseTransport`) replaces the network; it stays the caller's to close.
    """

    def __init__(
        self,
        provider: str,
        *,
        timeout_ms: float = DEFAULT_TIMEOUT_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.provider = provider
        self.secrets = secrets
        self.timeout_ms = _checked_timeout(timeout_ms)
        self._transport = transport
        self._clients: dict[asyncio.AbstractEventLoop, KeptClient] = {}
        # A provider that is thrown away gives its connections back in the loops they belong to. The finalizer also keeps
        # the clients out of the garbage that a provider may be part of, where they could not be closed any more.
        weakref.finalize(self, close_all, self._clients).atexit = False

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        signal: CancelSignal | None = None,
    ) -> AsyncGenerator[VendorReply, None]:
        """Send one request and give its answer once it has started; the connection is released at the end.

        Raises `LOUSHO_PROVIDER_REQUEST_FAILED` when no answer came, and the signal's reason when it was aborted.
        """
        import httpx

        client = await self._client()
        try:
            request = client.build_request(method, url, headers=dict(headers), content=body)
        except (httpx.InvalidURL, ValueError, UnicodeError):
            raise ConfigurationError(
                f"{self.provider}: the address {shown_url(url)} is not a usable URL.", field="base_url"
            ) from None
        response = await self.guarded(client.send(request, stream=True), url, signal)
        try:
            yield VendorReply(self, response, url, signal)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The provider can be used again afterwards."""
        kept = self._clients.get(asyncio.get_running_loop())
        if kept is not None:
            await asyncio.wait([kept.close()])

    async def guarded(
        self, work: Coroutine[Any, Any, T], url: str, signal: CancelSignal | None, at_most_ms: float | None = None
    ) -> T:
        """Await `work` under the idle timeout and the signal, and turn its failures into coded errors.

        `at_most_ms` shortens the timeout, in milliseconds.
        """
        import httpx

        limits = [limit for limit in (self.timeout_ms, at_most_ms) if limit is not None]
        try:
            return await bounded(
                work, signal=signal, timeout_ms=min(limits, default=None), timed_out=lambda: self._timed_out(url)
            )
        except (httpx.HTTPError, httpx.StreamError, OSError, EOFError) as error:
            if signal is not None and error is signal.reason:
                raise
            failed = self._failed(error, url)
        # Raised here so that the library's error, which holds the request with its key, is not its context.
        raise failed

    def _failed(self, error: BaseException, url: str) -> CompactedLLMProviderError:
        failure = network_failure_of(error, shown_url(url))
        if failure is None:
            message = f"the answer of {shown_url(url)} could not be read ({type(error).__name__})"
            return provider_failure(self.provider, message, status=502)
        return network_error(self.provider, failure, self.secrets)

    def _timed_out(self, url: str) -> CompactedLLMProviderError:
        timeout_ms = self.timeout_ms or 0
        cause = OperationTimeoutError(
            f"no answer from {shown_url(url)} for {timeout_ms:g} ms", "model call", timeout_ms
        )
        return provider_failure(
            self.provider,
            f"{cause.detail}; raise the provider's timeout if the model needs longer",
            category="timeout",
            cause=cause,
        )

    async def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        kept = self._clients.get(loop)
        if kept is None or kept.client.is_closed:
            for other in list(self._clients):
                if other.is_closed():
                    self._clients.pop(other, None)
            kept = self._clients[loop] = KeptClient(self._open(), self._clients, loop)
            await anext(kept.keeper)
        return kept.client

    def _open(self) -> httpx.AsyncClient:
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)
        if self._transport is not None:
            return httpx.AsyncClient(transport=_borrowed(self._transport), timeout=NO_TIMEOUT)
        try:
            return httpx.AsyncClient(
                timeout=NO_TIMEOUT,
                limits=limits,
                verify=certificates(),
                # A proxy cannot reach this machine's own servers, whether or not NO_PROXY says so.
                mounts=dict.fromkeys(_LOOPBACK),
            )
        except ImportError:
            raise MissingDependencyError(
                "A SOCKS proxy is set in the environment, and the package that speaks SOCKS is not installed.",
                install_command="pip install 'httpx[socks]'",
                package="socksio",
            ) from None
        except (ValueError, httpx.InvalidURL):
            raise ConfigurationError(
                "The proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not a usable URL; write it like"
                " http://proxy.example:8080, or unset it."
            ) from None


class VendorReply:
    """An answer that has started. Everything read from it is bounded in size and in waiting."""

    def __init__(self, http: VendorHttp, response: httpx.Response, url: str, signal: CancelSignal | None) -> None:
        self.http = http
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: Mapping[str, str] = response.headers
        self.url = url
        self._signal = signal
        self._bytes = response.aiter_bytes()
        self._size = 0

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    async def chunk(self) -> bytes:
        """Return the next bytes, empty at the end."""
        return await self.guarded(self.raw_chunk())

    async def raw_chunk(self) -> bytes:
        """Return the next bytes without a bound of its own, for waits that need several."""
        async for chunk in self._bytes:
            if chunk:
                self._size += len(chunk)
                if self._size > MAX_STREAM_BYTES:
                    raise self.failure(f"the answer is longer than {MAX_STREAM_BYTES:,} bytes", retryable=False)
                return chunk
        return b""

    async def guarded(self, work: Coroutine[Any, Any, T], at_most_ms: float | None = None) -> T:
        """Await `work`, which waits for this answer, under the provider's timeout."""
        return await self.http.guarded(work, self.url, self._signal, at_most_ms)

    async def read(self, limit: int = MAX_BODY_BYTES, *, begun: bytes = b"", cut: bool = False) -> bytes:
        """Return the rest of the body after `begun`. Longer than `limit`: cut off, or an error."""
        body = bytearray(begun)
        while chunk := await self.chunk():
            body += chunk
            if len(body) > limit:
                if cut:
                    break
                raise self.failure(f"the answer is longer than {limit:,} bytes", retryable=False)
        return bytes(body[:limit])

    def failure(self, message: str, *, retryable: bool | None = None) -> CompactedLLMProviderError:
        """Return the error for an answer that makes no sense: a bad gateway, whatever its status said."""
        return provider_failure(
            self.http.provider,
            f"{message} ({shown_url(self.url)})",
            status=502,
            retryable=retryable,
            secrets=self.http.secrets,
        )


class EventStream:
    """The events of a streaming answer, or the whole body where a server does not stream.

    The idle timeout runs from one event to the next; comments and `ping` events do not reset it.
    """

    def __init__(self, reply: VendorReply) -> None:
        self._reply = reply
        self._decoder = EventDecoder()
        self._ready: deque[ServerSentEvent] = deque()
        self._ended = False
        self.beginning = b""
        """The first bytes of the answer, to show when nothing in it was an event."""

    async def whole_body(self) -> bytes | None:
        """Return the body of an answer that is one JSON document, or `None` for a stream. Call it first."""
        head = b""
        while not head.strip(b" \t\r\n\xef\xbb\xbf"):
            chunk = await self._reply.chunk()
            if not chunk:
                self._ended = True
                break
            head += chunk
            if len(head) > MAX_ERROR_BYTES:
                break
        self.beginning = head[:1024]
        if head.strip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"["):
            return await self._reply.read(begun=head)
        self._take(head)
        return None

    async def next(self, at_most_ms: float | None = None) -> ServerSentEvent | None:
        """Return the next event, or `None` at the end of the stream. `at_most_ms` shortens the wait."""
        if not self._ready and not self._ended:
            await self._reply.guarded(self._fill(), at_most_ms)
        return self._ready.popleft() if self._ready else None

    async def drain(self) -> None:
        """Read what is left of a stream that is over, so that its connection can be used again; gives up soon."""
        with suppress(CompactedLLMProviderError):
            for _ in range(10):
                if self._ended or not await self._reply.guarded(self._reply.raw_chunk(), DRAIN_MS):
                    return

    async def _fill(self) -> None:
        while not self._ready and not self._ended:
            chunk = await self._reply.raw_chunk()
            if chunk:
                self._take(chunk)
            else:
                self._ended = True
                self._keep(self._decoder.close())

    def _take(self, chunk: bytes) -> None:
        try:
            self._keep(self._decoder.feed(chunk))
        except EventTooLarge as error:
            raise self._reply.failure(str(error), retryable=False) from None

    def _keep(self, events: list[ServerSentEvent]) -> None:
        self._ready.extend(event for event in events if event.event != "ping")


def certificates() -> ssl.SSLContext:
    """Return what TLS connections trust: the system's store and certifi's, or what SSL_CERT_FILE and SSL_CERT_DIR name.

    Raises `LOUSHO_CONFIG_INVALID` when the file or folder cannot be read.
    """
    import ssl

    key = (os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None)
    context = _CERTIFICATES.get(key)
    if context is None:
        try:
            context = ssl.create_default_context(cafile=key[0], capath=key[1])
            if key == (None, None):
                import certifi

                context.load_verify_locations(cafile=certifi.where())
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read ({error}). Correct the path, or"
                " unset the variable."
            ) from None
        _CERTIFICATES[key] = context
    return context


def shown_url(url: str) -> str:
    """Return `url` without user, password, query and fragment."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an unreadable URL)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _checked_timeout(timeout_ms: float) -> float | None:
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, (int, float)) or not timeout_ms >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"timeout must be a number of milliseconds, 0 or infinity for none; got {timeout_ms!r}.", field="timeout"
        )
    return None if timeout_ms == 0 or timeout_ms == float("inf") else timeout_ms


def _borrowed(transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
    """Return `transport` in a coat that does not close it: who made it does."""
    import httpx

    class Borrowed(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            return await transport.handle_async_request(request)

    return Borrowed()
