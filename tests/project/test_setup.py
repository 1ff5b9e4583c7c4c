"""What a newcomer meets before anything is installed: one sentence that says what is wrong and what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the Makefile is for POSIX shells")

OLD = 'case "$*" in *version_info*) exit 1 ;; *) echo 3.9.2 ;; esac'
WITHOUT_VENV = 'case "$*" in *ensurepip*) exit 1 ;; *version_info*) exit 0 ;; *) echo 3.11.2 ;; esac'
BREAKS = (
    'case "$*" in *"-m venv"*) echo "disk full"; exit 1 ;; *version_info*|*ensurepip*) exit 0 ;; *) echo 3.11.2 ;; esac'
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A `bin` folder with what the script needs and no Python at all."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "mktemp", "rm", "cat"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def program(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    file.chmod(0o755)


def set_up(
    project_root: Path, machine: Path, want: str = "run", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(project_root / "tools/setup_env.sh"), want]
    env = {"PATH": str(machine), "TMPDIR": str(machine), **environment}
    return subprocess.run(
        command, cwd=machine.parent, env=env, capture_output=True, text=True, encoding="utf-8", timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("pythons", "environment", "says"),
    [
        pytest.param({}, {}, "Lousho needs Python 3.11 or newer, and there is no python3 on the PATH.", id="no Python"),
        pytest.param(
            {"python3": OLD}, {}, "Lousho needs Python 3.11 or newer, and python3 here is 3.9.2.", id="too old"
        ),
        pytest.param({}, {"PYTHON": "snake"}, "PYTHON=snake: there is no such program.", id="no such program"),
        pytest.param(
            {"py": OLD}, {"PYTHON": "py"}, "needs Python 3.11 or newer, and PYTHON=py is 3.9.2.", id="too old by name"
        ),
        pytest.param({"python3": WITHOUT_VENV}, {}, "install the package python3-venv", id="Debian without venv"),
        pytest.param({"python3": BREAKS}, {}, "python3 could not make .venv: see the lines above.", id="venv fails"),
    ],
)
def test_a_machine_that_cannot_be_set_up_is_told_why(
    project_root: Path, machine: Path, pythons: dict[str, str], environment: dict[str, str], says: str
):
    for name, body in pythons.items():
        program(machine, name, body)
    done = set_up(project_root, machine, **environment)
    assert done.returncode == 1
    assert says in done.stderr.splitlines()[-1]
    assert not (machine.parent / ".venv").exists()


def test_a_broken_environment_is_named_and_left_alone(project_root: Path, machine: Path):
    (machine.parent / ".venv").mkdir()
    done = set_up(project_root, machine)
    assert (done.returncode, done.stderr) == (
        1,
        ".venv is there but has no Python in it: remove it and run this again.\n",
    )


def test_an_environment_of_an_old_python_is_named(project_root: Path, machine: Path):
    (machine.parent / ".venv/bin").mkdir(parents=True)
    program(machine.parent / ".venv/bin", "python", OLD)
    done = set_up(project_root, machine)
    assert done.returncode == 1
    assert done.stderr.startswith(".venv holds Python 3.9.2, and Lousho needs 3.11 or newer: remove .venv")


def test_a_newer_python_is_found_beside_an_old_one(project_root: Path, machine: Path):
    program(machine, "python3", OLD)
    program(machine, "python3.12", WITHOUT_VENV)
    assert "python3-venv" in set_up(project_root, machine).stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_lists_every_target_with_a_sentence(project_root: Path):
    done = subprocess.run(
        ["make", "--no-print-directory"],
        cwd=project_root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )
    makefile = (project_root / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    assert sorted(line.split()[1] for line in done.stdout.splitlines()) == sorted(phony.group(1).split())
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines())


def test_the_merge_check_runs_the_same_targets_and_the_specification_last(project_root: Path):
    script = (project_root / ".ci/run").read_text(encoding="utf-8")
    steps = re.findall(r'^step "make ([a-z-]+)" make \1', script, re.MULTILINE)
    assert steps[-1] == "spec"
    assert {"demo", "test", "test-peers", "lint", "types", "imports", "wheel-smoke", "spec-bite"} <= set(steps)


def test_a_dependency_group_is_printed_for_old_versions_of_pip(project_root: Path):
    command = [sys.executable, str(project_root / "tools/dependency_group.py")]
    good = subprocess.run([*command, "dev"], capture_output=True, text=True, encoding="utf-8", check=False)
    bad = subprocess.run([*command, "prod"], capture_output=True, text=True, encoding="utf-8", check=False)
    assert "pytest-xdist>=3.6" in good.stdout.splitlines()
    assert (bad.returncode, bad.stderr) == (2, "pyproject.toml has no dependency group 'prod': dev, docs\n")
