"""uv, pip and poetry: what installs a new project, and how a command is run in it afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lousho.scaffold.shell import WINDOWS, chained, command_line

PackageManagerName = Literal["uv", "pip", "poetry"]
NAMES: tuple[PackageManagerName, ...] = ("uv", "pip", "poetry")

PYTHON = "python" if WINDOWS else "python3"
"""How command lines that people see name the interpreter; what runs is the one that runs now."""

INSTALL_SECONDS = 900
"""The longest an install may take; a stuck download must not hang for ever."""


class InstallError(Exception):
    """Installing failed, for this reason. The project's files are complete all the same."""


@dataclass(frozen=True, slots=True)
class PackageManager:
    """How one package manager installs a project and runs a command in it."""

    name: PackageManagerName
    steps: tuple[tuple[str, ...], ...]
    """Command lines, run one after the other in the project."""
    run_prefix: tuple[str, ...]
    """What stands before a command to run it in the project's environment."""

    @property
    def install_line(self) -> str:
        """The line that installs, to paste in the project's directory."""
        return chained(command_line(list(step)) for step in self.steps)

    def program(self, name: str) -> list[str]:
        """Return the words that start `name` in the project's environment."""
        if self.name == "pip":
            return [str(Path(".venv") / ("Scripts" if WINDOWS else "bin") / name)]
        return [*self.run_prefix, name]


def package_manager(name: PackageManagerName) -> PackageManager:
    """Return what is known about the package manager `name`."""
    if name == "uv":
        return PackageManager("uv", (("uv", "sync"),), ("uv", "run"))
    if name == "poetry":
        return PackageManager("poetry", (("poetry", "install"),), ("poetry", "run"))
    python = str(Path(".venv") / ("Scripts" if WINDOWS else "bin") / "python")
    make = (PYTHON, "-m", "venv", ".venv")
    return PackageManager("pip", (make, (python, "-m", "pip", "install", "--quiet", "-e", ".")), ())


def base_python() -> str:
    """Return the interpreter to make environments with: one that outlives a throw-away environment of `uvx`."""
    found: str | None = getattr(sys, "_base_executable", None)
    return found or sys.executable


def default_package_manager() -> PackageManagerName:
    """Return uv when it is on the PATH, else pip."""
    return "uv" if shutil.which("uv") else "pip"


def is_available(name: PackageManagerName) -> bool:
    """Whether the package manager can be started here; pip always can."""
    return name == "pip" or shutil.which(name) is not None


def install(manager: PackageManager, folder: Path, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Install the project in `folder`; its output goes to stderr as it comes. Raises `InstallError`."""
    # The environment that runs `lousho` is not the one to install into.
    clean = {name: value for name, value in env.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH")}
    for step in manager.steps:
        say(f"$ {command_line(list(step))}")
        program = base_python() if step[0] == PYTHON else shutil.which(step[0]) or str(folder / step[0])
        try:
            done = subprocess.run(
                [program, *step[1:]],
                cwd=folder,
                env=clean,
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__ or subprocess.DEVNULL,
                stderr=sys.__stderr__ or subprocess.DEVNULL,
                timeout=INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InstallError(f"{step[0]} did not finish within {INSTALL_SECONDS // 60} minutes") from None
        except OSError as error:
            raise InstallError(f"{step[0]} could not be started: {os.strerror(error.errno or 0)}") from error
        if done.returncode != 0:
            raise InstallError(f"{manager.name} failed with exit code {done.returncode}; its reason is above")
