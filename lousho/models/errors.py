"""Why a model call failed, in words a caller can act on.

Every adapter hands what it saw (a status, headers, the vendor's own error object) to `provider_failure()`; the run loop
hands whatever a provider raised to `compact_provider_error()`. Both come to the same categories, so retry and fallback
decide the same for all vendors. Source: errors page, agents page ("Provider retries and fallback").
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from lousho.core.cancel import AbortError
from lousho.core.errors import (
    CompactedError,
    CompactedLLMProviderError,
    LLMProviderError,
    ProviderErrorCategory,
    RateLimitError,
    SDKError,
    bare_message,
    never_wrap,
)
from lousho.core.redact import redact
from lousho.models.network import NetworkFailure, network_failure_of

MAX_MESSAGE_CHARS = 2_000
"""What is kept of a vendor's error text."""
MAX_SNIPPET_CHARS = 200
"""What is shown of a body that is not the vendor's error format."""
_LONGEST_WAIT_MS = 10 * 365 * 24 * 3600 * 1000

KEPT_CODES = frozenset(
    {
        "LOUSHO_PEER_MISSING",
        "LOUSHO_UNSUPPORTED_CONTENT",
        "LOUSHO_HOSTED_TOOL_UNSUPPORTED",
        "LOUSHO_PROVIDER_MISSING_API_KEY",
    }
)
"""Codes that say more than `LOUSHO_PROVIDER_REQUEST_FAILED` and stay on the error a run rejects with."""

_CONTEXT = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum context length|model_context_window_exceeded|request_too_large"
    r"|context (?:size|window|length|limit)\b.{0,60}\bexceed|exceeds?\b.{0,60}\bcontext (?:size|window|length|limit)"
    r"|greater than the context length|context the overflows|exceeds the maximum number of tokens allowed"
    r"|prompt is too long|input is too long|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|credits?|funds|balance)|exceeded your current quota|credit balance is too low"
    r"|requires more credits|billing[_ ](?:hard[_ ]limit|not[_ ]active)|payment required",
    re.IGNORECASE,
)
_UNLOADED = re.compile(
    r"\bmodel\b.{0,120}\b(?:unloaded|not loaded)\b|\bno models? (?:is |are |currently )*loaded\b",
    re.IGNORECASE | re.DOTALL,
)
_AUTH = re.compile(
    r"authentication_error|permission_error|permission_denied|invalid[_ ]api[_ ]key|incorrect api key", re.IGNORECASE
)
_RATE = re.compile(r"\brate[_ ]limit(?:_error|_exceeded|ed)?\b|\btoo many requests\b", re.IGNORECASE)
_TYPE_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(frozen=True, slots=True)
class VendorError:
    """A vendor's own error object: what it said, and how it classified it."""

    message: str
    kind: str = ""
    code: str = ""

    @property
    def status(self) -> int | None:
        """The HTTP status the object itself names, by number or by kind, for failures inside a 200."""
        if self.code.isdecimal() and 400 <= int(self.code) <= 599:
            return int(self.code)
        return _TYPE_STATUS.get(self.kind) or _TYPE_STATUS.get(self.code)


def provider_failure(
    provider: str,
    message: str,
    *,
    status: int | None = None,
    kind: str = "",
    headers: Mapping[str, str] | None = None,
    retryable: bool | None = None,
    category: ProviderErrorCategory | None = None,
    secrets: Iterable[str] = (),
    cause: BaseException | None = None,
) -> CompactedLLMProviderError:
    """Return the error for a failed call of `provider`; `kind` is the vendor's own type or code.

    `category` and `retryable` override what status and text say. Keys are taken out of `message`, which is cut to 2,000
    characters. Source: errors page.
    """
    text = redact(message, secrets).strip()[:MAX_MESSAGE_CHARS] or "The provider gave no reason."
    found = category or classify(status, f"{kind} {text}")
    compacted = CompactedError(
        error=text,
        category=found,
        retryable=is_retryable(found, status) if retryable is None else retryable,
        status_code=status,
        retry_after_ms=retry_after_ms(headers) if headers and status in (429, 503, 529) else None,
        provider_name=provider,
    )
    return CompactedLLMProviderError(compacted, cause=cause)


def compact_provider_error(error: BaseException, provider: str | None = None) -> BaseException:
    """Return what a run rejects with when a provider raised `error`: a `CompactedLLMProviderError` with its category.

    Cancellation, an aborted signal's reason, `PropagatingToolError` and the errors of test helpers come back as they
    are; so does an error that is compacted already. Works for any provider: statuses, headers and bodies are read off
    the exceptions of the usual client libraries. Source: errors page.
    """
    if never_wrap(error) or isinstance(error, (AbortError, CompactedLLMProviderError)):
        return error
    code = error.code if isinstance(error, SDKError) and error.code in KEPT_CODES else None
    status = _status_of(error)
    text = redact(bare_message(error)).strip()[:MAX_MESSAGE_CHARS]
    category, retryable = _foreign_category(error, status, f"{_kind_of(error)} {text}")
    wait = error.retry_after_ms if isinstance(error, RateLimitError) else retry_after_ms(_headers_of(error))
    compacted = CompactedError(
        error=text,
        category=category,
        retryable=retryable,
        status_code=status,
        retry_after_ms=wait if wait is not None and wait > 0 else None,
        provider_name=(error.provider if isinstance(error, LLMProviderError) else None) or provider,
    )
    return CompactedLLMProviderError(compacted, code=code, cause=error)


def classify(status: int | None, text: str) -> ProviderErrorCategory:
    """Return the category that a status and the vendor's words (type, code, message) add up to."""
    if _CONTEXT.search(text) or status == 413:
        return "context-length-exceeded"
    if status == 402 or _QUOTA.search(text):
        return "quota-exceeded"
    if _UNLOADED.search(text):
        return "model-unloaded"
    if status in (401, 403) or _AUTH.search(text):
        return "auth-failure"
    if status == 429 or (status is None and _RATE.search(text)):
        return "rate-limit"
    if status in (408, 504, 522, 524):
        return "timeout"
    return "unknown"


def is_retryable(category: ProviderErrorCategory, status: int | None) -> bool:
    """Return whether the same call may succeed later."""
    if category in ("rate-limit", "timeout", "model-unloaded"):
        return True
    return category == "unknown" and status is not None and status >= 500


def retry_after_ms(headers: Mapping[str, str] | None, now: float | None = None) -> int | None:
    """Return the wait a vendor asks for, in milliseconds: `retry-after-ms`, else `Retry-After` (seconds or a date).

    A hint that is not positive, lies in the past or cannot be read is none. `now` is in seconds since the epoch.
    """
    if not headers:
        return None
    lower = {key.lower(): value for key, value in headers.items()}
    wait = _number(lower.get("retry-after-ms"))
    if wait is None:
        seconds = _number(lower.get("retry-after"))
        wait = seconds * 1000 if seconds is not None else _until(lower.get("retry-after"), now)
    return min(round(wait), _LONGEST_WAIT_MS) if wait is not None and wait > 0 else None


def vendor_error_of(body: Any) -> VendorError | None:
    """Return the error object inside a vendor's JSON answer, or `None` when there is none.

    Understands `{"error": {...}}`, `{"error": "text"}`, `{"message": ...}`, `{"detail": ...}` and a list of one of
    them; the reason of the upstream vendor that a router hides in `metadata.raw` is added to the message.
    """
    if isinstance(body, list) and body:
        return vendor_error_of(cast("list[Any]", body)[0])
    if not isinstance(body, Mapping):
        return None
    data = cast("Mapping[str, Any]", body)
    error = data.get("error")
    if isinstance(error, Mapping):
        return _vendor_error(cast("Mapping[str, Any]", error))
    if isinstance(error, str) and error:
        return VendorError(str(data.get("message") or error), kind=error if data.get("message") else "")
    if data.get("object") == "error" or (data.get("message") and "choices" not in data and "content" not in data):
        return _vendor_error(data)
    detail = data.get("detail")
    if isinstance(detail, str) and detail:
        return VendorError(detail)
    return None


def snippet_of(body: bytes) -> str:
    """Return the beginning of a body on one line, for a message about an answer that makes no sense."""
    text = " ".join(body[: MAX_SNIPPET_CHARS * 4].decode("utf-8", "replace").split())
    return text if len(text) <= MAX_SNIPPET_CHARS else f"{text[:MAX_SNIPPET_CHARS]}..."


def _vendor_error(error: Mapping[str, Any]) -> VendorError:
    message = str(error.get("message") or error.get("type") or error.get("code") or "")
    metadata = error.get("metadata")
    nested = _nested_reason(cast("Mapping[str, Any]", metadata)) if isinstance(metadata, Mapping) else ""
    if nested and nested not in message:
        message = f"{message}: {nested}" if message else nested
    return VendorError(message, kind=str(error.get("type") or ""), code=str(error.get("code") or ""))


def _nested_reason(metadata: Mapping[str, Any]) -> str:
    raw = metadata.get("raw")
    if isinstance(raw, str):
        import json

        try:
            raw = json.loads(raw)
        except ValueError:
            return raw.strip()[:MAX_MESSAGE_CHARS]
    inner = vendor_error_of(raw)
    if inner is not None:
        return inner.message
    reasons: Any = metadata.get("reasons")
    if isinstance(reasons, list):
        return ", ".join(str(reason) for reason in cast("list[Any]", reasons)[:5])
    return ""


def _foreign_category(error: BaseException, status: int | None, text: str) -> tuple[ProviderErrorCategory, bool]:
    if isinstance(error, RateLimitError):
        return "rate-limit", True
    if status is None and not isinstance(error, SDKError):
        network = network_failure_of(error)
        if network is not None:
            return network.category, network.retryable
        if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
            return "unknown", True
    if isinstance(error, TimeoutError):
        return "timeout", True
    category = classify(status, text)
    return category, is_retryable(category, status)


def network_error(provider: str, failure: NetworkFailure, secrets: Iterable[str] = ()) -> CompactedLLMProviderError:
    """Return the error for a call that got no complete answer because of the network."""
    return provider_failure(
        provider,
        failure.message,
        category=failure.category,
        retryable=failure.retryable,
        secrets=secrets,
        cause=failure.cause,
    )


def _status_of(error: BaseException) -> int | None:
    for owner in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "http_status"):
            value = getattr(owner, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
    return None


def _headers_of(error: BaseException) -> Mapping[str, str] | None:
    for owner in (getattr(error, "response", None), error):
        headers: object = getattr(owner, "headers", None)
        if isinstance(headers, Mapping):
            return {str(key): str(value) for key, value in cast("Mapping[Any, Any]", headers).items()}
    return None


def _kind_of(error: BaseException) -> str:
    found = vendor_error_of(getattr(error, "body", None))
    own: object = None if isinstance(error, SDKError) else getattr(error, "code", None)
    return " ".join([found.kind, found.code] if found else []) + (f" {own}" if isinstance(own, str) else "")


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _until(text: str | None, now: float | None) -> float | None:
    if not text:
        return None
    import time
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when.timestamp() - (time.time() if now is None else now)) * 1000
