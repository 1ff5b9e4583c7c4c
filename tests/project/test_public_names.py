"""The public surface: every name resolves, once, without loading what it does not need."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import lousho


@pytest.mark.parametrize("package", ["lousho", "lousho.agent", "lousho.tools", "lousho.testing", "lousho.executor"])
def test_every_public_name_resolves_and_is_listed(package):
    module = import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is getattr(module, name)
    assert set(module.__all__) <= set(dir(module))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'creat_agent'"):
        getattr(lousho, "creat_agent")  # noqa: B009 - the checker knows that it is not there


def test_one_object_per_class_whichever_module_shows_it():
    from lousho.agent import create_agent
    from lousho.core.errors import SDKError
    from lousho.tools import tool

    assert (lousho.create_agent, lousho.SDKError, lousho.tool) == (create_agent, SDKError, tool)
    assert lousho.ExecutionResult is lousho.RunResult


def test_importing_the_package_loads_none_of_its_rooms():
    program = "import sys, lousho; print(*sorted(name for name in sys.modules if name.startswith(('lousho', 'pydantic', 'httpx', 'asyncio'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["lousho"]
