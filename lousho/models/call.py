"""The one place where a model call is wrapped, in a fixed order.

From the outside in: interceptor, fallback, retry, rate limit, provider. An interceptor sees one call as the run made it,
whatever happens underneath, so record and replay and other hooks belong there; retries are inside a fallback, so a
fallback starts only when its provider's retries are used up; a limit counts every attempt that is really sent.
Source: agents page ("Provider retries and fallback", "Rate limits").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lousho.models import fallback, rate_limit, retry
from lousho.models.provider import LLMProvider

Interceptor: TypeAlias = "Callable[[LLMProvider], LLMProvider]"
"""Takes the provider that would be called, and returns the one to call instead."""


def assemble(provider: LLMProvider, *, interceptor: Interceptor | None = None) -> LLMProvider:
    """Return `provider` inside its wrappers. Without any of them it is `provider` itself."""
    inner = fallback.wrap(retry.wrap(rate_limit.wrap(provider)))
    return inner if interceptor is None else interceptor(inner)
