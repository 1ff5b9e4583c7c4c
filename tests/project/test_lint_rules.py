"""The project's own lint rules see what they are there for, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_rules import check_file, main


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        pytest.param(
            "lousho_cli/verbs/x.py",
            "def f():\n    return typer.Exit(2)\n",
            "typer.Exit is returned",
            id="returned exit",
        ),
        pytest.param(
            "lousho/core/x.py",
            "from lousho import Agent\n",
            "a room imports lousho.Agent",
            id="room imports a public name",
        ),
        pytest.param("lousho/core/x.py", "import lousho\n", "a room imports lousho", id="room imports the root"),
        pytest.param("lousho/core/x.py", "p.read_text()\n", "read_text() without encoding", id="text without encoding"),
        pytest.param(
            "lousho/core/x.py", "p.write_text(t)\n", "write_text() without encoding", id="written without encoding"
        ),
        pytest.param("lousho/core/x.py", "open(p)\n", "open() without encoding", id="opened without encoding"),
        pytest.param("lousho/core/x.py", "asyncio.run(f())\n", "asyncio.run() inside a room", id="a loop in a room"),
        pytest.param("lousho/core/x.py", '"""See :class:`X` here."""\n', "reStructuredText", id="reStructuredText"),
    ],
)
def test_a_rule_finds_its_mistake(path: str, source: str, expected: str):
    findings = check_file(path, source)
    assert len(findings) == 1
    assert findings[0].text.startswith(expected)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        pytest.param("lousho_cli/verbs/x.py", "def f():\n    raise typer.Exit(2)\n", id="raised exit"),
        pytest.param("lousho/agent/x.py", "from lousho.core.errors import SDKError\n", id="room imports a room"),
        pytest.param(
            "lousho/core/x.py",
            "open(p, 'rb')\nopen(p, encoding='utf-8')\np.read_text('utf-8')\n",
            id="encoding or bytes",
        ),
        pytest.param("lousho/runtime/blocking.py", "asyncio.run(f())\n", id="the one place for loops"),
        pytest.param("lousho/core/x.py", '"""Use `x`.\n\n```python\na = {}\n```\n"""\n', id="Markdown"),
    ],
)
def test_a_rule_leaves_sound_code_alone(path: str, source: str):
    assert check_file(path, source) == []


def test_the_command_names_place_and_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "lousho").mkdir()
    (tmp_path / "lousho/x.py").write_text("open('a')\n", encoding="utf-8")
    assert main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "lousho/x.py:1: open() without encoding (encoding='utf-8')",
        "project rules: 1 findings",
    ]
