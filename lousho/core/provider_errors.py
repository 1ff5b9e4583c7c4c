"""What can go wrong with a model call.

Here are the exceptions and the record they carry; deciding which category a provider's answer belongs to is the work of
the models room. Import from `lousho.core.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from lousho.core.error_codes import hint_for
from lousho.core.sdk_error import SDKError

ProviderErrorCategory = Literal[
    "rate-limit",
    "timeout",
    "context-length-exceeded",
    "quota-exceeded",
    "auth-failure",
    "model-unloaded",
    "unknown",
]
"""Why a model call failed."""


class CompactedError(NamedTuple):
    """A provider's failure reduced to what a caller acts on. Source: errors page."""

    error: str
    """What the provider said, short and without secrets."""
    category: ProviderErrorCategory
    retryable: bool
    """Whether the same call may succeed later."""
    status_code: int | None = None
    """The HTTP status, when there was an answer."""
    retry_after_ms: int | None = None
    """The wait in milliseconds the provider asked for."""
    provider_name: str | None = None

    @property
    def status(self) -> int | None:
        """The HTTP status, when there was an answer."""
        return self.status_code

    def to_dict(self) -> dict[str, object]:
        """Return the wire form in camelCase; what is unknown is left out."""
        wire: dict[str, object] = {"error": self.error, "category": self.category, "retryable": self.retryable}
        optional = {
            "statusCode": self.status_code,
            "retryAfterMs": self.retry_after_ms,
            "providerName": self.provider_name,
        }
        wire.update((key, value) for key, value in optional.items() if value is not None)
        return wire


class LLMProviderError(SDKError):
    """A model call failed. Source: errors page. Code: `LOUSHO_PROVIDER_REQUEST_FAILED`."""

    default_code = "LOUSHO_PROVIDER_REQUEST_FAILED"
    bare_message = True

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        status_code: int | None = None,
        code: str | None = None,
        cause: BaseException | None = None,
        help_line: bool = True,
    ) -> None:
        super().__init__(message, code=code, cause=cause, help_line=help_line)
        self.provider = provider
        """The provider's name, e.g. `openai`."""
        self.status_code = status_code
        """The HTTP status, when there was an answer."""


class CompactedLLMProviderError(LLMProviderError):
    """A failed model call with its category in `compacted`: what a run rejects with. Source: errors page.

    Code: `LOUSHO_PROVIDER_RATE_LIMITED` for the category `rate-limit`, the code of the cause when a package is missing
    (`LOUSHO_PEER_MISSING`), else `LOUSHO_PROVIDER_REQUEST_FAILED`.
    """

    def __init__(
        self, compacted: CompactedError, *, code: str | None = None, cause: BaseException | None = None
    ) -> None:
        super().__init__(
            compacted.error,
            provider=compacted.provider_name,
            status_code=compacted.status_code,
            code=code or _code_for(compacted, cause),
            cause=cause,
        )
        self.compacted = compacted

    @property
    def hint(self) -> str:
        """One sentence on how to fix this failure, by its category and status."""
        fitting = hint_for_failure(self.compacted) if self.code == "LOUSHO_PROVIDER_REQUEST_FAILED" else None
        return fitting or hint_for(self.code)

    def to_dict(self) -> dict[str, object]:
        """Return `name`, `message`, `code` and `compacted` in camelCase."""
        return {**super().to_dict(), "compacted": self.compacted.to_dict()}


_CATEGORY_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "auth-failure": "Check the API key: the provider does not accept it.",
        "quota-exceeded": "Add credit to the provider's account or raise its limit, or use another provider.",
        "context-length-exceeded": "Shorten the conversation, or use a model with a larger context window.",
        "timeout": "Check that the server can be reached and answers, then try again.",
        "model-unloaded": "Load the model on the server, then try again.",
    }
)
_NOT_FOUND = 404
_SERVER_ERROR = 500


def hint_for_failure(compacted: CompactedError) -> str | None:
    """Return the fix of one failed model call, or `None` when only the general one fits."""
    if compacted.category in _CATEGORY_HINTS:
        return _CATEGORY_HINTS[compacted.category]
    status = compacted.status_code
    if status == _NOT_FOUND:
        return "Check the model's name and the base URL: the provider does not know them."
    if compacted.retryable or (status is not None and status >= _SERVER_ERROR):
        return "Try again in a moment: the provider failed to answer properly."
    return None


def _code_for(compacted: CompactedError, cause: BaseException | None) -> str | None:
    if compacted.category == "rate-limit":
        return "LOUSHO_PROVIDER_RATE_LIMITED"
    if isinstance(cause, SDKError) and cause.code == "LOUSHO_PEER_MISSING":
        return cause.code
    return None


class RateLimitError(SDKError):
    """A caller was throttled outside a compacted model call. Source: errors page.

    Code: `LOUSHO_PROVIDER_RATE_LIMITED`.
    """

    default_code = "LOUSHO_PROVIDER_RATE_LIMITED"
    bare_message = True

    def __init__(self, message: str, *, retry_after_ms: int | None = None, cause: BaseException | None = None) -> None:
        super().__init__(message, cause=cause)
        self.retry_after_ms = retry_after_ms
        """The wait in milliseconds that was asked for, when known."""
