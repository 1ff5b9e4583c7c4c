"""Splitting HTML into tags and text, in one pass whose time grows with the page and no faster.

Pages come from anywhere. The standard library's parser goes back over what it has read when a tag, a comment or a quote is
not closed, and a page made for it takes hours (https://github.com/python/cpython/issues/135462); this one never does. It
follows the tokenization rules of the HTML standard as far as text needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

RAW_TEXT: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
"""Elements whose content has no tags."""
_READ: Final = frozenset({"a", "base", "img", "ol"})
"""Elements whose attributes are of use."""
MAX_ATTRIBUTES: Final = 100

_OPENS = re.compile(r"<(?=[a-zA-Z!/?])")
_NAME = re.compile(r"[a-zA-Z][^ \t\n\r\f/>]*")
_BETWEEN = re.compile(r"[ \t\n\r\f/]*")
_ATTRIBUTE = re.compile(r"[^ \t\n\r\f/>][^ \t\n\r\f/>=]*")
_EQUALS = re.compile(r"[ \t\n\r\f]*=[ \t\n\r\f]*")
_UNQUOTED = re.compile(r"[^ \t\n\r\f>]*")
_COMMENT_END = re.compile(r"--!?>")


class Text(NamedTuple):
    """Characters between tags, entities not decoded yet."""

    text: str


class Start(NamedTuple):
    """A start tag."""

    name: str
    attributes: dict[str, str]
    """Of the elements that matter here, entities not decoded yet; the first of several equal names counts."""
    self_closing: bool
    end: int
    """Where the text after the tag begins."""


class End(NamedTuple):
    """An end tag."""

    name: str


def tokens_of(markup: str) -> Iterator[Text | Start | End]:
    """Yield the tags and texts of a page in order. A tag or comment that never ends is left out with what follows."""
    position = 0
    while position < len(markup):
        opening = _OPENS.search(markup, position)
        if opening is None:
            yield Text(markup[position:])
            return
        if opening.start() > position:
            yield Text(markup[position : opening.start()])
        at = opening.end()
        after = _skipped(markup, at)
        if after is not None:
            position = after
            continue
        name = _NAME.match(markup, at + 1 if markup[at] == "/" else at)
        assert name is not None
        tag = _tag(markup, name[0].lower(), name.end())
        if tag is None:
            return
        position = tag.end
        if markup[at] == "/":
            yield End(tag.name)
            continue
        yield tag
        if tag.name in RAW_TEXT:
            closing = _closing(tag.name).search(markup, position)
            end = len(markup) if closing is None else closing.start()
            yield Text(markup[position:end])
            position = end


def last_end_tag(markup: str, name: str) -> int:
    """Return where the last end tag of an element begins, or -1."""
    last = -1
    for found in _closing(name).finditer(markup):
        last = found.start()
    return last


def _skipped(markup: str, at: int) -> int | None:
    """Return where a comment, doctype or the like ends; `None` when a tag begins here."""
    mark = markup[at]
    if mark == "!" and markup.startswith("--", at + 1):
        if markup.startswith((">", "->"), at + 3):
            return markup.index(">", at) + 1
        end = _COMMENT_END.search(markup, at + 3)
        return len(markup) if end is None else end.end()
    if mark in "!?" or (mark == "/" and not _NAME.match(markup, at + 1)):
        if mark == "/" and at + 1 >= len(markup):
            return len(markup)
        end_at = markup.find(">", at)
        return len(markup) if end_at < 0 else end_at + 1
    return None


def _tag(markup: str, name: str, position: int) -> Start | None:
    """Read a tag from behind its name; `None` when the page ends before the tag does."""
    attributes: dict[str, str] = {}
    keep = name in _READ
    while True:
        between = _BETWEEN.match(markup, position)
        assert between is not None
        position = between.end()
        if position >= len(markup):
            return None
        if markup[position] == ">":
            return Start(name, attributes, between[0].endswith("/"), position + 1)
        found = _ATTRIBUTE.match(markup, position)
        assert found is not None
        position = found.end()
        equals = _EQUALS.match(markup, position)
        if equals is None:
            continue
        value = _value(markup, equals.end())
        if value is None:
            return None
        position = value[1]
        if keep and len(attributes) < MAX_ATTRIBUTES:
            attributes.setdefault(found[0].lower(), value[0])


def _value(markup: str, position: int) -> tuple[str, int] | None:
    quote = markup[position : position + 1]
    if quote and quote in "\"'":
        end = markup.find(quote, position + 1)
        return None if end < 0 else (markup[position + 1 : end], end + 1)
    bare = _UNQUOTED.match(markup, position)
    assert bare is not None
    return bare[0], bare.end()


@cache
def _closing(name: str) -> re.Pattern[str]:
    """Return the pattern of an element's end tag. Only called for the fixed names of this package."""
    return re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE | re.ASCII)
