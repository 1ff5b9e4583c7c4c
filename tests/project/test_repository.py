"""What the repository says about itself is true: specification files, dependencies, changelog, version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from specification import Specification

NAME = re.compile(r"^[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def settings(project_root: Path) -> dict[str, Any]:
    return tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_files_of_the_specification_fit_together(project_root: Path):
    assert [f"{problem.where}: {problem.what}" for problem in Specification(project_root).problems] == []


def test_every_dependency_has_its_reason(project_root: Path, settings: dict[str, Any]):
    page = (project_root / "docs/dependencies.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    project = settings["project"]
    needed = [*project["dependencies"], *settings["dependency-groups"]["dev"], *settings["dependency-groups"]["docs"]]
    needed += [one for name, extra in project["optional-dependencies"].items() if name != "all" for one in extra]
    names = {match.group(0).lower() for one in needed if (match := NAME.match(one))}
    assert names - explained == set(), "say in docs/dependencies.md what it is for"
    assert explained - names == set(), "docs/dependencies.md explains what is not in pyproject.toml"


def test_the_extra_all_holds_every_other_extra(settings: dict[str, Any]):
    extras = settings["project"]["optional-dependencies"]
    assert extras["all"] == [f"lousho[{','.join(name for name in extras if name != 'all')}]"]


def test_the_changelog_starts_with_what_is_not_released_and_knows_the_version(
    project_root: Path, settings: dict[str, Any]
):
    text = (project_root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[0] == "Unreleased"
    dated = [re.fullmatch(r"(\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:]]
    assert all(dated), "write a release as `## 1.2.3 - 2026-01-31`"
    released = [match.group(1) for match in dated if match]
    assert not released or released[0] == settings["project"]["version"]


def test_an_entry_of_the_changelog_is_one_line(project_root: Path):
    text = (project_root / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = text.split("\n## ", 1)[1].splitlines()[1:]
    odd = [line for line in entries if line and not line.startswith(("- ", "## ", "### "))]
    assert odd == []


def test_the_package_says_its_version(settings: dict[str, Any]):
    import lousho

    assert lousho.__version__ == settings["project"]["version"]


def test_every_page_of_the_documentation_is_in_its_navigation(project_root: Path):
    navigation = (project_root / "zensical.toml").read_text(encoding="utf-8")
    pages = {page.relative_to(project_root / "docs").as_posix() for page in (project_root / "docs").rglob("*.md")}
    assert {page for page in pages if f'"{page}"' not in navigation} == set(), "name the page in zensical.toml"
    assert set(re.findall(r'"([\w/-]+\.md)"', navigation)) - pages == set(), (
        "zensical.toml names a page that is not there"
    )


def test_a_link_between_pages_leads_somewhere(project_root: Path):
    dead: list[str] = []
    for page in [*(project_root / "docs").rglob("*.md"), *project_root.glob("*.md")]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(project_root)}: {target}")
    assert dead == []
