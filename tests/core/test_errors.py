"""The error model: what every coded exception carries, shows and leaves out."""

from __future__ import annotations

import asyncio
import builtins
import copy
import json
import pickle
import traceback

import pytest

import lousho
from lousho import (
    AgentExecutionError,
    CassetteMismatchError,
    CompactedLLMProviderError,
    ConfigurationError,
    FlowExecutionError,
    LLMProviderError,
    McpStartError,
    McpToolError,
    MissingDependencyError,
    PropagatingToolError,
    RateLimitError,
    SDKError,
    SessionAwaitingApprovalError,
    ToolArgumentsValidationError,
    ToolExecutionError,
    ValidationError,
    create_agent,
)
from lousho.core.errors import (
    BudgetExceededError,
    BudgetTrip,
    CompactedError,
    GuardrailError,
    GuardrailTrip,
    Issue,
    attach_usage,
    bare_message,
    http_headers,
    http_status,
    kind_of_tool_error,
    never_wrap,
    original_error,
)
from lousho.core.usage import RunUsage
from lousho.models.mock import mock_model

HELP_LINE = r"^\[LOUSHO_[A-Z_]+\] .+ \(https://lousho\.com/errors#[a-z_]+\)$"

EVERY_KIND: list[SDKError] = [
    SDKError("it failed"),
    ConfigurationError("bad option", field="max_steps"),
    ValidationError("bad value", {"email": ["Invalid email"]}),
    MissingDependencyError("MCP servers need a package.", install_command="pip install 'lousho[mcp]'", extra="mcp"),
    AgentExecutionError("agent failed", "agent-1", KeyError("k")),
    FlowExecutionError("step failed", "charge", KeyError("k")),
    ToolExecutionError("tool failed", "search", KeyError("k")),
    ToolArgumentsValidationError("search", [Issue("to", "Field required")]),
    LLMProviderError("model failed", provider="openai", status_code=500),
    CompactedLLMProviderError(CompactedError("slow down", "rate-limit", True, 429, 1500, "openai")),
    RateLimitError("too many", retry_after_ms=10),
    lousho.TimeoutError("too slow", "flow.node llmCall", 10),
    SessionAwaitingApprovalError("chat-1", "ap-1", ["ap-1", "ap-2"]),
    BudgetExceededError(BudgetTrip("maxCostUsd", 0.02, 0.01, "run")),
    GuardrailError(GuardrailTrip("max-length", "input", "too long", info={"chars": 12})),
    McpStartError("did not start", exit_code=1, stderr="npm error 404"),
    CassetteMismatchError("differs at messages[0]", cassette="a.json", call_number=2),
]
BARE = {
    "ToolExecutionError",
    "ToolArgumentsValidationError",
    "LLMProviderError",
    "CompactedLLMProviderError",
    "RateLimitError",
    "TimeoutError",
}


def named(error: SDKError) -> str:
    return type(error).__name__


@pytest.mark.spec("ERR-01")
def test_a_missing_model_is_a_coded_error_with_a_fix(clean_env: object):
    with pytest.raises(SDKError) as caught:
        create_agent()
    error = caught.value
    assert error.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
    assert error.hint == (
        "Pass a model string such as create_agent(model='openai/gpt-4.1-mini'), a provider instance, or set"
        " LOUSHO_MODEL or a provider API key."
    )
    assert error.docs == "https://lousho.com/errors#lousho_config_missing_provider"
    assert error.detail
    assert "\n" not in error.detail
    assert "LOUSHO_CONFIG_MISSING_PROVIDER" not in error.detail


@pytest.mark.spec("ERR-01", "ERR-02")
@pytest.mark.parametrize("error", EVERY_KIND, ids=named)
def test_every_coded_error_names_its_code_hint_and_link(error: SDKError):
    row = lousho.ERROR_CODES[error.code]
    assert (error.hint, error.docs) == (row, f"https://lousho.com/errors#{error.code.lower()}")
    assert str(error) == f"{error.detail}\n[{error.code}] {error.hint} ({error.docs})"
    assert error.args == (error.detail,)


@pytest.mark.spec("ERR-02")
def test_an_uncaught_error_prints_its_class_detail_and_help_line():
    lines = "".join(traceback.format_exception_only(ConfigurationError("no such option"))).splitlines()
    assert lines[0].endswith("ConfigurationError: no such option")
    assert lines[1] == (
        "[LOUSHO_CONFIG_INVALID] Change the option or argument that the message names."
        " (https://lousho.com/errors#lousho_config_invalid)"
    )


@pytest.mark.spec("ERR-03")
@pytest.mark.parametrize("error", EVERY_KIND, ids=named)
def test_errors_a_model_reads_keep_a_bare_message(error: SDKError):
    if type(error).__name__ in BARE:
        assert error.message == error.detail
        assert "[LOUSHO_" not in error.message
    else:
        assert error.message == str(error)
    assert str(error).splitlines()[-1].startswith(f"[{error.code}] ")


@pytest.mark.spec("ERR-03")
async def test_the_model_sees_a_tools_error_without_the_help_line():
    @lousho.tool
    def search(query: str) -> str:
        """Search."""
        raise ToolExecutionError(f"nothing for {query}", "search")

    provider = mock_model([{"tool_calls": [{"name": "search", "args": {"query": "tea"}}]}, "done"])
    result = await create_agent(provider=provider, tools=[search]).send("find tea")
    content = json.loads(next(lousho.text_of(message) for message in result.messages if message.role == "tool"))
    assert content["message"] == "nothing for tea"
    assert "[LOUSHO_" not in json.dumps(content)


def test_an_instance_can_do_without_the_help_line():
    error = ToolExecutionError("connection refused", "http", help_line=False)
    assert str(error) == error.message == "connection refused"
    assert error.code == "LOUSHO_TOOL_EXECUTION_FAILED"


@pytest.mark.spec("ERR-05", "ERR-103")
def test_default_codes_and_attributes_of_the_general_errors():
    assert SDKError("x").code == "LOUSHO_GENERIC_ERROR"
    configuration = ConfigurationError("bad", field="max_steps")
    assert (configuration.code, configuration.field) == ("LOUSHO_CONFIG_INVALID", "max_steps")
    assert ConfigurationError("bad").field is None
    assert ConfigurationError("bad", code="LOUSHO_SESSION_EXISTS").code == "LOUSHO_SESSION_EXISTS"
    validation = ValidationError("bad", {"email": ("Invalid email",)})
    assert (validation.code, validation.errors) == ("LOUSHO_VALIDATION_FAILED", {"email": ["Invalid email"]})
    missing = MissingDependencyError("MCP servers need a package.", install_command="pip install 'lousho[mcp]'")
    assert (missing.code, missing.install_command) == ("LOUSHO_PEER_MISSING", "pip install 'lousho[mcp]'")
    assert missing.detail == "MCP servers need a package. Install it with: pip install 'lousho[mcp]'"


@pytest.mark.spec("ERR-06", "ERR-104")
def test_execution_errors_carry_what_failed_and_its_cause():
    cause = KeyError("k")
    agent = AgentExecutionError("failed", "agent-1", cause)
    tool = ToolExecutionError("failed", "search", cause)
    flow = FlowExecutionError("failed", "charge", cause)
    slow = lousho.TimeoutError("slow", "flow.node llmCall", 10)
    arguments = ToolArgumentsValidationError("send", [Issue("to", "Field required"), Issue("count", "not a number")])
    assert (agent.code, agent.agent_id) == ("LOUSHO_AGENT_EXECUTION_FAILED", "agent-1")
    assert (tool.code, tool.tool_name) == ("LOUSHO_TOOL_EXECUTION_FAILED", "search")
    assert ToolExecutionError("failed", "search", code="LOUSHO_MCP_CALL_FAILED").code == "LOUSHO_MCP_CALL_FAILED"
    assert (flow.code, flow.step) == ("LOUSHO_FLOW_EXECUTION_FAILED", "charge")
    assert (slow.code, slow.operation, slow.timeout_ms) == ("LOUSHO_OPERATION_TIMEOUT", "flow.node llmCall", 10)
    assert all(error.cause is cause and error.__cause__ is cause for error in (agent, tool, flow))
    assert (arguments.code, arguments.tool_name) == ("LOUSHO_TOOL_ARGS_INVALID", "send")
    assert arguments.issues == [Issue("to", "Field required"), Issue("count", "not a number")]
    assert arguments.message == "Invalid arguments for tool 'send': 2 issues (to: Field required; count: not a number)"


def test_the_cause_of_raise_from_counts_too():
    with pytest.raises(SDKError) as caught:
        raise SDKError("outer") from KeyError("inner")
    assert isinstance(caught.value.cause, KeyError)


def test_a_timeout_is_a_builtin_timeout_as_well():
    with pytest.raises(builtins.TimeoutError):
        raise lousho.TimeoutError("slow")
    assert issubclass(lousho.TimeoutError, SDKError)


@pytest.mark.parametrize(
    ("category", "cause", "code"),
    [
        ("rate-limit", None, "LOUSHO_PROVIDER_RATE_LIMITED"),
        ("timeout", None, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        ("quota-exceeded", None, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        ("auth-failure", None, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        ("context-length-exceeded", None, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        ("model-unloaded", None, "LOUSHO_PROVIDER_REQUEST_FAILED"),
        ("unknown", MissingDependencyError("no", install_command="pip install x"), "LOUSHO_PEER_MISSING"),
    ],
)
def test_the_category_of_a_failed_model_call_decides_its_code(category, cause, code: str):
    error = CompactedLLMProviderError(CompactedError("failed", category, False), cause=cause)
    assert isinstance(error, LLMProviderError)
    assert (error.code, error.compacted.category, error.cause) == (code, category, cause)


def test_a_compacted_error_writes_only_what_it_knows():
    full = CompactedError("slow down", "rate-limit", True, 429, 1500, "openai")
    assert full.to_dict() == {
        "error": "slow down",
        "category": "rate-limit",
        "retryable": True,
        "statusCode": 429,
        "retryAfterMs": 1500,
        "providerName": "openai",
    }
    assert CompactedError("no", "unknown", False).to_dict() == {
        "error": "no",
        "category": "unknown",
        "retryable": False,
    }
    assert CompactedLLMProviderError(full).to_dict()["compacted"] == full.to_dict()


@pytest.mark.spec("ERR-08")
def test_stops_that_were_asked_to_raise_carry_their_record():
    waiting = SessionAwaitingApprovalError("chat-1", "ap-1", ["ap-1", "ap-2"])
    assert (waiting.code, waiting.approval_id, waiting.approval_ids) == (
        "LOUSHO_SESSION_AWAITING_APPROVAL",
        "ap-1",
        ["ap-1", "ap-2"],
    )
    assert SessionAwaitingApprovalError(None, "ap-1").approval_ids == ["ap-1"]
    cassette = CassetteMismatchError("differs", cassette="a.json", call_number=2)
    assert (cassette.code, cassette.cassette, cassette.call_number) == ("LOUSHO_CASSETTE_INVALID", "a.json", 2)
    budget = BudgetExceededError(BudgetTrip("maxCostUsd", 0.02, 0.01, "run"))
    assert budget.budget.to_dict() == {"limit": "maxCostUsd", "value": 0.02, "max": 0.01, "scope": "run"}
    guardrail = GuardrailError(GuardrailTrip("pii", "tool", "an address", "send_mail"))
    assert guardrail.guardrail.to_dict() == {
        "name": "pii",
        "kind": "tool",
        "reason": "an address",
        "toolName": "send_mail",
    }
    start = McpStartError("did not start", signal="SIGKILL", stderr="killed")
    assert (start.exit_code, start.signal, start.stderr) == (None, "SIGKILL", "killed")


@pytest.mark.spec("ERR-11")
@pytest.mark.parametrize(
    "name",
    [
        "PropagatingToolError",
        "WorkspaceError",
        "McpToolError",
        "AuthError",
        "CronExpressionError",
        "DecryptionError",
    ],
)
def test_some_exceptions_have_no_code_on_purpose(name: str):
    plain = getattr(lousho, name)
    assert issubclass(plain, Exception)
    assert not issubclass(plain, SDKError)
    assert not hasattr(plain(), "code")


@pytest.mark.parametrize("error", EVERY_KIND, ids=named)
@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda error: pickle.loads(pickle.dumps(error)), id="pickled"),
        pytest.param(copy.copy, id="copied"),
        pytest.param(copy.deepcopy, id="deep copied"),
    ],
)
def test_a_coded_error_survives_copying_and_pickling(error: SDKError, again):
    twin = again(error)
    assert type(twin) is type(error)
    assert (str(twin), twin.args, twin.to_dict()) == (str(error), error.args, error.to_dict())
    assert repr(twin.cause) == repr(error.cause)
    assert repr({**vars(twin), "_cause": None}) == repr({**vars(error), "_cause": None})


def test_a_cause_that_cannot_travel_is_replaced_by_its_words():
    class Odd(Exception):
        def __init__(self, *, status: int) -> None:
            super().__init__(f"status {status}")

    twin = pickle.loads(pickle.dumps(SDKError("failed", cause=Odd(status=7))))
    assert (twin.code, str(twin.cause)) == ("LOUSHO_GENERIC_ERROR", "Odd: status 7")


def spent() -> RunUsage:
    usage = RunUsage()
    usage.model_calls = 1
    return usage


@pytest.mark.spec("ERR-13")
@pytest.mark.parametrize("kind", [PropagatingToolError, type("Own", (PropagatingToolError,), {})])
async def test_a_run_that_fails_says_what_it_spent(kind: type[Exception]):
    @lousho.tool
    def stop() -> str:
        """Stop."""
        raise kind("stop here")

    def agent() -> lousho.Agent:
        return create_agent(provider=mock_model([{"tool_calls": [{"name": "stop"}]}]), tools=[stop])

    for attempt in (agent().send("go"), agent().session("s-1").send("go"), agent().stream("go").result):
        with pytest.raises(kind, match=r"^stop here$") as caught:
            await attempt
        assert getattr(caught.value, "usage", RunUsage()).model_calls == 1


@pytest.mark.spec("ERR-13")
async def test_a_failed_model_call_says_what_was_spent_before_it():
    @lousho.tool
    def look() -> str:
        """Look."""
        return "nothing"

    script = [{"tool_calls": [{"name": "look"}]}, {"error": LLMProviderError("the model is down")}]
    with pytest.raises(LLMProviderError) as caught:
        await create_agent(provider=mock_model(script), tools=[look]).send("go")
    assert caught.value.usage is not None
    assert caught.value.usage.model_calls >= 1
    assert caught.value.usage.total_tokens > 0


def test_usage_is_added_once_and_shows_nowhere():
    error = ConfigurationError("bad")
    before = (str(error), repr(error), error.args, error.to_dict())
    usage = spent()
    attach_usage(error, usage)
    attach_usage(error, RunUsage())
    assert error.usage is usage
    assert (str(error), repr(error), error.args, error.to_dict()) == before


def test_an_error_keeps_a_usage_of_its_own():
    class Metered(Exception):
        usage = "mine"

    class Empty(Exception):
        usage = None

    for error, own in ((Metered(), "mine"), (Empty(), None)):
        attach_usage(error, spent())
        assert error.usage == own


@pytest.mark.spec("ERR-14")
def test_a_run_that_never_started_has_spent_nothing(clean_env: object):
    with pytest.raises(SDKError) as caught:
        create_agent(max_stpes=3)
    assert caught.value.usage is None


def test_an_error_that_takes_no_attributes_goes_on_without_usage():
    class Closed(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Closed("closed")
    attach_usage(error, spent())
    assert not hasattr(error, "usage")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (asyncio.CancelledError(), True),
        (KeyboardInterrupt(), True),
        (PropagatingToolError("stop"), True),
        (CassetteMismatchError("differs", cassette="a.json"), True),
        (SDKError("no cassette", code="LOUSHO_CASSETTE_INVALID"), True),
        (type("Mine", (Exception,), {"never_wrap": True})(), True),
        (LLMProviderError("failed"), False),
        (ValueError("bad"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_only_marked_errors_pass_untouched(error: BaseException, passes: bool):
    assert never_wrap(error) is passes


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SDKError("x", code="LOUSHO_APPROVAL_NOT_FOUND"), 404),
        (SDKError("x", code="LOUSHO_SESSION_BUSY"), 409),
        (SDKError("x", code="LOUSHO_UNSUPPORTED_MEDIA_TYPE"), 415),
        (SDKError("x", code="LOUSHO_OAUTH_TOKEN_EXCHANGE_FAILED"), 502),
        (SDKError("x", code="LOUSHO_NOT_IN_THE_TABLE"), 500),
        (ConfigurationError("x"), 500),
        (lousho.AuthError(401), 401),
        (lousho.AuthError(403), 403),
        (ValueError("x"), 500),
    ],
    ids=lambda value: getattr(value, "code", None) or str(value),
)
def test_a_route_answers_with_the_status_of_the_code(error: BaseException, status: int):
    assert http_status(error) == status


def test_only_a_busy_session_says_when_to_come_back():
    assert http_headers(SDKError("x", code="LOUSHO_SESSION_BUSY")) == {"Retry-After": "2"}
    assert http_headers(SDKError("x", code="LOUSHO_APPROVAL_CONFLICT")) == {}


def test_a_code_that_is_not_in_the_table_still_has_a_hint():
    error = SDKError("x", code="LOUSHO_NOT_IN_THE_TABLE")
    assert error.hint == lousho.ERROR_CODES["LOUSHO_GENERIC_ERROR"]
    assert error.docs.endswith("#lousho_not_in_the_table")


def test_the_model_is_told_the_kind_an_exception_carries():
    custom = type("Custom", (Exception,), {"tool_error_kind": "quota"})()
    assert [
        kind_of_tool_error(error)
        for error in (McpToolError("x"), ToolArgumentsValidationError("t", []), KeyError("x"), custom)
    ] == ["mcp", "validation", "execution", "quota"]


def test_many_issues_are_named_up_to_a_bound():
    error = ToolArgumentsValidationError("t", [Issue(f"items.{index}", "bad") for index in range(500)])
    assert error.detail.startswith("Invalid arguments for tool 't': 500 issues (items.0: bad; ")
    assert error.detail.endswith("; and 480 more)")
    assert len(error.detail) < 500


def test_the_bare_text_of_an_error_is_never_empty():
    assert [bare_message(error) for error in (SDKError("x"), ValueError("bad"), KeyError())] == ["x", "bad", "KeyError"]


def test_the_failure_inside_a_group_is_the_one_to_show():
    failure = ValueError("the real one")
    group = BaseExceptionGroup("g", [asyncio.CancelledError(), ExceptionGroup("inner", [failure, KeyError("later")])])
    assert original_error(group) is failure
    assert original_error(failure) is failure
    cancelled = asyncio.CancelledError()
    assert original_error(BaseExceptionGroup("g", [cancelled])) is cancelled
