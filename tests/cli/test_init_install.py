"""Installing a new project: which program is run, and what is left when it fails or is interrupted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunLousho

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in package managers are shell scripts")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH of its own, with git and a shell but no package manager."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("git", "sh", "sleep", "cat"):
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return folder


def stand_in(programs: Path, name: str, script: str) -> None:
    """Put a program in the PATH that does what `script` says instead of downloading."""
    path = programs / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(("manager", "line"), [("uv", "uv sync"), ("poetry", "poetry install")])
def test_the_package_manager_runs_in_the_project(
    run_lousho: RunLousho, tmp_path: Path, programs: Path, manager: str, line: str
) -> None:
    stand_in(programs, manager, f'echo "{manager} $*" > ran; pwd >> ran; echo "$VIRTUAL_ENV" >> ran; echo working')

    done = run_lousho(
        ["init", "my agent", "--yes", "--package-manager", manager],
        env={"PATH": str(programs), "VIRTUAL_ENV": "/another"},
    )

    project = tmp_path / "my agent"
    assert done.returncode == 0
    assert (project / "ran").read_text(encoding="utf-8").splitlines() == [line, str(project), ""]
    assert done.stderr.splitlines() == [f"$ {line}", "working"]
    assert done.stdout.splitlines()[-1] == f"  {manager} run lousho chat ."
    assert (project / ".git").is_dir()


def test_uv_is_the_default_where_it_is_and_pip_elsewhere(run_lousho: RunLousho, tmp_path: Path, programs: Path) -> None:
    path = {"PATH": str(programs)}
    run_lousho(["init", "a", "--yes", "--no-install"], env=path)
    stand_in(programs, "uv", "exit 0")
    run_lousho(["init", "b", "--yes", "--no-install"], env=path)

    found = [(tmp_path / name / "pyproject.toml").read_text(encoding="utf-8") for name in "ab"]
    assert ["[tool.uv]" in text for text in found] == [False, True]


@pytest.mark.parametrize("manager", ["uv", "poetry"])
def test_a_package_manager_that_is_not_there_is_said_before_anything_is_written(
    run_lousho: RunLousho, tmp_path: Path, programs: Path, manager: str
) -> None:
    done = run_lousho(["init", "x", "--yes", "--package-manager", manager], env={"PATH": str(programs)})

    assert done.returncode == 2
    assert f"{manager} is not on the PATH" in done.stderr
    assert "--no-install" in done.stderr
    assert not (tmp_path / "x").exists()


def test_a_failed_install_leaves_the_files_and_says_how_to_retry(
    run_lousho: RunLousho, tmp_path: Path, programs: Path
) -> None:
    stand_in(programs, "uv", "echo 'no route to the index' >&2; exit 3")

    done = run_lousho(["init", "x", "--yes"], env={"PATH": str(programs)})

    assert done.returncode == 1
    assert "no route to the index" in done.stderr
    assert "error: uv failed with exit code 3" in done.stderr
    assert done.stderr.splitlines()[-1] == "The project is complete. To install again: cd x && uv sync"
    assert (tmp_path / "x" / "agent.py").exists()
    assert (tmp_path / "x" / ".git").is_dir()


def test_an_interrupted_install_leaves_the_files_and_says_how_to_go_on(tmp_path: Path, programs: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    stand_in(programs, "uv", f"echo started > '{started}'; exec sleep 60")

    command = [sys.executable, "-m", "lousho_cli", "init", "x", "--yes"]
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.read_text(encoding="utf-8") == "started\n"  # waits until the install runs
    os.killpg(running.pid, signal.SIGINT)  # what Ctrl-C does: everyone in the foreground hears it
    _, told = running.communicate(timeout=20)

    assert running.returncode == 130
    assert told.decode().splitlines()[-1] == "Interrupted. The project is complete. To install: cd x && uv sync"
    assert (tmp_path / "x" / "tests" / "test_agent.py").exists()
    assert b"Traceback" not in told


def test_input_for_init_is_not_eaten_by_the_install(run_lousho: RunLousho, tmp_path: Path, programs: Path) -> None:
    stand_in(programs, "uv", "cat > swallowed")

    run_lousho(["init", "x", "--yes"], input="for somebody else\n", env={"PATH": str(programs)})

    assert (tmp_path / "x" / "swallowed").read_text(encoding="utf-8") == ""
