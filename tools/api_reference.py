"""Builds the API reference from the package itself: every public name with its signature and its docstring.

pdoc renders it. What is ours: the public names are resolved on first use, so they are resolved before pdoc looks;
annotations stand as the source writes them, public names in them being links; a constant or a type alias is documented
by the text below it in the module it comes from; and one page lists all names. A public name without a docstring is an
error.

usage: api_reference.py OUTPUT
"""

from __future__ import annotations

import ast
import html
import inspect
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, ForwardRef, TypeAlias, cast, is_typeddict

import jinja2
import pdoc.doc
import pdoc.doc_ast
import pdoc.render
from pdoc.doc_types import empty

Doc: TypeAlias = "pdoc.doc.Doc[Any]"

PACKAGES = ("lousho.testing", "lousho.tools")
"""Packages that users import from, beside `lousho` itself and the module files that lie in it."""
TEMPLATES = Path(__file__).parent / "api_templates"
LONGEST_VALUE = 200
"""Characters of a constant's value that are shown; more is left to the source."""


class Undocumented(Exception):
    """Public names have no docstring."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One public name, as the list of all names shows it."""

    name: str
    href: str
    summary: str
    """The first sentence of its docstring, as HTML."""


class Written:
    """An annotation or a value, shown as it is written."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def face_names() -> list[str]:
    """Return the modules whose `__all__` is public, the package itself first."""
    found = iter_modules(import_module("lousho").__path__, "lousho.")
    files = [module.name for module in found if not module.ispkg and not module.name.startswith("lousho._")]
    return ["lousho", *sorted([*PACKAGES, *files])]


def documented_faces() -> dict[str, pdoc.doc.Module]:
    """Return what pdoc knows of every face, all public names resolved and documented."""
    faces: dict[str, pdoc.doc.Module] = {}
    home: dict[str, str] = {}
    for name in face_names():
        module = import_module(name)
        for public in module.__all__:
            getattr(module, public)  # from now on it is in the module's own namespace, where pdoc looks
            home.setdefault(public, name)
        faces[name] = pdoc.doc.Module(module)
    shown = {
        member.taken_from: (home[member.name], member.name) for face in faces.values() for member in members_of(face)
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Error parsing type annotation")  # they are shown as written, see below
        warnings.filterwarnings("ignore", "Cannot determine where")  # keys of a TypedDict's base: Python keeps no trace
        for name, face in faces.items():
            links = {**home, **{member.name: name for member in members_of(face)}}
            for member in members_of(face):
                if isinstance(member, pdoc.doc.Variable):
                    _describe_value(member, face.obj)
                    continue
                if isinstance(member, pdoc.doc.Class):
                    _settle_inheritance(member, shown)
                _write_annotations(member, links)
    return faces


def members_of(face: pdoc.doc.Module) -> list[Doc]:
    """Return the public names of a face in the order of its `__all__`."""
    return cast("list[Doc]", face.own_members)


def _describe_value(member: pdoc.doc.Variable, face: ModuleType) -> None:
    """Document a constant, a type alias or a second name: what it is cannot be read from the object."""
    value = getattr(face, member.name)
    if inspect.isclass(value):
        member.docstring = f"Another name of `{value.__name__}`. {inspect.getdoc(value) or ''}"
        member.default_value = empty
        return
    module, name = _origin(face, member.name)
    text = pdoc.doc_ast.walk_tree(module).var_docstrings.get(name) or getattr(value, "description", "")
    member.docstring = inspect.cleandoc(text)
    assigned = _assigned_text(module, name)
    member.default_value = Written(assigned) if len(assigned) <= LONGEST_VALUE else empty


def _settle_inheritance(cls: pdoc.doc.Class, shown: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """Give a class what it has from bases of ours that no page shows; what is public elsewhere is named there."""
    members = cast("dict[str, Doc]", cls.members)
    for name, member in list(members.items()):
        module, owner = member.taken_from[0], member.taken_from[1].rpartition(".")[0]
        if is_typeddict(cls.obj):  # all keys in one place, whichever base they come from
            member.docstring = member.docstring or _key_docstring(cls.obj, name)
            member.taken_from = (cls.taken_from[0], f"{cls.taken_from[1]}.{name}")
            continue
        if (module, owner) == cls.taken_from:
            continue
        if (module, owner) in shown:
            face, known = shown[module, owner]
            member.taken_from = (face, f"{known}.{name}")
        elif module.startswith("lousho."):
            member.taken_from = (cls.taken_from[0], f"{cls.taken_from[1]}.{name}")
        else:
            del members[name]


def _key_docstring(typed_dict: type, key: str) -> str:
    """Return what the base of a `TypedDict` says of a key; which base it was is written in the source alone."""
    for base in cast("ast.ClassDef", ast.parse(inspect.getsource(typed_dict)).body[0]).bases:
        parent = getattr(sys.modules[typed_dict.__module__], ast.unparse(base), None)
        if isinstance(parent, type) and is_typeddict(parent):
            text = pdoc.doc_ast.walk_tree(parent).var_docstrings.get(key) or _key_docstring(parent, key)
            return inspect.cleandoc(text)
    return ""


def _origin(face: ModuleType, name: str) -> tuple[ModuleType, str]:
    """Return the module that assigns a name and its name there; a face names it for type checkers."""
    for node in ast.walk(ast.parse(inspect.getsource(face))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _origin(import_module(node.module), alias.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and _assigns(node, name):
            return _origin(face, node.value.id)
    return face, name


def _assigned_text(module: ModuleType, name: str) -> str:
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _assigns(node, name) and node.value is not None:
            return ast.unparse(node.value)
    return ""


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _write_annotations(member: Doc, links: Mapping[str, str]) -> None:
    """Show the annotations of a class or a function as the source has them: resolved, an alias fills a screen."""
    if isinstance(member, pdoc.doc.Function):
        member.signature = _written_signature(member, links)
    elif isinstance(member, pdoc.doc.Class):
        for part in cast("list[Doc]", member.own_members):
            if isinstance(part, pdoc.doc.Variable):
                part.annotation = _attribute_annotation(member.obj, part.name, links)
            else:
                _write_annotations(part, links)


def _written_signature(function: pdoc.doc.Function, links: Mapping[str, str]) -> inspect.Signature:
    shown = function.signature
    try:
        raw = inspect.signature(function.obj)
    except (TypeError, ValueError):
        return shown
    parameters = [
        one.replace(annotation=_written(raw.parameters[name].annotation, links)) if name in raw.parameters else one
        for name, one in shown.parameters.items()
    ]
    return shown.replace(parameters=parameters, return_annotation=_written(raw.return_annotation, links))


def _attribute_annotation(owner: type, name: str, links: Mapping[str, str]) -> Any:
    member = inspect.getattr_static(owner, name, None)
    if isinstance(member, property) and member.fget is not None:
        return _written(inspect.get_annotations(member.fget).get("return", inspect.Parameter.empty), links)
    for base in owner.__mro__:
        if name in inspect.get_annotations(base):
            return _written(inspect.get_annotations(base)[name], links)
    return empty


def _written(annotation: Any, links: Mapping[str, str]) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return Written(re.sub(r"(?<![\w.'\"])[A-Za-z_]\w*", lambda found: _linkable(found.group(), links), text))


def _linkable(name: str, links: Mapping[str, str]) -> str:
    return f"{links[name]}.{name}" if name in links else name  # pdoc links full names, and shows them short


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = " ".join(docstring.strip().split("\n\n", 1)[0].split())
    found = re.match(r".*?[.!?](?=\s+[A-Z`(]|$)", paragraph)
    return found.group(0) if found else paragraph


def undocumented(faces: Iterable[pdoc.doc.Module]) -> list[str]:
    """Return the public names that have no docstring of their own; what a base class says does not count."""

    def missing(member: Doc) -> bool:
        inherits = isinstance(member, pdoc.doc.Class) and not member.obj.__dict__.get("__doc__")
        return inherits or not member.docstring.strip()

    return [member.fullname for face in faces for member in members_of(face) if missing(member)]


def entries_of(face: pdoc.doc.Module) -> Iterator[Entry]:
    """Yield what the list of all names says of a face."""
    for member in members_of(face):
        sentence = html.escape(first_sentence(member.docstring), quote=False)
        summary = re.sub(r"`([^`]+)`", r"<code>\1</code>", sentence)
        yield Entry(member.name, f"{_page(face.modulename)}#{member.qualname}", summary)


def _guard_references(text: str) -> str:
    """Return HTML in which the value of a keyword argument is no reference of its own to pdoc."""
    return re.sub(r"=(?=[A-Za-z_]\w*\.\w)", "&#61;", text)


def _page(module: str) -> str:
    return f"{module.replace('.', '/')}.html"


def build(output: Path) -> int:
    """Write the reference into `output` and return how many names it has. Raises `Undocumented`."""
    os.environ["PDOC_DISPLAY_ENV_VARS"] = "1"  # otherwise a value could hide that is also in somebody's environment
    faces = documented_faces()
    missing = undocumented(faces.values())
    if missing:
        raise Undocumented(f"{len(missing)} public names have no docstring: {', '.join(missing)}")
    pdoc.render.configure(docformat="markdown", show_source=False, search=False)
    own = Path(pdoc.render.__file__).parent / "templates"
    pdoc.render.env.loader = jinja2.FileSystemLoader([TEMPLATES, own, own / "default"])  # without the user's templates
    pdoc.render.env.filters["guard_references"] = _guard_references
    listed = {name: list(entries_of(face)) for name, face in faces.items()}
    cast("dict[str, Any]", pdoc.render.env.globals)["listed"] = listed
    pages = {_page(name): pdoc.render.html_module(face, faces) for name, face in faces.items()}
    pages["index.html"] = pdoc.render.html_index(faces)
    for name, page in pages.items():
        file = output / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    return sum(len(entries) for entries in listed.values())


def main(output: Path) -> int:
    """Build the reference; returns the exit code."""
    try:
        count = build(output)
    except Undocumented as problem:
        print(f"api reference: {problem}", file=sys.stderr)
        return 1
    print(f"api reference: {count} names in {output}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: api_reference.py OUTPUT")
    sys.exit(main(Path(sys.argv[1])))
