"""The options that both web tools take, checked when a tool is made. Source: tools page ("Built-in tools")."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from lousho.core.errors import ConfigurationError
from lousho.core.suggest import unknown_key_message
from lousho.tools.web.hosts import HostRules, read_patterns

if TYPE_CHECKING:
    from lousho.tools.web.transport import Resolver

MAX_TIMEOUT_MS: Final = 86_400_000
MAX_BYTES: Final = 1024**3
MAX_REDIRECTS: Final = 100

_ALIASES: Final = {
    "allow": "allowed_hosts",
    "allowlist": "allowed_hosts",
    "allowed_domains": "allowed_hosts",
    "deny": "blocked_hosts",
    "denylist": "blocked_hosts",
    "blocked_domains": "blocked_hosts",
    "private": "allow_private",
    "timeout": "timeout_ms",
    "redirects": "max_redirects",
    "max_length": "max_chars",
    "max_size": "max_bytes",
    "agent": "user_agent",
    "verify": "validate_ssl",
}
_USER_AGENT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,498}[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What bounds every request of a tool."""

    timeout_ms: float
    """The longest a request may take, from looking up the host to the last byte, in milliseconds."""
    max_redirects: int
    max_bytes: int
    user_agent: str
    rules: HostRules
    resolver: Resolver | None
    validate_ssl: bool


def read_options(factory: str, given: Mapping[str, Any], unknown: Mapping[str, object]) -> WebOptions:
    """Return the checked options of a factory; `given` are those it has. Raises `LOUSHO_CONFIG_INVALID`."""
    if unknown:
        key = next(iter(unknown))
        aliases = {alias: option for alias, option in _ALIASES.items() if option in given}
        raise ConfigurationError(f"{factory}: {unknown_key_message(key, given, aliases=aliases)}.", field=key)
    resolver = given["resolver"]
    if resolver is not None and not callable(resolver):
        raise _refusal(factory, "resolver", "an async function of a host name and a port", resolver)
    validate = given.get("validate_ssl", True)
    if not isinstance(validate, bool):
        raise _refusal(factory, "validate_ssl", "True or False", validate)
    user_agent = given["user_agent"]
    if not isinstance(user_agent, str) or not _USER_AGENT.fullmatch(user_agent):
        raise _refusal(factory, "user_agent", "a text of 1 to 500 printable ASCII characters", user_agent)
    allowed = given["allowed_hosts"]
    return WebOptions(
        timeout_ms=_milliseconds(factory, given["timeout_ms"]),
        max_redirects=whole_number(factory, "max_redirects", given["max_redirects"], 0, MAX_REDIRECTS),
        max_bytes=whole_number(factory, "max_bytes", given["max_bytes"], 1, MAX_BYTES),
        user_agent=user_agent,
        rules=HostRules(
            allowed=None if allowed is None else read_patterns("allowed_hosts", allowed, factory),
            blocked=read_patterns("blocked_hosts", given["blocked_hosts"], factory),
            private=read_patterns("allow_private", given["allow_private"], factory),
        ),
        resolver=cast("Resolver | None", resolver),
        validate_ssl=validate,
    )


def whole_number(factory: str, option: str, value: object, least: int, most: int) -> int:
    """Return `value` when it is a whole number between `least` and `most`. Raises `LOUSHO_CONFIG_INVALID`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _refusal(factory, option, f"a whole number from {least} to {most:,}", value)
    return value


def _milliseconds(factory: str, value: object) -> float:
    number = math.nan if isinstance(value, bool) or not isinstance(value, (int, float)) else value
    if not 0 < number <= MAX_TIMEOUT_MS:
        raise _refusal(factory, "timeout_ms", f"a number of milliseconds above 0, {MAX_TIMEOUT_MS:,} at most", value)
    return number


def _refusal(factory: str, option: str, expected: str, value: object) -> ConfigurationError:
    return ConfigurationError(f"{factory}: {option} must be {expected}; got {value!r}.", field=option)
