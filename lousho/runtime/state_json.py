"""The one adapter between a run's state and JSON. pydantic writes and checks it; nothing here is done by hand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lousho.core.errors import SDKError
from lousho.runtime.state import RUN_STATE_VERSION, RunState

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter() -> TypeAdapter[RunState]:
    from pydantic import TypeAdapter

    return TypeAdapter(RunState)


def state_to_json(state: RunState) -> str:
    """Return `state` as JSON text with camelCase keys, without keys that have no value."""
    return _adapter().dump_json(state, by_alias=True, exclude_none=True).decode("utf-8")


def state_from_json(text: str) -> RunState:
    """Return the state of `text`. Raises `LOUSHO_CHECKPOINT_CORRUPT` when it is not one this version can read."""
    from pydantic import ValidationError

    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "(root)"
        raise SDKError(
            f"The saved run cannot be read (state version {RUN_STATE_VERSION}): {where}: {problem['msg']}.",
            code="LOUSHO_CHECKPOINT_CORRUPT",
            cause=error,
        ) from None
