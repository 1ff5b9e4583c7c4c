"""`lousho version`, also `lousho --version`: one line with the version, nothing else."""

from __future__ import annotations

from lousho_cli.console import Console

EXAMPLES = (("lousho --version", "the same"),)


def version() -> None:
    """Print the version."""
    Console().out(installed_version())


def installed_version() -> str:
    """Return the version of the package that runs."""
    from lousho import __version__

    return __version__
