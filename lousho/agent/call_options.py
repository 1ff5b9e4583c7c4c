"""The options of one call: which there are, and a name that is none of them told with the nearest one.

They are typed once, here, so that `send()`, `stream()`, the session's and the blocking twins take the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict

from lousho.agent.call_tools import CallToolsOption
from lousho.agent.options import KNOWN_OPTIONS, OPTION_ALIASES
from lousho.agent.tool_list import ToolsOption
from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown
from lousho.core.suggest import unknown_key_message
from lousho.policy.modes import PermissionModeOption

_ALIASES = {
    **OPTION_ALIASES,
    "session": "session_id",
    "cancel": "signal",
    "abort_signal": "signal",
    "timeout": "signal",
    "timeout_ms": "signal",
    "add_tools": "extra_tools",
    "more_tools": "extra_tools",
}


class TurnOptions(TypedDict, total=False):
    """What `session.send()` and `session.stream()` take beside the input; `None` counts as not given."""

    signal: CancelSignal | None
    """Stops the run."""
    max_steps: int | None
    """In place of the agent's."""
    model: str | None
    """In place of the agent's: `provider/model`, or the bare id for an agent with `provider=`."""
    instructions: str | None
    """Added to the agent's, after an empty line."""
    tools: CallToolsOption | None
    """In place of the agent's tools; in a list, a text is the name of one of them."""
    extra_tools: ToolsOption | None
    """Added to the tools."""
    model_settings: Mapping[str, Any] | None
    """Win over the agent's, key by key."""
    approval_ttl_ms: float | None
    """In place of the agent's, in milliseconds."""
    metadata: Mapping[str, Any] | None
    """Kept with the saved state of the run, and told to options that are functions."""


class SendOptions(TurnOptions, total=False):
    """What `agent.send()` takes beside the input."""

    session_id: str | None
    """Saves the run step by step under this id; needs a store that keeps checkpoints."""
    permission_mode: PermissionModeOption | None
    """In place of the agent's, for this run."""


class StreamOptions(SendOptions, total=False):
    """What `agent.stream()` takes beside the input."""

    throw_on_error: bool
    """`False` ends the iteration of a failed run normally."""


class DecisionOptions(TypedDict, total=False):
    """What every decision takes beside itself; `None` counts as not given."""

    signal: CancelSignal | None
    """Stops the continued run."""
    tools: CallToolsOption | None
    """Those that the call which started the run was given in place of the agent's."""
    extra_tools: ToolsOption | None
    """Those that it was given in addition."""
    principal: Mapping[str, Any] | None
    """Who decides; the tool reads it as `ctx.approval.by`."""


class ResolveOptions(DecisionOptions, total=False):
    """What `approvals.resolve()` and `stream_resolve()` take."""

    id: Required[str]
    approved: Required[bool]
    note: str | None
    """Reaches the tool after a yes, the model after a no."""
    args: Mapping[str, Any] | None
    """Approves with these arguments in place of the model's."""
    remember: Literal["session"] | None
    """Approves the same call for the rest of the session, too."""


class AnswerOptions(DecisionOptions):
    """What `approvals.answer()` and `stream_answer()` take."""

    id: Required[str]
    answer: Required[str]


def given_options(options: Mapping[str, Any], known: type, where: str) -> dict[str, Any]:
    """Return the options that have a value. Raises `LOUSHO_CONFIG_INVALID` for a name that `known` does not have."""
    if not options:
        return {}
    names = known.__annotations__
    for key, value in options.items():
        if value is not None and key not in names:
            raise ConfigurationError(f"{where}: {_unknown(key, list(names))}.", field=key)
    return {key: value for key, value in options.items() if value is not None}


def take_throw_on_error(options: dict[str, Any]) -> bool:
    """Take `throw_on_error` out of the options of a stream. Raises `LOUSHO_CONFIG_INVALID`."""
    value = options.pop("throw_on_error", True)
    if not isinstance(value, bool):
        raise ConfigurationError(f"throw_on_error must be True or False; got {shown(value)}.", field="throwOnError")
    return value


def _unknown(key: str, names: list[str]) -> str:
    if key == "permission_mode":
        return (
            "'permission_mode' is not chosen here: a session has a mode, and session.set_permission_mode() switches it"
        )
    if key in KNOWN_OPTIONS:
        return f"'{key}' is an option of create_agent(), not of one call; agent.with_options({key}=...) changes it"
    return unknown_key_message(key, names, aliases=_ALIASES)
