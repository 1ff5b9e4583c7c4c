"""The projects that `lousho init` makes, used: their tests, their linter, their types, a chat with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import RunLousho

QUIET = ["--yes", "--no-install", "--no-git"]
TARGETS = {"minimal": ".", "tools": ".", "yaml": "agent.yaml"}


def make(run_lousho: RunLousho, folder: Path, *args: str) -> Path:
    done = run_lousho(["init", str(folder), *QUIET, *args])
    assert done.returncode == 0, done.stderr
    return folder


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *args]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )


@pytest.mark.spec("BEY-13")
@pytest.mark.parametrize(("template", "provider"), [("minimal", "openai"), ("tools", "anthropic"), ("yaml", "mock")])
def test_the_projects_own_tests_pass_without_a_key(
    run_lousho: RunLousho, tmp_path: Path, template: str, provider: str
) -> None:
    project = make(run_lousho, tmp_path / "мой agent", "--template", template, "--provider", provider)

    done = python(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.mark.spec("BEY-13")
def test_the_projects_are_clean_for_ruff_and_for_the_type_checker(run_lousho: RunLousho, tmp_path: Path) -> None:
    for template in TARGETS:
        for provider in ("openai", "anthropic", "mock"):
            make(run_lousho, tmp_path / f"{template}-{provider}", "--template", template, "--provider", provider)

    problems: list[str] = []
    for project in sorted(tmp_path.iterdir()):
        lint = python(project, "-m", "ruff", "check", "--no-cache", "--select", "E,F,I,B,UP,SIM,RUF", ".")
        form = python(project, "-m", "ruff", "format", "--no-cache", "--check", ".")
        problems += [f"{project.name}: {done.stdout}" for done in (lint, form) if done.returncode]
    types = python(tmp_path, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, str(tmp_path))
    assert problems == []
    assert types.returncode == 0, types.stdout


@pytest.mark.spec("QS-03")
@pytest.mark.parametrize("template", sorted(TARGETS))
def test_a_piped_chat_streams_the_reply_and_ends(run_lousho: RunLousho, tmp_path: Path, template: str) -> None:
    project = make(run_lousho, tmp_path / "x", "--template", template, "--provider", "mock")

    done = run_lousho(["chat", TARGETS[template]], input="hi\n", cwd=project)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != ""
    assert "\x1b" not in done.stdout


@pytest.mark.spec("QS-03")
def test_the_chat_really_uses_the_tools(run_lousho: RunLousho, tmp_path: Path) -> None:
    project = make(run_lousho, tmp_path / "x", "--template", "tools", "--provider", "mock")

    done = run_lousho(["chat", "."], input="Add a note with the text: buy milk\n", cwd=project)

    notes = json.loads((project / ".lousho" / "notes.json").read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert notes == ["buy milk"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_without_a_key_a_project_still_answers_and_says_how(
    run_lousho: RunLousho, tmp_path: Path, provider: str
) -> None:
    project = make(run_lousho, tmp_path / "x", "--provider", provider)

    done = run_lousho(["chat", "."], input="hi\n", cwd=project)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != ""
    assert "mock/demo" in done.stderr


@pytest.mark.parametrize("template", ["minimal", "yaml"])
def test_doctor_asks_for_the_key_of_a_new_project(run_lousho: RunLousho, tmp_path: Path, template: str) -> None:
    project = make(run_lousho, tmp_path / "x", "--template", template)

    without = run_lousho(["doctor", TARGETS[template]], cwd=project)
    (project / ".env").write_text("OPENAI_API_KEY=k\n", encoding="utf-8")
    with_key = run_lousho(["doctor", TARGETS[template]], cwd=project)

    assert (without.returncode, with_key.returncode) == (1, 0)
    assert "OPENAI_API_KEY" in without.stdout
    assert "Model: openai/gpt-4.1-mini (OPENAI_API_KEY from .env)" in with_key.stdout


@contextmanager
def refusing_provider(status: int) -> Generator[str]:
    """A server that refuses every call with `status`, as OpenAI words it; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        http.shutdown()
        http.server_close()
        thread.join(timeout=5)


@pytest.mark.spec("HAZ-51", "ERR-16")
def test_a_failed_turn_of_a_new_project_shows_code_category_and_fix(run_lousho: RunLousho, tmp_path: Path) -> None:
    project = make(run_lousho, tmp_path / "x")

    with refusing_provider(401) as address:
        env = {"OPENAI_API_KEY": "wrong", "OPENAI_BASE_URL": address}
        done = run_lousho(["chat", "."], input="hi\n", cwd=project, env=env)

    assert done.returncode == 1
    first, second = done.stderr.splitlines()[:2]
    assert first == "error: Incorrect API key provided. (auth-failure, HTTP 401)"
    assert second.startswith("[LOUSHO_PROVIDER_REQUEST_FAILED] Check the API key")


@pytest.mark.spec("QS-01")
@pytest.mark.skipif(os.name == "nt", reason="the stand-in for uv is a shell script")
def test_from_nothing_to_a_chat_and_passing_tests(run_lousho: RunLousho, tmp_path: Path) -> None:
    """Everything is real but the download: `uv sync` makes an environment that sees the packages of this one."""
    programs = tmp_path / "programs"
    programs.mkdir()
    site = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (programs / "uv").write_text(
        "#!/bin/sh\nset -e\n"
        'if [ "$1" = sync ]; then\n'
        f"  '{sys.executable}' -m venv --without-pip .venv\n"
        f"  echo \"import site; site.addsitedir('{site}')\" > .venv/lib/{version}/site-packages/here.pth\n"
        "else\n"
        '  shift; program=$1; shift; [ "$program" = lousho ] && program=lousho_cli\n'
        '  exec .venv/bin/python -m "$program" "$@"\n'
        "fi\n",
        encoding="utf-8",
    )
    (programs / "uv").chmod(0o755)
    (programs / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
    path = f"{programs}:/usr/bin:/bin"

    done = run_lousho(["init", "my-agent"], env={"PATH": path})
    *_, cd, copy, chat = (line.strip() for line in done.stdout.splitlines())

    def typed(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", f"{cd} && {line}"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    project = tmp_path / "my-agent"
    assert (done.returncode, cd, copy, chat) == (0, "cd my-agent", "cp .env.example .env", "uv run lousho chat .")
    assert (project / ".git").is_dir()
    assert (project / ".venv" / "bin" / "python").exists()
    talked = typed(f"printf 'hi\\n' | {chat}")
    assert talked.returncode == 0, talked.stderr
    assert talked.stdout.strip() != ""
    tested = typed("uv run pytest -q")
    assert tested.returncode == 0, tested.stdout + tested.stderr
