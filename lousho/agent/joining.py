"""Turns that join the turn which is running instead of waiting for it: the turn policies of a session.

Source: sessions page ("The session object"), queue-and-steer page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent import futures
from typing import Literal, TypeAlias

from lousho.agent.turns import Place, SessionTurn, TurnLock
from lousho.core.cancel import AbortError
from lousho.core.errors import ConfigurationError
from lousho.core.messages import Message
from lousho.core.redact import shown
from lousho.runtime.inbox import InputOutcome, InputQueue
from lousho.runtime.result import RunResult

TurnPolicy: TypeAlias = Literal["wait", "queue", "steer"]
"""What a turn does that is asked for while another one of its session runs or waits: wait, or join that one."""

_POLICIES = ("wait", "queue", "steer")


def check_turn_policy(value: object) -> TurnPolicy:
    """Return `value` if it is a turn policy. Raises `LOUSHO_CONFIG_INVALID`."""
    if value not in _POLICIES:
        raise ConfigurationError(
            f"turn_policy must be 'wait', 'queue' or 'steer'; got {shown(value)}.", field="turnPolicy"
        )
    return value


class Host:
    """A turn that others can join, from the moment it has its place until it has ended."""

    def __init__(self, run_id: str, place: Place, inbox: InputQueue) -> None:
        self.run_id = run_id
        self.turn: SessionTurn = place.turn
        self.inbox = inbox
        self._ended: futures.Future[RunResult] = futures.Future()

    @property
    def gone(self) -> bool:
        """Whether nobody can join any more: it has ended, or its event loop was closed in the middle of it."""
        return self._ended.done() or self.turn.loop.is_closed()

    def end(self, result: RunResult | None, error: BaseException | None) -> None:
        """The turn has ended; those that joined it get its result, or what it failed with."""
        if self._ended.done():
            return
        if result is not None:
            self._ended.set_result(result)
        elif isinstance(error, Exception):
            self._ended.set_exception(error)
        else:  # cancelled, or it never began
            self._ended.cancel()
        self.inbox.close()

    def outcome(self) -> asyncio.Future[RunResult]:
        """Return the turn's end; cancelling the returned future leaves it to the others."""
        return asyncio.shield(asyncio.wrap_future(self._ended))


class Joined:
    """An input that a running turn has taken."""

    def __init__(self, host: Host, outcome: InputOutcome, over: Callable[[], None]) -> None:
        self._host = host
        self._outcome = outcome
        self._over = over
        self.run_id = host.run_id

    async def result(self) -> RunResult | None:
        """Wait for the end of the turn and return its result, or raise what it failed with.

        `None`: it ended (finished, paused or aborted) before it took the input, which has to become a turn of its own.
        """
        try:
            joined = await self._outcome
            try:
                result = await self._host.outcome()
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                if joined:  # the turn was cancelled, not this call
                    raise AbortError("The turn that this input joined was cancelled.") from None
                return None
            return result if joined else None
        finally:
            self._over()


def join(host: Host | None, turns: TurnLock, policy: TurnPolicy, given: list[Message]) -> Joined | None:
    """Have a running turn take the input, if the policy wants it and there is one that still does.

    Raises `LOUSHO_SESSION_BUSY` from inside a turn that would wait for itself.
    """
    if policy == "wait" or host is None or host.gone or any(message.role != "user" for message in given):
        return None
    over = turns.join(host.turn)
    try:
        if policy == "queue":
            outcome = host.inbox.push(given).applied
        else:
            steered = host.inbox.steer(given)
            outcome = False if steered.applied is False else steered.joined
    except BaseException:
        over()
        raise
    if outcome is False:
        over()
        return None
    return Joined(host, outcome, over)
