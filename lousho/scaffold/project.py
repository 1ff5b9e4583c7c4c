"""Making a project: files first, then `git init`, then the install, so that a failure later loses nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lousho.scaffold.options import ProjectOptions
from lousho.scaffold.package_managers import InstallError, install, package_manager
from lousho.scaffold.render import render_project, target_of
from lousho.scaffold.shell import chained, command_line, copy_line
from lousho.scaffold.write import refuse_a_second_config, refuse_if_not_empty, write_files

GIT_SECONDS = 30


@dataclass(slots=True)
class MadeProject:
    """What came of it."""

    options: ProjectOptions
    files: list[str]
    """Relative paths, sorted."""
    notes: list[str] = field(default_factory=list[str])
    """What a person should know, one sentence each."""
    installed: bool = False
    failure: str | None = None
    """Why the install failed; the files are complete all the same."""
    interrupted: bool = False
    """The install was interrupted; the files are complete all the same."""


def make_project(options: ProjectOptions, env: Mapping[str, str], say: Callable[[str], None]) -> MadeProject:
    """Write, `git init` and install as `options` say; `say` gets progress lines.

    Raises `InitUsageError` for a directory that is not empty or keeps another config file, and lets a file system error through after undoing what
    was written. A failed install is not raised but recorded. Source: installation page.
    """
    files = render_project(options)
    if not options.force:
        refuse_if_not_empty(options.directory, files)
    refuse_a_second_config(options.directory, files)
    write_files(options.directory, files)
    made = MadeProject(options, [str(file.path) for file in files])
    try:
        if options.git:
            made.notes.extend(_git_init(options.directory))
        if options.install:
            install(package_manager(options.package_manager), options.directory, env, say)
            made.installed = True
    except InstallError as failure:
        made.failure = str(failure)
    except KeyboardInterrupt:
        made.interrupted = True
    return made


def next_steps(made: MadeProject, start: Path, here: Path) -> list[str]:
    """Return three command lines to go on with, for the shell that stands in `here`.

    `start` is the program that runs now: it is what to type where the project has no environment of its own yet.
    """
    options = made.options
    lousho, pytest = _programs(made, start)
    talk = [*lousho, "chat", target_of(options.template)]
    if not options.key_is_set and options.template == "yaml":  # a spec always names its model, so it has to be replaced
        talk += ["--model", "mock/demo"]
    steps = [command_line(talk), command_line(pytest)]
    if not options.key_is_set:  # first the key: without it the chat is one with the built-in model
        steps.insert(0, copy_line(".env.example", ".env"))
    if options.directory != here:
        steps.insert(0, _cd_line(options.directory, here))
    elif options.key_is_set:
        steps.append(command_line([*lousho, "doctor", target_of(options.template)]))
    return steps[:3]


def install_line(options: ProjectOptions, here: Path) -> str:
    """Return the one line that installs the project, for a shell that stands in `here`."""
    line = package_manager(options.package_manager).install_line
    return line if options.directory == here else chained([_cd_line(options.directory, here), line])


def _cd_line(folder: Path, here: Path) -> str:
    return command_line(["cd", _shorter(folder, here)])


def _programs(made: MadeProject, start: Path) -> tuple[list[str], list[str]]:
    """Return how to type `lousho` and `pytest`: in the project's environment, or else where this program runs."""
    if made.installed:
        manager = package_manager(made.options.package_manager)
        return manager.program("lousho"), manager.program("pytest")
    on_path = shutil.which("lousho")
    if on_path is not None and shutil.which("pytest") is not None:
        return ["lousho"], ["pytest"]
    if on_path is not None:
        return ["lousho"], [sys.executable, "-m", "pytest"]
    beside = Path(sys.executable).with_name(start.name if start.stem == "lousho" else "lousho")
    lousho = [str(beside)] if beside.exists() else [sys.executable, "-m", "lousho_cli"]
    return lousho, [sys.executable, "-m", "pytest"]


def _shorter(folder: Path, here: Path) -> str:
    try:
        relative = str(folder.relative_to(here))
    except ValueError:
        return str(folder)
    return f"./{relative}" if relative.startswith("-") else relative


def _git_init(folder: Path) -> list[str]:
    """Make a repository unless the folder is in one; return what to tell about it."""
    git = shutil.which("git")
    if git is None:
        return ["git is not on the PATH, so there is no repository yet."]

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [git, *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=GIT_SECONDS, check=False
        )

    try:
        if run("rev-parse", "--is-inside-work-tree").returncode == 0:
            return []
        done = run("init", "--quiet")
    except (OSError, subprocess.TimeoutExpired):
        return ["git did not answer, so there is no repository yet."]
    if done.returncode == 0:
        return []
    reason = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return [f"git init failed ({reason}), so there is no repository yet."]
