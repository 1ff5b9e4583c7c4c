"""The one adapter between a run's state and JSON. pydantic writes and checks it; nothing here is done by hand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lousho.core.errors import SDKError, bare_message
from lousho.core.json_values import to_json_value, write_json
from lousho.runtime.state import RUN_STATE_VERSION, RunState

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LEVELS_AROUND = 64
"""Levels the state itself takes, child runs included, on top of those a value in it may have."""


@cache
def _adapter() -> TypeAdapter[RunState]:
    from pydantic import TypeAdapter

    return TypeAdapter(RunState)


def state_to_json(state: RunState) -> str:
    """Return `state` as JSON text with camelCase keys, without keys that have no value.

    What enters a run was checked, so the plain way almost always works. Where a value got in that JSON cannot hold, it
    degrades as a tool's result would; a pause must not be lost over it.
    """
    try:
        return _adapter().dump_json(state, by_alias=True, exclude_none=True, warnings="error").decode("utf-8")
    except Exception:  # noqa: BLE001 - pydantic has several errors for this, and a foreign object any
        value = _adapter().dump_python(state, by_alias=True, exclude_none=True, warnings=False)
        return write_json(to_json_value(value, depth=-_LEVELS_AROUND))


def state_from_json(text: str) -> RunState:
    """Return the state of `text`. Raises `LOUSHO_CHECKPOINT_CORRUPT` when it is not one this version can read."""
    from pydantic import ValidationError

    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "(root)"
        raise _corrupt(f"{where}: {problem['msg']}", error) from None
    except Exception as error:  # noqa: BLE001 - a message that is none, whatever it is instead
        raise _corrupt(bare_message(error), error) from None


def _corrupt(problem: str, cause: BaseException) -> SDKError:
    return SDKError(
        f"The saved run cannot be read (state version {RUN_STATE_VERSION}): {problem}.",
        code="LOUSHO_CHECKPOINT_CORRUPT",
        cause=cause,
    )
