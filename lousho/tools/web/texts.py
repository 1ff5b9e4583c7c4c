"""What a body is and which characters it means: the kind by its content type, the charset by all the signs there are."""

from __future__ import annotations

import codecs
import re
from typing import Final, Literal, NamedTuple, TypeAlias

ContentKind: TypeAlias = Literal["html", "json", "text", "other"]

MAX_SHOWN_TYPE: Final = 200
IN_THREAD: Final = 16 * 1024
"""Bytes from which on a body is made sense of in a thread, so that the event loop goes on."""
_LOOKED_AT: Final = 4_096
"""Bytes of a page that are searched for its charset."""

_TEXTUAL: Final = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/javascript",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/xml-dtd",
        "application/yaml",
    }
)
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The web reads these labels as the wider Windows tables (https://encoding.spec.whatwg.org/#names-and-labels).
_LABELS: Final = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "utf8": "utf-8",
    "utf-8": "utf-8",
    "utf-16": "utf-16-le",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "big5-hkscs": "big5hkscs",
    "koi8-r": "koi8_r",
    "koi8-u": "koi8_u",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
    "ibm866": "cp866",
    **{f"iso-8859-{part}": f"iso8859_{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{page}": f"cp{page}" for page in (874, *range(1250, 1259))},
}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta\s[^>]{0,500}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|body)[\s>]", re.IGNORECASE)


class Excerpt(NamedTuple):
    """The beginning of a text, or all of it."""

    text: str
    cut: bool


def excerpt(text: str, limit: int) -> Excerpt:
    """Return at most `limit` characters of `text`."""
    return Excerpt(text[:limit], cut=len(text) > limit)


def kind_of_content(content_type: str) -> ContentKind | None:
    """Return what a content type says a body is; `None` when it says nothing and the body has to be looked at."""
    mime = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if not mime:
        return None
    if mime in ("text/html", "application/xhtml+xml"):
        return "html"
    if mime == "application/json" or (mime.endswith("+json") and mime.startswith("application/")):
        return "json"
    if mime.startswith("text/") or mime in _TEXTUAL or (mime.endswith("+xml") and not mime.startswith("image/")):
        return "text"
    return "other"


def kind_of_body(body: bytes) -> ContentKind:
    """Return what a body without a content type is, by its beginning."""
    if _MARKUP.match(body):
        return "html"
    is_utf16 = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "other" if b"\0" in body[:_LOOKED_AT] and not is_utf16 else "text"


def decode(body: bytes, content_type: str, kind: ContentKind, *, cut: bool = False) -> str:
    """Return the text of a body; what does not fit its charset becomes U+FFFD.

    The signs, strongest first: a byte order mark, the content type, the page's own `<meta>` or XML declaration, UTF-8,
    and Windows-1252 where that does not fit. `cut` says that the body may end inside a character.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], name, cut)
    named = _CHARSET.search(content_type)
    charset = _LABELS.get(named[1].lower()) if named is not None else None
    if charset is None and kind in ("html", "text"):
        charset = _declared(body[:_LOOKED_AT], kind)
    if charset is not None:
        return _decoded(body, charset, cut)
    try:
        return codecs.getincrementaldecoder("utf-8")("strict").decode(body, final=not cut)
    except UnicodeDecodeError:
        return _decoded(body, "utf-8" if kind == "json" or _nearly_utf8(body) else "cp1252", cut)


def _declared(beginning: bytes, kind: ContentKind) -> str | None:
    found = _META.search(beginning) if kind == "html" else None
    found = found or _XML.match(beginning)
    charset = _LABELS.get(found[1].decode("ascii").lower()) if found is not None else None
    # A declaration that could be read is not in UTF-16, whatever it says.
    return "utf-8" if charset is not None and charset.startswith("utf-16") else charset


def _nearly_utf8(body: bytes) -> bool:
    """Whether a body that is not quite UTF-8 has more characters of it than mistakes."""
    text = body[:65_536].decode("utf-8", "replace")
    return sum(character > "\x7f" for character in text) > 2 * text.count("\ufffd")


def _decoded(body: bytes, charset: str, cut: bool) -> str:
    return codecs.getincrementaldecoder(charset)("replace").decode(body, final=not cut)
