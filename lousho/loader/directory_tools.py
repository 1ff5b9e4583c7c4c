"""The tools of an agent directory: each file of `tools/` is run and gives the tools that it defines itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from lousho.core.errors import ConfigurationError, SDKError
from lousho.loader.directory_layout import CODE, refuse
from lousho.loader.import_failure import PASSED_THROUGH, explain, shown_path
from lousho.loader.module_names import own_names
from lousho.loader.python_code import CodeLoad
from lousho.tools.definition import Tool
from lousho.tools.registry import ToolRegistry
from lousho.tools.todo import TodoTools


def run_file(load: CodeLoad, file: Path) -> ModuleType:
    """Run one file of the directory. Raises `LOUSHO_AGENT_DIR_INVALID` naming file, line and cause.

    A missing API key or package keeps its own code: it is not the file that has to change. Ctrl-C is let through.
    """
    try:
        return load.run(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # User code may raise anything; sys.exit() in a tool file must not end the program without a word.
        failure = explain(error, file, load)
        code = error.code if isinstance(error, SDKError) and error.code in PASSED_THROUGH else CODE
        raise ConfigurationError(str(failure), code=code, cause=error) from error


def tools_of(load: CodeLoad, files: Sequence[Path]) -> list[Tool]:
    """Return the tools of all files, in the order of the files. Raises `LOUSHO_AGENT_DIR_INVALID`.

    A file without a tool is an error, and so are two tools of one name; both files are named.
    """
    found: dict[str, tuple[Tool, Path]] = {}
    for file in files:
        for tool in _tools_of_file(run_file(load, file), file):
            first, where = found.get(tool.name, (tool, file))
            if first is not tool:
                refuse(_twice(tool.name, where, file))
            found[tool.name] = (tool, where)
    return [tool for tool, _ in found.values()]


def _tools_of_file(module: ModuleType, file: Path) -> list[Tool]:
    tools: list[Tool] = []
    functions: list[str] = []
    for name in own_names(module, file.read_bytes()):
        value: Any = getattr(module, name, None)
        if isinstance(value, Tool):
            tools.append(value)
        elif isinstance(value, TodoTools):
            tools.extend(value.tools)
        elif isinstance(value, ToolRegistry):
            tools.extend(value.values())
        elif isinstance(value, (list, tuple)):
            tools.extend(_tools_of_list(name, cast("Sequence[Any]", value), file))
        elif isinstance(value, FunctionType):
            functions.append(name)
    if not tools:
        advice = f" Put @tool above {functions[0]}()." if functions else " Define one with @tool or define_tool()."
        refuse(f"'{shown_path(file)}' defines no tool.{advice} A file whose name starts with '_' is not looked at")
    return tools


def _tools_of_list(name: str, items: Sequence[Any], file: Path) -> list[Tool]:
    tools = [item for item in items if isinstance(item, Tool)]
    other = [item for item in items if not isinstance(item, Tool)]
    if (tools or name == "tools") and other:
        what = getattr(other[0], "__name__", None) or repr(other[0])[:60]
        refuse(f"'{shown_path(file)}': {what} in the list '{name}' is not a tool. Put @tool above the function")
    return tools


def _twice(name: str, first: Path, second: Path) -> str:
    if first == second:
        return f"'{shown_path(first)}' defines two tools named '{name}'"
    return f"two tools are named '{name}': one in '{shown_path(first)}', one in '{shown_path(second)}'"
