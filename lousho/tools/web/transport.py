"""Connections that go where the check said: a host is resolved once, every address is checked, one of them is dialled.

The check sits in the one place that opens sockets, so there is no second lookup that a name could answer differently.
The request keeps its `Host` header, and TLS is verified against the name. There is no proxy: it would look the name up
elsewhere. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import httpcore

from lousho.tools.web.hosts import NOT_PUBLIC, Host, HostRules, read_host
from lousho.tools.web.urls import failure

if TYPE_CHECKING:
    import ssl

Resolver: TypeAlias = "Callable[[str, int], Awaitable[Sequence[str]]]"

MAX_ADDRESSES: Final = 8
"""Addresses of one host that are tried."""
STAGGER_S: Final = 0.25
"""Head start of an address before the next one is tried beside it, in seconds (RFC 8305)."""
KEPT_CONNECTIONS: Final = 20
KEPT_FOR_S: Final = 15.0
"""How long an idle connection is kept, in seconds."""


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the operating system knows for a name. Raises `OSError`."""
    import socket

    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Opens sockets for a pool: resolves, checks, connects."""

    def __init__(self, rules: HostRules, resolver: Resolver | None) -> None:
        self._rules = rules
        self._resolve = resolver or system_addresses
        self._sockets = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a checked address of `host`. Raises a tool error that names the host, never an address."""
        addresses = await self._checked(host, port)

        async def dial(address: str) -> httpcore.AsyncNetworkStream:
            return await self._sockets.connect_tcp(
                address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
            )

        return _Stream(await first_connection(dial, addresses))

    async def sleep(self, seconds: float) -> None:
        """Wait, for the pool."""
        await asyncio.sleep(seconds)

    async def _checked(self, name: str, port: int) -> Sequence[str]:
        host = read_host(f"[{name}]" if ":" in name else name)
        addresses = [host.name] if host.literal else await self._looked_up(host, port)
        if not all(self._rules.may_connect(host, address) for address in addresses):
            raise failure(f"'{host.in_url}' {NOT_PUBLIC}.")
        return _spread(addresses)[:MAX_ADDRESSES]

    async def _looked_up(self, host: Host, port: int) -> list[str]:
        try:
            found = list(dict.fromkeys(str(address) for address in await self._resolve(host.name, port)))
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise failure(f"The host name '{host.name}' was not found: check its spelling.")
        return found


async def first_connection(
    dial: Callable[[str], Awaitable[httpcore.AsyncNetworkStream]], addresses: Sequence[str]
) -> httpcore.AsyncNetworkStream:
    """Return the first connection to come about; the next address is tried when one fails or takes its time."""
    if len(addresses) == 1:
        return await dial(addresses[0])
    waiting = deque(addresses)
    pending: set[asyncio.Future[httpcore.AsyncNetworkStream]] = set()
    failed: BaseException | None = None
    try:
        while waiting or pending:
            if waiting:
                pending.add(asyncio.ensure_future(dial(waiting.popleft())))
            done, _ = await asyncio.wait(
                pending, timeout=STAGGER_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                pending.discard(task)
                error = task.exception()
                if error is None:
                    pending |= done - {task}  # a second one that landed in the same moment is closed below
                    return task.result()
                failed = failed or error
    finally:
        await _give_up(pending)
    assert failed is not None
    raise failed


async def _give_up(tasks: set[asyncio.Future[httpcore.AsyncNetworkStream]]) -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, BaseException):
            await outcome.aclose()


def _spread(addresses: Sequence[str]) -> list[str]:
    """Return the addresses with the two families taking turns, so that a broken one costs a moment only."""
    families: dict[bool, list[str]] = {":" in addresses[0]: [], ":" not in addresses[0]: []}
    for address in addresses:
        families[":" in address].append(address)
    first, other = families.values()
    spread: list[str] = []
    for index in range(max(len(first), len(other))):
        spread += first[index : index + 1] + other[index : index + 1]
    return spread


class _Stream(httpcore.AsyncNetworkStream):
    """A connection that is closed when its TLS handshake is cut short, which the library leaves to the garbage."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Pools:
    """The connections of one tool: a pool for each event loop, since a connection lives in one.

    A pool is closed when its loop shuts down, or when the tool is gone. Nobody has to close anything.
    """

    def __init__(self, rules: HostRules, resolver: Resolver | None, *, validate: bool) -> None:
        self._rules = rules
        self._resolver = resolver
        self._validate = validate
        self._kept: dict[asyncio.AbstractEventLoop, _Kept] = {}
        # The finalizer also keeps the pools out of the garbage that a tool may be part of: there they could not be
        # closed any more.
        weakref.finalize(self, _close_all, self._kept).atexit = False

    async def pool(self) -> httpcore.AsyncConnectionPool:
        """Return the pool of the running loop."""
        loop = asyncio.get_running_loop()
        kept = self._kept.get(loop)
        if kept is None:
            for lost in [lost for lost in list(_OPEN) if lost.loop.is_closed()]:
                _OPEN.discard(lost)
            for closed in [other for other in list(self._kept) if other.is_closed()]:
                self._kept.pop(closed, None)
            kept = self._kept[loop] = _Kept(self._open(), self._kept, loop)
            _OPEN.add(kept)
            await anext(kept.keeper)
        return kept.pool

    def _open(self) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=_trusted() if self._validate else _unverified(),
            max_connections=None,
            max_keepalive_connections=KEPT_CONNECTIONS,
            keepalive_expiry=KEPT_FOR_S,
            network_backend=PinnedBackend(self._rules, self._resolver),
        )


def _trusted() -> ssl.SSLContext:
    from lousho.models.http import certificates

    return certificates()


def _unverified() -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Kept:
    """The pool of one event loop, and the generator that closes it when the loop shuts down."""

    def __init__(
        self,
        pool: httpcore.AsyncConnectionPool,
        pools: dict[asyncio.AbstractEventLoop, _Kept],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.pool = pool
        self.loop = loop
        self._pools = pools
        self.keeper = self._close_with_the_loop()

    async def _close_with_the_loop(self) -> AsyncGenerator[None, None]:
        """Close the pool when this generator is closed, which an event loop does with all of them before it ends."""
        try:
            yield
        finally:
            if self._pools.get(self.loop) is self:
                del self._pools[self.loop]
            await _closed(self.pool)
            _OPEN.discard(self)


async def _closed(pool: httpcore.AsyncConnectionPool) -> None:
    """Close every connection, also when a loop that shuts down cancels this meanwhile. Two may do it at once."""
    cancelled: asyncio.CancelledError | None = None
    for connection in pool.connections:
        try:
            await connection.aclose()
        except asyncio.CancelledError as error:  # its socket is on the way; only the wait for it was cut short
            cancelled = error
    await pool.aclose()
    if cancelled is not None:
        await asyncio.sleep(0)  # a socket goes one turn of the loop after it was closed
        raise cancelled


_CLOSING: set[asyncio.Future[None]] = set()
_OPEN: set[_Kept] = set()
"""Pools outlive their tool until they are closed: a loop that shuts down closes only what is still there."""


def _close_all(pools: dict[asyncio.AbstractEventLoop, _Kept]) -> None:
    """Close the pools of a tool that is gone, each in its own loop. May run in any thread."""
    for loop, kept in list(pools.items()):
        if not loop.is_closed():
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(_close_soon, kept)


async def _close(kept: _Kept) -> None:
    await _closed(kept.pool)
    # The loop may be closing the generator at this very moment. With the pool empty, closing it takes no wait, so that
    # the loop never finds it half closed by this task.
    with suppress(RuntimeError):
        await kept.keeper.aclose()


def _close_soon(kept: _Kept) -> None:
    task = asyncio.ensure_future(_close(kept))
    _CLOSING.add(task)
    task.add_done_callback(_CLOSING.discard)
