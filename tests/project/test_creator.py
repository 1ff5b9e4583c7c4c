"""The one-shot creator: a distribution of its own whose one command is `lousho init`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunLousho

QUIET = ("--provider", "mock", "--yes", "--no-install", "--no-git")


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.spec("CLI-24")
def test_its_command_makes_what_init_makes_and_from_a_checkout_depends_on_that(
    run_lousho: RunLousho, project_root: Path, tmp_path: Path
):
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), "."],
        cwd=project_root / "packages/create-lousho-agent",
        capture_output=True,
        check=True,
        timeout=50,
    )
    with zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))) as wheel:
        entry = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        target = wheel.read(entry).decode("utf-8").split("create-lousho-agent = ")[1].split()[0]
    module, function = target.split(":")
    program = f"import sys; from {module} import {function}; sys.exit({function}())"

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    created = subprocess.run(
        [sys.executable, "-c", program, "my-agent", *QUIET], cwd=tmp_path / "one", timeout=30, check=False
    )
    made = run_lousho(["init", "my-agent", *QUIET], cwd=tmp_path / "two")

    assert (created.returncode, made.returncode) == (0, 0)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    document = tomllib.loads((tmp_path / "one/my-agent/pyproject.toml").read_text(encoding="utf-8"))
    assert project_root.as_uri() in str(document) or project_root.as_posix() in str(document)


def test_it_is_released_with_the_version_it_needs(project_root: Path):
    own = tomllib.loads((project_root / "packages/create-lousho-agent/pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    ours = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    major, minor = ours.split(".")[:2]
    assert own["version"] == ours
    assert own["dependencies"] == [f"lousho>={major}.{minor},<{major}.{int(minor) + 1}"]
