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
from lousho.scaffold.render import render_project
from lousho.scaffold.shell import command_line, copy_line
from lousho.scaffold.write import refuse_if_not_empty, write_files

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
    failure: InstallError | None = None
    """Why the install failed; the files are complete all the same."""
    interrupted: bool = False
    """The install was interrupted; the files are complete all the same."""


def make_project(options: ProjectOptions, env: Mapping[str, str], say: Callable[[str], None]) -> MadeProject:
    """Write, `git init` and install as `options` say; `say` gets progress lines.

    Raises `InitUsageError` for a directory that is not empty, and lets a file system error through after undoing what
    was written. A failed install is not raised but recorded. Source: installation page.
    """
    files = render_project(options)
    if not options.force:
        refuse_if_not_empty(options.directory, files)
    write_files(options.directory, files)
    made = MadeProject(options, [str(file.path) for file in files])
    try:
        if options.git:
            made.notes.extend(_git_init(options.directory))
        if options.install:
            install(package_manager(options.package_manager), options.directory, env, say)
            made.installed = True
    except InstallError as failure:
        made.failure = failure
    except KeyboardInterrupt:
        made.interrupted = True
    return made


def next_steps(made: MadeProject, start: Path, here: Path) -> list[str]:
    """Return three command lines to go on with, for the shell that stands in `here`.

    `start` is the program that runs now: it is what to type where the project has no environment of its own yet.
    """
    options = made.options
    target = "agent.yaml" if options.template == "yaml" else "."
    manager = package_manager(options.package_manager)
    lousho = manager.in_project if made.installed else _this_program(start)
    test = manager.in_project("pytest") if made.installed else command_line(["python", "-m", "pytest"])
    steps = [lousho("lousho", "chat", target)]
    if not options.key_is_set:
        steps.append(copy_line(".env.example", ".env"))
    steps.append(test)
    if options.directory != here:
        steps.insert(0, command_line(["cd", _shorter(options.directory, here)]))
    elif options.key_is_set:
        steps.append(lousho("lousho", "doctor", target))
    return steps[:3]


def _this_program(start: Path) -> Callable[..., str]:
    def line(*words: str) -> str:
        if start.stem == "lousho" and shutil.which("lousho"):
            return command_line(list(words))
        return command_line([sys.executable, "-m", "lousho_cli", *words[1:]])

    return line


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
