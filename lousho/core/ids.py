"""Identifiers: short, unguessable, safe as file names and URL parts."""

from __future__ import annotations

import os


def new_id(prefix: str) -> str:
    """Return `<prefix>-<16 lower-case hex digits>`, e.g. `run-9f2c4e7a1b3d5f60` (64 random bits)."""
    return f"{prefix}-{os.urandom(8).hex()}"
