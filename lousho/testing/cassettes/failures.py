"""Keeps a provider's rejection as data, and raises it again so that everything above reacts as it did live.

A replay needs none of the vendor's packages, so a foreign exception comes back as a class of the same name that carries
what retry and fallback look at: status, wait and category. The SDK's own classes come back as themselves.
Source: testing page ("Errors, streaming and usage").
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, cast, get_args

from lousho.core.cancel import AbortError
from lousho.core.errors import (
    CompactedError,
    CompactedLLMProviderError,
    ConfigurationError,
    LLMProviderError,
    ProviderErrorCategory,
    RateLimitError,
    SDKError,
    TimeoutError,  # noqa: A004 - the documented name
    bare_message,
)
from lousho.core.events import error_name
from lousho.models.errors import compact_provider_error

MAX_NAME_CHARS = 200

_SDK_CLASSES: dict[str, type[SDKError]] = {
    cls.__name__: cls
    for cls in (
        CompactedLLMProviderError,
        LLMProviderError,
        RateLimitError,
        TimeoutError,
        ConfigurationError,
        SDKError,
    )
}
"""The classes an own error may come back as; a subclass of one comes back as a class of its name below it."""

_KINDS: dict[str, str] = {
    "rate-limit": "rate_limit_error",
    "context-length-exceeded": "context_length_exceeded",
    "quota-exceeded": "insufficient_quota",
    "auth-failure": "authentication_error",
    "model-unloaded": "model unloaded",
}
"""What a vendor's error object would have said for the category to be found again."""

_PLAIN_BUILTINS: dict[str, type[Exception]] = {
    cls.__name__: cls
    for cls in (
        Exception,
        RuntimeError,
        ValueError,
        TypeError,
        OSError,
        ConnectionError,
        ConnectionRefusedError,
        ConnectionResetError,
        ConnectionAbortedError,
        BrokenPipeError,
        EOFError,
        builtins.TimeoutError,
    )
}
"""Built-in classes that a message alone makes whole."""

_REPLAYED = "lousho.testing.replayed"


def recorded_failure(error: Exception, provider: str) -> dict[str, Any]:
    """Return `error` as it goes into a cassette: name and message, and what decides whether it is retried."""
    out: dict[str, Any] = {"name": error_name(error)[:MAX_NAME_CHARS], "message": bare_message(error)}
    base = next((cls.__name__ for cls in type(error).__mro__ if _SDK_CLASSES.get(cls.__name__) is cls), None)
    if base is not None and base != out["name"]:
        out["base"] = base
    code: object = getattr(error, "code", None)
    if isinstance(code, str):
        out["code"] = code
    for key, attribute in (("operation", "operation"), ("timeoutMs", "timeout_ms"), ("field", "field")):
        value: object = getattr(error, attribute, None)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            out[key] = value
    compacted = compact_provider_error(error, provider)
    if isinstance(compacted, CompactedLLMProviderError):
        wire = compacted.compacted.to_dict()
        out.update({key: wire[key] for key in ("category", "retryable", "statusCode", "retryAfterMs") if key in wire})
        if isinstance(error, LLMProviderError) and error.provider is not None:
            out["provider"] = error.provider
    return out


def failure_of(record: Mapping[str, Any]) -> Exception:
    """Return the exception a recorded failure stands for. Unknown keys are passed by."""
    name = str(record.get("name") or "Error").replace("\0", "")[:MAX_NAME_CHARS]
    message = str(record.get("message") or "")
    base = _SDK_CLASSES.get(str(record.get("base"))) or _SDK_CLASSES.get(name)
    # The SDK's TimeoutError has the builtin's name; only the SDK's own errors have a code of ours.
    if base is not None and not ("base" in record or str(record.get("code", "")).startswith("LOUSHO_")):
        base = None
    if base is not None:
        return _own_error(base, name, message, record)
    if name in ("AbortError", "TimeoutError") and "category" not in record:
        return _named(AbortError, name)(message)
    return _foreign_error(name, message, record)


def _own_error(base: type[SDKError], name: str, message: str, record: Mapping[str, Any]) -> Exception:
    cls: Any = base if base.__name__ == name else _named(base, name)
    code, provider = _text(record.get("code")), _text(record.get("provider"))
    status, wait = _whole(record.get("statusCode")), _whole(record.get("retryAfterMs"))
    if issubclass(base, CompactedLLMProviderError):
        given = record.get("category")
        category = cast("ProviderErrorCategory", given if given in get_args(ProviderErrorCategory) else "unknown")
        return cls(
            CompactedError(message, category, record.get("retryable") is True, status, wait, provider), code=code
        )
    if issubclass(base, LLMProviderError):
        error = cls(message, provider=provider, status_code=status, code=code)
        return _with_wait(error, wait)
    if issubclass(base, RateLimitError):
        return cls(message, retry_after_ms=wait)
    if issubclass(base, TimeoutError):
        return cls(message, _text(record.get("operation")), record.get("timeoutMs"))
    if issubclass(base, ConfigurationError):
        return cls(message, field=_text(record.get("field")), code=code)
    return cls(message, code=code)


def _foreign_error(name: str, message: str, record: Mapping[str, Any]) -> Exception:
    status, category = _whole(record.get("statusCode")), str(record.get("category"))
    base: type[Exception] = Exception
    if status is None and category == "timeout":
        base = builtins.TimeoutError
    elif status is None and record.get("retryable") is True and category == "unknown":
        base = ValueError
    known = _PLAIN_BUILTINS.get(name)
    if known is None or (known is OSError and base is not Exception):
        known = _named(base, name)
    error = known(message)
    attributes: dict[str, Any] = {"code": _text(record.get("code")), "status_code": status}
    if category in _KINDS:
        attributes["body"] = {"error": {"type": _KINDS[category]}}
    for key, value in attributes.items():
        if value is not None:
            setattr(error, key, value)
    return _with_wait(error, _whole(record.get("retryAfterMs")))


def _with_wait(error: Exception, wait_ms: int | None) -> Exception:
    if wait_ms is not None:
        error.headers = {"retry-after-ms": str(wait_ms)}  # pyright: ignore[reportAttributeAccessIssue]
    return error


def _named(base: type[Exception], name: str) -> type[Exception]:
    """Return a class of that name below `base`: the vendor's package need not be there to raise its error."""
    return type(name, (base,), {"__module__": _REPLAYED})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
