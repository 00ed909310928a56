"""What is stored and exported does not move with the names of calls. A new column, key or spelling is a decision.

`exports.json` has what commit 9d1b2dc6 made of the same conversations, the last one before the calls got their names of
0.1.0. Where a text differs, `python -m tests.transfer.exports URL FOLDER --texts` prints it, there and here.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.conftest import Database
from tests.transfer.exports import digests, fill, texts

RECORDED = json.loads(Path(__file__).with_name("exports.json").read_text(encoding="utf-8"))


async def test_tables_views_and_exports_are_those_of_the_release_before(database: Database, tmp_path: Path) -> None:
    await asyncio.to_thread(fill, database.url)
    found = digests(await asyncio.to_thread(texts, database.url, tmp_path))
    expected = RECORDED[database.kind]
    assert {name for name in expected if found.get(name) != expected[name]} == set()
    assert found.keys() == expected.keys()
