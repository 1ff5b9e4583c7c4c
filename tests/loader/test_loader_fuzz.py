"""Whatever a file holds: an agent, or a coded error. Never another exception, a hang or a crash."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from agent_files import tool_source, write_files
from hypothesis import given
from hypothesis import strategies as st

from lousho import SDKError, resolve_agent_dir_sync
from lousho.loader.target import load_target

NUMBERS = itertools.count()
CONFIG_KEYS = st.sampled_from(
    "name description model provider instructions maxSteps toolConcurrency permissions modelSettings approvalTtlMs hooks"
    " approve limits retry output store compaction permissionMode projectInstructions guardrails engine modle".split()
)
SPEC_KEYS = st.sampled_from("name prompt provider tools policy triggers mcpServers version tool guardrails x".split())
WORDS = st.sampled_from(
    "tool action when allow ask deny * eq lt matches type model mock openai requiresApproval askQuestion compaction"
    " current-date mock/m (a maxTokens temperature".split()
) | st.just("")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(WORDS, children, max_size=3),
    max_leaves=8,
)
RULES = st.lists(st.fixed_dictionaries({"tool": VALUES, "action": VALUES}, optional={"when": VALUES, "ttlMs": VALUES}))


def loads_or_says_why(path: Path) -> None:
    try:
        target = load_target(path, command="chat")
    except SDKError as error:
        assert error.code != "LOUSHO_GENERIC_ERROR"
        assert error.detail
    else:
        assert target.agent.name
        target.unload()


def fresh(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str | bytes]) -> Path:
    return write_files(tmp_path_factory.getbasetemp() / f"fuzz-{next(NUMBERS)}", files)


@given(st.dictionaries(CONFIG_KEYS, VALUES, max_size=4))
def test_any_config_of_a_directory(tmp_path_factory: pytest.TempPathFactory, config: dict[str, Any]):
    loads_or_says_why(fresh(tmp_path_factory, {"agent.json": json.dumps(config)}))


@given(RULES | VALUES)
def test_any_permissions(tmp_path_factory: pytest.TempPathFactory, permissions: Any):
    loads_or_says_why(fresh(tmp_path_factory, {"agent.json": json.dumps({"permissions": permissions})}))


@given(st.dictionaries(SPEC_KEYS, VALUES, max_size=6), st.booleans())
def test_any_spec(tmp_path_factory: pytest.TempPathFactory, spec: dict[str, Any], complete: bool):
    base = {"name": "a", "prompt": "b", "provider": {"type": "mock", "model": "m"}} if complete else {}
    folder = fresh(tmp_path_factory, {"agent.json": json.dumps({**base, **spec})})
    loads_or_says_why(folder / "agent.json")


@given(
    st.sampled_from(["agent.json", "agent.yaml", "agent.py", "instructions.md", "tools/x.py", "instructions/mock.md"]),
    st.binary(max_size=120) | st.text(alphabet="{}[]:,\"'# \n()=aimprt0\\", max_size=60).map(str.encode),
)
def test_any_bytes_in_any_file(tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes):
    loads_or_says_why(fresh(tmp_path_factory, {name: data}))


@given(st.binary(max_size=80))
def test_any_bytes_as_a_module(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    loads_or_says_why(fresh(tmp_path_factory, {"a.py": data}) / "a.py")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = " + "(" * 100_000, id="open brackets"),
        pytest.param("x = " + "-" * 100_000 + "1\n", id="a tower of signs"),
        pytest.param("x = " + "[" * 90 + "]" * 90 + "\n", id="nested lists"),
        pytest.param("def f(): f()\nf()\n", id="endless recursion"),
        pytest.param("x" * 500_000, id="a long name"),
        pytest.param("# -*- coding: nonsense -*-\n", id="an unknown encoding"),
        pytest.param("import tools.x\nfrom . import x\n", id="an import of itself"),
        pytest.param("import sys\ndel sys.modules[__name__]\n", id="a module that removes itself"),
        pytest.param("raise __import__('asyncio').CancelledError\n", id="a cancellation"),
        pytest.param(
            "class E(BaseException):\n    def __str__(self): raise ValueError\n\n\nraise E\n", id="hostile text"
        ),
    ],
)
def test_python_that_cannot_run_is_a_sentence(tmp_path: Path, source: str):
    write_files(tmp_path / "desk", {"tools/x.py": source})
    with pytest.raises(SDKError) as caught:
        resolve_agent_dir_sync(tmp_path / "desk")
    assert caught.value.code == "LOUSHO_AGENT_DIR_INVALID"
    assert "x.py" in caught.value.detail
    assert len(caught.value.detail) < 1_000


def test_a_directory_with_thousands_of_entries_loads(tmp_path: Path):
    folder = write_files(tmp_path / "desk", {"instructions.md": "x", "tools/a.py": tool_source("a")})
    (folder / "data").mkdir()
    for number in range(2_000):
        (folder / f"file-{number}.txt").touch()
    assert resolve_agent_dir_sync(folder).manifest.tools == ["a"]
