"""The error model: every exception the project raises on purpose, in one place.

    Exception
     ├─ SDKError                        coded: .code .hint .docs .detail .message .cause
     │   ├─ ConfigurationError          the developer fixes an option (.field)
     │   ├─ ValidationError             a value did not fit (.errors)
     │   ├─ MissingDependencyError      an optional package is not installed (.install_command)
     │   ├─ AgentExecutionError         an agent failed (.agent_id)
     │   ├─ FlowExecutionError          a flow step failed (.step)
     │   ├─ ToolExecutionError          the model is told and the run goes on (.tool_name)
     │   │   └─ ToolArgumentsValidationError   (.issues)
     │   ├─ LLMProviderError            a model call failed (.provider .status_code)
     │   │   └─ CompactedLLMProviderError      (.compacted)
     │   ├─ RateLimitError              (.retry_after_ms)
     │   ├─ TimeoutError                also a builtin TimeoutError (.operation .timeout_ms)
     │   ├─ SessionAwaitingApprovalError       (.session_id .approval_id .approval_ids)
     │   ├─ BudgetExceededError         (.budget)
     │   ├─ GuardrailError              (.guardrail)
     │   ├─ McpStartError               (.exit_code .signal .stderr)
     │   └─ CassetteMismatchError       (.cassette .call_number), never wrapped
     └─ without a code, on purpose:
         PropagatingToolError (stops the run), WorkspaceError, McpToolError, AuthError,
         CronExpressionError, DecryptionError

Expected stops (a pause, a budget, a guardrail, an abort) are results, not exceptions, unless the caller asked for one.
Codes, hints and HTTP statuses are in `lousho.core.error_codes`. Source: errors page.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, cast

from lousho.core.error_codes import ERROR_CODES, ERROR_TABLE, ErrorCode, docs_url
from lousho.core.provider_errors import (
    CompactedError,
    CompactedLLMProviderError,
    LLMProviderError,
    ProviderErrorCategory,
    RateLimitError,
)
from lousho.core.sdk_error import SDKError, bare_message, original_error
from lousho.core.tool_errors import (
    ROOT_PATH,
    TOOL_ERROR_NAMES,
    Issue,
    McpStartError,
    McpToolError,
    PropagatingToolError,
    ToolArgumentsValidationError,
    ToolExecutionError,
    WorkspaceError,
    describe_issues,
    kind_of_tool_error,
)

if TYPE_CHECKING:
    from lousho.core.usage import RunUsage

__all__ = [
    "ERROR_CODES",
    "ERROR_TABLE",
    "ROOT_PATH",
    "TOOL_ERROR_NAMES",
    "AgentExecutionError",
    "AuthError",
    "BudgetExceededError",
    "BudgetTrip",
    "CassetteMismatchError",
    "CompactedError",
    "CompactedLLMProviderError",
    "ConfigurationError",
    "CronExpressionError",
    "DecryptionError",
    "ErrorCode",
    "FlowExecutionError",
    "GuardrailError",
    "GuardrailTrip",
    "Issue",
    "LLMProviderError",
    "McpStartError",
    "McpToolError",
    "MissingDependencyError",
    "PropagatingToolError",
    "ProviderErrorCategory",
    "RateLimitError",
    "SDKError",
    "SessionAwaitingApprovalError",
    "TimeoutError",
    "ToolArgumentsValidationError",
    "ToolExecutionError",
    "ValidationError",
    "WorkspaceError",
    "attach_usage",
    "bare_message",
    "deciding_error",
    "describe_issues",
    "docs_url",
    "http_headers",
    "http_status",
    "kind_of_tool_error",
    "never_wrap",
    "original_error",
]


class ConfigurationError(SDKError):
    """An option or argument cannot be used; `field` names it when known. Source: errors page.

    Code: `LOUSHO_CONFIG_INVALID`, or the one given.
    """

    default_code = "LOUSHO_CONFIG_INVALID"

    def __init__(
        self, message: str, *, field: str | None = None, code: str | None = None, cause: BaseException | None = None
    ) -> None:
        super().__init__(message, code=code, cause=cause)
        self.field = field


class ValidationError(SDKError):
    """A value failed validation; `errors` maps each field to its problems. Source: errors page.

    Code: `LOUSHO_VALIDATION_FAILED`, or the one given.
    """

    default_code = "LOUSHO_VALIDATION_FAILED"

    def __init__(
        self,
        message: str,
        errors: Mapping[str, Iterable[str]] | None = None,
        *,
        code: str | None = None,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, code=code, cause=cause)
        self.errors: dict[str, list[str]] = {field: list(problems) for field, problems in (errors or {}).items()}


class MissingDependencyError(SDKError):
    """A feature needs a package that is not installed. Source: errors page. Code: `LOUSHO_PEER_MISSING`.

    The message ends with the install command unless it names it already.
    """

    default_code = "LOUSHO_PEER_MISSING"

    def __init__(
        self,
        message: str,
        *,
        install_command: str,
        package: str | None = None,
        extra: str | None = None,
        cause: BaseException | None = None,
    ) -> None:
        if install_command not in message:
            message = f"{message} Install it with: {install_command}"
        super().__init__(message, cause=cause)
        self.install_command = install_command
        self.package = package
        """The import name that was not found."""
        self.extra = extra
        """The extra of this distribution that brings it, e.g. `mcp`."""


class AgentExecutionError(SDKError):
    """Running an agent failed. Source: errors page. Code: `LOUSHO_AGENT_EXECUTION_FAILED`."""

    default_code = "LOUSHO_AGENT_EXECUTION_FAILED"

    def __init__(
        self,
        message: str,
        agent_id: str | None = None,
        cause: BaseException | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code, cause=cause)
        self.agent_id = agent_id


class FlowExecutionError(SDKError):
    """A flow step failed; `step` names it. Source: errors page. Code: `LOUSHO_FLOW_EXECUTION_FAILED`."""

    default_code = "LOUSHO_FLOW_EXECUTION_FAILED"

    def __init__(
        self, message: str, step: str | None = None, cause: BaseException | None = None, *, code: str | None = None
    ) -> None:
        super().__init__(message, code=code, cause=cause)
        self.step = step


class TimeoutError(SDKError, builtins.TimeoutError):  # noqa: A001 - the documented name; it is the builtin's subclass
    """An operation did not finish in time; the builtin `TimeoutError` catches it too. Source: errors page.

    `timeout_ms` is the time it had, in milliseconds. Code: `LOUSHO_OPERATION_TIMEOUT`.
    """

    default_code = "LOUSHO_OPERATION_TIMEOUT"
    bare_message = True

    def __init__(
        self,
        message: str,
        operation: str | None = None,
        timeout_ms: float | None = None,
        *,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, cause=cause)
        self.operation = operation
        self.timeout_ms = timeout_ms


class SessionAwaitingApprovalError(SDKError):
    """A session or run waits for a decision and takes no new input. Source: errors page.

    `approval_ids` lists all open approvals, `approval_id` is the first. Code: `LOUSHO_SESSION_AWAITING_APPROVAL`.
    """

    default_code = "LOUSHO_SESSION_AWAITING_APPROVAL"

    def __init__(
        self,
        session_id: str | None,
        approval_id: str,
        approval_ids: Iterable[str] | None = None,
        *,
        message: str | None = None,
    ) -> None:
        subject = "The run" if session_id is None else f"Session {session_id!r}"
        super().__init__(message or f"{subject} waits for the decision on approval {approval_id!r}")
        self.session_id = session_id
        self.approval_id = approval_id
        self.approval_ids: list[str] = list(approval_ids) if approval_ids is not None else [approval_id]


class BudgetTrip(NamedTuple):
    """A budget that was used up. Source: agents page."""

    limit: str
    """The limit's name as files write it, e.g. `maxCostUsd`."""
    value: float
    """What was spent: tokens, USD, milliseconds, steps or failed calls, as the limit counts."""
    max: float
    """What was allowed, in the same unit."""
    scope: Literal["run", "session"]

    def to_dict(self) -> dict[str, object]:
        """Return the wire form, `{limit, value, max, scope}`."""
        return {"limit": self.limit, "value": self.value, "max": self.max, "scope": self.scope}


class BudgetExceededError(SDKError):
    """A limit was used up under `on_exceeded='throw'`. Source: errors page. Code: `LOUSHO_BUDGET_EXCEEDED`."""

    default_code = "LOUSHO_BUDGET_EXCEEDED"

    def __init__(self, budget: BudgetTrip) -> None:
        super().__init__(
            f"The {budget.scope} used up its budget: {budget.limit} is {budget.max:g} and {budget.value:g} was spent"
        )
        self.budget = budget


class GuardrailTrip(NamedTuple):
    """A guardrail that blocked a run. Source: guardrails page."""

    name: str
    kind: Literal["input", "output", "tool"]
    reason: str
    tool_name: str | None = None
    info: Mapping[str, object] | None = None
    """What was found: types and offsets, never the matched text."""

    def to_dict(self) -> dict[str, object]:
        """Return the wire form, `{name, kind, reason, toolName?, info?}`."""
        wire: dict[str, object] = {"name": self.name, "kind": self.kind, "reason": self.reason}
        if self.tool_name is not None:
            wire["toolName"] = self.tool_name
        if self.info is not None:
            wire["info"] = dict(self.info)
        return wire


class GuardrailError(SDKError):
    """A guardrail blocked a run under `on_tripped='throw'`. Source: errors page. Code: `LOUSHO_GUARDRAIL_TRIPPED`."""

    default_code = "LOUSHO_GUARDRAIL_TRIPPED"

    def __init__(self, guardrail: GuardrailTrip) -> None:
        super().__init__(f"The {guardrail.kind} guardrail {guardrail.name!r} blocked the run: {guardrail.reason}")
        self.guardrail = guardrail


class CassetteMismatchError(SDKError):
    """A replayed model call differs from the recording. Source: testing page. Code: `LOUSHO_CASSETTE_INVALID`.

    It reaches the caller as it is: nothing retries it, falls back from it or wraps it.
    """

    default_code = "LOUSHO_CASSETTE_INVALID"
    never_wrap: ClassVar[bool] = True

    def __init__(
        self, message: str, *, cassette: str, call_number: int | None = None, cause: BaseException | None = None
    ) -> None:
        super().__init__(message, cause=cause)
        self.cassette = cassette
        """The path of the cassette file."""
        self.call_number = call_number
        """Which model call of the run differed, counted from 1."""


class AuthError(Exception):
    """Raised by an auth entry to refuse a request with its `status`, 401 or 403. No code. Source: auth page."""

    def __init__(self, status: Literal[401, 403] = 401, message: str | None = None) -> None:
        super().__init__(message or ("Unauthorized" if status == 401 else "Forbidden"))
        self.status = status


class CronExpressionError(Exception):
    """A cron expression does not parse; the message names the field. No code. Source: triggers page."""


class DecryptionError(Exception):
    """Encrypted data was changed, or the secret is another one. No code. Source: utilities page."""


def attach_usage(error: BaseException, usage: RunUsage) -> None:
    """Put what a failed run had spent on the error it rejects with, as `error.usage`.

    Any exception can carry it. One that has a `usage` of its own keeps it, and one that takes no new attributes goes
    on without. It shows in neither `str`, `repr`, `args` nor `to_dict()`. Source: errors page.
    """
    if isinstance(error, SDKError):
        if error.usage is None:
            error.usage = usage
        return
    try:
        if not hasattr(error, "usage"):
            error.usage = usage  # pyright: ignore[reportAttributeAccessIssue]
    except Exception:  # noqa: BLE001 - a class with __slots__, or one whose attributes do something of their own
        return


def never_wrap(error: BaseException) -> bool:
    """Return whether `error` must pass through the run loop, retry and fallback exactly as it is.

    True for cancellation and the other exits, `PropagatingToolError`, everything about cassettes, and any exception
    with a true `never_wrap` attribute. Source: errors page.
    """
    if not isinstance(error, Exception) or isinstance(error, PropagatingToolError):
        return True
    if isinstance(error, SDKError) and error.code == "LOUSHO_CASSETTE_INVALID":
        return True
    try:
        return getattr(error, "never_wrap", False) is True
    except Exception:  # noqa: BLE001 - an attribute of the application's own class may do anything
        return False


def deciding_error(error: BaseException) -> BaseException:
    """Return the error that says what happens next: inside an exception group the first one that must pass through as
    it is, else the first real failure; any other error itself.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    passing = group.subgroup(
        lambda inner: isinstance(inner, Exception) and not isinstance(inner, BaseExceptionGroup) and never_wrap(inner)
    )
    return original_error(group if passing is None else passing)


def http_status(error: BaseException) -> int:
    """Return the HTTP status a route answers `error` with; 500 where its code has none of its own.

    Source: errors page.
    """
    if isinstance(error, AuthError):
        return error.status
    if isinstance(error, SDKError) and (row := ERROR_TABLE.get(error.code)) and row.http_status is not None:
        return row.http_status
    return 500


def http_headers(error: BaseException) -> dict[str, str]:
    """Return the headers that go with `http_status(error)`: `Retry-After` in seconds for a busy session.

    Source: deployment page.
    """
    if isinstance(error, SDKError) and error.code == "LOUSHO_SESSION_BUSY":
        return {"Retry-After": "2"}
    return {}
