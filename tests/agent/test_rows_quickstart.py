"""The finer print of the quickstart: which model the environment picks, and a reply that is shown while it comes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lousho import ConfigurationError, create_agent

if TYPE_CHECKING:
    from conftest import RunLousho

ORDER = {
    "LOUSHO_MODEL": ("mock/x", "mock", "x"),
    "OPENAI_API_KEY": ("k-1", "openai", "gpt-4.1-mini"),
    "ANTHROPIC_API_KEY": ("k-2", "anthropic", "claude-sonnet-4-5"),
    "OPENROUTER_API_KEY": ("k-3", "openrouter", ""),
    "OLLAMA_BASE_URL": ("http://127.0.0.1:1", "ollama", ""),
}
TO_COME = ("openrouter", "ollama")


@pytest.mark.spec("QS-05", "ENV-01")
@pytest.mark.parametrize("named", [names for n in range(6) for names in itertools.combinations(ORDER, n)], ids="+".join)
def test_an_agent_without_a_model_takes_the_first_variable_that_is_set(named: tuple[str, ...]):
    os.environ.update({name: ORDER[name][0] for name in reversed(named)})
    os.environ.update({name: " " for name in ORDER if name not in named})
    provider, model = ORDER[named[0]][1:] if named else ("", "")
    if provider and provider not in TO_COME:
        agent = create_agent()
        assert (agent.provider.name, agent.model) == (provider, model)
        return
    with pytest.raises(ConfigurationError) as refused:
        create_agent()
    if not named:
        assert refused.value.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
    else:
        assert refused.value.code == "LOUSHO_PROVIDER_UNKNOWN"
        assert f"does not include the provider '{provider}'" in refused.value.detail


@contextmanager
def hesitating_provider(go_on: threading.Event) -> Generator[str]:
    """A server that streams half of its answer, and the rest once it is told to; yields its address."""

    def event(text: str) -> bytes:
        return f'data: {{"choices": [{{"delta": {{"content": "{text}"}}}}]}}\n\n'.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(event("First half, "))
            self.wfile.flush()
            if go_on.wait(30):
                self.wfile.write(event("second half."))
                self.wfile.write(b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n')

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test's output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/v1"
    finally:
        go_on.set()
        http.shutdown()
        http.server_close()
        thread.join(timeout=5)


@pytest.mark.spec("QS-03")
def test_the_piped_chat_of_a_new_project_shows_the_reply_while_it_comes(run_lousho: RunLousho, tmp_path: Path):
    made = run_lousho(["init", "x", "--yes", "--no-install", "--no-git", "--provider", "openai"])
    assert made.returncode == 0, made.stderr
    go_on = threading.Event()
    with hesitating_provider(go_on) as address:
        chat = subprocess.Popen(
            [sys.executable, "-m", "lousho_cli", "chat", "."],
            cwd=tmp_path / "x",
            env={**os.environ, "OPENAI_API_KEY": "k-1", "OPENAI_BASE_URL": address},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        watchdog = threading.Timer(30, chat.kill)
        watchdog.start()
        try:
            assert chat.stdin is not None
            assert chat.stdout is not None
            chat.stdin.write(b"hi\n")
            chat.stdin.close()
            chat.stdin = None
            shown = b"".join(chat.stdout.read(1) for _ in b"First half")
            go_on.set()
            rest, errors = chat.communicate(timeout=30)
        finally:
            watchdog.cancel()
            chat.kill()
    assert (chat.returncode, shown + rest) == (0, b"First half, second half.\n"), errors
