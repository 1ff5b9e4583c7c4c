"""The one error of scaffolding a project that is about how it was asked for."""

from __future__ import annotations


class InitUsageError(Exception):
    """`lousho init` was asked for something it cannot do: a flag, a value, a directory that is not empty.

    Plain on purpose: its message is printed as it is, without a code, and the exit code is 2.
    Source: CLI page, ".env".
    """
