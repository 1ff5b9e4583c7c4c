"""What can go wrong with a tool call: the coded errors, the plain ones a tool raises, and the kind the model is told.

Import from `lousho.core.errors`. Building the result the model reads is the work of the tools room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from lousho.core.sdk_error import SDKError

TOOL_ERROR_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "execution": "Error",
        "validation": "ToolArgumentsValidationError",
        "not-found": "ToolNotFoundError",
        "rejected": "ToolRejectedError",
        "not-run": "ToolNotRunError",
        "mcp": "McpToolError",
        "sandbox": "SandboxRequiredError",
        "denied": "ToolDeniedError",
        "cancelled": "ToolCancelledError",
        "interrupted": "ToolInterruptedError",
    }
)
"""Every kind of failed tool call, and the `error` name the model reads when nothing was raised."""

ROOT_PATH = "(root)"
"""The path of an issue that concerns the whole value."""

MAX_LISTED_ISSUES = 20
"""Issues a message spells out; a model that sent hundreds of bad items needs the first few."""


class Issue(NamedTuple):
    """One thing that is wrong with a value: where, and what."""

    path: str
    """Dotted path such as `items[2].price`, or `(root)`."""
    message: str

    def to_dict(self) -> dict[str, str]:
        """Return the wire form, `{path, message}`."""
        return {"path": self.path, "message": self.message}


def describe_issues(issues: Iterable[Issue]) -> str:
    """Return `2 issues (to: Field required; count: Input should be a valid integer)`. Source: tools page."""
    listed = list(issues)
    shown = [f"{issue.path}: {issue.message}" for issue in listed[:MAX_LISTED_ISSUES]]
    if len(listed) > MAX_LISTED_ISSUES:
        shown.append(f"and {len(listed) - MAX_LISTED_ISSUES} more")
    return f"{len(listed)} issue{'' if len(listed) == 1 else 's'} ({'; '.join(shown)})"


class ToolExecutionError(SDKError):
    """A tool failed. Inside a run the model gets it as a result and the run goes on. Source: errors page.

    The message is bare, because the model reads it. Code: `LOUSHO_TOOL_EXECUTION_FAILED`.
    """

    default_code = "LOUSHO_TOOL_EXECUTION_FAILED"
    bare_message = True

    def __init__(
        self,
        message: str,
        tool_name: str | None = None,
        cause: BaseException | None = None,
        *,
        code: str | None = None,
        help_line: bool = True,
    ) -> None:
        super().__init__(message, code=code, cause=cause, help_line=help_line)
        self.tool_name = tool_name


class ToolArgumentsValidationError(ToolExecutionError):
    """The arguments of a call do not match the tool's input; the tool did not run. Source: tools page.

    `issues` says where and what. Code: `LOUSHO_TOOL_ARGS_INVALID`.
    """

    default_code = "LOUSHO_TOOL_ARGS_INVALID"
    tool_error_kind: ClassVar[str] = "validation"

    def __init__(self, tool_name: str, issues: Iterable[Issue], cause: BaseException | None = None) -> None:
        self.issues: list[Issue] = list(issues)
        super().__init__(
            f"Invalid arguments for tool '{tool_name}': {describe_issues(self.issues)}", tool_name, cause=cause
        )


class McpStartError(SDKError):
    """A stdio MCP server did not start. Source: errors page. Code: `LOUSHO_MCP_START_FAILED`."""

    default_code = "LOUSHO_MCP_START_FAILED"

    def __init__(
        self,
        message: str,
        *,
        exit_code: int | None = None,
        signal: str | None = None,
        stderr: str = "",
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message, cause=cause)
        self.exit_code = exit_code
        """The exit code of the process, when it ended by itself."""
        self.signal = signal
        """The name of the signal that ended it, e.g. `SIGKILL`."""
        self.stderr = stderr
        """The last lines it wrote to stderr."""


class PropagatingToolError(Exception):
    """Raised by a tool to stop the whole run: the run rejects with it instead of telling the model.

    Plain on purpose: no code. Derive your own from it. Source: tools page.
    """


class WorkspaceError(Exception):
    """A workspace refused an operation or failed at it; the model sees it as a tool error. No code.

    Source: workspace tools page.
    """


class McpToolError(Exception):
    """An MCP server answered `isError: true`; the message is the server's text. No code. Source: errors page."""

    tool_error_kind: ClassVar[str] = "mcp"


def kind_of_tool_error(error: BaseException) -> str:
    """Return the kind under which the model is told of `error`: its `tool_error_kind`, else `execution`.

    Any exception may carry the attribute, on its class or itself. Source: tools page.
    """
    try:
        kind: object = getattr(error, "tool_error_kind", None)
    except Exception:  # noqa: BLE001 - an attribute of the application's own class may do anything
        kind = None
    return kind if isinstance(kind, str) and kind else "execution"
