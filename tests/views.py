"""The view of a user, also of none and in a transaction."""

from __future__ import annotations

from typing import TypeVar, cast

from chatledger import Ledger, Transaction
from chatledger.repositories import Repositories
from chatledger.transaction import as_user

T = TypeVar("T", bound=Repositories)


def of_user(own: T, user_id: str | None) -> T:
    if isinstance(own, Transaction):
        return cast(T, as_user(own, user_id))
    assert isinstance(own, Ledger)
    return cast(T, own if user_id is None else own.user(user_id))
