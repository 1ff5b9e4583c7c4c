"""Talking to real agents whose model is scripted: in this process, as a command, and at a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from chat_scripts import Talk, Talked

from lousho import create_agent
from lousho.testing import mock_model
from lousho_cli.chat.repl import run_chat_repl


@pytest.fixture
def talk() -> Talk:
    """`await talk(script, lines, tools=[...])`: run the chat over scripted lines and a scripted model.

    `apart` gives the output and the talk a stream each; `create` is the agent factory to use instead.
    """

    async def run(
        script: Sequence[Any],
        lines: Iterable[str],
        *,
        apart: bool = False,
        session_id: str | None = None,
        create: Callable[[str | None], Any] | None = None,
        **options: Any,
    ) -> Talked:
        model = mock_model(script)
        output, beside = io.StringIO(), io.StringIO()
        code = await run_chat_repl(
            lines,
            output,
            create or (lambda other: create_agent(provider=model, **options)),
            talk=beside if apart else None,
            session_id=session_id,
        )
        return Talked(code, output.getvalue(), beside.getvalue(), model)

    return run
