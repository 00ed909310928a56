"""A cut of the documentation loses no fact."""

from __future__ import annotations

from tests.docs.facts import before, gone, lost, missing


def test_each_fact_is_still_on_a_page_or_gone_for_a_reason() -> None:
    assert missing() == [], "move it to the page that keeps it, or name it in facts-gone.toml with the reason"


def test_only_facts_that_were_there_are_gone() -> None:
    assert set(gone()) - set(before()) == set()


def test_a_fact_counts_as_code_in_a_block_or_as_a_number() -> None:
    page = "Use `--url` and `key|value`.\n\n```python\nledger.open(timeout=5)\n```\n\nIt waits 10\nseconds."
    assert lost(["--url", "timeout", "timeout=5", "key|value", "10 seconds"], [page]) == []
    assert lost(["url=", "time", "ledger.close", "1 seconds", "0 seconds"], [page]) == [
        "url=", "time", "ledger.close", "1 seconds", "0 seconds"
    ]  # fmt: skip
