"""Reading URLs strictly and once: the very parts that were checked are the ones that go on the wire.

A URL that two readers could read differently is the classic way past a check, so anything odd is refused here instead of
being repaired. Messages name the host at most: never a path, a query or `user:password@`.
Source: tools page ("Built-in tools").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, cast
from urllib.parse import quote, urljoin

from lousho.core.errors import ToolExecutionError
from lousho.tools.web.hosts import BadHost, Host, read_host

MAX_URL_CHARS: Final = 16_000
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]{0,40}):")
_AUTHORITY = re.compile(r"//([^/?#]*)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SAFE: Final = "!$%&'()*+,-./:;=@[]_~|"
_QUERY_SAFE: Final = "!$%&()*+,-./:;=?@[]_~|`{}^\\"


def failure(message: str) -> ToolExecutionError:
    """Return the error of a call that failed, as the model reads it."""
    return ToolExecutionError(message, help_line=False)


@dataclass(frozen=True, slots=True)
class WebUrl:
    """An `http` or `https` URL in its parts."""

    scheme: Literal["http", "https"]
    host: Host
    port: int
    target: str
    """Path and query, in ASCII."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """What credentials belong to."""
        return (self.scheme, self.host.name, self.port)

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        shown = self.host.in_url
        return shown if self.port == _DEFAULT_PORTS[self.scheme] else f"{shown}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_url(text: str) -> WebUrl:
    """Return the URL in `text`; a fragment is dropped. Raises a tool error that names the host."""
    stripped = text.strip()
    if len(stripped) > MAX_URL_CHARS:
        raise failure(f"The URL is longer than {MAX_URL_CHARS:,} characters.")
    if _CONTROL.search(stripped):
        raise failure("The URL has a line break or another control character in it.")
    scheme_part = _SCHEME.match(stripped)
    if scheme_part is None or (scheme_part[1].lower() not in _DEFAULT_PORTS and _is_host_and_port(stripped)):
        raise failure(_without_scheme(stripped))
    scheme = scheme_part[1].lower()
    # In the web's own schemes a backslash is a slash: browsers say so, and a URL must not mean two hosts.
    head, mark, tail = _split_at(stripped[scheme_part.end() :], "?#")
    rest = head.replace("\\", "/") + mark + tail
    authority = _AUTHORITY.match(rest)
    if scheme not in _DEFAULT_PORTS:
        where = f" ({_shown_host(authority[1])})" if authority is not None and authority[1] else ""
        raise failure(f"Only http and https URLs can be requested, not {scheme}{where}.")
    if authority is None or not authority[1]:
        raise failure("The URL names no host: write it like https://example.com/page.")
    host, port = _read_authority(authority[1])
    return WebUrl(
        cast("Literal['http', 'https']", scheme), host, port or _DEFAULT_PORTS[scheme], _target(rest[authority.end() :])
    )


def redirect_url(base: WebUrl, location: str) -> WebUrl:
    """Return where a redirect of `base` leads. Raises a tool error that names the host."""
    stripped = location.strip()
    if len(stripped) > MAX_URL_CHARS or _CONTROL.search(stripped):
        raise failure(f"'{base.authority}' redirects to something that is not a usable URL.")
    head, mark, tail = _split_at(stripped, "?#")
    stripped = head.replace("\\", "/") + mark + tail
    if _SCHEME.match(stripped):
        return read_url(stripped)
    if stripped.startswith("//"):
        return read_url(f"{base.scheme}:{stripped}")
    try:
        return read_url(urljoin(str(base), stripped))
    except ValueError:
        raise failure(f"'{base.authority}' redirects to something that is not a usable URL.") from None


def _read_authority(text: str) -> tuple[Host, int | None]:
    if "@" in text:
        _refuse(text.rpartition("@")[2], "The URL carries a user name or password", "leave it out")
    address, bracket, after = text.partition("]") if text.startswith("[") else ("", "", text)
    name, _, port = after.partition(":")
    name = address + bracket + name
    if "%" in name and not name.startswith("["):
        _refuse(name, "The host is percent-encoded", "write it plainly")
    try:
        host = read_host(name)
    except BadHost as bad:
        raise failure(f"{_shown_host(name)} is not a usable host: {bad}.") from None
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= 65_535):
        raise failure(f"The port of {_shown_host(host.in_url)} is not a number from 1 to 65535.")
    return host, int(port)


def _refuse(host: str, what: str, fix: str) -> NoReturn:
    raise failure(f"{what} ({_shown_host(host)}): {fix}.")


def _shown_host(text: str) -> str:
    """Return a host that may be anything, for a message: no credentials, printable, short."""
    plain = text.rpartition("@")[2][:100].encode("ascii", "backslashreplace").decode("ascii")
    return f"'{_CONTROL.sub('?', plain)}'"


def _is_host_and_port(text: str) -> bool:
    """Whether `example.com:8080/page` was written, whose beginning only looks like a scheme."""
    return re.match(r"[^/?#:]+:[0-9]{1,5}(?:[/?#]|$)", text) is not None


def _without_scheme(text: str) -> str:
    if text.startswith("//") or not text or text[0] in "/?#":
        return "The URL is not complete: write it like https://example.com/page."
    guess = _split_at(text, "/?#")[0].rpartition("@")[2]
    try:
        named = f" Did you mean https://{read_host(guess.partition(':')[0]).in_url}?"
    except BadHost:
        named = ""
    return f"The URL must start with https:// or http://.{named}"


def _split_at(text: str, marks: str) -> tuple[str, str, str]:
    """Split `text` at the first of `marks`; the mark is in the middle."""
    found = re.search(f"[{re.escape(marks)}]", text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])


def _target(rest: str) -> str:
    before, _, _ = rest.partition("#")
    path, mark, query = before.partition("?")
    path = quote(path, safe=_PATH_SAFE, errors="replace") or "/"
    return path + mark + quote(query, safe=_QUERY_SAFE, errors="replace")
