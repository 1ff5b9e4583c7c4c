"""Guards that hold for every test, and the few fixtures that all rooms share.

A test sees an empty home, none of the developer's keys or settings, no network beyond this machine, and every warning
as an error (`pyproject.toml`). Child processes get the same: `tests/support` is on their `PYTHONPATH`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest
import sitecustomize as guard
import spec_results
from sizes import SOAK

SUPPORT = Path(__file__).parent / "support"
ROOT = Path(__file__).parent.parent
HOME_NUMBERS = count(1)
BLOCKED: list[str] = []

OURS = ("LOUSHO_TEST_", "COVERAGE_")
PREFIXES = ("LOUSHO_", "OPENAI_", "ANTHROPIC_", "OPENROUTER_", "GOOGLE_", "GEMINI_", "OLLAMA_", "OTEL_", "XDG_", "LC_")
NAMES = [
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "CI",
    "GITHUB_ACTIONS",
    "HOST",
    "PORT",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
    "LANGUAGE",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GITHUB_TOKEN",
    "SLACK_BOT_TOKEN",
    "TELEGRAM_BOT_TOKEN",
    "UV_PYTHON",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
]


def scrub(environment: dict[str, str] | os._Environ[str]) -> None:
    """Take the developer's own settings out of an environment; `CI` stays readable as `LOUSHO_TEST_CI`."""
    if environment.get("CI"):
        environment["LOUSHO_TEST_CI"] = "1"
    for name in list(environment):
        if name in NAMES or (name.upper().startswith(PREFIXES) and not name.startswith(OURS)):
            del environment[name]


def settle(environment: dict[str, str] | os._Environ[str], home: Path) -> None:
    """Point everything that means "my home" at `home`, and fix what output depends on."""
    for name in ("HOME", "USERPROFILE"):
        environment[name] = str(home)
    for name, folder in {
        "XDG_CONFIG_HOME": ".config",
        "XDG_CACHE_HOME": ".cache",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
        "APPDATA": "AppData/Roaming",
        "LOCALAPPDATA": "AppData/Local",
    }.items():
        environment[name] = str(home / folder)
    tree = os.environ.get("LOUSHO_TEST_TREE", "")  # the copy that spec_bite breaks: children import that one
    environment.update(
        LANG="C.UTF-8",
        TERM="xterm-256color",
        PYTHONPATH=os.pathsep.join(filter(None, (str(SUPPORT), tree))),
        GIT_CONFIG_NOSYSTEM="1",
        GIT_TERMINAL_PROMPT="0",
    )


scrub(os.environ)
hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=50, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("soak", hypothesis.settings.get_profile("ci"), max_examples=2000)
hypothesis.settings.load_profile("soak" if SOAK else "ci")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(spec_results.Recorder(config), "spec-results")
    if os.environ.get("LOUSHO_TEST_NETWORK") != "1":
        guard.install(BLOCKED.append)


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of what is set up once for many tests."""
    home = tmp_path_factory.mktemp("homes")
    settle(os.environ, home)
    return home


@pytest.fixture(autouse=True)
def clean_env(session_home: Path) -> Iterator[Path]:
    """A fresh, empty home for the test, which is returned; what the test does to the environment is undone."""
    home = session_home / f"home-{next(HOME_NUMBERS)}"
    home.mkdir()
    before, here = dict(os.environ), Path.cwd()
    settle(os.environ, home)
    BLOCKED.clear()
    yield home
    os.environ.clear()
    os.environ.update(before)
    os.chdir(here)
    if BLOCKED:
        pytest.fail(f"the test tried to leave this machine: {', '.join(sorted(set(BLOCKED)))}")


@pytest.fixture
def free_port() -> int:
    """A loopback TCP port that nobody listens on. Prefer binding port 0 where the program under test can."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RunLousho(Protocol):
    """Runs the `lousho` command as a process of its own and returns what came of it."""

    def __call__(
        self,
        args: Sequence[str | Path],
        *,
        input: str | bytes = "",
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 30,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def run_lousho(clean_env: Path, tmp_path: Path) -> RunLousho:
    """`run_lousho(["chat", path], input="hi\\n")`: exit code, stdout and stderr of the real command.

    Runs in `tmp_path` unless `cwd` says otherwise, in the test's clean environment; `env` adds variables, and takes one
    out where its value is `None`. Output is decoded as UTF-8. `timeout` is in seconds.
    """

    def run(
        args: Sequence[str | Path],
        *,
        input: str | bytes = "",
        cwd: str | Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 30,
    ) -> subprocess.CompletedProcess[str]:
        merged: dict[str, str] = dict(os.environ)
        for name, value in (env or {}).items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        command = [sys.executable, "-m", "lousho_cli", *(str(arg) for arg in args)]
        sent = input.encode("utf-8") if isinstance(input, str) else input
        done = subprocess.run(
            command, input=sent, cwd=cwd or tmp_path, env=merged, capture_output=True, timeout=timeout, check=False
        )
        return subprocess.CompletedProcess(
            command, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        )

    return run


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The folder of the checkout."""
    return ROOT
