"""What went wrong between us and a server, told the way a person needs it.

HTTP libraries wrap the operating system's error several times and say "All connection attempts failed"; this digs out
the real one. It looks at names and attributes only, so no HTTP library is imported here.
Source: errors page (LOUSHO_PROVIDER_REQUEST_FAILED).
"""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass
from typing import Literal, cast

_TIMEOUT_CLASSES = frozenset({"TimeoutException", "APITimeoutError", "ServerTimeoutError", "ReadTimeoutError"})
_TRANSPORT_CLASSES = frozenset(
    {
        "TransportError",
        "NetworkError",
        "ProtocolError",
        "APIConnectionError",
        "ClientConnectionError",
        "ClientPayloadError",
        "ChunkedEncodingError",
        "IncompleteRead",
    }
)
_NETWORK_ERRNOS = frozenset(
    {
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ETIMEDOUT,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.ENETDOWN,
        errno.EADDRNOTAVAIL,
    }
)
_PHRASES = {
    "ECONNREFUSED": "connection refused (ECONNREFUSED) at {url} - is the server running?",
    "ECONNRESET": "the connection was reset (ECONNRESET) at {url}",
    "ECONNABORTED": "the connection was aborted (ECONNABORTED) at {url}",
    "EPIPE": "the connection was closed while sending (EPIPE) at {url}",
    "ETIMEDOUT": "the connection timed out (ETIMEDOUT) at {url}",
    "EHOSTUNREACH": "the host cannot be reached (EHOSTUNREACH) at {url}",
    "ENETUNREACH": "the network cannot be reached (ENETUNREACH) at {url} - are you online?",
}


@dataclass(frozen=True, slots=True)
class NetworkFailure:
    """A call that got no complete answer: what to say, and whether it may work later."""

    message: str
    category: Literal["timeout", "unknown"]
    retryable: bool
    cause: BaseException | None
    """The operating system's error, when there is one. Never a library's: those carry the request with its keys."""


def network_failure_of(error: BaseException, url: str = "the provider") -> NetworkFailure | None:
    """Return what `error` says about the network, or `None` when it is about something else."""
    chain = _chain(error)
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError):
            reason = link.verify_message or str(link)
            return NetworkFailure(
                f"the certificate of {url} was not accepted ({reason}) - behind a proxy that inspects traffic, set"
                " SSL_CERT_FILE to the file with its certificate",
                "unknown",
                False,
                link,
            )
        if isinstance(link, socket.gaierror):
            return NetworkFailure(
                f"the host name was not found (ENOTFOUND) at {url} - check the address and the connection",
                "timeout",
                True,
                link,
            )
    for link in chain:
        if isinstance(link, ssl.SSLError):
            return NetworkFailure(f"the TLS handshake failed at {url} ({link.reason or link})", "timeout", True, link)
        name = _errno_name(link)
        if name is not None:
            phrase = _PHRASES.get(name, f"the connection failed ({name}) at {{url}}")
            return NetworkFailure(phrase.format(url=url), "timeout", True, link)
    names = {base.__name__ for link in chain for base in type(link).__mro__}
    if names & _TIMEOUT_CLASSES:
        return NetworkFailure(f"no answer in time from {url}", "timeout", True, None)
    if names & _TRANSPORT_CLASSES or isinstance(error, (ConnectionError, EOFError)):
        return NetworkFailure(
            f"the connection was closed before the answer was complete at {url}", "timeout", True, None
        )
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """Return `error` and everything underneath it, outermost first; groups are opened."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting and len(found) < 50:
        current = waiting.pop(0)
        if any(current is known for known in found):
            continue
        found.append(current)
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", current).exceptions)
        cause, context = current.__cause__, current.__context__
        if cause is not None:
            waiting.append(cause)
        elif context is not None and _is_about_transport(cast("object", current)):
            # The context of any other error may be whatever the caller was handling at the time.
            waiting.append(context)
    return found


def _is_about_transport(error: object) -> bool:
    if isinstance(error, (OSError, EOFError)):
        return True
    return any(base.__name__ in _TRANSPORT_CLASSES | _TIMEOUT_CLASSES for base in type(error).__mro__)


def _errno_name(error: BaseException) -> str | None:
    """Return the POSIX name of an operating system's network error, on every platform."""
    if isinstance(error, ConnectionRefusedError):
        return "ECONNREFUSED"
    if isinstance(error, ConnectionResetError):
        return "ECONNRESET"
    if isinstance(error, ConnectionAbortedError):
        return "ECONNABORTED"
    if isinstance(error, BrokenPipeError):
        return "EPIPE"
    if isinstance(error, OSError) and error.errno in _NETWORK_ERRNOS:
        return errno.errorcode.get(error.errno, str(error.errno)).removeprefix("WSA")
    return None
