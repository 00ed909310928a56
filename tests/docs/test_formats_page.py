"""The table of formats has every format, and says what each can do."""

from __future__ import annotations

import re

from chatledger.formats import ModelCodec, format_names, get_codec
from chatledger.formats.model_view import provider_names
from chatledger.formats.streams import stream_names
from tests.docs.parts import DOCS, in_page

PAGE = DOCS / "reference" / "formats" / "index.md"


def test_the_table_of_formats_is_true() -> None:
    row = re.compile(r"^\| \[`(.*?)`\]\((.*?)\) \| .*? \| (\w*) ?\| (\w*) ?\| (\w*) ?\|$", re.MULTILINE)
    rows = row.findall(in_page(PAGE, "formats"))
    assert {name: said for name, _, *said in rows} == {
        name: ["yes" if able else "" for able in (name in provider_names(), name in stream_names(), _has_objects(name))]
        for name in format_names()
    }
    assert all((PAGE.parent / page).exists() for _, page, *_ in rows)


def _has_objects(name: str) -> bool:
    return isinstance(get_codec(name), ModelCodec)
