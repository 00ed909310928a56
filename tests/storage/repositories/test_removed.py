"""An argument that a call lost is refused in words, and the table has no argument that a call still takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from chatledger import Ledger, Transaction, blocking
from chatledger.removed import REMOVED, names_removed
from chatledger.repositories.messages import MessageRepository
from tests.conftest import Database

CALLS: dict[str, list[Callable[..., Any]]] = {
    "open": [Ledger.open],
    "Transaction": [Transaction.__init__],
    "append": [MessageRepository.append],
    "history": [MessageRepository.history],
    "stream": [MessageRepository.stream],
}
ENTRIES = [(call, name) for call, names in REMOVED.items() for name in names]


def said(call: str, name: str) -> str:
    return f"{call}() has no {name}: {REMOVED[call][name]}"


@pytest.mark.parametrize(("call", "name"), ENTRIES)
def test_no_call_takes_what_the_table_refuses(call: str, name: str) -> None:
    for function in CALLS[call]:
        parameters = inspect.signature(function).parameters
        assert name not in parameters
        assert not [one for one in parameters.values() if one.kind is one.VAR_KEYWORD]


@pytest.mark.parametrize(("call", "name"), ENTRIES)
def test_an_argument_that_a_call_lost_names_the_new_way(call: str, name: str, sqlite_database: Database) -> None:
    with blocking.open(sqlite_database.url) as ledger:
        calls: dict[str, list[Callable[..., Any]]] = {
            "open": [Ledger.open, blocking.open],
            "Transaction": [Transaction],
            "append": [ledger.messages.append],
            "history": [ledger.messages.history],
            "stream": [ledger.messages.stream],
        }
        for function in calls[call]:
            with pytest.raises(TypeError) as refused:
                function(**{name: None})
            assert str(refused.value) == said(call, name)


async def test_a_ledger_that_is_observed_says_it_too(database: Database) -> None:
    async with database.open(slow_call=60) as ledger:
        with pytest.raises(TypeError, match=r"^history\(\) has no min_position: read from ledger.replica\(position\)$"):
            await ledger.messages.history("t", min_position="0/1")
        assert (await ledger.messages.append("t", [], create=True)).messages == []


def test_other_mistakes_read_as_python_says_them() -> None:
    wrong: Any = Ledger.open
    for given, text in (({"urll": "x"}, "unexpected keyword argument 'urll'"), ({"url": 7}, "url must be a str")):
        with pytest.raises((TypeError, ValueError), match=text):
            wrong(**given)


async def test_an_error_of_the_call_itself_is_left_alone() -> None:
    @names_removed("open")
    def fails(**given: Any) -> None:
        raise TypeError("its own")

    @names_removed("open")
    async def awaited() -> int:
        return 7

    with pytest.raises(TypeError, match="its own"):
        fails(other=1)
    assert await awaited() == 7
