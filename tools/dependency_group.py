"""Prints a dependency group of `pyproject.toml`, one requirement a line (old versions of pip cannot read groups).

usage: dependency_group.py GROUP
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main(group: str) -> int:
    """Print the requirements of one group; exit 2 when there is no such group."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    groups: dict[str, list[str]] = tomllib.loads(text)["dependency-groups"]
    if group not in groups:
        print(f"pyproject.toml has no dependency group {group!r}: {', '.join(sorted(groups))}", file=sys.stderr)
        return 2
    print("\n".join(groups[group]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
