"""Streamed text arrives in pieces that know nothing of characters; this cuts them where a screen can take it.

Written as they come, the halves of a flag or of a joined emoji would be drawn as two pictures, and the halves of a
control sequence would slip past the filter. What may be such a half is held back until its other half is here.
"""

from __future__ import annotations

import re

_LONGEST_HELD = 256

_OPEN_SEQUENCE = re.compile(
    r"""(?: \x1b[ -/]*                                  # an escape character, alone or before a character set
         | (?: \x1b\[ | \x9b ) [0-?]* [ -/]*            # colours, cursor, modes
         | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] ) [^\x07\x9c\x1b]* \x1b?   # titles, links, clipboard
        )\Z""",
    re.VERBOSE,
)
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+\\Z")
_PICTURE = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_EXTENDED = f"{_PICTURE}[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
_OPEN_PICTURE = re.compile(f"{_EXTENDED}(?:\u200d(?:{_EXTENDED})?)*\\Z")


class Pieces:
    """Joins pieces: `push` gives what can be written now, `rest` what was still held back."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def push(self, piece: str) -> str:
        """Return the text that is complete by now."""
        text = self._held + piece
        keep = unfinished(text)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep] if keep else text

    def rest(self) -> str:
        """Return what was held back; the text ends here."""
        text, self._held = self._held, ""
        return text


def unfinished(text: str) -> int:
    """Return how many characters at the end of `text` may be the first half of something."""
    if not text or (text.isascii() and text[-1] != "\r" and "\x1b" not in text[-_LONGEST_HELD:]):
        return 0
    last = text[-1]
    if last == "\r" or "\ud800" <= last <= "\udbff":
        return 1
    tail = text[-_LONGEST_HELD:]
    flags = _FLAG_LETTERS.search(tail)
    if flags is not None:
        return len(flags[0]) % 2
    half = _OPEN_SEQUENCE.search(tail) or _OPEN_PICTURE.search(tail)
    return 0 if half is None else len(half[0])
