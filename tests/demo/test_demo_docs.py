"""What the page of the demo model shows is what happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lousho.agent import create_agent
from lousho.tools import tool

PAGE = (Path(__file__).parent.parent.parent / "docs" / "demo-model.md").read_text(encoding="utf-8")


@tool
def lend_book(title: str, days: int = 14) -> dict[str, object]:
    """Lend a book to the reader.

    Args:
        title: Title of the book, e.g. Momo.
        days: For how many days.
    """
    return {"title": title, "days": days}


@tool
def list_books() -> list[dict[str, object]]:
    """List the books."""
    return [{"title": "Momo"}, {"title": "Pippi"}]


@pytest.mark.parametrize(
    ("said", "titles"),
    [
        ("lend me Momo for 7 days", [["Momo"]]),
        ("lend book, title: Momo, days: 7", [["Momo"]]),
        ("lend me Momo and Matilda", [["Momo", "Matilda"]]),
        ("list the books, then lend the first one", [["Momo"]]),
        ("lend me Momo|and Pippi?", [["Momo"], ["Pippi"]]),
        ("lend a book|Momo", [[], ["Momo"]]),
        ("lend a book|never mind", [[], []]),
        ("what can you do?", [[]]),
    ],
)
async def test_the_requests_of_the_page_do_what_it_says(said: str, titles: list[list[str]]):
    assert said.split("|")[-1] in PAGE or said == "lend a book|Momo"
    session = create_agent(model="mock/demo", tools=[lend_book, list_books]).session()
    for line, expected in zip(said.split("|"), titles, strict=True):
        result = await session.send(line)
        calls = [json.loads(call.arguments) for call in result.tool_calls if call.name == "lend_book"]
        assert [call["title"] for call in calls] == expected
