"""The console blocks of the pages about the command line are typed into a shell, and show what the page shows.

Lines after `$ ` are commands, the others their output (stdout and stderr together). `...` stands for anything: within a
line, or alone for any number of lines. A command without shown output is only run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = ["cli.md", "installation.md"]
ROOT = Path(__file__).resolve().parents[2]


def sessions(page: str) -> list[list[tuple[str, list[str]]]]:
    """The console blocks of a page, each as commands with the output they show."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found: list[list[tuple[str, list[str]]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        steps: list[tuple[str, list[str]]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        found.append(steps)
    return found


def as_pattern(lines: list[str]) -> str:
    """The shown output as a regular expression."""
    parts: list[str] = []
    for line in lines:
        parts.append("(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n")
    return "".join(parts)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.skipif(os.name == "nt", reason="the blocks are for a POSIX shell")
def test_every_console_block_shows_what_happens(page: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    assert sessions(page) != []
    for number, steps in enumerate(sessions(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for command, shown in steps:
            if command.startswith("cd "):
                folder /= command[3:]
                continue
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                timeout=60,
                check=False,
            )
            assert "Traceback" not in done.stdout
            assert shown or done.returncode == 0, f"{page}: $ {command}\n{done.stdout}"
            if shown:
                assert re.fullmatch(as_pattern(shown), done.stdout), f"{page}: $ {command}\n{done.stdout}"
