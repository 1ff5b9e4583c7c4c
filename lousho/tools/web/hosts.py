"""Reading host names as a browser and the operating system do, and the patterns that allow or refuse them.

A name is brought into one form before anything is decided about it: lower case, ASCII, no trailing dot, an address in
its usual form whatever way it was written. What is decided about a host therefore holds for what is connected to.
Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from lousho.core.errors import ConfigurationError

MAX_HOST_CHARS: Final = 253
MAX_PATTERNS: Final = 10_000

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class BadHost(Exception):
    """A text is not a host. Internal: it becomes a tool error or a configuration error. The message says why."""


class Host(NamedTuple):
    """A host in its one form."""

    name: str
    """ASCII, lower case, without a trailing dot; an IPv6 address without brackets."""
    literal: bool
    """Whether it is an address and no name."""

    @property
    def in_url(self) -> str:
        """The host as a URL has it: an IPv6 address in brackets."""
        return f"[{self.name}]" if ":" in self.name else self.name


def read_host(text: str) -> Host:
    """Return the host that the host part of a URL means. Raises `BadHost`."""
    if text.startswith("["):
        return _read_v6(text)
    name = _ascii(text).lower().removesuffix(".")
    if not name:
        raise BadHost("it is empty")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return Host(_read_v4(labels), literal=True)
    if len(name) > MAX_HOST_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost("a name has letters, digits, '-' and dots")
    return Host(name, literal=False)


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    if len(text) > MAX_HOST_CHARS:
        raise BadHost("it is too long")
    import idna

    try:
        # Browsers map first, so that a full-width digit or an ideographic dot is what it looks like.
        mapped = idna.uts46_remap(text, std3_rules=False)
        return mapped if mapped.isascii() else idna.encode(mapped).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise BadHost("it has characters that no host name has") from None


def _read_v6(text: str) -> Host:
    from ipaddress import IPv6Address

    if not text.endswith("]"):
        raise BadHost("its brackets are not in order")
    inside = text[1:-1]
    if "%" in inside:
        raise BadHost("an address with a scope is not one of the internet")
    try:
        address = IPv6Address(inside)
    except ValueError:
        raise BadHost("it is not an IPv6 address") from None
    mapped = address.ipv4_mapped
    return Host(str(address if mapped is None else mapped), literal=True)


def _read_v4(labels: list[str]) -> str:
    """Return the address that dotted numbers mean: decimal, octal (`0177`) or hexadecimal, the last one filling up."""
    from ipaddress import IPv4Address

    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) and len(label) <= 20 for label in labels):
        raise BadHost("it is not an IPv4 address")
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:  # an 8 or 9 in an octal number
        raise BadHost("it is not an IPv4 address") from None
    last = numbers.pop()
    if any(number > 255 for number in numbers) or last >= 256 ** (4 - len(numbers)):
        raise BadHost("it is not an IPv4 address")
    value = last
    for position, number in enumerate(numbers):
        value += number << (8 * (3 - position))
    return str(IPv4Address(value))


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)


@dataclass(frozen=True, slots=True)
class HostPattern:
    """`host`, or `*.host` for its subdomains."""

    name: str
    subdomains: bool

    def matches(self, host: Host) -> bool:
        """Whether the pattern means `host`; `*.host` does not mean `host` itself."""
        if self.subdomains:
            return not host.literal and host.name.endswith(f".{self.name}")
        return host.name == self.name


def read_patterns(option: str, given: object, factory: str) -> tuple[HostPattern, ...]:
    """Return the patterns of an option. Raises `LOUSHO_CONFIG_INVALID` naming the option and the pattern."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"{factory}: {option} is a list of hosts such as ['example.com', '*.example.com']; got {given!r}.",
            field=option,
        )
    patterns: list[HostPattern] = []
    for entry in cast("Iterable[object]", given):
        if len(patterns) >= MAX_PATTERNS:
            raise ConfigurationError(f"{factory}: {option} has more than {MAX_PATTERNS:,} hosts.", field=option)
        patterns.append(_read_pattern(option, entry, factory))
    return tuple(patterns)


def _read_pattern(option: str, entry: object, factory: str) -> HostPattern:
    def refuse(why: str) -> ConfigurationError:
        return ConfigurationError(f"{factory}: {option}: {entry!r} is no host pattern: {why}.", field=option)

    if not isinstance(entry, str):
        raise refuse("write a text such as 'example.com' or '*.example.com'")
    text = entry.strip()
    subdomains = text.startswith("*.")
    rest = text[2:] if subdomains else text
    if rest.count(":") > 1 and not rest.startswith("["):
        rest = f"[{rest}]"
    if "*" in rest:
        raise refuse("a '*' stands only at the beginning, as in '*.example.com'")
    if "/" in rest or (":" in rest and not rest.startswith("[")):
        raise refuse("write the host alone, without scheme, port or path")
    try:
        host = read_host(rest)
    except BadHost as bad:
        raise refuse(str(bad)) from None
    if subdomains and host.literal:
        raise refuse("an address has no subdomains")
    return HostPattern(host.name, subdomains)


@dataclass(frozen=True, slots=True)
class HostRules:
    """Which hosts a tool may reach."""

    allowed: tuple[HostPattern, ...] | None = None
    """When not `None`, every other host is refused."""
    blocked: tuple[HostPattern, ...] = ()
    private: tuple[HostPattern, ...] = ()
    """Hosts that may be at private addresses."""

    def complaint(self, host: Host) -> str | None:
        """Return why the host itself is refused, before anything is looked up; `None` when it is not."""
        if any(pattern.matches(host) for pattern in self.blocked):
            return "is blocked"
        if self.allowed is not None and not any(pattern.matches(host) for pattern in self.allowed):
            return "is not one of the hosts that may be reached"
        if host.literal and not self.may_connect(host, host.name):
            return NOT_PUBLIC
        return None

    def may_connect(self, host: Host, address: str) -> bool:
        """Return whether `address`, which is what `host` is or resolves to, may be connected to."""
        from lousho.tools.web.addresses import kind_of_address

        kind = kind_of_address(address)
        if kind == "public":
            return True
        if kind == "sealed" and not host.literal:
            return False
        return any(pattern.matches(host) for pattern in self.private)


NOT_PUBLIC: Final = "is not on the public internet, and only public hosts may be reached"
