"""An import by the command line collects garbage rarely, and leaves the process as it was."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatledger.cli.collection import INTERVAL, collected_rarely
from tests.cli.commands import chatledger


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


class Cycle:
    def __init__(self) -> None:
        self.own = self


def test_the_thresholds_are_restored_after_the_work_and_after_an_error() -> None:
    gc.set_threshold(500, 7, 8)
    with collected_rarely():
        assert gc.get_threshold() == (INTERVAL, 7, 8)
    assert gc.get_threshold() == (500, 7, 8)
    with pytest.raises(KeyError), collected_rarely():
        raise KeyError
    assert gc.get_threshold() == (500, 7, 8)


def test_a_process_that_collects_nothing_or_more_rarely_stays_so() -> None:
    for given in ((0, 7, 8), (INTERVAL + 1, 7, 8)):
        gc.set_threshold(*given)
        with collected_rarely():
            assert gc.get_threshold() == given


def test_cycles_do_not_pile_up() -> None:
    gc.collect()
    living: weakref.WeakSet[Cycle] = weakref.WeakSet()
    with collected_rarely():
        for _ in range(2 * INTERVAL):
            living.add(Cycle())
            if len(living) > INTERVAL:
                break
    assert len(living) <= INTERVAL


def test_the_import_command_collects_rarely(tmp_path: Path) -> None:
    record = json.dumps({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}] * 30})
    chats = tmp_path / "chats.jsonl"
    chats.write_text(f"{record}\n" * 50)
    collections: list[int] = []
    for number in range(2):  # the first one loads modules
        before = gc.get_stats()[0]["collections"]
        assert chatledger("import", chats, url=f"sqlite:///{tmp_path / str(number)}.db").code == 0
        collections.append(gc.get_stats()[0]["collections"] - before)
    assert collections[1] < 10
