"""The pages about the code name files, functions, folders and rules that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "chatledger"
FOLDER = ROOT / "docs" / "contribute"
PAGES = ("architecture", "append-and-history", "decisions")
TEXT = "\n".join((FOLDER / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
PROSE = re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)
PATH = re.compile(r"[\w./-]+?(?:/[\w.-]+|\.(?:py|md|svg|toml))(?:::[\w.]+)?")
NAMED = sorted({name for name in re.findall(r"`([^`\n]+)`", PROSE) if PATH.fullmatch(name)})


def find(path: str) -> Path | None:
    """A path of the page, seen from the repository or from the package."""
    return next((base / path for base in (ROOT, PACKAGE) if (base / path).exists()), None)


def definitions(module: Path) -> set[str]:
    """The functions, classes, methods and values that a module defines."""
    found: set[str] = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found |= {f"{node.name}.{method.name}" for method in methods}
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_page_names_files_and_functions() -> None:
    assert "storage/append/write.py::one_statement" in NAMED
    assert "pyproject.toml" in NAMED
    assert "formats/wire" in NAMED


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_exists(name: str) -> None:
    path, _, definition = name.partition("::")
    found = find(path)
    assert found is not None
    if definition:
        assert definition in definitions(found)


def test_the_links_of_the_page_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)", PROSE)
    assert "architecture-folders.svg" in links
    assert [link for link in links if not (FOLDER / link).is_file()] == []


@pytest.mark.parametrize("parent", ["storage", "formats"])
def test_every_folder_is_named(parent: str) -> None:
    folders = [folder.parent.name for folder in (PACKAGE / parent).glob("*/__init__.py")]
    assert len(folders) >= 8
    assert [folder for folder in folders if f"{parent}/{folder}" not in NAMED] == []


def test_every_rule_is_in_the_table() -> None:
    rows = re.findall(r"^\| (R\d+) \|", PROSE, re.MULTILINE)
    assert rows == [f"R{number}" for number in range(1, 14)]


def test_every_row_of_the_order_of_judgement_is_there() -> None:
    section = PROSE.partition("## The order of judgement")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\d+) \|", section, re.MULTILINE) == [str(number) for number in range(1, 13)]


def test_the_picture_shows_every_folder_and_loads_nothing() -> None:
    source = (FOLDER / "architecture-folders.svg").read_text(encoding="utf-8")
    words = {word for text in ElementTree.fromstring(source).itertext() for word in text.split()}
    folders = [
        folder.parent.name for parent in ("storage", "formats") for folder in (PACKAGE / parent).glob("*/__init__.py")
    ]
    assert [folder for folder in folders if folder not in words] == []
    assert re.findall(r"<script|<image|href|@import|@font-face|url\((?!#)", source) == []


def test_a_folder_has_few_files() -> None:
    """At most 20, and 15 in storage."""
    counts: dict[str, int] = {}
    for module in PACKAGE.rglob("*.py"):
        folder = module.parent.relative_to(PACKAGE).as_posix()
        counts[folder] = counts.get(folder, 0) + 1
    large = {folder: count for folder, count in counts.items() if count > (15 if folder.startswith("storage") else 20)}
    assert large == {}
