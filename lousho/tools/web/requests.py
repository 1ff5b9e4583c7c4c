"""One request of a web tool, from the first hop to the last byte, under one deadline.

Redirects are followed by hand, because every hop is checked like the first. Nothing here keeps cookies or reads the
environment's proxies. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from lousho.core.cancel import CancelSignal
from lousho.core.errors import SDKError
from lousho.tools.web.bodies import ACCEPT_ENCODING, BadEncoding, decoders_of, read_body
from lousho.tools.web.options import WebOptions
from lousho.tools.web.urls import WebUrl, failure, redirect_url

if TYPE_CHECKING:
    import h11

    from lousho.tools.web.http11 import Connection
    from lousho.tools.web.transport import Pools

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
MAX_DRAINED: Final = 16 * 1024
"""Bytes of an unwanted body that are read to keep the connection."""
_KEPT_ELSEWHERE: Final = frozenset(
    {"accept", "accept-language", "content-language", "content-type", "range", "user-agent"}
)
"""Headers that follow a redirect to another origin. Any other may be a credential, whatever its name."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """What to send. The client adds `Host`, `User-Agent`, `Accept-Encoding` and the body's length."""

    method: str
    url: WebUrl
    headers: Headers
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebResponse:
    """The last answer, its body read as far as wanted."""

    url: WebUrl
    status: int
    headers: Headers
    body: bytes
    truncated: bool

    def header(self, name: str) -> str:
        """Return the values of a header, named in lower case; an empty text when there is none."""
        return header_of(self.headers, name)


def header_of(headers: Headers, name: str) -> str:
    """Return the values of a header, joined as HTTP joins them."""
    return ", ".join(value for key, value in headers if key.lower() == name)


class WebClient:
    """Sends the requests of one tool."""

    def __init__(self, options: WebOptions) -> None:
        self._options = options
        self._pools: Pools | None = None
        self._starting = threading.Lock()

    async def send(
        self, request: WebRequest, signal: CancelSignal | None, wants_body: Callable[[Headers], bool]
    ) -> WebResponse:
        """Return the answer at the end of the redirects.

        `wants_body` looks at the last answer's headers and says whether its body is to be read. Raises a tool error
        that names the host, or the signal's reason when it was aborted; the connection is closed then.
        """
        from lousho.models.waiting import bounded

        hop = _Hop(request)
        timeout_ms = self._options.timeout_ms

        def overdue() -> SDKError:
            return failure(f"'{hop.request.url.authority}' did not answer completely within {timeout_ms:g} ms.")

        return await bounded(self._follow(hop, wants_body), signal=signal, timeout_ms=timeout_ms, timed_out=overdue)

    async def _follow(self, hop: _Hop, wants_body: Callable[[Headers], bool]) -> WebResponse:
        first = hop.request.url
        for _ in range(self._options.max_redirects + 1):
            self._check(hop.request.url)
            async with self._answer(hop.request) as (connection, head):
                headers = _text_headers(head)
                location = _location(head) if head.status_code in REDIRECTS else None
                if location is None:
                    answer = WebResponse(
                        url=hop.request.url, status=head.status_code, headers=headers, body=b"", truncated=False
                    )
                    return await self._read(connection, answer, hop.request, wants_body)
                await _finish(connection, headers, hop.request.method)
            hop.request = _redirected(hop.request, head.status_code, redirect_url(hop.request.url, location))
        raise failure(f"'{first.authority}' redirects more than {self._options.max_redirects} times.")

    def _check(self, url: WebUrl) -> None:
        complaint = self._options.rules.complaint(url.host)
        if complaint is not None:
            raise failure(f"'{url.host.in_url}' {complaint}.")

    @asynccontextmanager
    async def _answer(self, request: WebRequest) -> AsyncGenerator[tuple[Connection, h11.Response], None]:
        """Send one request and give its answer once the headers are there; what fails after that is told alike."""
        import h11

        pool = await self._own_pools().pool()
        try:
            async with pool.connection(request.url) as connection:
                yield connection, await connection.ask(self._on_the_wire(request), request.body)
        except BadEncoding as error:
            raise failure(f"The answer of '{request.url.authority}' is not the {error} that it says it is.") from None
        except (h11.ProtocolError, OSError) as error:
            failed = failure(_told(error, request.url))
        else:
            return
        # Raised here so that the library's error, which may hold parts of the request, is not its context.
        raise failed

    def _own_pools(self) -> Pools:
        from lousho.tools.web.transport import Pools

        with self._starting:  # runs in several threads may share a tool
            if self._pools is None:
                options = self._options
                self._pools = Pools(options.rules, options.resolver, validate=options.validate_ssl)
            return self._pools

    def _on_the_wire(self, request: WebRequest) -> h11.Request:
        import h11

        url = request.url
        headers = [("Host", url.authority), *request.headers]
        given = {name.lower() for name, _ in headers}
        if "user-agent" not in given:
            headers.append(("User-Agent", self._options.user_agent))
        if "accept" not in given:
            headers.append(("Accept", "*/*"))
        headers.append(("Accept-Encoding", ACCEPT_ENCODING))
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            headers.append(("Content-Length", str(len(request.body or b""))))
        return h11.Request(
            method=request.method,
            target=url.target,
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers],
        )

    async def _read(
        self,
        connection: Connection,
        answer: WebResponse,
        request: WebRequest,
        wants_body: Callable[[Headers], bool],
    ) -> WebResponse:
        if request.method == "HEAD" or not wants_body(answer.headers):
            await _finish(connection, answer.headers, request.method)
            return answer
        decoders = decoders_of(answer.header("content-encoding"))
        if decoders is None:
            raise failure(f"The answer of '{request.url.authority}' is compressed in a way that is not known here.")
        body = await read_body(connection.chunk, decoders, self._options.max_bytes)
        return replace(answer, body=body.data, truncated=body.truncated)


async def _finish(connection: Connection, headers: Headers, method: str) -> None:
    """Read a body that nobody wants when that is less work than a new connection; otherwise it is hung up on."""
    length = header_of(headers, "content-length")
    if method == "HEAD" or (length.isascii() and length.isdigit() and len(length) < 6 and int(length) <= MAX_DRAINED):
        while await connection.chunk():
            pass


@dataclass(slots=True)
class _Hop:
    """The request that is under way, for messages about it."""

    request: WebRequest


def _redirected(request: WebRequest, status: int, target: WebUrl) -> WebRequest:
    """Return the request that follows a redirect, as the fetch standard has it, with fewer headers elsewhere.

    A 303, and a 301 or 302 after a `POST`, become a `GET` without a body.
    """
    method, headers, body = request.method, request.headers, request.body
    if (status == 303 and method not in ("GET", "HEAD")) or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = tuple((name, value) for name, value in headers if not name.lower().startswith("content-"))
    if target.origin != request.url.origin:
        headers = tuple((name, value) for name, value in headers if name.lower() in _KEPT_ELSEWHERE)
        if body is not None and (request.url.scheme, target.scheme) == ("https", "http"):
            raise failure(
                f"'{request.url.authority}' redirects to '{target.authority}' without TLS: the body of the request was"
                " not sent there."
            )
    return replace(request, method=method, url=target, headers=headers, body=body)


def _text_headers(head: h11.Response) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers.raw_items())


def _location(head: h11.Response) -> str | None:
    for name, value in head.headers:
        if name == b"location":
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                return value.decode("latin-1")
    return None


def _told(error: BaseException, url: WebUrl) -> str:
    """Return what went wrong with the network, without addresses and without what was sent."""
    from lousho.models.network import network_failure_of

    where = f"'{url.authority}'"
    if type(error).__name__ == "RemoteProtocolError" and not _ended_early(str(error)):
        return f"The answer of {where} is not valid HTTP, or its headers are too long."
    if type(error).__name__ == "LocalProtocolError":
        return f"The request to {where} cannot be sent: its method or headers are not valid HTTP."
    found = network_failure_of(error, where)
    text = found.message if found is not None else f"the answer of {where} could not be read"
    return f"{text[:1].upper()}{text[1:]}."


def _ended_early(text: str) -> bool:
    return "disconnected" in text or "closed connection" in text
