"""A tool that fails: what a person sees of it, and how they find the line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chat_scripts import Talk, call

from lousho import tool

if TYPE_CHECKING:
    from conftest import RunLousho


@tool
def serve(what: str) -> str:
    """Serve what there is."""
    if what == "silence":
        raise RuntimeError
    return {"tea": "a cup of tea"}[what]


@tool
def leave(status: int | None = None) -> str:
    """End the program."""
    sys.exit(status)


@pytest.mark.parametrize(
    ("turn", "shown"),
    [
        (call("serve", what="tea pot"), "KeyError: 'tea pot'"),
        (call("serve", what="silence"), "RuntimeError"),
        (call("leave", status=3), "SystemExit: the tool called sys.exit() with 3"),
        (call("leave"), "SystemExit: the tool called sys.exit()"),
    ],
)
async def test_a_raising_tool_shows_the_type_and_the_chat_goes_on(talk: Talk, turn: object, shown: str) -> None:
    done = await talk([turn, "Sorry.", "Still here."], ["go", "again", "/history"], tools=[serve, leave])

    assert done.code == 0
    assert done.lines[1:3] == [f"  -> error: {shown}", "Sorry."]
    assert done.lines.count(f"  -> error: {shown}") == 2  # and in the transcript
    assert "Still here." in done.lines


def test_the_debug_variable_shows_where_a_tool_failed(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "from lousho import create_agent, tool\n"
        "from lousho.testing import mock_model\n"
        "@tool\n"
        "def divide() -> float:\n"
        "    '''Divide.'''\n"
        "    return 1 / 0\n"
        "model = mock_model([{'tool_calls': [{'name': 'divide'}]}, 'Sorry.'])\n"
        "agent = create_agent(provider=model, tools=[divide])\n",
        encoding="utf-8",
    )

    quiet = run_lousho(["chat", "agent.py"], input="go\n")
    loud = run_lousho(["chat", "agent.py"], input="go\n", env={"LOUSHO_DEBUG": "1"})

    assert (quiet.stdout, loud.stdout) == ("Sorry.\n", "Sorry.\n")
    assert "Traceback" not in quiet.stderr
    assert 'agent.py", line 6, in divide' in loud.stderr
    assert "\n  -> error: ZeroDivisionError: division by zero\n" in loud.stderr
