"""Text of any origin is made safe for any console."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lousho.core.console_text import clip, display_width, one_line, plain_text, safe_text, shorten_block

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain\ttext\n", "plain\ttext\n", id="tabs and newlines stay"),
        pytest.param("\x1b[1;31mred\x1b[0m", "red", id="colours"),
        pytest.param("\x1b[2J\x1b[Hgone", "gone", id="clearing the screen"),
        pytest.param("safe\x1b[8mhidden\x1b[28m", "safehidden", id="hidden text shows"),
        pytest.param("\x1b]0;title\x07text", "text", id="window title"),
        pytest.param("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click", id="hyperlink"),
        pytest.param("\x1b]52;c;cm0gLXJm\x07x", "x", id="clipboard"),
        pytest.param("\x1bP1$r0m\x1b\\x", "x", id="device control"),
        pytest.param("\x9b31mred\x9d0;t\x9cx", "redx", id="eight-bit forms"),
        pytest.param("\x1b(0lqk\x1b(B", "lqk", id="character sets"),
        pytest.param("\x1bcreset", "reset", id="reset"),
        pytest.param("end\x1b[", "end[", id="a sequence cut off"),
        pytest.param("end\x1b]0;evil", "end]0;evil", id="a title cut off"),
        pytest.param("end\x1b", "end", id="a lone escape"),
        pytest.param("rm -rf /\r\x1b[Kls", "rm -rf /\nls", id="a line cannot be overwritten"),
        pytest.param("a\r\nb\rc", "a\nb\nc", id="line endings"),
        pytest.param("ab\b\bcd\x7f\x00\x07", "abcd", id="backspace, delete, bell"),
        pytest.param("a\u202egnp.exe\u202c", "agnp.exe", id="reordering marks"),
        pytest.param("half \ud83d end", "half \ufffd end", id="half a surrogate pair"),
        pytest.param("\ud83d\ude00", "\N{GRINNING FACE}", id="both halves"),
    ],
)
def test_nothing_steers_the_terminal(text: str, shown: str):
    assert plain_text(text) == shown


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        pytest.param("café → “ok” • x — y…", "utf-8", "café → “ok” • x — y…", id="utf-8 keeps all"),
        pytest.param("a → b", "cp1252", "a -> b", id="arrow on a Windows console"),
        pytest.param("café “x” – •", "cp1252", "café “x” – •", id="what cp1252 has stays"),
        pytest.param("café → “ok” • x — y…", "ascii", 'cafe -> "ok" * x - y...', id="everything in ASCII"),
        pytest.param("日本 \N{GRINNING FACE}", "cp1252", "?? ?", id="no spelling at all"),
        pytest.param("\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", "ascii", "??", id="joiners leave nothing"),
        pytest.param("─│┌", "cp1252", "-|+", id="lines"),
        pytest.param("½ ﬁ ①", "ascii", "1/2 fi 1", id="compatibility forms"),
        pytest.param("x → y", None, "x -> y", id="no encoding known"),
        pytest.param("x → y", "no-such-codec", "x -> y", id="an unknown encoding"),
        pytest.param("\ud800", "latin-1", "?", id="half a surrogate pair in latin-1"),
    ],
)
def test_what_a_console_lacks_degrades(text: str, encoding: str | None, shown: str):
    assert safe_text(text, encoding) == shown


@given(
    st.text(st.characters(codec=None, categories=None), max_size=200),
    st.sampled_from(["utf-8", "ascii", "cp1252", "cp437", "latin-1", "gbk", "cp932", "utf-16"]),
)
def test_safe_text_always_encodes_and_never_steers(text: str, encoding: str):
    shown = safe_text(text, encoding)
    shown.encode(encoding)
    assert FORBIDDEN.search(shown) is None
    assert safe_text(shown, encoding) == shown


def test_hostile_text_is_cleaned_in_linear_time():
    started = time.perf_counter()
    for piece in ("\x1b]", "\x1b[", "\x1b[1;", "\x1bP", "\x1b]0;a\x1b", "\x9d", "\r", "\ud83d"):
        plain_text(piece * 200_000)
    assert time.perf_counter() - started < 20


def test_width_counts_columns():
    assert [display_width(text) for text in ("", "abc", "日本", "e\u0301", "a\x00b")] == [0, 3, 4, 1, 2]


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc..."),
        ("日本語日本語", 7, "日本..."),
        ("e\u0301e\u0301e\u0301e\u0301e\u0301", 4, "e\u0301..."),
        ("\N{WOMAN}\u200d\N{PERSONAL COMPUTER} works", 5, "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}..."),
        ("abcdef", 2, ".."),
        ("abcdef", 0, ""),
    ],
)
def test_a_cut_leaves_a_sign_and_whole_characters(text: str, columns: int, shown: str):
    assert clip(text, columns) == shown
    assert display_width(shown) <= columns


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("two\n  lines\tand\x1b[31m red", "two lines and red"),
        ({"to": "a\nb", "n": [1, None, True]}, '{"to": "a\\nb", "n": [1, null, true]}'),
        (None, "null"),
        (True, "true"),
        (12.5, "12.5"),
        ({"when": object}, '{"when": "<class \'object\'>"}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ("x" * 100, "x" * 37 + "..."),
        (" " * 10_000 + "x", "..."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_fits_on_one_line(value: object, shown: str):
    assert one_line(value, 40) == shown


def test_a_value_that_holds_itself_still_has_a_line():
    loop: list[object] = []
    loop.append(loop)
    assert len(one_line(loop, 40)) <= 40
    deep: object = 0
    for _ in range(5_000):
        deep = [deep]
    assert one_line(deep, 10) == "[[[[[[[..."


def test_a_line_of_an_enormous_value_is_cheap():
    value = {"rows": [{"id": index, "text": "x" * 100} for index in range(100_000)]}
    started = time.perf_counter()
    assert one_line(value, 60).endswith("...")
    assert time.perf_counter() - started < 10


def test_a_long_block_shows_its_first_and_last_lines():
    text = "\n".join(f"line {number}" for number in range(1, 501))
    assert shorten_block(text, 6).split("\n") == [
        "line 1",
        "line 2",
        "line 3",
        "line 4",
        "... 494 more lines ...",
        "line 499",
        "line 500",
    ]
    assert shorten_block("a\nb", 6) == "a\nb"


def test_one_enormous_line_is_cut_inside():
    shown = shorten_block("a" * 5_000_000 + "z", 20, 90)
    assert shown == "a" * 60 + "\n... 4,999,911 more characters ...\n" + "a" * 29 + "z"


@given(st.text(max_size=400), st.integers(1, 12), st.integers(20, 200))
def test_a_shortened_block_keeps_both_ends_within_bounds(text: str, max_lines: int, max_chars: int):
    shown = shorten_block(text, max_lines, max_chars)
    if len(text) <= max_chars and text.count("\n") < max_lines:
        assert shown == text
    else:
        assert len(shown) <= max(max_chars, 0) + 60
        assert "... " in shown
        assert text.startswith(shown.split("\n... ")[0])
