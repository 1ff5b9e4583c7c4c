"""Text that is safe to print: on any console, of any origin, at any size.

What a model or a tool says is not trusted with the terminal: control sequences are taken out, so that it can neither
recolour nor overwrite what a person is about to approve. What a console's encoding lacks is replaced instead of
raising. Only the standard library is imported, and that sparingly; the width of wide characters comes from `wcwidth`
on first use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

# No body may hold the beginning of another sequence: that is what keeps the search linear.
_SEQUENCE = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]                          # CSI: colours, cursor, modes
    | (?: \x1b\] | \x9d ) [^\x07\x1b\x80-\x9f]* (?: \x07 | \x1b\\ | \x9c )  # OSC: titles, links, clipboard
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] ) [^\x1b\x80-\x9f]* (?: \x1b\\ | \x9c )  # DCS, SOS, PM, APC
    | \x1b [ -/]+ [0-~]                                                # character sets and the like
    | \x1b [0-Z\\^-~]                                                  # two-character commands
    """,
    re.VERBOSE,
)
_LINE_BREAK = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# C0 without tab and newline, DEL, C1, and the marks that reorder a line (an approved command must read as it runs).
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_ASCII = {
    "→": "->", "←": "<-", "↔": "<->", "⇒": "=>", "⇐": "<=", "↑": "^", "↓": "v", "↳": "\\-", "➜": "->", "▶": ">", "▸": ">",
    "‘": "'", "’": "'", "‚": "'", "‹": "<", "›": ">", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "′": "'", "″": '"',
    "•": "*", "◦": "o", "▪": "*", "●": "*", "○": "o", "◆": "*", "·": ".", "∙": ".", "‣": ">",
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "―": "-", "−": "-", "…": "...", "⋯": "...",
    "✓": "ok", "✔": "ok", "✅": "ok", "✗": "x", "✘": "x", "✖": "x", "❌": "x", "⚠": "!", "×": "x", "÷": "/", "≈": "~",
    "≤": "<=", "≥": ">=", "≠": "!=", "±": "+/-", "∞": "inf", "µ": "u", "μ": "u", "€": "EUR", "£": "GBP", "¥": "JPY",
    "©": "(c)", "®": "(r)", "™": "(tm)", "°": " deg", "⁄": "/", "ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O",
    "ł": "l", "Ł": "L", "─": "-", "━": "-", "═": "=", "│": "|", "┃": "|", "║": "|", "┌": "+", "┐": "+", "└": "+",
    "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "█": "#", "░": ".",
    "▌": "|", "↵": "", "␛": "ESC",
}  # fmt: skip


def plain_text(text: str) -> str:
    """Return `text` without anything that steers a terminal; newlines and tabs stay.

    Control sequences and characters go, every other line break becomes a newline, marks that reorder a line go, and
    half a surrogate pair becomes `\\ufffd`. A sequence cut short by the end of the text loses its escape character and
    with it its force.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text)
    text = _LINE_BREAK.sub("\n", text)
    text = _CONTROL.sub("", text)
    if _SURROGATE.search(text):
        # Two halves that belong together become the character they spell; what stays alone cannot be shown.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def safe_text(text: str, encoding: str | None = "utf-8") -> str:
    """Return `plain_text(text)` with what `encoding` cannot carry replaced; the result always encodes.

    Arrows, quotes, bullets, dashes and lines get an ASCII spelling, accented letters their base letter, and the rest
    `?`. A missing or unknown encoding counts as ASCII.
    """
    text = plain_text(text)
    codec = encoding or "ascii"
    try:
        text.encode(codec)
    except LookupError:
        codec = "ascii"
    except UnicodeEncodeError:
        pass
    else:
        return text
    table = {ord(character): _fallback(character, codec) for character in set(text) if not _fits(character, codec)}
    return text.translate(table)


def _fits(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def _fallback(character: str, codec: str) -> str:
    known = _ASCII.get(character)
    if known is not None:
        return known
    import unicodedata

    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:  # accents, variation selectors, joiners
        return ""
    parts = unicodedata.normalize("NFKD", character)
    kept = "".join(part if _fits(part, codec) else _ASCII.get(part, "") for part in parts) if parts != character else ""
    return kept or "?"


def display_width(text: str) -> int:
    """Return how many terminal columns `text` takes; wide characters count two, combining ones none."""
    if text.isascii() and text.isprintable():
        return len(text)
    import wcwidth

    width = wcwidth.wcswidth(text)
    return width if width >= 0 else sum(max(0, wcwidth.wcwidth(character)) for character in text)


def clip(text: str, columns: int) -> str:
    """Return `text` cut to at most `columns` terminal columns, with `...` where something was cut.

    A character is never parted from its accents, and an emoji sequence stays whole or goes.
    """
    if columns <= 0:
        return ""
    if display_width(text) <= columns:
        return text
    sign = "..." if columns > 3 else "." * columns
    room = columns - len(sign)
    kept = ""
    for cluster in _clusters(text):
        if display_width(kept + cluster) > room:
            break
        kept += cluster
    return kept + sign


def _clusters(text: str) -> list[str]:
    """Split `text` into what a reader takes for one character (close to the Unicode rules, without their table)."""
    if text.isascii():
        return list(text)
    import unicodedata

    clusters: list[str] = []
    joined = False
    for character in text:
        extends = unicodedata.category(character) in {"Mn", "Me"} or character == "\u200d"
        tone = "\U0001f3fb" <= character <= "\U0001f3ff"
        if clusters and (joined or extends or tone):
            clusters[-1] += character
        else:
            clusters.append(character)
        joined = character == "\u200d"
    return clusters


def one_line(value: object, limit: int = 80) -> str:
    """Return `value` on one line of at most `limit` columns: text as it is, anything else as compact JSON.

    White space of any kind becomes one space, control sequences go, `...` marks a cut. The cost does not grow with the
    size of the value.
    """
    enough = max(limit, 1) * 16
    if isinstance(value, str):
        text = value
    elif value is None or isinstance(value, (bool, Mapping, list, tuple)):
        text = _compact_json(cast("object", value), enough)
    else:
        text = str(value)
    line = " ".join(plain_text(text[:enough]).split())
    return clip(line if len(text) <= enough else f"{line}...", limit)


def _compact_json(value: object, enough: int) -> str:
    pieces: list[str] = []
    length = 0
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "), default=str).iterencode(value):
            pieces.append(piece)
            length += len(piece)
            if length > enough:
                break
    except RecursionError:
        return "".join(pieces)
    except (TypeError, ValueError):  # keys that are no names, or a value that holds itself
        return str(value)
    return "".join(pieces)


def shorten_block(text: str, max_lines: int = 20, max_chars: int = 2_000) -> str:
    """Return `text` if it is small enough, else its first and last lines with a line between that counts the rest.

    About two thirds of `max_lines` and `max_chars` go to the beginning. A single enormous line is cut inside.
    """
    lines = text.split("\n")
    if len(lines) <= max_lines and len(text) <= max_chars:
        return text
    head = _take(lines, max(1, max_lines * 2 // 3), max_chars * 2 // 3)
    tail = _take(lines[len(head) :][::-1], max(0, max_lines - len(head)), max_chars - sum(map(len, head)))[::-1]
    left_out = len(lines) - len(head) - len(tail)
    if head and tail and left_out:
        return "\n".join([*head, f"... {left_out:,} more line{'' if left_out == 1 else 's'} ...", *tail])
    start = text[: max_chars * 2 // 3]
    end = text[len(text) - max_chars // 3 :]
    return f"{start}\n... {len(text) - len(start) - len(end):,} more characters ...\n{end}"


def _take(lines: list[str], max_lines: int, max_chars: int) -> list[str]:
    """Return the first lines that fit into both limits."""
    taken: list[str] = []
    for line in lines[:max_lines]:
        max_chars -= len(line) + 1
        if max_chars < 0:
            break
        taken.append(line)
    return taken
