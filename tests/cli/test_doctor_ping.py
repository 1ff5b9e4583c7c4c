"""`lousho doctor --ping`: real requests to servers on this machine that answer as providers do."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lousho.diagnose.examine import examine

if TYPE_CHECKING:
    from conftest import RunLousho

SECRET = "sk-very-secret-1234567890"


@contextmanager
def server(status: int) -> Generator[tuple[str, list[dict[str, str]]]]:
    """A provider that answers every GET with `status`; yields its address and the requests it got."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            body = json.dumps(
                {"data": [{"id": "a-model"}]} if status == 200 else {"error": {"message": SECRET}}
            ).encode()
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
        yield f"http://127.0.0.1:{http.server_port}/v1", seen
    finally:
        http.shutdown()
        http.server_close()
        thread.join(timeout=5)


def ping(run_lousho: RunLousho, env: dict[str, str]) -> dict[str, dict[str, Any]]:
    done = run_lousho(["doctor", "--ping", "--json"], env=env)
    assert SECRET not in done.stdout + done.stderr
    return {check["id"]: check for check in json.loads(done.stdout)["checks"]}


def test_a_server_that_answers_is_reachable_and_each_gets_its_own_key(run_lousho: RunLousho) -> None:
    with server(200) as (openai, to_openai), server(200) as (anthropic, to_anthropic):
        found = ping(
            run_lousho,
            {
                "OPENAI_API_KEY": f"{SECRET}-o",
                "OPENAI_BASE_URL": openai,
                "ANTHROPIC_API_KEY": f"{SECRET}-a",
                "ANTHROPIC_BASE_URL": anthropic,
            },
        )

    assert [found[f"ping.{name}"]["status"] for name in ("openai", "anthropic")] == ["ok", "ok"]
    assert (
        found["ping.openai"]["found"] == f"reachable at {openai} (reachability only: a local server may not check keys)"
    )
    assert (to_openai[0]["path"], to_openai[0]["authorization"]) == ("/v1/models", f"Bearer {SECRET}-o")
    assert (to_anthropic[0]["path"].split("?")[0], to_anthropic[0]["x-api-key"]) == ("/v1/models", f"{SECRET}-a")
    assert f"{SECRET}-a" not in str(to_openai)
    assert f"{SECRET}-o" not in str(to_anthropic)


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_key_is_a_failure(run_lousho: RunLousho, status: int) -> None:
    with server(status) as (address, _):
        found = ping(run_lousho, {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": address})

    assert found["ping.openai"]["status"] == "fail"
    assert f"HTTP {status}" in found["ping.openai"]["found"]
    assert "OPENAI_API_KEY" in found["ping.openai"]["fix"]


@pytest.mark.parametrize("status", [429, 500])
def test_a_server_in_trouble_is_a_warning(run_lousho: RunLousho, status: int) -> None:
    with server(status) as (address, _):
        found = ping(run_lousho, {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": address})

    assert found["ping.openai"]["status"] == "warn"
    assert f"HTTP {status}" in found["ping.openai"]["found"]


def test_nobody_at_the_address_is_a_warning_that_names_the_proxy_variables(
    run_lousho: RunLousho, free_port: int
) -> None:
    found = ping(run_lousho, {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://127.0.0.1:{free_port}/v1"})

    assert found["ping.openai"]["status"] == "warn"
    assert all(name in found["ping.openai"]["fix"] for name in ("HTTPS_PROXY", "SSL_CERT_FILE", "OPENAI_BASE_URL"))


def test_nobody_at_the_address_fails_the_agent_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    (tmp_path / "agent.py").write_text("agent = {'model': 'openai/gpt-4o'}\n", encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port}/v1")

    report = examine("agent.py", env=os.environ, cwd=tmp_path, encoding="utf-8", ping=True)

    (found,) = [check for check in report.checks if check.id == "ping.openai"]
    assert (found.status, report.healthy) == ("fail", False)
    assert found.found.endswith("the agent needs it")


def test_a_server_that_never_answers_is_given_up_after_five_seconds(run_lousho: RunLousho) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        found = ping(run_lousho, {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": address})

    assert (found["ping.openai"]["status"], found["ping.openai"]["found"]) == (
        "warn",
        f"no answer within 5 s at {address}",
    )


def test_without_a_key_nobody_is_asked(run_lousho: RunLousho) -> None:
    with server(200) as (address, seen):
        found = ping(run_lousho, {"OPENAI_BASE_URL": address})

    assert found["ping"]["found"] == "no key is set, so nobody was asked"
    assert seen == []
