"""What tests of agents are written with: a scripted model, cassettes, a checker of event streams, small helpers.

Nothing here is imported by the rest of the package. Names are resolved on first use. Source: testing page.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lousho.core.errors import CassetteMismatchError as CassetteMismatchError
    from lousho.models.mock import MockModel as MockModel
    from lousho.models.mock import ScriptExhaustedError as ScriptExhaustedError
    from lousho.models.mock import mock_model as mock_model
    from lousho.testing.cassettes.cassette_file import Cassette as Cassette
    from lousho.testing.cassettes.cassette_file import CassetteWriteError as CassetteWriteError
    from lousho.testing.cassettes.cassette_file import read_cassette as read_cassette
    from lousho.testing.cassettes.provider import RecordReplayProvider as RecordReplayProvider
    from lousho.testing.cassettes.provider import record_replay as record_replay
    from lousho.testing.event_order import EventOrderError as EventOrderError
    from lousho.testing.event_order import check_event_order as check_event_order
    from lousho.testing.helpers import tool_context as tool_context
    from lousho.testing.helpers import tool_message_value as tool_message_value

_HOME = {
    "Cassette": "lousho.testing.cassettes.cassette_file",
    "CassetteMismatchError": "lousho.core.errors",
    "CassetteWriteError": "lousho.testing.cassettes.cassette_file",
    "EventOrderError": "lousho.testing.event_order",
    "MockModel": "lousho.models.mock",
    "RecordReplayProvider": "lousho.testing.cassettes.provider",
    "ScriptExhaustedError": "lousho.models.mock",
    "check_event_order": "lousho.testing.event_order",
    "mock_model": "lousho.models.mock",
    "read_cassette": "lousho.testing.cassettes.cassette_file",
    "record_replay": "lousho.testing.cassettes.provider",
    "tool_context": "lousho.testing.helpers",
    "tool_message_value": "lousho.testing.helpers",
}

__all__ = [
    "Cassette",
    "CassetteMismatchError",
    "CassetteWriteError",
    "EventOrderError",
    "MockModel",
    "RecordReplayProvider",
    "ScriptExhaustedError",
    "check_event_order",
    "mock_model",
    "read_cassette",
    "record_replay",
    "tool_context",
    "tool_message_value",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.testing' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))
