"""`lousho version`, also `lousho --version`: one line with the version, nothing else."""

from __future__ import annotations

from lousho_cli.console import Console

EXAMPLES = (("lousho --version", "the same"),)


def version() -> None:
    """Print the version."""
    Console().out(installed_version())


def installed_version() -> str:
    """Return the version of the installed distribution, or of the source tree when none is installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("lousho")
    except PackageNotFoundError:
        return "0.0.0+source"
