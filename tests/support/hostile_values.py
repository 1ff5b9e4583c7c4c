"""Values for places where they do not belong, some with a key in their text, and what an error about them may show."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from lousho import InMemoryApprovalStore, SDKError

KEY = "hunter2-hunter2"


@dataclass
class Client:
    """What people pass in the wrong place: its text has a key."""

    api_key: str


class Silent:
    """An object that has not even a text."""

    def __repr__(self) -> str:
        raise ValueError(KEY)


VALUES: list[Any] = [
    5, -1, True, float("nan"), 10**5000, "", " ", "x", "\ud800", f"sk-{KEY}", b"x" * 1_000_000, [], [1], {}, {"a": 1},
    {1: 2}, object(), type, print, lambda: 1, lambda ctx: 1, Client(KEY), [Client(KEY)], {"a": Client(KEY)}, Silent(),
    [Silent()], {"a": Silent()}, InMemoryApprovalStore, asyncio.sleep,
]  # fmt: skip


def check_refusal(error: SDKError, value: Any) -> None:
    """Check that an error is one a person can read, and shows no key."""
    text = str(error)
    assert KEY not in text, value
    assert len(text) < 2_000, value
    text.encode("utf-8")
