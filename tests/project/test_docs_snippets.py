"""The Python blocks of the documentation run as they stand, page by page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests/support/run_snippets.py"
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(RUNNER), str(page)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=50, check=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path):
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        pytest.param("```python\nx = 1\n```\n```python\nassert x == 1\n```\n", 0, "2 blocks ran", id="one namespace"),
        pytest.param("```python\nimport asyncio\nawait asyncio.sleep(0)\n```\n", 0, "1 blocks ran", id="await"),
        pytest.param("hi\n\n```python\nassert False\n```\n", 1, 'page.md", line 4', id="the line of the page"),
        pytest.param("<!-- snippet: skip - needs a key -->\n```python\n1 / 0\n```\n", 0, "0 blocks ran", id="skipped"),
        pytest.param("<!-- snippet: skip -->\n```python\n1 / 0\n```\n", 1, "cannot read", id="no reason"),
        pytest.param("<!-- snippet: raises ZeroDivisionError -->\n```python\n1 / 0\n```\n", 0, "1 blocks", id="raises"),
        pytest.param(
            "<!-- snippet: raises OSError -->\n```python\n1\n```\n", 1, "OSError was not raised", id="does not"
        ),
        pytest.param("<!-- snippet: setup\nx = 1\n-->\n```python\nx\n```\n", 0, "2 blocks ran", id="setup"),
        pytest.param("```console\n$ ls\n```\n", 0, "0 blocks ran", id="other languages"),
    ],
)
def test_the_runner_does_what_a_page_asks(tmp_path: Path, text: str, code: int, says: str):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    done = run_page(page, tmp_path)
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
