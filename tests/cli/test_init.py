"""`lousho init`: which files, where, and what it refuses. The projects themselves are run in `test_init_projects.py`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lousho_cli.main import main

if TYPE_CHECKING:
    from conftest import RunLousho

QUIET = ["--yes", "--no-install", "--no-git"]
COMMON = {".env.example", ".gitignore", "AGENTS.md", "CLAUDE.md", "README.md", "pyproject.toml", "tests/test_agent.py"}
DIRECTORY = COMMON | {"agent.py", "instructions.md"}
TEMPLATES = {
    "minimal": DIRECTORY | {"tools/roll_dice.py"},
    "tools": DIRECTORY | {"tools/add_note.py", "tools/list_notes.py", "tools/delete_note.py"},
    "yaml": COMMON | {"agent.yaml"},
}


def files_in(folder: Path) -> set[str]:
    """Every file below `folder` but git's own, as relative POSIX paths."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.parts[0] != ".git"}


def read(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_each_template_writes_its_files(run_lousho: RunLousho, tmp_path: Path, template: str) -> None:
    done = run_lousho(["init", "x", "--template", template, *QUIET])

    assert (done.returncode, done.stderr) == (0, "")
    assert files_in(tmp_path / "x") == TEMPLATES[template]


@pytest.mark.parametrize("template", sorted(TEMPLATES))
@pytest.mark.parametrize(
    ("provider", "model", "key"),
    [
        ("openai", "openai/gpt-4.1-mini", "OPENAI_API_KEY"),
        ("anthropic", "anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("mock", "mock/demo", None),
    ],
)
def test_the_files_name_the_provider_its_model_and_its_key(
    run_lousho: RunLousho, tmp_path: Path, template: str, provider: str, model: str, key: str | None
) -> None:
    run_lousho(["init", "x", "--template", template, "--provider", provider, *QUIET])

    project = tmp_path / "x"
    if template == "yaml":
        spec = read(project, "agent.yaml")
        assert f'type: "{provider}"\n  model: "{model.partition("/")[2]}"' in spec
    else:
        assert f'"{model}"' in read(project, "agent.py")
        assert '"max_tokens": 4096' in read(project, "agent.py")
    if key is not None:
        assert f"\n{key}=\n" in read(project, ".env.example")
        assert key in read(project, "README.md")
        assert "--model mock/demo" in read(project, "README.md")
    assert read(project, "CLAUDE.md") == "@AGENTS.md\n"
    assert {".env", ".lousho/"} <= set(read(project, ".gitignore").splitlines())


@pytest.mark.parametrize(
    ("env", "provider"),
    [
        ({}, "openai"),
        ({"OPENAI_API_KEY": "k"}, "openai"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": ""}, "anthropic"),
    ],
)
def test_the_default_provider_is_the_one_whose_key_is_set(
    run_lousho: RunLousho, tmp_path: Path, env: dict[str, str], provider: str
) -> None:
    done = run_lousho(["init", "x", *QUIET], env=env)

    assert f'"{provider}/' in read(tmp_path / "x", "agent.py")
    assert ("is not set" in done.stdout) is (not env)


def test_nothing_is_asked_without_a_terminal(run_lousho: RunLousho, tmp_path: Path) -> None:
    done = run_lousho(["init", "--no-install", "--no-git"], input="")

    assert (done.returncode, done.stderr) == (0, "")
    assert files_in(tmp_path / "my-agent") == TEMPLATES["minimal"]


@pytest.mark.spec("CLI-13")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["--provider", "nope"], "--provider 'nope' is not one of openai, anthropic, mock", id="provider"),
        pytest.param(["--provider", "opnai"], "Did you mean 'openai'?", id="nearly a provider"),
        pytest.param(["--template", "telegrm"], "is not one of minimal, tools, yaml", id="template"),
        pytest.param(["--package-manager", "npm"], "is not one of uv, pip, poetry", id="package manager"),
        pytest.param(["--sdk-path", "not-there"], "--sdk-path 'not-there' does not exist", id="SDK path"),
        pytest.param(
            ["--sdk-path", "."],
            "is not a checkout, a wheel or a source distribution",
            id="a directory of something else",
        ),
        pytest.param(["--provder", "x"], "unknown flag --provder. Did you mean --provider?", id="unknown flag"),
        pytest.param(["--template"], "--template needs a value", id="missing value"),
        pytest.param(["--template", "--yes"], "--template needs a value", id="the next flag is no value"),
        pytest.param(["a", "b"], "unexpected argument 'b'", id="extra argument"),
        pytest.param(["--yes=1"], "--yes takes no value", id="a value for a switch"),
    ],
)
def test_a_wrong_init_says_so_in_its_own_words(
    run_lousho: RunLousho, tmp_path: Path, args: list[str], says: str
) -> None:
    done = run_lousho(["init", *args])

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "LOUSHO_" not in done.stderr.replace("LOUSHO_SDK_PATH", "")
    assert not done.stderr.startswith("error:")
    assert files_in(tmp_path) == set()


def test_a_directory_with_something_in_it_is_refused_with_what_would_happen(
    run_lousho: RunLousho, tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "README.md").write_text("mine", encoding="utf-8")
    (tmp_path / "x" / "notes.txt").write_text("mine too", encoding="utf-8")

    done = run_lousho(["init", "x", *QUIET])

    lines = done.stderr.splitlines()
    assert done.returncode == 2
    assert lines[0] == "'x' is not empty: it holds README.md, notes.txt."
    assert lines[1] == "init would replace README.md."
    assert "agent.py" in lines[2]
    assert "--force" in lines[3]
    assert files_in(tmp_path / "x") == {"README.md", "notes.txt"}


def test_force_replaces_what_it_writes_and_leaves_the_rest(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "README.md").write_text("mine", encoding="utf-8")
    (tmp_path / "x" / "notes.txt").write_text("mine too", encoding="utf-8")

    done = run_lousho(["init", "x", "--force", *QUIET])

    assert done.returncode == 0
    assert read(tmp_path / "x", "README.md").startswith("# x\n")
    assert read(tmp_path / "x", "notes.txt") == "mine too"


@pytest.mark.parametrize(("first", "then"), [("minimal", "yaml"), ("yaml", "tools")])
def test_force_with_another_template_never_leaves_two_config_files(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, first: str, then: str
) -> None:
    folder = tmp_path / "x"
    main(["init", str(folder), "--template", first, *QUIET])
    before = {name: read(folder, name) for name in files_in(folder)}

    code = main(["init", str(folder), "--template", then, "--force", *QUIET])

    assert code == 2
    assert "an agent has one config file" in capfd.readouterr().err
    assert {name: read(folder, name) for name in files_in(folder)} == before


def test_the_key_comes_before_the_chat(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["init", str(tmp_path / "x"), "--provider", "anthropic", *QUIET])

    steps = [line.strip() for line in capfd.readouterr().out.splitlines()[-3:]]
    assert [step.split()[0] for step in steps[:2]] == ["cd", "cp" if sys.platform != "win32" else "copy"]
    assert " chat ." in steps[2]


def test_an_empty_directory_and_a_fresh_clone_need_no_force(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "clone" / ".git").mkdir(parents=True)

    assert [run_lousho(["init", name, *QUIET]).returncode for name in ("empty", "clone")] == [0, 0]


def test_a_file_in_the_place_of_the_directory_is_refused(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file", encoding="utf-8")

    done = run_lousho(["init", "x", *QUIET])

    assert done.returncode == 2
    assert "'x' is a file" in done.stderr
    assert read(tmp_path, "x") == "a file"


def test_what_cannot_be_written_whole_is_not_written_at_all(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "x" / "tests" / "test_agent.py").mkdir(parents=True)  # a directory where a file must go
    (tmp_path / "x" / "agent.py").write_text("mine", encoding="utf-8")

    done = run_lousho(["init", "x", "--force", *QUIET])

    assert done.returncode == 1
    assert "test_agent.py" in done.stderr
    assert files_in(tmp_path / "x") == {"agent.py"}
    assert read(tmp_path / "x", "agent.py") == "mine"
    assert not (tmp_path / "x" / "tools").exists()


def test_a_link_in_the_directory_is_replaced_not_followed(run_lousho: RunLousho, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "elsewhere.md").write_text("precious", encoding="utf-8")
    (tmp_path / "x" / "README.md").symlink_to(tmp_path / "elsewhere.md")

    run_lousho(["init", "x", "--force", *QUIET])

    assert read(tmp_path, "elsewhere.md") == "precious"
    assert read(tmp_path / "x", "README.md").startswith("# x\n")


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("my agent", "my-agent"),
        ("Über Ägent", "uber-agent"),
        ("агент", "my-agent"),
        ("deep/er/x", "x"),
        ("quote'\"$HOME`;#", "quote-home"),
        ("100%", "100"),
    ],
)
def test_any_directory_name_works(run_lousho: RunLousho, tmp_path: Path, directory: str, name: str) -> None:
    done = run_lousho(["init", directory, *QUIET])

    assert (done.returncode, done.stderr) == (0, "")
    project = tomllib.loads(read(tmp_path / directory, "pyproject.toml"))["project"]
    assert project["name"] == name
    assert f'"name": "{name}"' in read(tmp_path / directory, "agent.py")


@pytest.mark.parametrize(
    ("directory", "env"),
    [
        ("my agent", {}),
        ("quote'\"$HOME`;#", {"OPENAI_API_KEY": "k"}),
        ("плюс", {}),
        ("--dash", {"OPENAI_API_KEY": "k"}),
        (".", {}),
        (".", {"OPENAI_API_KEY": "k"}),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the lines are for another shell there")
def test_the_last_three_lines_can_be_pasted(
    run_lousho: RunLousho, tmp_path: Path, directory: str, env: dict[str, str]
) -> None:
    done = run_lousho(["init", *QUIET, "--", directory], env=env)

    *_, header, first, second, third = done.stdout.splitlines()
    steps = [first.strip(), second.strip(), third.strip()]
    assert header == "Next:"
    assert "#" in directory or not any("#" in step for step in steps)  # zsh would pass a comment on as arguments
    assert (steps[0].startswith("cd ")) is (directory != ".")
    shell = "\n".join(["set -e", *(step.replace(" chat .", " --version") for step in steps if "pytest" not in step)])
    shell = shell.replace("doctor .", "--version")
    ran = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / directory / ".env").exists() is (not env)


def test_a_missing_key_is_said_and_the_way_without_one(run_lousho: RunLousho) -> None:
    done = run_lousho(["init", "x", "--provider", "anthropic", *QUIET])

    assert "ANTHROPIC_API_KEY is not set" in done.stdout
    assert "mock/demo" in done.stdout


def test_git_init_is_run_unless_a_repository_is_there(run_lousho: RunLousho, tmp_path: Path) -> None:
    run_lousho(["init", "outer", "--yes", "--no-install"])
    run_lousho(["init", "outer/inner", "--yes", "--no-install"])
    run_lousho(["init", "plain", *QUIET])

    assert [(tmp_path / name / ".git").exists() for name in ("outer", "outer/inner", "plain")] == [True, False, False]


def test_a_missing_git_is_said_and_no_failure(run_lousho: RunLousho, tmp_path: Path) -> None:
    done = run_lousho(["init", "x", "--yes", "--no-install"], env={"PATH": str(tmp_path)})

    assert done.returncode == 0
    assert "git is not on the PATH" in done.stdout


def test_it_is_quick(run_lousho: RunLousho) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_lousho(["init", "x", *QUIET])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_the_one_shot_creator_makes_the_same_tree(run_lousho: RunLousho, tmp_path: Path) -> None:
    run_lousho(["init", "a/x", *QUIET])
    program = "import sys; from lousho_cli.main import create_agent_main; sys.exit(create_agent_main())"
    creator = subprocess.run(
        [sys.executable, "-c", program, "b/x", *QUIET], cwd=tmp_path, capture_output=True, timeout=30, check=False
    )

    assert creator.returncode == 0, creator.stderr
    assert files_in(tmp_path / "a" / "x") == files_in(tmp_path / "b" / "x")
    for name in files_in(tmp_path / "a" / "x"):
        assert read(tmp_path / "a" / "x", name) == read(tmp_path / "b" / "x", name)


@pytest.mark.spec("CLI-24")
@pytest.mark.parametrize("manager", ["uv", "pip", "poetry"])
def test_a_checkout_depends_on_itself(run_lousho: RunLousho, tmp_path: Path, project_root: Path, manager: str) -> None:
    run_lousho(["init", "x", "--package-manager", manager, *QUIET])

    document = tomllib.loads(read(tmp_path / "x", "pyproject.toml"))
    if manager == "uv":
        assert document["project"]["dependencies"] == ["lousho"]
        assert document["tool"]["uv"]["sources"]["lousho"] == {"path": project_root.as_posix(), "editable": True}
    else:
        assert document["project"]["dependencies"] == [f"lousho @ {project_root.as_uri()}"]


@pytest.mark.spec("HAZ-53", "ENV-17", "CLI-24")
@pytest.mark.parametrize(
    ("packed", "manager", "by"),
    [
        ("lousho-9.9.9-py3-none-any.whl", "uv", "flag"),
        ("lousho-9.9.9-py3-none-any.whl", "pip", "variable"),
        ("lousho-9.9.9.tar.gz", "uv", "variable"),
        ("lousho-9.9.9.tar.gz", "pip", "flag"),
    ],
)
def test_a_packed_release_is_copied_into_the_project_and_kept_out_of_git(
    run_lousho: RunLousho, tmp_path: Path, packed: str, manager: str, by: str
) -> None:
    wheel = tmp_path / packed
    wheel.write_bytes(b"the wheel")
    named = (["--sdk-path", str(wheel)], {}) if by == "flag" else ([], {"LOUSHO_SDK_PATH": str(wheel)})

    run_lousho(["init", "my x", "--yes", "--no-install", "--package-manager", manager, *named[0]], env=named[1])

    project = tmp_path / "my x"
    copy = project / "vendor" / wheel.name
    document = tomllib.loads(read(project, "pyproject.toml"))
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project, capture_output=True, text=True, timeout=30, check=True
    )
    assert copy.read_bytes() == b"the wheel"
    assert "vendor" not in status.stdout
    assert "agent.py" in status.stdout
    if manager == "uv":
        assert document["tool"]["uv"]["sources"]["lousho"] == {"path": f"vendor/{wheel.name}"}
    else:
        assert document["project"]["dependencies"] == [f"lousho @ {copy.as_uri()}"]


@pytest.mark.spec("CLI-24")
@pytest.mark.parametrize("source", ["wheel", "index"])
def test_an_installed_lousho_is_depended_on_as_it_was_installed(
    run_lousho: RunLousho, tmp_path: Path, source: str
) -> None:
    """What pip writes beside a package that came from a wheel on this machine, or from an index, is put before ours."""
    wheel = tmp_path / "lousho-9.9.9-py3-none-any.whl"
    wheel.write_bytes(b"the wheel")
    installed = tmp_path / "site" / "lousho-9.9.9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: lousho\nVersion: 9.9.9\n", encoding="utf-8")
    if source == "wheel":
        (installed / "direct_url.json").write_text(f'{{"url": "{wheel.as_uri()}", "archive_info": {{}}}}', "utf-8")
    path = os.pathsep.join([str(installed.parent), os.environ["PYTHONPATH"]])

    done = run_lousho(["init", "x", "--package-manager", "pip", *QUIET], env={"PYTHONPATH": path})

    (dependency,) = tomllib.loads(read(tmp_path / "x", "pyproject.toml"))["project"]["dependencies"]
    copy = tmp_path / "x" / "vendor" / wheel.name
    assert done.returncode == 0, done.stderr
    assert dependency == (f"lousho @ {copy.as_uri()}" if source == "wheel" else "lousho>=9.9.9,<10")
    assert copy.exists() is (source == "wheel")


def test_the_version_range_of_a_release_stops_before_the_next_incompatible_one() -> None:
    from lousho.scaffold.sdk_source import version_range

    assert [version_range(version) for version in ("0.1.0", "0.12.3", "1.4.2", "2.0.0rc1", "0.1.0+local")] == [
        ">=0.1.0,<0.2",
        ">=0.12.3,<0.13",
        ">=1.4.2,<2",
        ">=2.0.0rc1,<3",
        ">=0.1.0,<0.2",
    ]


def test_lines_for_powershell_are_quoted_its_way() -> None:
    from lousho.scaffold.shell import command_line, copy_line

    assert command_line(["cd", "my agent"], windows=True) == "cd 'my agent'"
    assert command_line(["cd", "it's"], windows=True) == "cd 'it''s'"
    assert command_line([r"C:\Program Files\python.exe", "-m", "x"], windows=True).startswith("& 'C:")
    assert copy_line(".env.example", ".env", windows=True) == "copy .env.example .env"


def test_generated_texts_have_no_leftovers(tmp_path: Path) -> None:
    from lousho.scaffold.options import resolve_options
    from lousho.scaffold.render import render_project

    for template in TEMPLATES:
        for manager in ("uv", "pip", "poetry"):
            for provider in ("openai", "mock"):
                options = resolve_options(
                    directory=str(tmp_path / "x"),
                    provider=provider,
                    template=template,
                    package_manager=manager,
                    sdk_path=None,
                    install=False,
                    git=False,
                    force=False,
                    env={},
                )
                for file in render_project(options):
                    text = file.content.decode("utf-8")
                    assert not re.search(r"{{ |{%|%}|\bUndefined\b", text), file.path
                    assert file.path.suffix == ".py" or "\n\n\n" not in text, file.path
                    assert text.endswith("\n"), file.path
                    assert not text.endswith("\n\n"), file.path
