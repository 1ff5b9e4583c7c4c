"""Dates and times the way people write them, turned into ISO 8601."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "january february march april may june july august september october november december".split()
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_WEEKDAY = "|".join(DAYS)
_MONTH = "|".join(f"{month}|{month[:3]}\\.?" if month != "may" else month for month in MONTHS) + "|sept\\.?"
_COUNT = r"(?:\d{1,3}|an?|" + "|".join(_SMALL[1:]) + ")"
_PERIOD = r"(?:days?|weeks?|months?|years?)"

DATE_PATTERN = (
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?![\d/-])"
    r"|\d{1,2}[./]\d{1,2}[./]\d{4}(?!\d)"
    r"|(?:the\s+)?day\s+after\s+tomorrow|day\s+before\s+yesterday"
    r"|today|tonight|tomorrow|yesterday"
    rf"|(?:next|this|last|coming|past)\s+(?:{_WEEKDAY}|week|month|year|mon|tue|wed|thu|fri|sat|sun)\b"
    rf"|(?:{_WEEKDAY})(?:\s+next\s+week)?\b"
    rf"|in\s+{_COUNT}\s+{_PERIOD}(?:'\s*time)?\b|{_COUNT}\s+{_PERIOD}\s+(?:ago|from\s+now|from\s+today)\b"
    rf"|(?:{_MONTH})\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\b(?!:)(?:,?\s+\d{{4}}\b)?"
    rf"|(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\b(?:,?\s+\d{{4}}\b)?"
)
TIME_PATTERN = (
    r"\d{1,2}(?::\d{2})?(?::\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.)(?!\w)|\d{1,2}:\d{2}(?::\d{2})?(?![\d:])|noon\b|midnight\b"
)
_SPAN = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?)"
MOMENT_PATTERN = (
    rf"in\s+{_COUNT}\s+{_SPAN}\b|"
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2}(?!\d))?(?![\d:])"
)

_SECONDS: dict[str, float] = {"ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60} | {
    "minute": 60,
    "h": 3600,
    "hr": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "week": 604800,
}


def read_date(raw: str, today: date) -> date | None:
    """Return the day that a text matched by `DATE_PATTERN` means, seen from `today`."""
    text = re.sub(r"\s+", " ", raw.strip().lower())
    try:
        return _fixed(text) or _relative(text, today) or _named_month(text, today)
    except (ValueError, OverflowError):
        return None


def _fixed(text: str) -> date | None:
    found = re.fullmatch(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})", text)
    if found:
        return date(*map(int, found.groups()))
    found = re.fullmatch(r"(\d{1,2})([./])(\d{1,2})[./](\d{4})", text)
    if not found:
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    # 03.04. is written day first; 03/04/ month first, unless that cannot be.
    day_first = found[2] == "." or first > 12
    return date(year, second, first) if day_first else date(year, first, second)


def _relative(text: str, today: date) -> date | None:
    for words, days in (("day after tomorrow", 2), ("before yesterday", -2), ("tomorrow", 1), ("yesterday", -1)):
        if text.endswith(words):
            return today + timedelta(days=days)
    if text in {"today", "tonight"}:
        return today
    found = re.search(rf"({_COUNT})\s+(day|week|month|year)s?\b", text)
    if found and ("in " in text or "ago" in text or "from" in text):
        return _shifted(today, _count(found[1]) * (-1 if "ago" in text else 1), found[2])
    found = re.fullmatch(r"(next|coming|this|last|past) (week|month|year)", text)
    if found:
        return _shifted(today, {"this": 0, "last": -1, "past": -1}.get(found[1], 1), found[2])
    return _weekday(text, today)


def _weekday(text: str, today: date) -> date | None:
    found = re.fullmatch(r"(?:(next|this|last|coming|past) )?([a-z]+)( next week)?", text)
    number = next((n for n, day in enumerate(DAYS) if found and len(found[2]) >= 3 and day.startswith(found[2])), None)
    if found is None or number is None:
        return None
    ahead = (number - today.weekday()) % 7
    if found[1] in {"last", "past"}:
        return today - timedelta(days=(today.weekday() - number) % 7 or 7)
    if found[3]:
        return today + timedelta(days=7 - today.weekday() + number)
    return today + timedelta(days=ahead if found[1] == "this" else ahead or 7)


def _named_month(text: str, today: date) -> date | None:
    month = re.search(rf"\b({_MONTH})", text)
    day = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text)
    if not month or not day:
        return None
    year = re.search(r"\b(\d{4})\b", text)
    number = next(n for n, name in enumerate(MONTHS, 1) if name.startswith(month[1][:3]))
    if year:
        return date(int(year[1]), number, int(day[1]))
    found = date(today.year, number, int(day[1]))
    return found if found >= today else date(today.year + 1, number, int(day[1]))


def _count(word: str) -> int:
    if word in {"a", "an"}:
        return 1
    return int(word) if word.isdigit() else next(number for number, name in enumerate(_SMALL) if name == word)


def _shifted(day: date, amount: int, period: str) -> date:
    if period in {"day", "week"}:
        return day + timedelta(days=amount * (7 if period == "week" else 1))
    months = day.year * 12 + day.month - 1 + amount * (12 if period == "year" else 1)
    year, month = divmod(months, 12)
    for last in (day.day, 30, 29, 28):
        try:
            return date(year, month + 1, last)
        except ValueError:
            continue
    return day


def read_time(raw: str) -> time | None:
    """Return the time of day that a text matched by `TIME_PATTERN` means."""
    text = raw.strip().lower().replace(".", "").replace(" ", "")
    if text in {"noon", "midnight"}:
        return time(12 if text == "noon" else 0)
    found = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?(am|pm)?", text)
    if not found:
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if found[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[4] == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        return None


def read_moment(raw: str, now: datetime) -> datetime | None:
    """Return the point in time of an ISO 8601 text, or of `in 2 hours`."""
    ahead = re.fullmatch(rf"in\s+({_COUNT})\s+({_SPAN})", raw.strip().lower())
    if ahead:
        return now + timedelta(seconds=_count(ahead[1]) * (seconds_in(ahead[2]) or 0))
    try:
        return datetime.fromisoformat(raw.strip())
    except ValueError:
        return None


def seconds_in(unit: str) -> float | None:
    """Return the length of a unit of time in seconds, `None` for any other unit."""
    folded = unit.lower().rstrip(".")
    return _SECONDS.get(folded) or _SECONDS.get(folded.rstrip("s"))
