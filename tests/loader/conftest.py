"""Agents written as files, in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from agent_files import write_files

AgentFolder = Callable[..., Path]


@pytest.fixture
def agent_folder(tmp_path: Path) -> AgentFolder:
    """`agent_folder({"instructions.md": "..."})` writes a directory, `desk` unless named, and returns its path."""

    def write(files: Mapping[str, str | bytes], name: str = "desk") -> Path:
        return write_files(tmp_path / name, files)

    return write
