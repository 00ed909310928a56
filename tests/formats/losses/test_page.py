"""The tables on the page of losses match the code. `python -m tests.formats.losses.test_page` writes them again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chatledger.formats import format_names, get_codec
from chatledger.formats.losses.capabilities import capabilities
from chatledger.formats.losses.codes import CODES
from chatledger.models import ChatMessage
from tests.formats.measured import encode

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "formats" / "losses.md"
WORDS = {"yes": "yes", "form": "form", "no": "–"}


def codes() -> str:
    rows = [f"| `{code}` | {meaning} |" for code, meaning in CODES.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def support() -> str:
    names = format_names()
    found = list(capabilities(names).values())
    head = ["| | " + " | ".join(f"`{name}`" for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    rows = [f"| {thing} | " + " | ".join(WORDS[one[thing]] for one in found) + " |" for thing in found[0]]
    return "\n".join([*head, *rows])


TABLES = {"codes": codes, "support": support}


def in_page(page: str, name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)
    assert found is not None, f"the page has no table {name}"
    return found[1]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_of_the_page_are_true(name: str) -> None:
    assert in_page(PAGE.read_text(encoding="utf-8"), name) == TABLES[name]()


def test_the_formats_that_carry_are_those_of_the_page() -> None:
    unsaid = ChatMessage(role="user", content="Hi", state="interrupted", format="later/2", residual={"keys": []})
    carriers = [name for name in format_names() if not encode(get_codec(name), [unsaid], carry=True).losses]
    text = PAGE.read_text(encoding="utf-8")
    assert carriers == ["agent-service", "qwen-agent"]
    assert all(f"in `{name}`" in " ".join(text.split()) for name in carriers)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for table, made in TABLES.items():
        text = text.replace(in_page(text, table), made())
    PAGE.write_text(text, encoding="utf-8")
