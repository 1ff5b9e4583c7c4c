"""The API reference covers the whole public surface, and a public name that nobody explained stops it."""

from __future__ import annotations

import html
import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import api_reference
import check_site
import pytest

FACES = api_reference.face_names()


def run_builder(root: Path, output: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(root / "tools/api_reference.py"), str(output)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )


@pytest.fixture(scope="module")
def reference(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("reference")
    done = run_builder(project_root, output)
    assert done.returncode == 0, done.stderr
    return output


def plain(text: str) -> str:
    """Return text without markup, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).replace("`", "").split())


def section(page: str, name: str) -> str:
    """Return what a page has under one public name."""
    return page.split(f'<section id="{name}">', 1)[1].split("</section>", 1)[0]


@pytest.mark.spec("API-01")
@pytest.mark.parametrize("face", FACES)
def test_every_public_name_is_listed_and_has_its_docstring(reference: Path, face: str):
    module = import_module(face)
    listed = dict(
        re.findall(r'<td><a href="([^"]+)">.*?</a></td><td>(.+?)</td>', (reference / "index.html").read_text())
    )
    page_name = f"{face.replace('.', '/')}.html"
    page = (reference / page_name).read_text(encoding="utf-8")
    for name in module.__all__:
        value = getattr(module, name)
        summary = plain(listed[f"{page_name}#{name}"])
        assert summary, f"{face}.{name} is listed without a word"
        assert summary in plain(section(page, name))
        own_name = getattr(value, "__name__", None) == name and (inspect.isclass(value) or inspect.isroutine(value))
        if own_name:
            assert plain(inspect.getdoc(value) or "").startswith(summary)


@pytest.mark.spec("API-01")
@pytest.mark.parametrize(
    ("page", "name", "shows"),
    [
        pytest.param("lousho", "create_agent", "max_steps: int | None = None", id="a function"),
        pytest.param("lousho", "create_agent", "-> Agent", id="what it returns"),
        pytest.param("lousho", "Agent", "async def send( self, input: AgentInput", id="a method"),
        pytest.param("lousho", "RunResult", "finish_reason: RunFinishReason", id="an attribute"),
        pytest.param("lousho", "ContentPart", "= TextPart | ImagePart | FilePart", id="a type alias"),
        pytest.param("lousho", "ExecutionResult", "Another name of RunResult", id="a second name"),
        pytest.param("lousho/executor", "AgentExecutor", "async def execute(", id="a static method"),
        pytest.param(
            "lousho/executor", "AgentExecutor", "**options: Unpack[ExecuteOptions]) -> lousho.RunResult", id="x"
        ),
    ],
)
def test_a_name_has_its_signature(reference: Path, page: str, name: str, shows: str):
    text = plain(section((reference / f"{page}.html").read_text(encoding="utf-8"), name))
    assert re.sub(r"\s", "", shows) in re.sub(r"\s", "", text)


@pytest.mark.spec("API-01")
def test_a_public_name_without_a_docstring_stops_the_build_and_is_named(project_root: Path, tmp_path: Path):
    shutil.copytree(project_root / "lousho", tmp_path / "lousho", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "lousho/late.py").write_text(
        '"""A module that somebody adds."""\n\n__all__ = ["Bare", "SIZE", "told"]\nSIZE = 1\n\n\n'
        'class Bare(ValueError):\n    pass\n\n\ndef told() -> None:\n    """Say so."""\n',
        encoding="utf-8",
    )
    done = run_builder(project_root, tmp_path / "out", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == "api reference: 2 public names have no docstring: lousho.late.Bare, lousho.late.SIZE\n"
    assert not (tmp_path / "out").exists()


def test_a_second_build_is_the_same_to_the_byte(project_root: Path, reference: Path, tmp_path: Path):
    done = run_builder(project_root, tmp_path, PYTHONHASHSEED="7", HOME=str(tmp_path), VERSION="awaiting-approval")
    assert done.returncode == 0, done.stderr
    files = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.html"))
    assert files == sorted(file.relative_to(reference) for file in reference.rglob("*.html"))
    assert [file for file in files if (tmp_path / file).read_bytes() != (reference / file).read_bytes()] == []


def test_the_pages_load_nothing_and_their_links_lead_somewhere(reference: Path):
    assert check_site.main(reference) == 0
    pages = {file: file.read_text(encoding="utf-8") for file in reference.rglob("*.html")}
    names = {file: set(re.findall(r'\bid="([^"]+)"', page)) for file, page in pages.items()}
    dead: list[str] = []
    for file, page in pages.items():
        for target in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', page):
            if "://" in target or target == "../index.html":  # the front page of the documentation around it
                continue
            path, _, name = target.partition("#")
            where = (file.parent / path).resolve() if path else file
            if where not in names or (name and name not in names[where]):
                dead.append(f"{file.relative_to(reference)}: {target}")
    assert dead == []


def test_the_front_page_of_the_documentation_leads_there(project_root: Path):
    assert '"api/index.html"' in (project_root / "zensical.toml").read_text(encoding="utf-8")
    recipe = (project_root / "Makefile").read_text(encoding="utf-8").split("\ndocs:", 1)[1].split("\n\n", 1)[0]
    assert "tools/api_reference.py site/api" in recipe
