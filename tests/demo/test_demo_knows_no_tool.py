"""The demo model knows language, not tools: no name of a tool or parameter that the project itself uses is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lousho import ask_question_tool
from lousho.models.demo import words

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "lousho" / "models" / "demo"

SCHEMA_WORDS = frozenset(
    """
    additionalProperties allOf anyOf const default description email enum examples exclusiveMaximum exclusiveMinimum
    format items date time datetime duration integer maxItems maxLength maximum minItems minLength minimum name null
    nullable number object oneOf pattern properties required string title type uri uuid value
    """.lower().split()
)
"""JSON Schema's own keywords, types and formats: a model that reads schemas has to say them."""
RESULT_WORDS = frozenset("error kind message issues path note reason toolname".split())
"""The keys of a failed call's result, which the model has to read."""
FUNCTION_WORDS = (
    words.STOP
    | words.NEGATIONS
    | set("abcdefghijklmnopqrstuvwxyz")
    | set("if ok first second third fourth last latest later next other nothing none all every both each".split())
)
"""Articles, pronouns, prepositions, places in a row and single letters: they belong to no subject."""
COMPOUND = re.compile(r"[a-z0-9][_-][a-z0-9]|[a-z][A-Z]")
"""A name of several words. Tests also call a tool `leave` or a parameter `n`: one word alone is just English."""


def strings_of(path: Path) -> Iterator[str]:
    """Return the text of every string of a module but its docstrings: what the program can compare or say."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


def inner_words_of(path: Path) -> Iterator[str]:
    """Return the members of a module's `Literal` types: its own states, never compared with what anyone says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and called(node.value) == "Literal":
            yield from (
                part.value.lower()
                for part in ast.walk(node.slice)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def names_in(path: Path) -> Iterator[str]:
    """Return the names of the tools in a file and of their parameters."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".j2":
        text = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", re.sub(r"\{\{.*?\}\}", "x", text))
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(map(is_tool, node.decorator_list)):
            yield node.name
            yield from (
                arg.arg for arg in (*node.args.args, *node.args.kwonlyargs) if arg.arg not in {"ctx", "context"}
            )
        elif isinstance(node, ast.Call) and called(node.func) == "define_tool":
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
                yield from properties_of(keyword.value)


def is_tool(decorator: ast.expr) -> bool:
    return called(decorator.func if isinstance(decorator, ast.Call) else decorator) == "tool"


def called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def properties_of(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Dict):
            for key, value in zip(part.keys, part.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "properties" and isinstance(value, ast.Dict):
                    yield from (str(name.value) for name in value.keys if isinstance(name, ast.Constant))


def names_under(folder: str) -> set[str]:
    files = [path for ending in ("*.py", "*.py.j2") for path in (ROOT / folder).rglob(ending)]
    return {name for path in files for name in names_in(path)}


def occurring(names: set[str], modules: list[Path]) -> dict[str, list[str]]:
    """Return the names that are a word of a module's strings, or a compound name anywhere in its source."""
    found: dict[str, list[str]] = {}
    allowed = (
        SCHEMA_WORDS | RESULT_WORDS | FUNCTION_WORDS | {w for path in SOURCE.glob("*.py") for w in inner_words_of(path)}
    )
    for module in modules:
        source = module.read_text(encoding="utf-8").lower()
        said = {word for text in strings_of(module) for word in re.findall(r"[a-z][a-z0-9_]*", text.lower())}
        for name in names:
            low = name.lower()
            compound = "_" in name.strip("_") and re.search(rf"\b{re.escape(low)}\b", source)
            if low not in allowed and (low in said or compound):
                found.setdefault(name, []).append(module.name)
    return found


@pytest.mark.spec("BEY-03")
@pytest.mark.parametrize("folder", ["templates", "examples"])
def test_no_name_of_a_template_or_example_occurs_in_the_demo_model(folder: str):
    names = names_under(folder)
    assert len(names) > 3, f"the scan of {folder}/ found no tools"
    assert occurring(names, sorted(SOURCE.glob("*.py"))) == {}


@pytest.mark.spec("BEY-03")
def test_no_compound_name_of_a_test_occurs_in_the_demo_model():
    names = {name for name in names_under("tests") if COMPOUND.search(name)} - {ask_question_tool().name}
    assert len(names) > 20, "the scan of tests/ found no tools"
    assert occurring(names, sorted(SOURCE.glob("*.py"))) == {}


def test_the_sentences_are_only_said_and_never_compared():
    for path in SOURCE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("demo.phrases"):
                pytest.fail(f"{path.name} takes names out of phrases instead of saying phrases.<name>")
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and called(node.value) == "phrases"]
        calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        others = [node.attr for node in used if id(node) not in calls]
        assert set(others) <= {"INTRODUCTION"}, f"{path.name} uses {others} other than by calling it"
