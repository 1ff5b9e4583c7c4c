"""Stores as they are given: what is none is refused when it is given, not when the first pause has to be saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lousho.core.errors import ConfigurationError
from lousho.core.redact import shown

_SESSION_STORE = ("load", "save", "delete")
_APPROVAL_STORE = ("save", "load", "claim", "list")


def check_approval_store(store: object, where: str, methods: Sequence[str] = _APPROVAL_STORE) -> None:
    """Refuse what is no approval store, such as a whole `AgentStore`. Raises `LOUSHO_CONFIG_INVALID`."""
    advice = " An AgentStore has one: pass its `approvals`." if hasattr(store, "approvals") else ""
    _check(store, methods, f"{where}: approval_store", "approval_store", advice)


def check_store(store: Any, where: str) -> None:
    """Refuse what is no `AgentStore`. Raises `LOUSHO_CONFIG_INVALID`."""
    if isinstance(store, type) or not (hasattr(store, "sessions") and hasattr(store, "approvals")):
        raise ConfigurationError(
            f"{where}: store must be an AgentStore, such as memory_store() gives; got {shown(store)}.", field="store"
        )
    _check(store.sessions, _SESSION_STORE, f"{where}: store.sessions", "store")
    _check(store.approvals, _APPROVAL_STORE, f"{where}: store.approvals", "store")


def _check(store: object, methods: Sequence[str], what: str, field: str, advice: str = "") -> None:
    if isinstance(store, type):
        raise ConfigurationError(f"{what} must be a store, not its class; write {store.__name__}().", field=field)
    lacking = [name for name in methods if not callable(getattr(store, name, None))]
    if lacking:
        *first, last = (f"{name}()" for name in methods)
        raise ConfigurationError(
            f"{what} must have {', '.join(first)} and {last}; {shown(store)} has no {lacking[0]}().{advice}",
            field=field,
        )
