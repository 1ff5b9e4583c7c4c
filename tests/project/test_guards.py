"""The guards around the suite hold: a test that could reach the network or the developer's home proves nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_reserved_name_does_not_resolve():
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("nowhere.invalid", 80)


def test_a_child_process_cannot_leave_this_machine():
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert "Network is unreachable (tests stay on this machine)" in done.stderr


def test_loopback_is_open():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        accepted, _ = server.accept()
        accepted.close()
        assert client.getpeername() == server.getsockname()


def test_home_is_an_empty_folder_of_the_test(clean_env: Path):
    assert Path.home() == clean_env
    assert list(clean_env.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_BASE_URL", "LOUSHO_MODEL", "NO_COLOR", "CI"]
)
def test_a_setting_of_the_developer_does_not_reach_a_test(name: str):
    assert name not in os.environ
