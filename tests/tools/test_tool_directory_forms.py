"""What a file of an agent directory's `tools/` may define beside single tools."""

from __future__ import annotations

from pathlib import Path

from lousho import load_agent_dir_sync

PLAN = """
from lousho import create_todo_tools

todos = create_todo_tools()
"""
ORDERS = '''
from lousho import current_date_tool, tool
from lousho.tools import ToolRegistry

@tool
def find_order(order_id: str) -> str:
    """Find an order."""
    return order_id

shared = ToolRegistry([find_order])
shared.register("today", current_date_tool)
'''
BOTH = """
from lousho import create_todo_tools

todos = create_todo_tools()
tools = todos.tools
"""


def directory(folder: Path, **files: str) -> Path:
    (folder / "tools").mkdir(parents=True)
    (folder / "instructions.md").write_text("Help.", encoding="utf-8")
    (folder / "agent.yaml").write_text("model: mock/demo\n", encoding="utf-8")
    for name, text in files.items():
        (folder / "tools" / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def test_todo_tools_and_registries_of_a_file_are_the_agents_tools(tmp_path: Path):
    agent = load_agent_dir_sync(directory(tmp_path / "clerk", plan=PLAN, orders=ORDERS))
    assert sorted(agent.tools) == ["find_order", "today", "todo_read", "todo_write"]


def test_a_list_beside_what_it_comes_from_is_no_second_set(tmp_path: Path):
    agent = load_agent_dir_sync(directory(tmp_path / "clerk", plan=BOTH))
    assert sorted(agent.tools) == ["todo_read", "todo_write"]
