"""Fixtures of the models tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fake_vendor import FakeVendor, fake_vendor


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A fake vendor on a real socket; its address is `vendor.url`."""
    async with fake_vendor() as fake:
        yield fake
