"""Takes secrets out of what a cassette keeps, for cassettes are meant to be committed.

A safety net for keys in well-known formats, not a promise: whatever else must stay out of the file is for the
`redact` option. Source: testing page ("Redaction").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, cast

REDACTED = "[REDACTED]"
MAX_REMEMBERED_CHARS = 20_000
"""The same texts come with every call of a run; longer ones are rare and would fill the memory."""

Redact: TypeAlias = "Callable[[str], str]"

_START = r"(?<![A-Za-z0-9])"
_WHOLE: tuple[str, ...] = (
    # OpenAI, Anthropic, OpenRouter and whoever else writes `sk-`.
    r"sk-[A-Za-z0-9_-]{6,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"(?:gh[opsur]|github_pat)_[A-Za-z0-9_]{16,}",
    r"(?:glpat|xai|pplx|xapp|xox[abceoprs])-[A-Za-z0-9-][A-Za-z0-9_.-]{7,}",
    r"(?:gsk|hf|npm|whsec|lin_api)_[A-Za-z0-9]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{20,}",
    r"ya29\.[A-Za-z0-9_-]{16,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    # Only at the start of a run of such characters: otherwise a long run is read again from every `eyJ` in it.
    r"(?<![_-])eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}",
    r"\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
)
_PARTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(_START + "(?:" + "|".join(_WHOLE) + ")"), REDACTED),
    # A word of prose after "bearer" or "basic" is no credential: one has digits, inner punctuation or a good length.
    (
        re.compile(
            r"\b([Bb]earer|BEARER)(\s{1,4})(?=[A-Za-z]*(?:[0-9]|[._~+/-][A-Za-z0-9]|[A-Za-z]{24}))"
            r"[A-Za-z0-9._~+/-]{8,}={0,2}"
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"\b([Bb]asic|BASIC)(\s{1,4})(?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/]{8,}={0,2}"), rf"\1\2{REDACTED}"),
    (re.compile(r"(https?://hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]+"), rf"\1{REDACTED}"),
    (re.compile(r"([a-z][a-z0-9+.-]{1,20}://)[^\s/@:\[\]\"']{0,256}:[^\s/@\[\]\"']{1,256}@"), rf"\1{REDACTED}@"),
)


def redact_keys(text: str) -> str:
    """Return `text` with everything that looks like a key or a token replaced by `[REDACTED]`."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARS else _redacted(text)


def _redacted(text: str) -> str:
    for pattern, replacement in _PARTS:
        text = pattern.sub(replacement, text)
    return text


_remembered = lru_cache(maxsize=2048)(_redacted)


def redact_strings(value: Any, redact: Redact) -> Any:
    """Return the JSON `value` with `redact` run on every string in it; keys stay as they are."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_strings(inner, redact) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [redact_strings(inner, redact) for inner in cast("list[Any]", value)]
    return value
