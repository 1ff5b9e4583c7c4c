"""What the program says about itself."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from lousho_cli.commands import VERBS, load_verb
from lousho_cli.help import overview_row, verb_help
from lousho_cli.main import main
from lousho_cli.overview import OVERVIEW

if TYPE_CHECKING:
    from conftest import RunLousho


@pytest.mark.spec("CLI-02")
@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version_is_one_line_and_takes_no_argument(run_lousho: RunLousho, word: str) -> None:
    done = run_lousho([word])
    extra = run_lousho([word, "please"])

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{version('lousho')}\n", "")
    assert (extra.returncode, extra.stdout) == (2, "")
    assert "unexpected argument 'please'" in extra.stderr


@pytest.mark.spec("CLI-03")
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_three_ways_to_ask_for_help_print_usage_and_every_flag(run_lousho: RunLousho, verb: str) -> None:
    pages = [run_lousho(args) for args in ([verb, "-h"], [verb, "--help"], ["help", verb])]

    flags = {name for param in load_verb(verb).command.params for name in param.opts if name.startswith("-")}
    assert [page.returncode for page in pages] == [0, 0, 0]
    assert len({page.stdout for page in pages}) == 1
    assert f"usage: lousho {verb}" in pages[0].stdout
    assert flags | {"--help"} <= set(re.findall(r"--?[a-z][a-z-]*", pages[0].stdout))
    assert pages[0].stderr == ""


@pytest.mark.parametrize(
    "args", [["chat", "--bogus", "--help"], ["chat", "-h", "a", "b"], ["init", "--template", "-h"]]
)
def test_help_wins_over_mistakes_on_the_same_line(run_lousho: RunLousho, args: list[str]) -> None:
    done = run_lousho(args)

    assert done.returncode == 0
    assert done.stdout.count(f"usage: lousho {args[0]}") == 1


def test_a_help_flag_after_the_end_of_flags_is_an_argument(run_lousho: RunLousho) -> None:
    done = run_lousho(["chat", "--", "--help"])

    assert done.returncode == 1
    assert "--help" in done.stderr


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_command_with_its_flags(run_lousho: RunLousho, args: list[str]) -> None:
    done = run_lousho(args)

    assert (done.returncode, done.stderr) == (0, "")
    for verb in VERBS:
        assert re.search(rf"^  {verb}\b", done.stdout, re.MULTILINE)
        for param in load_verb(verb).command.params:
            for name in param.opts:
                assert not name.startswith("-") or name in done.stdout


def test_the_table_behind_the_overview_says_what_the_signatures_and_docstrings_say() -> None:
    assert [row.name for row in OVERVIEW] == list(VERBS)
    for row in OVERVIEW:
        assert row == overview_row(load_verb(row.name))


@pytest.mark.parametrize("columns", [40, 80, 110])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_is_wrapped_to_the_terminal(verb: str, columns: int) -> None:
    page = verb_help(load_verb(verb), columns)

    too_long = [line for line in page.splitlines() if len(line) > columns]
    assert [line for line in too_long if len(line.split()) > 2 and not line.startswith("  lousho")] == []


def test_help_reads_the_width_of_the_terminal(run_lousho: RunLousho) -> None:
    narrow, wide = (run_lousho(["help", "init"], env={"COLUMNS": columns}).stdout for columns in ("60", "110"))

    assert len(narrow.splitlines()) > len(wide.splitlines())
    assert max(map(len, narrow.splitlines())) <= 62


@pytest.mark.spec("BEY-08")
def test_lousho_alone_says_what_it_is_and_what_to_do_next(run_lousho: RunLousho) -> None:
    done = run_lousho([])

    steps = [line.split("   ")[0].strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"lousho {version('lousho')}: Build, run and test AI agents."
    assert steps == ["lousho init my-agent", "lousho chat ./my-agent", "lousho doctor"]


def test_completion_knows_commands_and_flags(run_lousho: RunLousho) -> None:
    bash = {"_LOUSHO_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    commands = run_lousho([], env={**bash, "COMP_WORDS": "lousho "})
    flags = run_lousho([], env={**bash, "COMP_WORDS": "lousho init --", "COMP_CWORD": "2"})

    assert set(VERBS) <= set(commands.stdout.split())
    assert {"--template", "--provider", "--yes"} <= set(flags.stdout.split())


@pytest.mark.parametrize("variables", [{}, {"COMP_WORDS": "lousho ", "COMP_CWORD": "x"}])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "nonsense"])
def test_completion_asked_without_its_variables_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], shell: str, variables: dict[str, str]
) -> None:
    for name, value in {"_LOUSHO_COMPLETE": f"complete_{shell}", **variables}.items():
        monkeypatch.setenv(name, value)

    code = main([])

    assert code in (0, 1, 2)
    assert "unexpected" not in capfd.readouterr().err
