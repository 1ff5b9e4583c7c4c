"""Which flags each command takes, by its help page and by using them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lousho_cli.commands import VERBS

if TYPE_CHECKING:
    from conftest import RunLousho

INIT = ("--provider", "--template", "--yes", "--no-install", "--no-git", "--package-manager", "--force", "--sdk-path")


@pytest.mark.spec("CLI-14")
def test_init_names_its_directory_and_all_its_flags(run_lousho: RunLousho) -> None:
    page = run_lousho(["init", "--help"])

    usage = " ".join(page.stdout.partition("usage: ")[2].partition("\n\n")[0].split())
    assert page.returncode == 0
    assert usage.startswith("lousho init [dir] ")
    assert re.findall(r"--[a-z-]+", usage) == list(INIT)
    assert "[--yes|-y]" in usage


@pytest.mark.spec("CLI-14")
def test_init_does_what_its_flags_say(run_lousho: RunLousho, tmp_path: Path, project_root: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept.txt").write_text("mine", encoding="utf-8")
    flags = ["--provider=anthropic", "--template=tools", "--yes", "--no-install", "--no-git", "--package-manager=pip"]

    refused = run_lousho(["init", "mine", *flags])
    done = run_lousho(["init", "mine", *flags, "--force", f"--sdk-path={project_root}"])

    assert (refused.returncode, done.returncode) == (2, 0), done.stderr
    project = tmp_path / "mine"
    assert (project / "kept.txt").read_text(encoding="utf-8") == "mine"
    assert '"anthropic/' in (project / "agent.py").read_text(encoding="utf-8")
    assert (project / "tools" / "delete_note.py").exists()
    assert not (project / ".git").exists()
    assert not (project / ".venv").exists()
    settings = (project / "pyproject.toml").read_text(encoding="utf-8")
    assert f"lousho @ {project_root.as_uri()}" in settings
    assert "setuptools" in settings


@pytest.mark.parametrize(
    ("verb", "arguments", "flags"),
    [
        ("run", "[prompt]", ["--model", "--output", "--timeout", "--yes"]),
        ("inspect", "", ["--prompt", "--tools", "--json", "--model"]),
    ],
)
def test_run_and_inspect_name_their_arguments_and_flags(
    run_lousho: RunLousho, verb: str, arguments: str, flags: list[str]
) -> None:
    page = run_lousho([verb, "--help"])

    usage = " ".join(page.stdout.partition("usage: ")[2].partition("\n\n")[0].split())
    assert page.returncode == 0
    assert usage.startswith(f"lousho {verb} <spec.yaml|spec.json|agent-dir|agent.py> {arguments}")
    assert re.findall(r"--[a-z-]+", usage) == flags


@pytest.mark.spec("CLI-08")
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_h_is_help_everywhere(run_lousho: RunLousho, verb: str) -> None:
    done = run_lousho([verb, "-h"])

    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: lousho {verb}" in done.stdout


@pytest.mark.spec("CLI-10")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["chat", "a.yaml", "--model"], "--model needs a value", id="missing value"),
        pytest.param(["init", "--template"], "--template needs a value", id="missing value of init"),
        pytest.param(["init", "--provider", "nope"], "--provider 'nope' is not one of", id="invalid value"),
        pytest.param(["chat", "a.yaml", "--session", "a b"], "a b", id="invalid session id"),
        pytest.param(["doctor", "--json=yes"], "--json takes no value", id="a value for a switch"),
        pytest.param(
            ["run"], "missing <spec.yaml|spec.json|agent-dir|agent.py>. `lousho run . 'hello'`", id="run alone"
        ),
        pytest.param(["run", "a.yaml", "hi", "--output"], "--output needs a value", id="missing value of run"),
        pytest.param(["run", "a.yaml", "hi", "--yes=no"], "--yes takes no value", id="a value for a switch of run"),
        pytest.param(["inspect"], "missing <spec.yaml|spec.json|agent-dir|agent.py>. `lousho inspect .`", id="inspect"),
        pytest.param(["inspect", "a.yaml", "b.yaml"], "unexpected argument 'b.yaml'", id="two agents"),
    ],
)
def test_a_value_that_is_missing_or_wrong_is_a_usage_error(
    run_lousho: RunLousho, tmp_path: Path, args: list[str], says: str
) -> None:
    done = run_lousho(args)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []
