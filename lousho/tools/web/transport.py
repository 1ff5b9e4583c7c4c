"""Connections that go where the check said: a host is resolved once, every address is checked, one of them is dialled.

The check sits in the one place that opens sockets, so there is no second lookup that a name could answer differently.
The request keeps its `Host` header, and TLS is verified against the name. There is no proxy: it would look the name up
elsewhere. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from lousho.tools.web.hosts import NOT_PUBLIC, Host, HostRules
from lousho.tools.web.http11 import Connection
from lousho.tools.web.lookup import system_addresses
from lousho.tools.web.sockets import Wire
from lousho.tools.web.urls import WebUrl, failure

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


class Dialer:
    """Opens the sockets of one tool: resolves, checks, connects."""

    def __init__(self, rules: HostRules, resolver: Resolver | None, tls: ssl.SSLContext) -> None:
        self._rules = rules
        self._resolve = resolver or system_addresses
        self._tls = tls

    async def connect(self, url: WebUrl) -> Wire:
        """Connect to a checked address of the URL's host.

        Raises a tool error that names the host, never an address, and `OSError`.
        """
        addresses = await self._checked(url.host, url.port)
        tls = self._tls if url.scheme == "https" else None
        return await first_connection(lambda one: Wire.open(one, url.port, tls, url.host.name), addresses)

    async def _checked(self, host: Host, port: int) -> Sequence[str]:
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


async def first_connection(dial: Callable[[str], Awaitable[Wire]], addresses: Sequence[str]) -> Wire:
    """Return the first connection to come about; the next address is tried when one fails or takes its time."""
    waiting = deque(addresses)
    dialling: set[asyncio.Future[Wire]] = set()
    failed: BaseException | None = None
    try:
        while waiting or dialling:
            if waiting:
                dialling.add(asyncio.ensure_future(dial(waiting.popleft())))
            done, _ = await asyncio.wait(
                dialling, timeout=STAGGER_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in done:
                dialling.discard(attempt)
                error = attempt.exception()
                if error is None:
                    dialling |= done - {attempt}
                    return attempt.result()
                failed = failed or error
    finally:
        for attempt in dialling:
            attempt.cancel()
            attempt.add_done_callback(_drop)  # it may have connected in this very moment
    assert failed is not None
    raise failed


def _drop(attempt: asyncio.Future[Wire]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


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


class Pools:
    """The connections of one tool: a pool for each event loop, since a connection lives in one.

    A pool is closed when its loop shuts down, or when the tool is gone. Nobody has to close anything.
    """

    def __init__(self, rules: HostRules, resolver: Resolver | None, *, validate: bool) -> None:
        self._rules = rules
        self._resolver = resolver
        self._validate = validate
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        # The finalizer also keeps the pools out of the garbage that a tool may be part of: there they could not be
        # closed any more.
        weakref.finalize(self, _close_all, self._pools).atexit = False

    async def pool(self) -> Pool:
        """Return the pool of the running loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            for lost in [lost for lost in list(_OPEN) if lost.loop.is_closed()]:
                _OPEN.discard(lost)
            for closed in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(closed, None)
            dialer = Dialer(self._rules, self._resolver, _trusted() if self._validate else _unverified())
            pool = self._pools[loop] = Pool(loop, dialer, self._pools)
            _OPEN.add(pool)
            await anext(pool.keeper)
        return pool


class Pool:
    """The connections of one event loop, and the generator that closes them when the loop shuts down."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, dialer: Dialer, pools: dict[asyncio.AbstractEventLoop, Pool]
    ) -> None:
        self.loop = loop
        self.keeper = self._close_with_the_loop()
        self._dialer = dialer
        self._pools = pools
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []
        self._closed = False

    @asynccontextmanager
    async def connection(self, url: WebUrl) -> AsyncGenerator[Connection, None]:
        """Give a connection to the URL's origin; it is kept afterwards if its exchange is over, and closed otherwise."""
        connection = self._kept(url)
        if connection is None:
            connection = Connection(await self._dialer.connect(url), url.origin)
            self._connections.add(connection)
        try:
            yield connection
        finally:  # nothing here waits: what waits can be cancelled, and leave the connection behind
            if self._closed or not connection.rest():
                self._drop(connection)
            else:
                connection.idle_since = self.loop.time()
                self._idle.append(connection)
                for surplus in self._idle[:-KEPT_CONNECTIONS]:
                    self._drop(surplus)

    def close(self) -> None:
        """Close the connections of a tool that is gone."""
        self._hang_up()
        # The loop may be closing the generator at this very moment; otherwise it ends here, without a wait.
        with suppress(StopIteration, RuntimeError):
            self.keeper.aclose().send(None)

    def _kept(self, url: WebUrl) -> Connection | None:
        oldest = self.loop.time() - KEPT_FOR_S
        for connection in [one for one in self._idle if one.idle_since < oldest or not one.usable]:
            self._drop(connection)
        for connection in reversed(self._idle):
            if connection.origin == url.origin:
                self._idle.remove(connection)
                return connection
        return None

    def _drop(self, connection: Connection) -> None:
        connection.abort()
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def _hang_up(self) -> None:
        self._closed = True
        if self._pools.get(self.loop) is self:
            del self._pools[self.loop]
        for connection in list(self._connections):
            self._drop(connection)
        _OPEN.discard(self)

    async def _close_with_the_loop(self) -> AsyncGenerator[None, None]:
        """Close the pool when this generator is closed, which an event loop does with all of them before it ends."""
        try:
            yield
        finally:
            if not self._closed:
                self._hang_up()
                await asyncio.sleep(0)  # a socket goes one turn of the loop after it was closed


_OPEN: set[Pool] = set()
"""Pools outlive their tool until they are closed: a loop that shuts down closes only what is still there."""


def _close_all(pools: dict[asyncio.AbstractEventLoop, Pool]) -> None:
    """Close the pools of a tool that is gone, each in its own loop. May run in any thread."""
    for loop, pool in list(pools.items()):
        if not loop.is_closed():
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(pool.close)


def _trusted() -> ssl.SSLContext:
    from lousho.models.http import certificates

    context = certificates()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _unverified() -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context
