"""The pages list encrypted columns and schema revisions. Each list matches the schema."""

from __future__ import annotations

import re

from chatledger.storage.rows.encryption import ENCRYPTED
from tests.docs.parts import DOCS, ROOT


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading: the first cell, without backticks, and the others."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]
    cells = [re.split(r" *\| ", f"{line} ") for line in lines]
    return {first.strip("` "): [cell.strip() for cell in others] for first, *others in cells}


def test_the_encrypted_columns() -> None:
    told = rows("contribute/cells.md", "Encrypted columns")
    columns = {table: re.sub(r" \(.*?\)", "", cells[0]).split(", ") for table, cells in told.items()}
    assert {table: set(names) for table, names in columns.items()} == {
        table: set(names) for table, names in ENCRYPTED.items()
    }


def test_the_revisions() -> None:
    revisions = sorted(path.name.partition("_")[0] for path in (ROOT / "migrations" / "versions").glob("[0-9]*.py"))
    assert list(rows("contribute/tables.md", "Revisions")) == revisions
