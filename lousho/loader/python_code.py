"""Running the user's Python files: each load gets modules of its own, under a package name of its own.

A directory's `tools/send.py` becomes `lousho_agents.<hash>_<n>.tools.send`, so `from ..lib import x` works, two agents
with equal file names never meet in `sys.modules`, loading again runs edited code, and the lot can be thrown away.
`import helper` finds `helper.py` beside the file in the same way, without touching `sys.path`. No bytecode is read or
written: the directory may be read-only, and a cache that compares times by the second would miss a quick edit.

What code may do is not limited here: it runs with the permissions of the process.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.machinery
import importlib.util
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

ROOT: Final = "lousho_agents"
_NUMBERS = itertools.count(1)
_LOADS: dict[str, CodeLoad] = {}
_OWN_NAMES: Final = frozenset({"lousho", "lousho_cli"})


class CodeLoad:
    """The modules of one load of one folder."""

    def __init__(self, folder: Path, *, beside: Path | None = None) -> None:
        """Prepare to run files below `folder`, the root of relative imports.

        Absolute imports of names that are files or packages in `folder`, or in `beside`, resolve there first.
        """
        self.folder = absolute(folder)
        self.search = tuple(dict.fromkeys(path for path in (beside and absolute(beside), self.folder) if path))
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:10]
        self.package = f"{ROOT}.{digest}_{next(_NUMBERS)}"
        self._builtins = self._own_builtins()
        _install_finder()
        _LOADS[self.package] = self
        sys.modules[self.package] = _package_module(self.package, [str(path) for path in self.search])

    def run(self, file: Path) -> ModuleType:
        """Run a file below the folder (once per load) and return its module; lets through whatever it raises."""
        relative = absolute(file).relative_to(self.folder)
        parts = [*relative.parent.parts, relative.stem]
        if all(part.isidentifier() for part in parts):
            module = importlib.import_module(".".join((self.package, *parts)))
            if module.__file__ is not None and Path(module.__file__) == absolute(file):
                return module  # else a package of the same name stands beside the file and was found first
        return self._run_odd_name(file, parts)

    def _run_odd_name(self, file: Path, parts: Sequence[str]) -> ModuleType:
        """Run a file that no import statement can name, such as `send-email.py`."""
        parent = self.package
        if len(parts) > 1 and all(part.isidentifier() for part in parts[:-1]):
            parent = ".".join((self.package, *parts[:-1]))
            importlib.import_module(parent)
        plain = "".join(character if character.isalnum() else "_" for character in parts[-1])
        name = f"{parent}.{plain}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:8]}"
        spec = importlib.machinery.ModuleSpec(name, FreshSourceLoader(name, str(absolute(file))), origin=str(file))
        spec.has_location = True
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            assert spec.loader is not None
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    def files(self) -> list[Path]:
        """Return the files that were run so far, imported helpers included."""
        found = {
            Path(file)
            for name, module in list(sys.modules.items())
            if name.startswith(f"{self.package}.") and isinstance(file := getattr(module, "__file__", None), str)
        }
        return sorted(found)

    def unload(self) -> None:
        """Forget the modules. Functions that came from them go on working; a later import inside them does not."""
        _LOADS.pop(self.package, None)
        for name in [name for name in sys.modules if name == self.package or name.startswith(f"{self.package}.")]:
            del sys.modules[name]

    def local_name(self, name: str) -> str:
        """Return a module's name without the package of this load, as its author knows it."""
        return name.removeprefix(f"{self.package}.")

    def give_builtins(self, module: ModuleType) -> None:
        """Make the import statements of a module look beside it first."""
        module.__dict__["__builtins__"] = self._builtins

    def _own_builtins(self) -> dict[str, Any]:
        real_import = builtins.__import__
        known: dict[str, bool] = {}

        def import_beside(
            name: str,
            globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
            locals: Mapping[str, object] | None = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            top = name.partition(".")[0]
            if level == 0 and top not in known:
                known[top] = self._is_beside(top)
            if level == 0 and known[top]:
                module = real_import(f"{self.package}.{name}", globals, locals, fromlist or ("__name__",), 0)
                return module if fromlist else sys.modules[f"{self.package}.{top}"]
            return real_import(name, globals, locals, fromlist or (), level)

        return {**builtins.__dict__, "__import__": import_beside}

    def _is_beside(self, top: str) -> bool:
        if not top or top in sys.stdlib_module_names or top in sys.builtin_module_names or top in _OWN_NAMES:
            return False
        for folder in self.search:
            if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
                return True
        # A folder without __init__.py counts only when nothing installed has the name.
        return any((folder / top).is_dir() for folder in self.search) and not _is_installed(top)


class FreshSourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles the source each time, and hands the module the import statement of its load."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        load = _LOADS.get(".".join(module.__name__.split(".")[:2]))
        if load is not None:
            load.give_builtins(module)
        super().exec_module(module)


class _Finder:
    """Finds modules below `lousho_agents`, and nothing else."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del target
        if not fullname.startswith(f"{ROOT}.") or path is None:
            return None
        namespace: list[str] = []
        for entry in path:
            finder = importlib.machinery.FileFinder(
                entry,
                (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
                (FreshSourceLoader, importlib.machinery.SOURCE_SUFFIXES),
            )
            spec = finder.find_spec(fullname)
            if spec is None:
                continue
            if spec.loader is not None:
                return spec
            namespace.extend(spec.submodule_search_locations or ())
        if not namespace:
            return None
        found = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        found.submodule_search_locations = namespace
        return found


def _install_finder() -> None:
    if _Finder not in sys.meta_path:
        # First, so that the usual path finder, which would write bytecode, never sees these names.
        sys.meta_path.insert(0, _Finder)  # pyright: ignore[reportArgumentType]
        sys.modules[ROOT] = _package_module(ROOT, [])


def _package_module(name: str, search: list[str]) -> ModuleType:
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = search
    module = importlib.util.module_from_spec(spec)
    module.__path__ = search
    return module


def _is_installed(top: str) -> bool:
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None


def absolute(path: Path) -> Path:
    """Return a path without `..` and relative parts; symbolic links stay, so that messages show what was written."""
    try:
        return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
    except OSError:  # the working directory is gone
        return path
