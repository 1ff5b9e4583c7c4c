"""What messages show of texts and values from outside: enough to recognise them, never a key, never without end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from lousho.core.redact import redact, shown


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Bearer abcdefghij", "Bearer [REDACTED]"),
        ("use sk-abcdef123456, please", "use [REDACTED], please"),
        ("https://reader:pa55@books.example/v1", "https://[REDACTED]@books.example/v1"),
        ("postgres://:pa55@db/x and http://u:p@h", "postgres://[REDACTED]@db/x and http://[REDACTED]@h"),
        ("http://books.example:8080/a@b", "http://books.example:8080/a@b"),
        ("mail sam@books.example at 12:30", "mail sam@books.example at 12:30"),
    ],
)
def test_what_looks_like_a_key_is_blacked_out_and_nothing_else(text: str, left: str):
    assert redact(text) == left


def test_given_secrets_are_blacked_out_unless_they_are_too_short_to_be_any():
    assert redact("key hunter22 and any", ["hunter22", "any"]) == "key [REDACTED] and any"


@dataclass
class Client:
    api_key: str


class Silent:
    def __repr__(self) -> str:
        raise ValueError("no text")


def function() -> None: ...


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (7, "7"),
        (0.5, "0.5"),
        pytest.param(10**5000, "<int>", id="an endless number"),
        ("Momo", "'Momo'"),
        ("sk-abcdef123456", "'[REDACTED]'"),
        (b"Momo", "b'Momo'"),
        ([1, "a", Client("hunter2"), [2], 5], "[1, 'a', <Client>, <list>, ...]"),
        ((1,), "(1)"),
        ({"api_key": "hunter2"}, "{'api_key': ...}"),
        (Client("hunter2"), "<Client>"),
        (Silent(), "<Silent>"),
        (Client, "<class Client>"),
        (function, "<function function>"),
    ],
)
def test_a_value_is_shown_as_it_is_written_or_by_its_type(value: Any, text: str):
    assert shown(value) == text


@pytest.mark.parametrize("value", ["x" * 10_000_000, b"x" * 10_000_000, ["y" * 10_000_000] * 1000, "\ud800" * 1000])
def test_a_value_of_any_size_is_shown_in_a_line(value: Any):
    assert len(shown(value)) < 600
