"""Masks what differs from one run to the next although nothing changed: times, dates and generated ids.

Both sides of a comparison are masked, the cassette keeps the real values. Names are never masked: a tool may well be
called `call_customer`. Source: testing page ("What replay checks").
"""

from __future__ import annotations

import re
from functools import lru_cache

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = r"(?:(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?[ ])?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_ZONE = r"(?:[ ]?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})(?![A-Za-z0-9]))?"
_HALF = r"(?:[ ]?[AaPp]\.?[Mm]\b\.?)?"
_LATER = rf"(?:,?[ ](?:at[ ])?{_CLOCK}{_HALF}{_ZONE})"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

_MASKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), mask)
    for pattern, mask in (
        (rf"(?<![0-9A-Za-z]){_UUID}(?![0-9A-Za-z])", "<uuid>"),
        (rf"(?<![0-9]){_WEEKDAY}\d{{4}}-\d{{2}}-\d{{2}}(?:[Tt]|,?[ ](?:at[ ])?){_CLOCK}{_HALF}{_ZONE}", "<timestamp>"),
        (rf"(?<![0-9]){_WEEKDAY}\d{{4}}-\d{{2}}-\d{{2}}(?![0-9])", "<date>"),
        (rf"\b{_WEEKDAY}{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ]\d{{4}}{_LATER}", "<timestamp>"),
        (rf"\b{_WEEKDAY}{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ]\d{{4}}(?![0-9])", "<date>"),
        (rf"\b{_WEEKDAY}\d{{1,2}}(?:st|nd|rd|th)?[ ]{_MONTH}\.?,?[ ]\d{{4}}{_LATER}", "<timestamp>"),
        (rf"\b{_WEEKDAY}\d{{1,2}}(?:st|nd|rd|th)?[ ]{_MONTH}\.?,?[ ]\d{{4}}(?![0-9])", "<date>"),
        (r"(?<![0-9A-Za-z_-])(?:toolu|chatcmpl)[_-][0-9A-Za-z_-]+", "<id>"),
        # `call_` also begins ordinary names; an id has a digit in it, or is one long run of letters.
        (r"(?<![0-9A-Za-z_-])call_(?:(?=[A-Za-z_-]*[0-9])[0-9A-Za-z_-]+|[A-Za-z]{16,})", "<id>"),
        (r"(?<![0-9A-Za-z_-])[a-z]{2,20}-[0-9a-f]{16}(?![0-9A-Za-z])", "<id>"),
    )
)


MAX_REMEMBERED_CHARS = 20_000
"""A transcript is compared again with every call; longer texts are rare and would fill the memory."""


def steady(text: str) -> str:
    """Return `text` with timestamps, dates, UUIDs and generated ids replaced by `<timestamp>`, `<date>`, ..."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARS else _masked(text)


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


_remembered = lru_cache(maxsize=2048)(_masked)
