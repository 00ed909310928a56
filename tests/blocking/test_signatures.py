"""The face has every public call of the asynchronous classes, with the same arguments, and its types are true."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from chatledger import Draft, Ledger, Transaction, blocking
from chatledger.blocking.face import FACES
from chatledger.repositories import REPOSITORIES
from chatledger.repositories.answers import Answer
from tests.blocking.stub import STUB, stub
from tests.conftest import Database

INTERNAL = {"over"}
"""Of the package, not of its users."""


def public(kind: type[Any]) -> dict[str, Any]:
    members = inspect.getmembers_static(kind)
    return {name: member for name, member in members if not name.startswith("_") and name not in INTERNAL}


@pytest.mark.parametrize("kind", FACES, ids=lambda kind: kind.__name__)
def test_each_call_has_the_same_arguments(kind: type[Any]) -> None:
    face, compared = FACES[kind], 0
    for name, member in public(kind).items():
        if inspect.ismemberdescriptor(member):  # a field of a value, which has no call
            continue
        if isinstance(member, property):
            assert isinstance(inspect.getattr_static(face, name), property)
        else:
            assert inspect.signature(getattr(face, name)) == inspect.signature(getattr(kind, name)), name
            assert not inspect.iscoroutinefunction(getattr(face, name))
            assert getattr(face, name).__doc__ == getattr(kind, name).__doc__
        compared += 1
    assert compared


async def test_no_repository_is_left_out(ledger: Ledger) -> None:
    async with ledger.begin() as tx:
        for owner in (ledger, tx):
            nouns = [getattr(owner, name) for name in REPOSITORIES]
            assert {type(noun) for noun in nouns} == set(FACES) - {Ledger, Transaction, Draft, Answer}


def test_the_nouns_are_faces(sqlite_database: Database) -> None:
    with blocking.open(sqlite_database.url) as ledger:
        nouns = [name for name in dir(ledger) if type(getattr(ledger, name)) in FACES.values()]
        assert len(nouns) == len(FACES) - 4


def test_the_types_are_those_of_the_asynchronous_classes() -> None:
    assert Path(STUB).read_text() == stub(), "run: python -m tests.blocking.stub"
