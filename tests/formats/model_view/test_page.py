"""The page of the documentation knows every repair there is."""

from __future__ import annotations

import re
from pathlib import Path

from chatledger.formats.model_view import provider_names, repairs

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "model-view.md").read_text(encoding="utf-8")


def test_every_repair_is_in_the_table_and_no_other() -> None:
    codes = {value for name, value in vars(repairs).items() if name.isupper() and isinstance(value, str)}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == codes


def test_every_provider_is_named() -> None:
    assert all(f"`{name}`" in PAGE for name in provider_names())
