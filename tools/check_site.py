"""Refuses a documentation site that fetches anything from another host: readers' addresses are not ours to give away.

usage: check_site.py [SITE]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOADS = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"'](?P<src>(?:https?:)?//[^\"']+)"
    r"|<link\b(?=[^>]*\brel=[\"'](?:stylesheet|preconnect|preload|icon|modulepreload)[\"'])[^>]*\bhref=[\"'](?P<href>(?:https?:)?//[^\"']+)",
    re.IGNORECASE,
)
STYLE = re.compile(r"(?:@import\s+|url\()[\"']?(?P<url>(?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


def main(site: Path) -> int:
    """Look into every page and style sheet; returns the exit code."""
    found: list[str] = []
    pages = sorted(site.rglob("*.html"))
    for file in (*pages, *sorted(site.rglob("*.css"))):
        pattern = STYLE if file.suffix == ".css" else LOADS
        for match in pattern.finditer(file.read_text(encoding="utf-8", errors="replace")):
            target = next(value for value in match.groupdict().values() if value)
            found.append(f"{file.relative_to(site)}: loads {target}")
    print("\n".join(found))
    print(f"site: {len(pages)} pages, {len(found)} loads from other hosts")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
