"""`http_request` and `web_fetch`: the web, and only the public one, for a model that may have been talked into anything.

A host is resolved once, every address it has is checked, and the connection goes to one of those (`transport`). Nothing
of an HTTP library is loaded before the first request. Source: tools page ("Built-in tools").
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lousho.tools.web.addresses import is_public_address as is_public_address
    from lousho.tools.web.http_request import create_http_tool as create_http_tool
    from lousho.tools.web.http_request import http_tool as http_tool
    from lousho.tools.web.web_fetch import create_web_fetch_tool as create_web_fetch_tool
    from lousho.tools.web.web_fetch import web_fetch_tool as web_fetch_tool

_HOME = {
    "create_http_tool": "lousho.tools.web.http_request",
    "create_web_fetch_tool": "lousho.tools.web.web_fetch",
    "http_tool": "lousho.tools.web.http_request",
    "is_public_address": "lousho.tools.web.addresses",
    "web_fetch_tool": "lousho.tools.web.web_fetch",
}

__all__ = ["create_http_tool", "create_web_fetch_tool", "http_tool", "is_public_address", "web_fetch_tool"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lousho.tools.web' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOME[name]), name))
