"""Permission modes: named states of an agent that decide what the permission rules and a tool's own gate left open.

A mode is never stored with a run. Whoever needs it asks a function, at every call, so a switch holds from the next call
on. Applying a mode to a verdict is the last check of `lousho.policy.gate`. Source: permission modes page.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown
from lousho.core.suggest import did_you_mean
from lousho.tools.definition import Tool

PermissionMode: TypeAlias = Literal["default", "plan", "acceptEdits", "dontAsk"]
"""What an agent may do without asking, in one word. Source: permission modes page."""

PermissionModeOption: TypeAlias = "PermissionMode | Callable[[], PermissionMode]"
ModeGetter: TypeAlias = "Callable[[], PermissionMode]"

DecidingMode: TypeAlias = Literal["plan", "acceptEdits", "dontAsk"]
"""A mode that can change what the other checks said."""

MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)
_ALIASES: Final = {
    "accept_edits": "acceptEdits",
    "accept-edits": "acceptEdits",
    "dont_ask": "dontAsk",
    "dont-ask": "dontAsk",
    "normal": "default",
    "read-only": "plan",
}

PLAN_REASON: Final = "The agent is in plan mode: it may read but not change anything. Describe the change instead."
DONT_ASK_REASON: Final = "The agent is in dontAsk mode: calls that need approval are refused."
PLAN_PARAGRAPH: Final = (
    "You are in plan mode. You may read and look things up, but you may not change anything: calls of tools that are not "
    "read-only are refused. Find out what you need and describe the change you would make, step by step, instead of "
    "making it."
)
"""What the system prompt of a run that starts in plan mode ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionModeChange:
    """One switch of a session's mode, as `on_permission_mode_change` is told of it."""

    session_id: str
    from_: PermissionMode
    """The mode until now; `from` on the wire."""
    to: PermissionMode
    at: str
    """When, as `2026-10-01T09:30:00.000Z`."""

    def to_dict(self) -> dict[str, Any]:
        """Return `{sessionId, from, to, at}`."""
        return {"sessionId": self.session_id, "from": self.from_, "to": self.to, "at": self.at}


def checked_mode(value: Any, where: str = "") -> PermissionMode:
    """Return `value` if it is the name of a mode. Raises `LOUSHO_CONFIG_INVALID`."""
    if isinstance(value, str) and value in MODES:
        return value
    hint = did_you_mean(value, MODES, _ALIASES) if isinstance(value, str) else ""
    raise ConfigurationError(
        f"{where}permission_mode must be one of {', '.join(MODES)}; got {shown(value)}{hint}.", field="permission_mode"
    )


def checked_mode_option(value: Any, where: str = "") -> PermissionModeOption:
    """Return the name of a mode, or a function that gives one at every call. Raises `LOUSHO_CONFIG_INVALID`."""
    if not callable(value):
        return checked_mode(value, where)
    target = value if inspect.isroutine(value) else getattr(value, "__call__", value)  # noqa: B004
    if inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        raise ConfigurationError(
            f"{where}permission_mode is asked for at every tool call without waiting, so its function must be a plain one.",
            field="permission_mode",
        )
    try:
        inspect.signature(value).bind()
    except ValueError:  # a built-in that does not tell its parameters
        pass
    except TypeError as error:
        raise ConfigurationError(
            f"{where}the function for permission_mode must take no arguments: {error}.", field="permission_mode"
        ) from error
    return cast("ModeGetter", value)


def mode_getter(option: PermissionModeOption) -> ModeGetter:
    """Return the function that gives the mode of `option` now; what a function gives is checked each time.

    The function returned raises `LOUSHO_CONFIG_RESOLVER_FAILED` when that of the option raises or gives no mode.
    """
    if not callable(option):
        mode = option
        return lambda: mode

    def now() -> PermissionMode:
        try:
            value: Any = option()
            if inspect.iscoroutine(value):
                value.close()  # no mode, and nobody will await it
            return checked_mode(value)
        except (Exception, SystemExit) as error:
            raise ConfigurationError(
                f"The function for 'permission_mode' failed: {type(error).__name__}: {shown(str(error))}",
                field="permission_mode",
                code="LOUSHO_CONFIG_RESOLVER_FAILED",
                cause=error,
            ) from error

    return now


def default_mode() -> PermissionMode:
    """Return the mode in which nothing changes."""
    return "default"


def reads_only(tool: Tool) -> bool:
    """Whether plan mode lets the tool run: it says that it only reads, and it is not marked as one that edits files."""
    return tool.annotations.get("readOnlyHint") is True and not edits_files(tool)


def edits_files(tool: Tool) -> bool:
    """Whether the tool is marked as one that edits files; its name says nothing."""
    return tool.metadata.get("editsFiles") is True
