"""Fixtures that start outside servers. A missing one skips its tests with the reason, and fails them in CI."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from peer_servers import AIMOCK, LLMOCK, Aimock, Llmock

StartAimock = Callable[[list[dict[str, Any]] | Path], Aimock]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs outside software."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.peers)


def need(program: Path, name: str) -> None:
    """Stop the test when a peer is not installed: a skip on a developer's machine, a failure in CI."""
    if program.exists():
        return
    reason = f"{name} is not installed: run make test-peers, which puts it into .peers"
    if os.environ.get("LOUSHO_TEST_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def aimock(clean_env: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartAimock]:
    """`aimock([{"match": {...}, "response": {...}}])` starts a server that answers by these fixtures, and returns it.

    It has `url`, `openai_base_url`, `anthropic_base_url` and `journal()`.
    """
    need(AIMOCK, "aimock")
    started: list[Aimock] = []

    def start(fixtures: list[dict[str, Any]] | Path) -> Aimock:
        server = Aimock(fixtures, tmp_path_factory.mktemp("aimock"))
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture
def llmock_server(clean_env: Path) -> Iterator[Llmock]:
    """A server whose behaviour is queued with `.scenario({...})`; its `.verdict()` judges the client."""
    need(LLMOCK, "llmock")
    with Llmock() as server:
        yield server
