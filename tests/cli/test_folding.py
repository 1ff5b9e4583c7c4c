"""Our own sentences on a terminal break between words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pty_screen import PtyScreen, lousho

from lousho_cli.console import folded


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 40), st.integers(0, 10))
def test_folding_changes_nothing_but_where_lines_end(text: str, columns: int, used: int) -> None:
    shown = folded(text, columns, used=used)

    assert shown.split() == text.split()
    assert folded(text, None) == text
    assert all(len(row) <= columns or len(row.split()) <= 1 for row in shown.split("\n")[1:])


def test_further_lines_are_indented_and_a_long_word_stays_whole() -> None:
    path = "/a/path/that/is/longer/than/the/screen"

    assert folded(f"see {path} for more", 20, used=7, indent="  ").split("\n") == ["see", f"  {path}", "  for more"]


@pytest.mark.skipif(os.name == "nt", reason="a POSIX terminal")
def test_errors_notes_and_checks_break_between_words(tmp_path: Path) -> None:
    for arguments in (["chat", "nowhere"], ["doctor"]):
        screen = PtyScreen(lousho(*arguments), tmp_path, rows=100, columns=50)
        try:
            screen.wait_for_exit()
        finally:
            screen.close()
        said = screen.raw.replace("\r\n", "\n")
        too_long = [line for line in said.splitlines() if len(line) > 50 + len("\x1b[33m\x1b[0m")]
        assert [line for line in too_long if len(line.split()) > 2] == []
