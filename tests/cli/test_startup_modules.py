"""The start of the program stays light: a list of modules is a steadier guard than a clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "asyncio",
    "httpx",
    "pydantic",
    "starlette",
    "rich",
    "jinja2",
    "yaml",
    "prompt_toolkit",
    "uvicorn",
    "watchfiles",
    "jsonschema",
    "pytest",
    "dotenv",
    "click",
}
PROGRAM = """
import sys
from lousho_cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("\\nMODULES " + str(code) + " " + " ".join(sorted(sys.modules)))
"""


def modules_after(*args: str) -> tuple[int, set[str]]:
    """The exit code of a command, and the modules that its process had loaded in the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    code, *names = done.stderr.rpartition("MODULES ")[2].split()
    return int(code), set(names)


@pytest.mark.spec("BEY-07")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param([], 0, id="alone"),
        pytest.param(["--help"], 0, id="overview"),
        pytest.param(["--version"], 0, id="version"),
        pytest.param(["frob"], 2, id="unknown command"),
        pytest.param(["chat", "--frob"], 2, id="unknown flag"),
        pytest.param(["chat"], 2, id="missing argument"),
        pytest.param(["init", "--template"], 2, id="missing value"),
        pytest.param(["help", "chat"], 0, id="help on a command"),
        pytest.param(["chat", "--help"], 0, id="help of a command"),
        pytest.param(["doctor", "--help"], 0, id="help of doctor"),
        pytest.param(["run", "--help"], 0, id="help of run"),
        pytest.param(["inspect", "--help"], 0, id="help of inspect"),
        pytest.param(["inspect", "agent.py", "--tools", "--json"], 2, id="flags that exclude each other"),
        pytest.param(["run"], 2, id="missing argument of run"),
        pytest.param(["run", "agent.py", "hi", "--frob"], 2, id="unknown flag of run"),
        pytest.param(["run", "agent.py", "hi", "--timeout", "soon"], 2, id="unusable time limit"),
        pytest.param(["run", "agent.py", "hi", "--output", "yaml"], 2, id="unusable form of output"),
        pytest.param(["run", "agent.py", " "], 2, id="empty prompt"),
    ],
)
def test_help_version_and_usage_errors_load_nothing_heavy(args: list[str], code: int) -> None:
    ended, loaded = modules_after(*args)

    assert ended == code
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith(("lousho.models", "lousho.agent", "lousho.loader"))}


def test_a_command_imports_no_other_command() -> None:
    _, loaded = modules_after("init", "--frob")

    assert {name for name in loaded if name.startswith("lousho_cli.verbs.")} == {"lousho_cli.verbs.init"}


def test_an_unknown_command_the_version_and_the_overview_need_no_typer() -> None:
    for args in (["frob"], ["--version"], [], ["--help"], ["-h"], ["help"]):
        assert "typer" not in modules_after(*args)[1]
