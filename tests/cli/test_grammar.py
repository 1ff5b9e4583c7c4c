"""The one grammar of all command lines, seen through the real command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.core import TyperCommand

from lousho_cli.commands import VERBS, load_verb
from lousho_cli.errors import UsageError
from lousho_cli.grammar import canonical

if TYPE_CHECKING:
    from conftest import RunLousho


def scaffold(run_lousho: RunLousho, *args: str) -> set[str]:
    """What a project made with these arguments consists of, without its tests and texts."""
    done = run_lousho(["init", "--yes", "--no-install", "--no-git", *args])
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.spec("CLI-04")
def test_a_flag_takes_its_value_after_a_space_or_an_equals_sign(run_lousho: RunLousho, tmp_path: Path) -> None:
    scaffold(run_lousho, "a", "--template", "yaml", "--provider", "mock")
    scaffold(run_lousho, "b", "--template=yaml", "--provider=mock")

    both = [(tmp_path / name / "agent.yaml").read_text(encoding="utf-8").replace(f'"{name}"', "") for name in "ab"]
    assert both[0] == both[1]


@pytest.mark.spec("CLI-04")
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(["--template", "tools", "--template=yaml"], id="space, then equals sign"),
        pytest.param(["--template=tools", "--template", "yaml"], id="equals sign, then space"),
        pytest.param(["--template=nonsense", "--template=yaml"], id="what was overruled is not looked at"),
    ],
)
def test_the_last_of_a_repeated_flag_wins(run_lousho: RunLousho, tmp_path: Path, flags: list[str]) -> None:
    scaffold(run_lousho, "here", *flags)

    assert (tmp_path / "here" / "agent.yaml").exists()


@pytest.mark.spec("CLI-04")
def test_a_double_dash_ends_the_flags(run_lousho: RunLousho, tmp_path: Path) -> None:
    scaffold(run_lousho, "--", "--template")

    assert (tmp_path / "--template" / "agent.py").exists()


@pytest.mark.spec("CLI-05")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["a.yaml", "--modle", "x"], "unknown flag --modle. Did you mean --model?", id="unknown flag"),
        pytest.param(["a.yaml", "-model", "x"], "unknown flag -model. Did you mean --model?", id="one dash"),
        pytest.param(["a.yaml", "--model"], "--model needs a value: --model provider/model", id="no value"),
        pytest.param(["a.yaml", "--model="], "--model needs a value", id="empty value"),
        pytest.param(["a.yaml", "--model", ""], "--model needs a value", id="empty word"),
        pytest.param(["a.yaml", "--model", "--session", "x"], "--model needs a value", id="the next flag is no value"),
        pytest.param(["a.yaml", "--model", "--", "x"], "--model needs a value", id="the end of flags is no value"),
        pytest.param(["a.yaml", "b.yaml"], "unexpected argument 'b.yaml'", id="extra argument"),
        pytest.param(["--", "a.yaml", "--model"], "unexpected argument '--model'", id="extra argument after --"),
        pytest.param([], "missing <spec.yaml|spec.json|agent-dir|agent.py>", id="missing argument"),
        pytest.param([""], "<spec.yaml|spec.json|agent-dir|agent.py> is empty", id="empty argument"),
    ],
)
def test_a_wrong_command_line_is_a_coded_usage_error(run_lousho: RunLousho, args: list[str], says: str) -> None:
    done = run_lousho(["chat", *args])

    first, usage = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith("error: ")
    assert says in first
    synopsis = "usage: lousho chat <spec.yaml|spec.json|agent-dir|agent.py> [--model provider/model] "
    assert usage.startswith(f"[LOUSHO_CONFIG_INVALID] {synopsis}")


@pytest.mark.spec("CLI-05")
@pytest.mark.parametrize("flag", ["--json=yes", "--json=", "--ping=1"])
def test_a_switch_takes_no_value(run_lousho: RunLousho, flag: str) -> None:
    done = run_lousho(["doctor", flag])

    assert done.returncode == 2
    assert f"{flag.partition('=')[0]} takes no value" in done.stderr


@pytest.mark.spec("CLI-06")
def test_a_value_that_starts_with_a_dash_needs_the_equals_sign(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text('{"name": "a", "prompt": "b", "provider": {"type": "mock", "model": "m"}}')

    taken = run_lousho(["chat", "agent.json", "--model=-x"])
    missing = run_lousho(["chat", "agent.json", "--model", "-x"])

    assert "'-x'" in taken.stderr
    assert "LOUSHO_PROVIDER_SPEC_INVALID" in taken.stderr
    assert missing.returncode == 2
    assert "--model needs a value" in missing.stderr
    assert "--model=-x" in missing.stderr


@pytest.mark.spec("CLI-08")
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_no_short_flag_but_help_and_yes_exists(run_lousho: RunLousho, verb: str) -> None:
    import string

    allowed = {"h", "y"} if verb == "init" else {"h"}
    shorts = {name[1:] for param in load_verb(verb).command.params for name in param.opts if not name.startswith("--")}
    page = run_lousho(["help", verb]).stdout.split()
    named = {letter for letter in string.ascii_letters if f"-{letter}" in page}
    refused = run_lousho([verb, "-p"])

    assert {word for word in shorts if len(word) == 1} | named <= allowed
    assert refused.returncode == 2
    assert "unknown flag -p" in refused.stderr


@pytest.mark.spec("CLI-08")
def test_y_means_yes_on_init(run_lousho: RunLousho, tmp_path: Path) -> None:
    done = run_lousho(["init", "-y", "--no-install", "--no-git", "quiet"])

    assert done.returncode == 0
    assert (tmp_path / "quiet" / "agent.py").exists()


@pytest.mark.spec("CLI-10")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["frob"], "unknown command 'frob'", id="unknown command"),
        pytest.param(["docter"], "Did you mean lousho doctor?", id="nearly a command"),
        pytest.param(["--frob"], "unknown flag '--frob'", id="unknown flag before any command"),
        pytest.param(["--model", "x", "chat", "a.yaml"], "unknown flag '--model'", id="a flag before its command"),
        pytest.param(["help", "frob"], "unknown command 'frob'", id="help on an unknown command"),
        pytest.param(["help", "chat", "x"], "unexpected argument 'x'", id="help on two commands"),
        pytest.param(["chat"], "missing <spec.yaml|", id="missing agent"),
        pytest.param(["doctor", "--jsn"], "Did you mean --json?", id="nearly a flag"),
        pytest.param(["doctor", "a", "b"], "unexpected argument 'b'", id="extra argument"),
        pytest.param(["version", "x"], "unexpected argument 'x'", id="an argument of version"),
        pytest.param(["--version", "x"], "usage: lousho --version\n", id="an argument of the flag"),
        pytest.param(["chat"], "`lousho init my-agent` starts a project", id="nothing to talk to"),
    ],
)
def test_a_usage_error_exits_with_2(run_lousho: RunLousho, args: list[str], says: str) -> None:
    done = run_lousho(args)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "usage: lousho " in done.stderr


def test_what_was_typed_is_repeated_short_and_without_control_characters(run_lousho: RunLousho) -> None:
    done = run_lousho(["chat", "a.yaml", "\x1b[31mred" + "x" * 100_000])

    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 1000


def example(
    path: Annotated[str, typer.Argument(metavar="path")],
    traces: Annotated[str | None, typer.Option("--traces", metavar="[=dir]")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="t")] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="m")] = None,
    json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """A verb with every kind of flag."""


def example_command() -> TyperCommand:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("example")(example)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["--traces", "agent.yaml"], {"path": "agent.yaml", "traces": ""}),
        (["--traces=./t", "agent.yaml"], {"path": "agent.yaml", "traces": "./t"}),
        (["a", "--tag", "x", "--tag=y"], {"path": "a", "tag": ["x", "y"]}),
        (["-", "--model", "-"], {"path": "-", "model": "-"}),
        (["--json", "--", "--json"], {"path": "--json", "json": True}),
        (["--model=a=b", "a"], {"path": "a", "model": "a=b"}),
    ],
)
def test_typer_reads_what_the_grammar_accepted(argv: list[str], values: dict[str, object]) -> None:
    command = example_command()

    with command.make_context("example", canonical(command, argv)) as context:
        given_values = {
            name: list(value) if isinstance(value, tuple) else value for name, value in context.params.items()
        }

    unset: dict[str, object] = {"traces": None, "tag": [], "model": None, "json": False}
    assert {**unset, **values} == {name: value if value != () else [] for name, value in given_values.items()}


WORDS = st.sampled_from(
    [
        "--",
        "-",
        "",
        "a",
        "--json",
        "--json=1",
        "--model",
        "--model=",
        "--model=-x",
        "--tag",
        "--traces",
        "--traces=d",
        "-h",
        "-y",
        "--no",
        "--é",
        "�",
        "b c",
    ]
)


@given(st.lists(WORDS, max_size=6))
def test_every_command_line_is_refused_or_read_one_way(argv: list[str]) -> None:
    command = example_command()
    try:
        first = canonical(command, argv)
    except UsageError:
        return
    with command.make_context("example", list(first)) as context:
        path = context.params["path"]
    assert isinstance(path, str)
    assert path == first[-1]
