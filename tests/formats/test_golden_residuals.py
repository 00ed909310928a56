"""Residuals are stored data: payloads with which each format writes all of its keys read as the frozen files say."""

from __future__ import annotations

import pytest

from tests.formats.golden import NAMES, path_of, read_now


@pytest.mark.parametrize("name", NAMES)
def test_a_payload_reads_as_it_did_when_it_was_stored(name: str) -> None:
    again = "stored data would change; if that is what you want, run python -m tests.formats.golden"
    assert read_now(name) == path_of(name).read_text(encoding="utf-8"), again


def test_each_file_has_its_payloads() -> None:
    assert sorted(path.stem for path in path_of("any").parent.glob("*.json")) == sorted(NAMES)
