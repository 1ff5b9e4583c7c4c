"""HTML as the text a reader takes from it: what a page says, without its scripts, styles and layout.

Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urljoin

from lousho.tools.web.html_tokens import RAW_TEXT, End, Start, Text, last_end_tag, tokens_of
from lousho.tools.web.texts import Excerpt, excerpt

MAX_LINK_CHARS: Final = 2_000
MAX_BASE_PARTS: Final = 100
"""Parts of the path that links are resolved against: it is taken apart for every one of them."""
MAX_INDENT: Final = 6
CELL: Final = " | "

_LEFT_OUT: Final = frozenset(
    {
        "audio",
        "canvas",
        "datalist",
        "iframe",
        "noembed",
        "noframes",
        "noscript",
        "object",
        "script",
        "select",
        "style",
        "svg",
        "template",
        "video",
    }
)
_PARAGRAPHS: Final = frozenset(
    "article aside blockquote dl figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul".split()
)
_LINES: Final = frozenset(
    "address body button caption center dd details dialog dir div dt fieldset figcaption head hgroup legend li menu"
    " option search summary tbody tfoot thead title tr".split()
)
_CELLS: Final = frozenset({"td", "th"})
_PREFORMATTED: Final = frozenset({"pre", "textarea", "xmp", "listing"})
_LONG_NUMBER = re.compile(r"&#([0-9]{8,});?")
_LINE_BREAKS = re.compile(r"[\t\n\r]")
_NO_LINK = re.compile(r"\s*(?:#|javascript:|data:|vbscript:|blob:|about:|$)", re.IGNORECASE)


def html_to_text(markup: str, base_url: str, limit: int) -> Excerpt:
    """Return the text of a page: blocks on lines of their own, link URLs in parentheses, entities decoded.

    `base_url` is what relative links are resolved against; without it, or when it is very long, they stay as they are.
    Nothing is read on once the text has `limit` characters: a short page can be made to have a text without an end.
    Text in `<noscript>` counts only when there is no other.
    """
    page = _render(markup, base_url, limit, _LEFT_OUT)
    if not page.text and not page.cut and "<noscript" in markup.lower():
        page = _render(markup, base_url, limit, _LEFT_OUT - {"noscript"})
    return page


def _render(markup: str, base_url: str, limit: int, left_out: Iterable[str]) -> Excerpt:
    page = _Page(base_url)
    ends: dict[str, int] = {}
    inside, depth = "", 0
    for token in tokens_of(markup):
        if page.length > limit:
            return Excerpt(page.finish()[:limit], cut=True)
        if inside:
            if not isinstance(token, Text) and token.name == inside:
                depth += 1 if isinstance(token, Start) and not token.self_closing else -isinstance(token, End)
                if depth == 0:
                    inside = ""
            continue
        if isinstance(token, Text):
            page.text(token.text)
        elif isinstance(token, End):
            page.end(token.name)
        elif token.name not in left_out:
            page.start(token.name, token.attributes)
        elif not (token.self_closing and token.name == "svg"):
            if token.name not in ends:
                ends[token.name] = last_end_tag(markup, token.name)
            # An element that is never closed would take the rest of the page with it; a script really does.
            if ends[token.name] >= token.end or token.name in RAW_TEXT:
                inside, depth = token.name, 1
    return excerpt(page.finish(), limit)


class _Page:
    """The text of a page as it grows, and what decides where the next word goes."""

    def __init__(self, base_url: str) -> None:
        self.length = 0
        """Characters so far."""
        self._parts: list[str] = []
        self._breaks = 0
        self._space = False
        self._lead = ""
        self._cells = 0
        self._bars = 0
        self._preformatted = 0
        self._lists: list[int | None] = []
        self._base = _usable_base(base_url)
        self._based = False
        self._link: tuple[str, int] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Take a start tag."""
        if name == "br":
            self._line_break()
        elif name == "a":
            self._end_link()
            if "href" in attributes:
                self._link = (attributes["href"], len(self._parts))
        elif name == "img":
            self.text(attributes.get("alt", ""))
        elif name in _CELLS:
            self._bars += self._cells > 0
            self._cells += 1
        elif name == "base" and not self._based and "href" in attributes:
            self._based = True
            base = _url(attributes["href"])
            self._base = _usable_base(_joined(self._base, base)) if len(base) <= MAX_LINK_CHARS else ""
        else:
            self._open_block(name, attributes)

    def end(self, name: str) -> None:
        """Take an end tag."""
        if name == "a":
            self._end_link()
        elif name == "br":
            self._line_break()
        elif name in _PREFORMATTED:
            self._preformatted = max(0, self._preformatted - 1)
            if self._parts:
                self._parts[-1] = self._parts[-1].removesuffix("\n")
            self._break(2)
        elif name in ("ul", "ol", "menu", "dir"):
            if self._lists:
                self._lists.pop()
            self._break(1 if self._lists else 2)
        elif name == "li":
            self._lead = ""
            self._break(1)
        elif name == "title":
            self._break(2)
        else:
            self._break_for(name)

    def text(self, text: str) -> None:
        """Take characters, entities not decoded yet."""
        text = _decoded(text)
        if self._preformatted:
            self._add_lines(text)
            return
        words = " ".join(text.split())
        if not words:
            self._space = self._space or bool(text)
            return
        self._space = self._space or text[0].isspace()
        self._add(words)
        self._space = text[-1].isspace()

    def finish(self) -> str:
        """Return the whole text."""
        self._end_link()
        return "".join(self._parts).strip()

    def _open_block(self, name: str, attributes: dict[str, str]) -> None:
        self._break_for(name)
        if name in _PREFORMATTED:
            self._break(2)
            self._preformatted += 1
        elif name in ("ul", "menu", "dir"):
            self._lists.append(None)
        elif name == "ol":
            first = attributes.get("start", "1").strip()
            self._lists.append(int(first) if first.isdecimal() and len(first) < 10 else 1)
        elif name == "li":
            self._lead = self._bullet()
        elif name == "tr":
            self._cells = self._bars = 0

    def _break_for(self, name: str) -> None:
        if name in _PARAGRAPHS:
            inner_list = name in ("ul", "ol") and len(self._lists) > 0
            self._break(1 if inner_list else 2)
        elif name in _LINES:
            self._break(1)

    def _bullet(self) -> str:
        indent = "  " * min(max(len(self._lists) - 1, 0), MAX_INDENT)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}- "
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _line_break(self) -> None:
        if self._preformatted:
            self._add_lines("\n")
        else:
            self._breaks = min(2, self._breaks + 1)
            self._space = False

    def _break(self, lines: int) -> None:
        self._breaks = max(self._breaks, lines)
        self._space = False
        self._bars = 0

    def _add(self, words: str) -> None:
        if self._breaks:
            if self._parts:
                self._put("\n" * self._breaks)
            self._breaks = 0
        elif self._space and self._parts and not self._bars:
            self._put(" ")
        if self._lead:
            self._put(self._lead)
            self._lead = ""
        if self._bars:
            bars = CELL * self._bars
            self._put(bars if self._parts and not self._parts[-1].endswith("\n") else bars.lstrip())
            self._bars = 0
        self._put(words)

    def _add_lines(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if self._breaks:
            text = text.removeprefix("\n")
        if text:
            self._space = False
            self._add(text)

    def _put(self, part: str) -> None:
        self._parts.append(part)
        self.length += len(part)

    def _end_link(self) -> None:
        if self._link is None:
            return
        href, begin = self._link
        self._link = None
        said = "".join(self._parts[begin:]).strip()
        url = _url(href)
        if not said or len(url) > MAX_LINK_CHARS or _NO_LINK.match(url):
            return
        target = _joined(self._base, url)
        if said not in (target, url, target.partition("://")[2].rstrip("/")):
            self._put(f" ({target})")


def _usable_base(url: str) -> str:
    return url if len(url) <= MAX_LINK_CHARS and url.count("/") <= MAX_BASE_PARTS else ""


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return url


def _url(attribute: str) -> str:
    """Return the URL in an attribute, without the line breaks that browsers do not see in it."""
    return _LINE_BREAKS.sub("", _decoded(attribute)).strip()


def _decoded(text: str) -> str:
    """Return `text` with its entities decoded. Long numbers are brought into a form that Python reads before."""
    return html.unescape(_LONG_NUMBER.sub(_short_number, text)) if "&" in text else text


def _short_number(found: re.Match[str]) -> str:
    digits = found[1].lstrip("0")
    return f"&#{digits or 0};" if len(digits) < 8 else "\ufffd"
