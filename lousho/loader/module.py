"""A Python module as the target of a command: the agent in it, or the options for one.

Source: cli page ("What `<path>` is").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from lousho.core.errors import ConfigurationError, SDKError
from lousho.loader.import_failure import PASSED_THROUGH, explain, shown_path
from lousho.loader.module_names import own_names
from lousho.loader.python_code import CodeLoad, absolute

if TYPE_CHECKING:
    from lousho.agent.agent import Agent

AGREED_NAMES: Final = ("agent", "config")


def load_module(file: Path, *, command: str) -> tuple[Agent | dict[str, Any], CodeLoad]:
    """Run a Python file and return its agent, or its `create_agent()` options as a mapping.

    That is the module's `agent`, else its `config`, else the one object that is either. `command` is named in errors,
    e.g. `chat`. Raises `LOUSHO_CONFIG_INVALID`; a missing key or package keeps its own code.
    """
    folder, beside = _import_root(absolute(file))
    load = CodeLoad(folder, beside=beside)
    try:
        module = _run(load, file, command)
        return _found(module, file, command), load
    except BaseException:
        load.unload()
        raise


def _import_root(file: Path) -> tuple[Path, Path]:
    """Return the folder above the outermost package the file is in, and the file's own folder."""
    root = file.parent
    while (root / "__init__.py").is_file() and root.name.isidentifier() and root.parent != root:
        root = root.parent
    return root, file.parent


def _run(load: CodeLoad, file: Path, command: str) -> ModuleType:
    try:
        return load.run(file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # User code may raise anything; sys.exit() in it must not end the program without a word.
        failure = explain(error, file, load)
        code = error.code if isinstance(error, SDKError) and error.code in PASSED_THROUGH else "LOUSHO_CONFIG_INVALID"
        raise ConfigurationError(f"lousho {command}: {failure}", code=code, cause=error) from error


def _found(module: ModuleType, file: Path, command: str) -> Agent | dict[str, Any]:
    from lousho.agent.agent import Agent

    shown = shown_path(file)
    for name in AGREED_NAMES:
        value: Any = getattr(module, name, None)
        if isinstance(value, Agent):
            return value
        if isinstance(value, Mapping):
            return _options(cast("Mapping[Any, Any]", value), name, shown, command)
    candidates = _candidates(module, own_names(module, file.read_bytes()))
    if len(candidates) == 1:
        ((name, value),) = candidates.items()
        return value if isinstance(value, Agent) else _options(value, name, shown, command)
    if candidates:
        raise ConfigurationError(
            f"lousho {command}: '{shown}' defines more than one agent: {', '.join(candidates)}."
            " Call the one to load 'agent'."
        )
    raise ConfigurationError(
        f"lousho {command}: '{shown}' defines no agent{_why(module)}."
        " Write agent = create_agent(...), or a mapping of its options."
    )


def _candidates(module: ModuleType, names: Iterable[str]) -> dict[str, Any]:
    """Return the objects that are agents or options, each once, by name."""
    from lousho.agent.agent import Agent
    from lousho.agent.options import KNOWN_OPTIONS

    found: dict[str, Any] = {}
    for name in names:
        value: Any = getattr(module, name, None)
        keys = set(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else set[Any]()
        if (isinstance(value, Agent) or (keys and keys <= {*KNOWN_OPTIONS})) and not any(
            value is other for other in found.values()
        ):
            found[name] = value
    return found


def _options(value: Mapping[Any, Any], name: str, shown: str, command: str) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in value):
        raise ConfigurationError(f"lousho {command}: '{shown}': the keys of '{name}' must be names of options.")
    return dict(cast("Mapping[str, Any]", value))


def _why(module: ModuleType) -> str:
    value: Any = getattr(module, "agent", None)
    if value is None:
        return ""
    if isinstance(value, ModuleType):
        return " ('agent' is a module)"
    if callable(value):
        return " ('agent' is a function; assign what it returns)"
    return f" ('agent' is of the type {type(value).__name__})"
