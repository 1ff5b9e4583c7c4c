"""The fix line of a failed model call says what to do about this failure, not about all of them."""

from __future__ import annotations

import pytest

from lousho.core.errors import CompactedError, CompactedLLMProviderError


@pytest.mark.spec("ERR-30")
@pytest.mark.parametrize(
    ("category", "status", "retryable", "said"),
    [
        pytest.param("auth-failure", 401, False, "API key", id="401"),
        pytest.param("quota-exceeded", 402, False, "credit", id="402"),
        pytest.param("context-length-exceeded", 400, False, "Shorten", id="too long"),
        pytest.param("timeout", None, True, "can be reached", id="refused"),
        pytest.param("unknown", 404, False, "model's name", id="404"),
        pytest.param("unknown", 503, True, "Try again", id="503"),
        pytest.param("unknown", 400, False, "Top up", id="anything else"),
    ],
)
def test_the_hint_fits_the_failure(category, status, retryable, said):
    error = CompactedLLMProviderError(
        CompactedError(error="it failed", category=category, retryable=retryable, status_code=status)
    )
    assert said in error.hint
    assert error.code == "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert str(error).splitlines()[1].startswith(f"[{error.code}] {error.hint}")
