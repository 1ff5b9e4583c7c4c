"""What reaches the screen: whole characters, no foreign control sequences, large results in small."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from chat_scripts import Talk, call

from lousho import create_agent, tool
from lousho.models.provider import Finish, ModelRequest, TextDelta
from lousho_cli.chat.repl import run_chat_repl


class Pieces:
    """A model that says the given pieces."""

    name = "pieces"
    default_model = "pieces-1"

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    async def generate(self, request: ModelRequest) -> Any:
        raise AssertionError("the chat streams")

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        for piece in self._pieces:
            yield TextDelta(piece)
            await asyncio.sleep(0)
        yield Finish("stop")

    def supports_tools(self, model: str | None = None) -> bool:
        return True

    def supports_streaming(self, model: str | None = None) -> bool:
        return True

    async def get_models(self) -> list[str]:
        return []


class Output(io.StringIO):
    """Remembers what was written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)


async def said(*pieces: str) -> list[str]:
    """What was written for a reply in pieces, up to its line end."""
    output = Output()
    await run_chat_repl(["go"], output, lambda other: create_agent(provider=Pieces(pieces)))
    return output.writes[: output.writes.index("\n")]


@pytest.mark.parametrize(
    ("pieces", "writes"),
    [
        pytest.param(["a 👩", "\u200d", "💻 b"], ["a ", "👩\u200d💻 b"], id="a joined emoji"),
        pytest.param(["👍", "🏽 ok"], ["👍🏽 ok"], id="a skin tone"),
        pytest.param(["🇩", "🇪🇫", "🇷"], ["🇩🇪", "🇫🇷"], id="flags"),
        pytest.param(["fine 🎉"], ["fine ", "🎉"], id="the end of the text"),
        pytest.param(["one\r", "\ntwo"], ["one", "\ntwo"], id="a line end"),
        pytest.param(["\ud83d", "\ude00!"], ["😀!"], id="half a surrogate pair"),
        pytest.param(["plain ", "text"], ["plain ", "text"], id="plain text is not held back"),
        pytest.param(["e", "\u0301"], ["e", "\u0301"], id="an accent goes to the letter before it"),
    ],
)
async def test_a_character_is_not_split_by_streaming(pieces: list[str], writes: list[str]) -> None:
    assert await said(*pieces) == writes


@pytest.mark.spec("BEY-12")
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        pytest.param(["\x1b[31mred\x1b[0m"], "red", id="colours"),
        pytest.param(["a\x1b", "[2", "Kb"], "ab", id="a sequence in pieces"),
        pytest.param(["a\x1b]0;ti", "tle\x07b"], "ab", id="a title in pieces"),
        pytest.param(["a\x1b"], "a", id="a lone escape at the end"),
        pytest.param(["a\x08\x08b\x00"], "ab", id="backspaces"),
        pytest.param(["a\rb"], "a\nb", id="a carriage return cannot overwrite"),
        pytest.param(["a\u202eb"], "ab", id="text is not reversed"),
    ],
)
async def test_what_the_model_says_cannot_steer_the_terminal(pieces: list[str], text: str) -> None:
    assert "".join(await said(*pieces)) == text


@pytest.mark.spec("BEY-12")
async def test_what_a_tool_returns_cannot_steer_the_terminal(talk: Talk) -> None:
    @tool
    def fetch(url: str) -> str:
        """Fetch."""
        return "\x1b[2J\x1b]52;c;ZXZpbA==\x07page\rmore"

    done = await talk([call("fetch", url="\x1b[31mx"), "ok"], ["go"], tools=[fetch])

    assert done.lines[:3] == ['[fetch] {"url":"\\u001b[31mx"}', "  -> page", "     more"]


@pytest.mark.parametrize(
    "result",
    [
        pytest.param("x" * 5_000_000, id="one enormous line"),
        pytest.param("\n".join(f"row {number}" for number in range(500_000)), id="half a million lines"),
        pytest.param([{"row": number} for number in range(300_000)], id="a long list"),
    ],
)
async def test_a_huge_result_does_not_flood_the_screen(talk: Talk, result: Any) -> None:
    @tool
    def dump() -> Any:
        """Return a lot."""
        return result

    done = await talk([call("dump"), "ok"], ["go"], tools=[dump], max_tool_result_chars=float("inf"))

    assert len(done.text) < 5_000
    assert len(done.lines) < 20
    assert "/last shows all)" in done.text
    assert "more " in done.text


async def test_long_arguments_of_a_call_stay_one_line(talk: Talk) -> None:
    @tool
    def write(text: str) -> str:
        """Write."""
        return "ok"

    text = "".join(f"{number}\n" for number in range(10_000))

    done = await talk([call("write", text=text), "ok"], ["go", "/last"], tools=[write])

    assert done.lines[0].startswith('[write] {"text":"0\\n1\\n')
    assert "more characters, /last shows them" in done.lines[0]
    assert len(done.lines[0]) < 600
    assert done.lines[1] == "  -> ok"
    assert "9998\\n9999\\n" in done.text.partition("[usage]")[2]
