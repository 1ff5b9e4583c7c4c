"""What `lousho --help` says of each verb, so that the list imports neither the verbs nor Typer.

The verbs' own signatures and docstrings stay the truth: a test holds every row equal to them and shows the row to write.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One verb in the list of all of them."""

    name: str
    usage: tuple[str, ...]
    """The pieces of the usage line behind the name."""
    summary: str
    """The first line of the docstring."""


AGENT: Final = "spec.yaml|spec.json|agent-dir|agent.py"

OVERVIEW: Final[tuple[Row, ...]] = (
    Row(
        "init",
        (
            "[dir]",
            "[--provider openai|anthropic|mock]",
            "[--template minimal|tools|yaml]",
            "[--yes|-y]",
            "[--no-install]",
            "[--no-git]",
            "[--package-manager uv|pip|poetry]",
            "[--force]",
            "[--sdk-path dir|wheel]",
        ),
        "Start a project: an agent with a tool, an offline test, .env.example.",
    ),
    Row(
        "doctor",
        (f"[{AGENT}]", "[--json]", "[--ping]"),
        "Check Python, dependencies, provider keys and, if named, an agent.",
    ),
    Row(
        "chat",
        (f"<{AGENT}>", "[--model provider/model]", "[--session id]"),
        "Talk to an agent in the terminal.",
    ),
    Row(
        "run",
        (
            f"<{AGENT}>",
            "[prompt]",
            "[--model provider/model]",
            "[--output text|json|stream-json]",
            "[--timeout seconds]",
            "[--yes]",
        ),
        "Run an agent for one turn and print its answer.",
    ),
    Row(
        "inspect",
        (f"<{AGENT}>", "[--prompt]", "[--tools]", "[--json]", "[--model provider/model]"),
        "Show what an agent is made of: model, prompt, tools, rules, limits.",
    ),
    Row("help", ("[command]",), "List every command, or explain one."),
    Row("version", (), "Print the version."),
)
"""Every verb, in the order of the list."""
