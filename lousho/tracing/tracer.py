"""Where a run opens its spans. The null tracer does nothing, so the loop never asks whether tracing is on."""

from __future__ import annotations

from typing import Any, Literal, Protocol

SpanKind = Literal["run", "chat", "tool"]


class Span(Protocol):
    """One timed piece of a run."""

    def set(self, key: str, value: Any) -> None:
        """Record an attribute."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """Close the span, with the error that ended it."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def start(self, kind: SpanKind, name: str, parent: Span | None = None) -> Span:
        """Open a span called `name` under `parent`."""
        ...


class _NullSpan:
    __slots__ = ()

    def set(self, key: str, value: Any) -> None:
        """Do nothing."""

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing."""


NULL_SPAN: Span = _NullSpan()


class NullTracer:
    """The tracer of an agent without an exporter."""

    __slots__ = ()

    def start(self, kind: SpanKind, name: str, parent: Span | None = None) -> Span:
        """Return the one span that does nothing."""
        return NULL_SPAN


NULL_TRACER: Tracer = NullTracer()
