"""Facts that the documentation had before pages were cut, so that a cut loses none of them.

A fact is what a page writes as code (an option, a field, an error, a file, a setting), or a number with its unit.
`facts-before.txt` lists those of the user's pages, one a line. Each is still on a page, or `facts-gone.toml` says why
it is not. `python -m tests.docs.facts` prints those that are gone without a reason, and `--write` adds today's facts.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.docs.parts import DOCS, ROOT, filled

HERE = Path(__file__).parent
BEFORE, GONE = HERE / "facts-before.txt", HERE / "facts-gone.toml"
CONTRIBUTORS = DOCS / "contribute"
"""Pages about the code and its measurements: their facts change with each run."""

_BLOCK = re.compile(r"^( *)```.*?\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_UNITS = (
    "bytes|KiB|MiB|GiB|characters|levels|ms|milliseconds|s|seconds|minutes|hours|days|connections|messages|threads|rows"
)
_NUMBER = re.compile(rf"(?<![\w.,-])\d[\d,.]*\d?(?: million)? (?:{_UNITS})\b")


def spans(text: str) -> Iterator[str]:
    """The code of a text, outside its blocks."""
    for found in _SPAN.findall(_BLOCK.sub("", text)):
        yield _one_line(found)


def numbers(text: str) -> Iterator[str]:
    prose = " ".join(_SPAN.sub(" ", _BLOCK.sub("", text)).split())
    yield from _NUMBER.findall(prose)


def facts(text: str) -> set[str]:
    return {*spans(text), *numbers(text)}


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\|", "|").split())


def pages() -> list[Path]:
    beside = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
    return [*beside, *sorted(DOCS.rglob("*.md"))]


def gone() -> dict[str, str]:
    """Facts that were dropped on purpose, with the reason."""
    reasons: dict[str, list[str]] = tomllib.loads(GONE.read_text(encoding="utf-8"))
    return {fact: reason for reason, facts in reasons.items() for fact in facts}


def before() -> list[str]:
    return BEFORE.read_text(encoding="utf-8").splitlines()


def lost(known: list[str], texts: list[str]) -> list[str]:
    """The facts that stand neither as code, nor in code or a heading, nor as a number in any of the texts."""
    today = {fact for text in texts for fact in facts(text)}
    blocks = (_one_line(block) for text in texts for _, block in _BLOCK.findall(text))
    code = "\n".join([*today, *blocks, *(heading for text in texts for heading in _HEADING.findall(text))])
    return [fact for fact in known if fact not in today and not _within(fact, code)]


def _within(fact: str, code: str) -> bool:
    """Whether the fact stands in code as whole words."""
    before = r"(?<!\w)" if fact[:1].isalnum() else ""
    after = r"(?!\w)" if fact[-1:].isalnum() else ""
    return re.search(before + re.escape(fact) + after, code) is not None


def missing() -> list[str]:
    texts = [filled(page) for page in pages()]
    return [fact for fact in lost(before(), texts) if fact not in gone()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.docs.facts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="add the facts of today's pages to the list")
    if parser.parse_args().write:
        known = set(before()) if BEFORE.exists() else set()
        for page in DOCS.rglob("*.md"):
            if not page.is_relative_to(CONTRIBUTORS):
                known |= facts(filled(page))
        BEFORE.write_text("".join(f"{fact}\n" for fact in sorted(known)), encoding="utf-8")
    else:
        print(*missing(), sep="\n")
