"""`lousho init`: ask what was not said (on a terminal only), make the project, name three next steps."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lousho_cli.console import Console, whole_number
from lousho_cli.errors import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from lousho.scaffold.project import MadeProject

EXAMPLES = (
    ("lousho init my-agent", "asks for the provider and the template on a terminal"),
    ("lousho init my-agent --yes --no-install", "asks nothing, downloads nothing"),
    ("lousho init my-agent --provider anthropic --template tools", "three tools, one asks for approval"),
)


def init(
    directory: Annotated[
        str | None, typer.Argument(metavar="dir", help="Where to put the project. Default: my-agent.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="openai|anthropic|mock",
            help="Whose model the agent uses. Default: the first whose API key is set, else openai.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="minimal|tools|yaml",
            help="One tool, three tools, or an agent.yaml spec file. Default: minimal.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Never ask; use the default for what is not given.")] = False,
    no_install: Annotated[bool, typer.Option("--no-install", help="Do not install the dependencies.")] = False,
    no_git: Annotated[bool, typer.Option("--no-git", help="Do not run git init.")] = False,
    package_manager: Annotated[
        str | None,
        typer.Option(
            "--package-manager", metavar="uv|pip|poetry", help="What installs. Default: uv when it is there, else pip."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a directory that is not empty.")] = False,
    sdk_path: Annotated[
        str | None,
        typer.Option(
            "--sdk-path",
            metavar="dir|wheel",
            help="Depend on this checkout or wheel of Lousho. Also read from LOUSHO_SDK_PATH.",
        ),
    ] = None,
) -> None:
    """Start a project: an agent with a tool, an offline test, .env.example.

    Writes the files, runs git init and installs the dependencies. Without a terminal nothing is ever asked.
    """
    from lousho.scaffold.options import resolve_options
    from lousho.scaffold.project import make_project

    console = Console()
    if console.interactive and not yes:
        directory, provider, template = ask_for_the_rest(console, directory, provider, template, force=force)
    options = resolve_options(
        directory=directory,
        provider=provider,
        template=template,
        package_manager=package_manager,
        sdk_path=sdk_path,
        install=not no_install,
        git=not no_git,
        force=force,
        env=os.environ,
    )
    try:
        made = make_project(options, os.environ, console.say)
    except KeyboardInterrupt:
        console.say("Interrupted: nothing was written.")
        raise
    code = tell(made, console)
    if code:
        raise typer.Exit(code)


def ask_for_the_rest(
    console: Console, directory: str | None, provider: str | None, template: str | None, *, force: bool
) -> tuple[str, str | None, str | None]:
    """Ask for each of the three that is None. Ctrl-C and Ctrl-D leave, with nothing written.

    A directory that will be refused ends the questions: nobody should answer two more for nothing.
    """
    from lousho.scaffold.options import DEFAULT_DIRECTORY, DEFAULT_TEMPLATE, TEMPLATES
    from lousho.scaffold.providers import PROVIDERS, default_provider
    from lousho.scaffold.shell import expanded
    from lousho.scaffold.write import occupants

    try:
        if directory is None:
            directory = console.ask(f"Directory [{DEFAULT_DIRECTORY}]: ").strip() or DEFAULT_DIRECTORY
        if not force and occupants(expanded(directory)):
            return directory, provider, template
        if provider is None:
            names = {name: entry.model for name, entry in PROVIDERS.items()}
            provider = choose(console, "Provider", names, default_provider(os.environ))
        if template is None:
            template = choose(console, "Template", TEMPLATES, DEFAULT_TEMPLATE)
    except (KeyboardInterrupt, EOFError):
        console.say("\nNothing was written.")
        raise KeyboardInterrupt from None
    return directory, provider, template


def choose(console: Console, title: str, choices: Mapping[str, str], default: str) -> str:
    """Let the person pick one of `choices` (name to meaning) by name or number; asks again until it is one of them."""
    entries = list(choices.items())
    for number, (name, meaning) in enumerate(entries, 1):
        console.say(f"  {number}. {name}: {meaning}")
    while True:
        answer = console.ask(f"{title} [{default}]: ").strip() or default
        number = whole_number(answer) if answer.isascii() else None
        if number is not None and 1 <= number <= len(entries):
            return entries[number - 1][0]
        if answer in dict(entries):
            return answer
        console.say(f"Type one of: {', '.join(name for name, _ in entries)}")


def tell(made: MadeProject, console: Console) -> int:
    """Print what was made, what to know, and three lines to go on with; return the exit code."""
    from lousho.scaffold.project import install_line, next_steps

    options = made.options
    console.out(
        f"Created {options.name} in {options.directory}: {len(made.files)} files ({options.template}, {options.provider.name})."
    )
    for note in made.notes:
        console.out(note)
    here = _here()
    retry = install_line(options, here)
    if made.failure is not None:
        console.error(f"{made.failure}.\nThe project is complete. To install again: {retry}", fold=False)
        return FAILED
    if made.interrupted:
        console.say(f"Interrupted. The project is complete. To install: {retry}")
        return INTERRUPTED
    if not options.key_is_set:
        console.out(
            f"{options.provider.key_variable} is not set: put it in .env. Until then the agent can only talk through the "
            "built-in model that needs no key, mock/demo."
        )
    console.out("Next:")
    for line in next_steps(made, Path(sys.argv[0]), here):
        console.out(f"  {line}")
    return 0


def _here() -> Path:
    """Return the directory that the next steps start from; the root where the current one was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)
