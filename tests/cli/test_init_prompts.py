"""`lousho init` on a terminal: three questions, and ways out of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pexpect = pytest.importorskip("pexpect", reason="needs a pseudo-terminal")


@contextmanager
def terminal(folder: Path, *args: str) -> Generator[Any]:
    """`lousho init …` with a person at it; every wait is bounded."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "lousho_cli", "init", "--no-install", "--no-git", *args],
        cwd=str(folder),
        env=dict(os.environ),
        encoding="utf-8",
        timeout=20,
    )
    try:
        yield child
    finally:
        child.close(force=True)


@pytest.mark.spec("QS-02")
def test_init_alone_asks_for_directory_provider_and_template(tmp_path: Path) -> None:
    with terminal(tmp_path) as person:
        person.expect_exact("Directory [my-agent]: ")
        person.sendline("named here")
        person.expect_exact("Provider [openai]: ")
        person.sendline("anthropic")
        person.expect_exact("Template [minimal]: ")
        person.sendline("yaml")
        person.expect_exact("Next:")
        person.expect(pexpect.EOF)
        person.wait()

    spec = (tmp_path / "named here" / "agent.yaml").read_text(encoding="utf-8")
    assert person.exitstatus == 0
    assert 'type: "anthropic"' in spec


@pytest.mark.spec("QS-02")
def test_the_help_of_init_lists_all_flags(tmp_path: Path) -> None:
    with terminal(tmp_path, "--help") as person:
        person.expect(pexpect.EOF)
        shown = str(person.before)

    flags = [
        "--provider",
        "--template",
        "--yes",
        "--no-install",
        "--no-git",
        "--package-manager",
        "--force",
        "--sdk-path",
    ]
    assert [flag for flag in flags if flag not in shown] == []


def test_enter_takes_the_default_and_a_number_picks(tmp_path: Path) -> None:
    with terminal(tmp_path) as person:
        for question, answer in (("Directory", ""), ("Provider", "3"), ("Template", "")):
            person.expect(f"{question} .*: ")
            person.sendline(answer)
        person.expect(pexpect.EOF)

    assert '"mock/demo"' in (tmp_path / "my-agent" / "agent.py").read_text(encoding="utf-8")


def test_a_wrong_answer_is_asked_again(tmp_path: Path) -> None:
    with terminal(tmp_path, "x", "--template", "minimal") as person:
        for answer in ("nope", "9", "\u0663", "anthropic"):
            person.expect_exact("Provider [openai]: ")
            person.sendline(answer)
        person.expect(pexpect.EOF)

    assert '"anthropic/' in (tmp_path / "x" / "agent.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("args", [("--yes",), ("x", "--provider", "mock", "--template", "tools")])
def test_what_is_given_is_not_asked(tmp_path: Path, args: tuple[str, ...]) -> None:
    with terminal(tmp_path, *args) as person:
        person.expect(pexpect.EOF)
        person.wait()
        shown = str(person.before)

    assert person.exitstatus == 0
    assert "]: " not in shown


@pytest.mark.parametrize("leave", ["sendintr", "sendeof"])
@pytest.mark.parametrize("question", ["Directory", "Provider"])
def test_leaving_at_a_question_writes_nothing(tmp_path: Path, leave: str, question: str) -> None:
    with terminal(tmp_path) as person:
        if question == "Provider":
            person.expect_exact("Directory [my-agent]: ")
            person.sendline("")
        person.expect(f"{question} .*: ")
        getattr(person, leave)()
        person.expect_exact("Nothing was written.")
        person.expect(pexpect.EOF)
        person.wait()

    assert person.exitstatus == 130
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_empty_is_refused_before_the_other_questions(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("mine", encoding="utf-8")

    with terminal(tmp_path, "x") as person:
        person.expect(pexpect.EOF)
        person.wait()
        shown = str(person.before)

    assert person.exitstatus == 2
    assert "'x' is not empty" in shown
    assert "Provider" not in shown
