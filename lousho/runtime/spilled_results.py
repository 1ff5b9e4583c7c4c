"""Results that are too long for the transcript: kept in a file, shown by their ends, read by the model page by page.

A disk that is full or read-only never fails a run: the middle of the result is cut out then, as without files.
Source: tools page ("Size cap").
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from pathlib import Path
from typing import Any

from lousho.core.cancel import CancelSignal
from lousho.core.errors import ToolExecutionError
from lousho.runtime.racing import outcome_of, wait_for
from lousho.runtime.result_files import (
    folder_name,
    is_folder_name,
    keep_result,
    read_page,
    remove_results,
    result_ids,
)
from lousho.runtime.state import RunState
from lousho.runtime.threads import in_thread
from lousho.tools.definition import Tool, define_tool

_log = logging.getLogger("lousho.runtime")

READ_RESULT = "read_tool_result"
WRITE_MS = 10_000
"""How long a result may take to be written, in milliseconds; a run does not wait for a disk that hangs."""
LONGEST_HEAD = 4_000
LONGEST_TAIL = 1_000
LONGEST_PAGE = 10_000
_HEADING_CHARS = 200
"""Room for the line above a page."""
_SHOWN_IDS = 20

_PAGE_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The id that was given where the result was cut"},
        "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "The first character to read"},
        "limit": {"type": "integer", "minimum": 1, "description": "How many characters to read"},
    },
    "required": ["id"],
}


async def forget_results(directory: Path, agent_name: str, session_id: str) -> None:
    """Remove all results of a session, as when it is cleared. Raises `OSError` when something of them stays."""
    folder = directory / folder_name(agent_name, session_id, "")
    await asyncio.wait_for(in_thread(remove_results, folder), WRITE_MS / 1000)


class SpilledResults:
    """The long results of one run, or of all turns of one session."""

    def __init__(self, directory: Path, above_chars: int, most_chars: float, taken: Container[str]) -> None:
        self._directory = directory
        self._above = above_chars
        self._room = int(min(above_chars, most_chars))
        self._page = max(min(LONGEST_PAGE, self._room) - _HEADING_CHARS, 1)
        self._folder = ""
        self._warned = False
        self.reader = self._reader(taken)
        """The tool that reads them."""

    def open(self, state: RunState) -> None:
        """Find the folder of a run that begins or goes on, maybe in another process."""
        known = state.results_folder
        if known is None or not is_folder_name(known):  # a saved run may come from anywhere
            known = folder_name(state.agent_name, state.session_id, state.run_id)
        self._folder = known

    def is_long(self, text: str) -> bool:
        """Whether a result is kept in a file."""
        return len(text) > self._above

    async def kept(self, text: str, call_id: str, state: RunState, signal: CancelSignal) -> str | None:
        """Keep a result and return what the transcript has of it; `None`: it could not be kept."""
        try:
            writing = in_thread(keep_result, self._directory / self._folder, call_id, text)
            if await wait_for(writing, signal, WRITE_MS) != "done":
                if not signal.aborted:
                    self._warn(f"it was not written within {WRITE_MS} ms")
                return None
            result_id = outcome_of(writing)
        except Exception as error:  # noqa: BLE001 - whatever a file system comes up with
            self._warn(error)
            return None
        state.results_folder = self._folder
        return self._ends(text, result_id)

    def _ends(self, text: str, result_id: str) -> str:
        def note(left_out: int, offset: int) -> str:
            return (
                f"\n... [{left_out:,} of {len(text):,} characters are left out here. Read them "
                f'with {self.reader.name}(id="{result_id}", offset={offset}).] ...\n'
            )

        spare = max(self._room - len(note(len(text), self._room)), 0)  # without the note nobody could read the rest
        head = min(self._room // 2, spare * 5 // 7, LONGEST_HEAD)
        tail = min(self._room // 5, spare * 2 // 7, LONGEST_TAIL)
        return f"{text[:head]}{note(len(text) - head - tail, head)}{text[len(text) - tail :]}"

    def _warn(self, reason: object) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "A long tool result could not be kept in %s: %s. Its middle is cut out.", self._directory, reason
            )

    def _reader(self, taken: Container[str]) -> Tool:
        name, number = READ_RESULT, 2
        while name in taken:
            name, number = f"{READ_RESULT}_{number}", number + 1
        return define_tool(
            name=name,
            description=f"Read a part of a long tool result, up to {self._page:,} characters at a time.",
            input=_PAGE_SCHEMA,
            execute=self._read,
            annotations={"readOnlyHint": True},
        )

    def _read(self, arguments: dict[str, Any]) -> str:
        folder = self._directory / self._folder
        result_id, offset = str(arguments["id"]), int(arguments["offset"])
        try:
            page = read_page(folder, result_id, offset, min(int(arguments.get("limit", self._page)), self._page))
        except OSError as error:  # its own text has the path, which the model need not know
            raise ToolExecutionError(
                f"The long result {result_id!r} cannot be read: {error.strerror}.", tool_name=self.reader.name
            ) from error
        if page is None:
            ids = ", ".join(result_ids(folder)[:_SHOWN_IDS]) or "none"
            raise ToolExecutionError(
                f"There is no long result {result_id!r}. Long results: {ids}.", tool_name=self.reader.name
            )
        if not page.text:
            return f"[The result ends before character {offset}.]"
        end = offset + len(page.text)
        follows = f"go on with offset={end}" if page.more else "the end"
        return f"[Characters {offset} to {end}; {follows}.]\n{page.text}"
