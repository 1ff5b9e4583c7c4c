"""Calling the options that are functions of the run, and checking what they return as if it had been written down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from lousho.agent.models import AgentModels
from lousho.agent.options import AgentOptions
from lousho.agent.per_run import is_per_run, resolver_failed, value_of
from lousho.agent.preparation import CallOptions
from lousho.agent.tool_list import checked_tools, with_question
from lousho.core.cancel import CancelSignal
from lousho.core.errors import ConfigurationError, SDKError
from lousho.core.json_values import clean_text
from lousho.runtime.state import RunState
from lousho.tools.definition import Tool


@dataclass(slots=True, kw_only=True)
class Resolved:
    """What the functions chose for one run; `None` where the option is none. The model is in the run's state."""

    instructions: str | None = None
    tools: dict[str, Tool] | None = None


async def resolve_options(
    options: AgentOptions, models: AgentModels, state: RunState, call: CallOptions, signal: CancelSignal
) -> Resolved:
    """Call the functions that matter to this run: not that of the model when it is chosen already, in the call or in the
    saved run, and not that of the tools when the call brings all of them.

    Raises `LOUSHO_CONFIG_RESOLVER_FAILED`, and `Aborted` as soon as `signal` fires.
    """
    resolved = Resolved()
    if is_per_run(options.model) and state.chosen_model is None:
        state.chosen_model = _model(await _value("model", options, state, signal), models)
    if is_per_run(options.instructions):
        resolved.instructions = _text("instructions", await _value("instructions", options, state, signal))
    if is_per_run(options.tools) and call.tools.needs_own(state.call_tools):
        resolved.tools = _tools(await _value("tools", options, state, signal), options)
    return resolved


async def _value(field: str, options: AgentOptions, state: RunState, signal: CancelSignal) -> Any:
    return await value_of(field, getattr(options, field), state, signal)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        problem = f"it must return a text; it returned {_shown(value)}."
        raise resolver_failed(field, ConfigurationError(problem, field=field))
    return clean_text(str.__str__(value))


def _model(value: Any, models: AgentModels) -> str:
    name = _text("model", value)
    try:
        if not name.strip():
            raise ConfigurationError("it returned an empty text.", field="model")
        models.choose(name)
    except SDKError as error:
        raise resolver_failed("model", error) from error
    return name


def _tools(value: Any, options: AgentOptions) -> dict[str, Tool]:
    try:
        return with_question(checked_tools(value, where="what it returned"), ask_question=options.ask_question)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        # A mistake in the value, or an iterator of the application that ends like that; nothing is awaited here.
        raise resolver_failed("tools", error) from error


def _shown(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
