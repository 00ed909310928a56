"""The code keeps to one word for one thing, and to the words of its field."""

from __future__ import annotations

import ast
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "chatledger").rglob("*.py"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WORDS = tomllib.loads((ROOT / "tests" / "words.toml").read_text(encoding="utf-8"))


@cache
def names_of(path: Path) -> list[str]:
    """The names that a module gives: its own, and those of classes, functions, arguments, attributes and locals."""
    found = [path.stem]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.append(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.append(name)
            case ast.ClassDef(name=name):
                found.append(name)
    return found


def words_of(name: str) -> set[str]:
    """`_writeGroup` and `WRITE_GROUP` have the words write and group."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def prose_of(path: Path) -> Iterator[str]:
    """The prose of a page without its code, and the comments and texts of a module."""
    if path.suffix == ".md":
        yield re.sub(r"```.*?```|`[^`\n]*`", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield re.sub(r"`[^`\n]*`", " ", token.string)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_names_nothing_by_another_word(path: Path) -> None:
    other = set(WORDS["names"]["words"])
    assert [name for name in names_of(path) if words_of(name) & other] == []
    assert [name for name in names_of(path) if name.lstrip("_") in WORDS["names"]["whole"]] == []


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_has_a_word_that_stands_for_another(path: Path) -> None:
    words = "|".join(WORDS["prose"]["words"])
    found = [hit for text in prose_of(path) for hit in re.findall(rf"\b({words})\b", text, re.IGNORECASE)]
    assert found == []


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_comes_back_that_was_written_anew(path: Path) -> None:
    texts = [" ".join(text.split()) for text in prose_of(path)]
    assert [sentence for sentence in WORDS["prose"]["sentences"] for text in texts if sentence in text] == []


def test_a_class_has_a_name_of_its_own() -> None:
    """Two classes of one name make a reader look where each stands."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    classes = [{node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} for tree in trees]
    modules = Counter(name for names in classes for name in names)
    assert {name for name, count in modules.items() if count > 1} - {*WORDS["classes"]["shared"]} == set()


def test_few_locals_say_only_that_they_are_something() -> None:
    """The bounds fall with each name that says what it is."""
    used = Counter(name for path in SOURCES for name in names_of(path))
    assert {name: used[name] for name, most in WORDS["vague"].items() if used[name] > most} == {}
