"""What a vendor's refusal becomes: category, code, whether to try again, and no key in sight."""

from __future__ import annotations

import copy
import json
import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from fake_vendor import FakeVendor, Reply, chunked, events, http, request

from lousho import create_agent
from lousho.core.cancel import AbortError
from lousho.core.errors import (
    CassetteMismatchError,
    CompactedLLMProviderError,
    LLMProviderError,
    MissingDependencyError,
    PropagatingToolError,
    RateLimitError,
    SDKError,
)
from lousho.core.errors import TimeoutError as OperationTimeoutError
from lousho.models.anthropic import AnthropicProvider
from lousho.models.errors import compact_provider_error, retry_after_ms
from lousho.models.mock import mock_model
from lousho.models.openai import OpenAIProvider

KEY = "sk-live-abcdefgh12345678"
EXTRA = "extra-secret-1"
Provider = OpenAIProvider | AnthropicProvider


@pytest.fixture(params=[OpenAIProvider, AnthropicProvider], ids=["openai", "anthropic"])
def make(request: pytest.FixtureRequest, vendor: FakeVendor) -> Callable[..., Provider]:
    return lambda **options: request.param(base_url=vendor.url, api_key=KEY, default_model="m", **options)


def openai_error(message: str, kind: str = "", code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic_error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


CASES = [
    pytest.param(
        401, openai_error("Incorrect API key provided", code="invalid_api_key"), "auth-failure", False, id="401"
    ),
    pytest.param(403, anthropic_error("permission_error", "No access"), "auth-failure", False, id="403"),
    pytest.param(402, openai_error("Insufficient credits"), "quota-exceeded", False, id="402"),
    pytest.param(
        429,
        openai_error("You exceeded your current quota", code="insufficient_quota"),
        "quota-exceeded",
        False,
        id="429 quota",
    ),
    pytest.param(
        429,
        openai_error("Check your plan and billing details.", code="insufficient_quota"),
        "quota-exceeded",
        False,
        id="429 quota by code",
    ),
    pytest.param(
        400,
        anthropic_error("invalid_request_error", "Your credit balance is too low to access the API"),
        "quota-exceeded",
        False,
        id="400 quota",
    ),
    pytest.param(429, openai_error("Rate limit reached for gpt on tokens per min"), "rate-limit", True, id="429"),
    pytest.param(429, "", "rate-limit", True, id="429 without a body"),
    pytest.param(
        400,
        openai_error("too long", code="context_length_exceeded"),
        "context-length-exceeded",
        False,
        id="context by code",
    ),
    pytest.param(
        400,
        anthropic_error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "context-length-exceeded",
        False,
        id="context by text",
    ),
    pytest.param(
        500,
        openai_error("the request exceeds the available context size. try increasing the context size"),
        "context-length-exceeded",
        False,
        id="context with 500",
    ),
    pytest.param(
        400,
        {"error": "Context size has been exceeded."},
        "context-length-exceeded",
        False,
        id="context as a plain text",
    ),
    pytest.param(
        413,
        anthropic_error("request_too_large", "Request exceeds the maximum size"),
        "context-length-exceeded",
        False,
        id="413",
    ),
    pytest.param(400, openai_error("The model has crashed"), "unknown", False, id="400"),
    pytest.param(404, openai_error("The model `m` does not exist"), "unknown", False, id="404"),
    pytest.param(408, "", "timeout", True, id="408"),
    pytest.param(500, openai_error("Internal error"), "unknown", True, id="500"),
    pytest.param(503, "<html>down</html>", "unknown", True, id="503 HTML"),
    pytest.param(504, "", "timeout", True, id="504"),
    pytest.param(529, anthropic_error("overloaded_error", "Overloaded"), "unknown", True, id="529"),
]


@pytest.mark.spec("ERR-07", "ERR-30")
@pytest.mark.parametrize(("status", "body", "category", "retryable"), CASES)
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_a_refusal_has_its_category_and_code(
    vendor: FakeVendor,
    make: Callable[..., Provider],
    status: int,
    body: Any,
    category: str,
    retryable: bool,
    streamed: bool,
):
    vendor.answers(http(status, body))
    agent = create_agent(provider=make(), on_event=(lambda _: None) if streamed else None)
    with pytest.raises(LLMProviderError) as failed:
        await agent.send("hi")
    assert isinstance(failed.value, CompactedLLMProviderError)
    compacted = failed.value.compacted
    assert (compacted.category, compacted.retryable, compacted.status_code) == (category, retryable, status)
    code = "LOUSHO_PROVIDER_RATE_LIMITED" if category == "rate-limit" else "LOUSHO_PROVIDER_REQUEST_FAILED"
    assert failed.value.code == code
    assert compacted.provider_name == make().name


@pytest.mark.spec("HAZ-14", "ERR-07")
@pytest.mark.parametrize(
    "message",
    [
        "Model unloaded.",
        "Model was unloaded while the request was still in queue..",
        'Model "qwen3-8b" is not loaded',
        "No models loaded. Please load a model in the developer page or use the 'lms load' command.",
    ],
)
@pytest.mark.parametrize("status", [400, 404])
async def test_a_model_that_is_not_loaded_is_a_category_of_its_own_and_worth_a_retry(
    vendor: FakeVendor, make: Callable[..., Provider], status: int, message: str
):
    vendor.answers(http(status, {"error": message}))
    with pytest.raises(CompactedLLMProviderError, match="oad") as failed:
        await make().generate(request())
    assert (failed.value.compacted.category, failed.value.compacted.retryable) == ("model-unloaded", True)
    assert (failed.value.code, failed.value.compacted.status_code) == ("LOUSHO_PROVIDER_REQUEST_FAILED", status)


@pytest.mark.spec("ERR-30")
async def test_a_refused_port_names_the_cause_and_the_url(free_port: int):
    agent = create_agent(provider=OpenAIProvider(base_url=f"http://127.0.0.1:{free_port}/v1", api_key="any"))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await agent.send("hi")
    assert failed.value.message == (
        f"connection refused (ECONNREFUSED) at http://127.0.0.1:{free_port}/v1/chat/completions - is the server running?"
    )
    assert failed.value.compacted.category == "timeout"


@pytest.mark.spec("ERR-30")
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param({"error": {"message": "upstream died", "code": 502}}, 502, id="an error object"),
        pytest.param(
            {"choices": [{"message": {"content": "half"}, "finish_reason": "error"}]}, 502, id="finish reason error"
        ),
        pytest.param({"object": "error", "message": "upstream died", "code": 500}, 500, id="an object of type error"),
    ],
)
async def test_a_failure_inside_a_success_is_a_retryable_bad_gateway(
    vendor: FakeVendor, answer: dict[str, Any], status: int
):
    vendor.answers(http(200, answer))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await OpenAIProvider(base_url=vendor.url, api_key=KEY).generate(request())
    assert (failed.value.compacted.status_code, failed.value.compacted.retryable) == (status, True)


@pytest.mark.spec("ERR-30")
@pytest.mark.parametrize("streamed", [False, True], ids=["generate", "stream"])
async def test_a_body_that_is_no_error_object_is_shown_in_short(
    vendor: FakeVendor, make: Callable[..., Provider], streamed: bool
):
    vendor.answers(http("400 Bad Request", "<html>\n  <h1>nginx</h1>\n" + "x" * 5000))
    agent = create_agent(provider=make(), on_event=(lambda _: None) if streamed else None)
    with pytest.raises(CompactedLLMProviderError) as failed:
        await agent.send("hi")
    assert failed.value.message.startswith("400 Bad Request: <html> <h1>nginx</h1> xxx")
    assert len(failed.value.message) < 300


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b"nonsense", b"[1, 2]", b'{"choices": []}', b'"text"', b"[" * 100_000]
)
async def test_a_whole_answer_that_makes_no_sense_is_a_retryable_error(
    vendor: FakeVendor, make: Callable[..., Provider], body: bytes
):
    vendor.answers(http(200, body))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make().generate(request())
    assert (failed.value.compacted.status_code, failed.value.compacted.retryable) == (502, True)
    assert len(failed.value.message) < 500


async def test_a_redirect_is_not_followed_and_says_where_to_point_the_provider(
    vendor: FakeVendor, make: Callable[..., Provider]
):
    vendor.answers(http("308 Permanent Redirect", location="https://elsewhere.test/v1"))
    with pytest.raises(CompactedLLMProviderError, match=r"308 .*https://elsewhere\.test/v1.*base_url"):
        await make().generate(request())
    assert len(vendor.received) == 1


@pytest.mark.spec("HAZ-39")
@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"raw": '{"error": {"message": "qwen is overheated"}}', "provider_name": "X"}, "qwen is overheated"),
        ({"raw": "plain reason", "provider_name": "X"}, "plain reason"),
        ({"raw": {"message": "an object"}}, "an object"),
        ({"reasons": ["violence", "spam"]}, "violence, spam"),
    ],
)
async def test_the_reason_a_router_nests_is_shown(vendor: FakeVendor, metadata: dict[str, Any], reason: str):
    error = {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}
    vendor.answers(http(400, error), chunked(events(error)))
    provider = OpenAIProvider(base_url=vendor.url, api_key=KEY)
    for call in (provider.generate(request()), anext(aiter(provider.stream(request())))):
        with pytest.raises(CompactedLLMProviderError) as failed:
            await call
        assert failed.value.message == f"Provider returned error: {reason}"


@pytest.mark.spec("HAZ-39")
async def test_status_and_nested_reason_are_classified_together(vendor: FakeVendor):
    nested = json.dumps({"error": {"message": "This model's maximum context length is 8192 tokens"}})
    vendor.answers(
        http(429, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": nested}}})
    )
    with pytest.raises(CompactedLLMProviderError) as failed:
        await OpenAIProvider(base_url=vendor.url, api_key=KEY).generate(request())
    assert (failed.value.compacted.category, failed.value.compacted.retryable) == ("context-length-exceeded", False)


@pytest.mark.spec("HAZ-38")
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        pytest.param({"retry_after": "7"}, 7000, id="seconds"),
        pytest.param({"retry_after": "0.25"}, 250, id="parts of a second"),
        pytest.param({"retry_after_ms": "1500", "retry_after": "9"}, 1500, id="milliseconds win"),
        pytest.param({"retry_after": "-5"}, None, id="negative"),
        pytest.param({"retry_after_ms": "-5"}, None, id="negative milliseconds"),
        pytest.param({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None, id="a date in the past"),
        pytest.param({"retry_after": "soon"}, None, id="no number"),
        pytest.param({"retry_after": "nan"}, None, id="NaN"),
        pytest.param({"retry_after": "inf"}, None, id="infinity"),
        pytest.param({}, None, id="none"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_a_vendor_asks_for_is_in_milliseconds_and_never_in_the_past(
    vendor: FakeVendor, make: Callable[..., Provider], status: int, headers: dict[str, str], wait: int | None
):
    vendor.answers(http(status, "", **headers))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make().generate(request())
    assert failed.value.compacted.retry_after_ms == wait


@pytest.mark.spec("ERR-31")
@pytest.mark.parametrize("error", [None, RateLimitError("slow down", retry_after_ms=9_999_000)], ids=["429", "raised"])
async def test_a_throttled_call_has_its_own_code_and_the_wait(vendor: FakeVendor, error: Exception | None):
    vendor.answers(http(429, openai_error("Rate limit reached"), retry_after="9999"))
    provider = mock_model([{"error": error}]) if error else OpenAIProvider(base_url=vendor.url, api_key=KEY)
    with pytest.raises(CompactedLLMProviderError) as failed:
        await create_agent(provider=provider).send("hi")
    assert failed.value.code == "LOUSHO_PROVIDER_RATE_LIMITED"
    assert (failed.value.compacted.category, failed.value.compacted.retry_after_ms) == ("rate-limit", 9_999_000)
    assert failed.value.compacted.to_dict()["retryAfterMs"] == 9_999_000


def test_a_date_to_wait_for_is_counted_from_now():
    assert retry_after_ms({"Retry-After": "Wed, 21 Oct 2015 07:28:10 GMT"}, now=1445412480) == 10_000


async def test_a_hint_on_another_status_is_no_hint(vendor: FakeVendor, make: Callable[..., Provider]):
    vendor.answers(http(401, "", retry_after="7"))
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make().generate(request())
    assert failed.value.compacted.retry_after_ms is None


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(http(401, openai_error(f"Incorrect API key provided: {KEY}. Bearer {KEY}")), id="in the reason"),
        pytest.param(http(500, f"<html>x-api-key: {KEY}</html>"), id="in a page"),
        pytest.param(http(200, f"your key is {KEY}"), id="in an answer that makes no sense"),
        pytest.param(http(200, openai_error(f"bad key {KEY}")), id="in an error inside a success"),
        pytest.param(Reply([], "close"), id="a dropped connection"),
    ],
)
async def test_no_key_is_in_the_error_or_anything_it_holds_on_to(
    vendor: FakeVendor, make: Callable[..., Provider], reply: Reply
):
    vendor.answers(reply)
    with pytest.raises(CompactedLLMProviderError) as failed:
        await make(headers={"x-extra-token": EXTRA}).generate(request())
    error = failed.value
    shown = f"{error} {error!r} {error.to_dict()} {''.join(traceback.format_exception(error))}"
    link: BaseException | None = error
    while link is not None:
        shown += f"{link!r} {vars(link)}"
        assert type(link).__module__.split(".")[0] not in {"httpx", "httpcore", "h11"}
        assert link.__context__ in (None, link.__cause__)
        link = link.__cause__
    assert KEY not in shown
    assert EXTRA not in shown


@pytest.mark.parametrize("key", ["", "   ", None])
def test_an_empty_key_is_refused_with_the_way_around_it(key: str | None):
    if key is not None:
        os.environ.update(OPENAI_API_KEY="of-the-environment", ANTHROPIC_API_KEY="of-the-environment")
    for build in (OpenAIProvider, AnthropicProvider):
        with pytest.raises(SDKError, match="mock/demo") as refused:
            build(api_key=key)
        assert refused.value.code == "LOUSHO_PROVIDER_MISSING_API_KEY"


@pytest.mark.parametrize("key", ["sk-abc\ndef-123", "sk-“quoted”-123", "sk-\x00-1234"])
def test_a_key_no_header_can_carry_is_refused_without_showing_it(key: str):
    with pytest.raises(SDKError) as refused:
        OpenAIProvider(api_key=key)
    assert refused.value.code == "LOUSHO_CONFIG_INVALID"
    assert key not in str(refused.value)


def test_a_key_with_space_around_it_is_taken_without():
    assert OpenAIProvider(api_key=" k-123 \n").auth_headers("k-123") == {"authorization": "Bearer k-123"}


class Foreign(Exception):
    """An error of another library: a status, a response with headers, a body."""

    def __init__(self, status: int, body: Any = None, **headers: str) -> None:
        super().__init__(f"Error code: {status}")
        self.status_code = status
        self.body = body
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


@pytest.mark.spec("ERR-07")
@pytest.mark.parametrize(
    ("error", "category", "retryable", "code"),
    [
        (Foreign(429, None, **{"retry-after": "3"}), "rate-limit", True, "LOUSHO_PROVIDER_RATE_LIMITED"),
        (
            Foreign(429, {"error": {"code": "insufficient_quota"}}),
            "quota-exceeded",
            False,
            "LOUSHO_PROVIDER_REQUEST_FAILED",
        ),
        (Foreign(500), "unknown", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (Foreign(401), "auth-failure", False, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (LLMProviderError("busy", status_code=503), "unknown", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (RateLimitError("slow down", retry_after_ms=10), "rate-limit", True, "LOUSHO_PROVIDER_RATE_LIMITED"),
        (OperationTimeoutError("slow", "model call", 5), "timeout", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (TimeoutError(), "timeout", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (ConnectionResetError(104, "reset"), "timeout", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (json.JSONDecodeError("bad", "{", 0), "unknown", True, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (FileNotFoundError(2, "no such file"), "unknown", False, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        (ValueError("a bug"), "unknown", False, "LOUSHO_PROVIDER_REQUEST_FAILED"),
    ],
    ids=repr,
)
async def test_what_a_provider_of_ones_own_raises_is_classified_the_same(
    error: Exception, category: str, retryable: bool, code: str
):
    with pytest.raises(CompactedLLMProviderError) as failed:
        await create_agent(provider=mock_model([{"error": error}])).send("hi")
    compacted = failed.value.compacted
    assert (compacted.category, compacted.retryable, failed.value.code) == (category, retryable, code)
    assert failed.value.cause is error
    assert compacted.provider_name == "mock"


@pytest.mark.spec("ERR-32", "ERR-07")
async def test_a_missing_package_keeps_its_code_and_its_install_command():
    missing = MissingDependencyError(
        "The vendor's package is not installed.", install_command="pip install 'lousho[x]'"
    )
    with pytest.raises(CompactedLLMProviderError) as failed:
        await create_agent(provider=mock_model([{"error": missing}])).send("hi")
    assert failed.value.code == "LOUSHO_PEER_MISSING"
    assert "pip install 'lousho[x]'" in failed.value.message
    assert failed.value.cause is missing


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        PropagatingToolError("stop"),
        CassetteMismatchError("differs", cassette="c.json"),
        SDKError("no cassette", code="LOUSHO_CASSETTE_INVALID"),
        AbortError("stop"),
        compact_provider_error(ValueError("x")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_no_failure_of_a_provider_is_left_as_it_is(error: BaseException):
    assert compact_provider_error(error, "p") is error


def test_an_unrelated_error_being_handled_does_not_change_the_category():
    try:
        try:
            raise ConnectionResetError(104, "of something else")
        except ConnectionResetError:
            raise ValueError("a bug in a provider")  # noqa: B904 - the handled error is what is tested
    except ValueError as bug:
        compacted = compact_provider_error(bug)
    assert isinstance(compacted, CompactedLLMProviderError)
    assert compacted.compacted.category == "unknown"


def test_a_compacted_error_survives_copying_and_pickling():
    error = compact_provider_error(Foreign(429), "p")
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert twin.compacted == error.compacted  # type: ignore[attr-defined]
        assert str(twin) == str(error)
