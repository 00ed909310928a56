"""llms.txt: the pages of the site for a language model, with a sentence about each.

It is made of the navigation in mkdocs.yml and the first sentence of each page when the site is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.parts import DOCS, ROOT

_ENTRY = re.compile(r"^( +)- (?:(?:\"(.*?)\"|([^:]*?)):)? ?(\S+\.md)?$")
_NO_PROSE = re.compile(r"(?:```|\||[-*] |#|!\[|<!--|::: |    )")


def navigation() -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The sections around each page, its title in the navigation (or "") and its path."""
    lines = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].splitlines()
    above: dict[int, str] = {}
    for line in lines:
        entry = _ENTRY.match(line)
        assert entry is not None, line
        depth, title, path = len(entry[1]), entry[2] or entry[3] or "", entry[4]
        above = {level: name for level, name in above.items() if level < depth}
        if path is None:
            above[depth] = title
        else:
            yield tuple(above.values()), title, path


def text_of(page: Path) -> str:
    """The Markdown of a page without its head, with the file that it includes."""
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^--8<-- \"(.*?)\"$", lambda found: (ROOT / found[1]).read_text(encoding="utf-8"), text, flags=re.M)


def heading(page: Path) -> str:
    found = re.search(r"^# (.*)$", text_of(page), re.MULTILINE)
    assert found is not None, f"{page.name} has no title"
    return found[1].replace("`", "")


def first_sentence(page: Path) -> str:
    """The first sentence of the page without links, or "" if it begins without prose."""
    for paragraph in re.split(r"\n\s*\n", text_of(page)):
        if paragraph.strip() and not _NO_PROSE.match(paragraph.lstrip("\n")):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            sentence = re.split(r"(?<=[.!?])\s(?=[A-Z`])", words)[0].removesuffix(":").removesuffix(".")
            task = re.sub(r"^After reading this page,? you can (.)", lambda first: first[1].upper(), sentence)
            return f"{task}."
    return ""


def llms() -> str:
    lines = [f"# {heading(DOCS / 'index.md')}", "", f"> {first_sentence(DOCS / 'index.md')}"]
    section = None
    for above, title, path in navigation():
        page = DOCS / path
        if not page.exists() or path == "index.md":
            continue
        named = above[0] if above else "Start"
        if named != section:
            section = named
            lines += ["", f"## {section}", ""]
        lines.append(f"- [{title or heading(page)}]({path.removesuffix('.md')}.html): {first_sentence(page)}")
    return "\n".join(lines) + "\n"
