"""The statements that reach asyncpg, and what is wrong with them if the tables are distributed by tenant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import asyncpg
import pytest

from tests.storage.bound_tables import unbound_tables

_OURS = re.compile(r"\bchatledger\"?\.")  # no BEGIN, COMMIT or SET, and no look of the driver at the server's types
_TYPES_FOR_COPY = re.compile(
    r'SELECT "[^()]* FROM "chatledger"."\w+" LIMIT 1'
)  # the driver prepares it and never runs it


def record(monkeypatch: pytest.MonkeyPatch, of: Callable[[Any], bool] = lambda _: True) -> list[str]:
    """Each statement that reaches asyncpg from now on, on the connections that `of` takes. A COPY stands here as the
    INSERT that it is.
    """
    statements: list[str] = []
    prepared, copied = asyncpg.Connection._get_statement, asyncpg.Connection.copy_records_to_table

    async def noted(self: Any, text: str, *args: Any, **named: Any) -> Any:
        if of(self):
            statements.append(" ".join(text.split()))
        return await prepared(self, text, *args, **named)

    async def noted_copy(self: Any, table: str, *, columns: Any, **named: Any) -> Any:
        if of(self):
            statements.append(f"INSERT INTO chatledger.{table} ({', '.join(columns)}) VALUES ($1)")
        return await copied(self, table, columns=columns, **named)

    monkeypatch.setattr(asyncpg.Connection, "_get_statement", noted)
    monkeypatch.setattr(asyncpg.Connection, "copy_records_to_table", noted_copy)
    return statements


def unbound(statements: Iterable[str]) -> dict[str, list[str]]:
    """The statements with a table that is not bound to the tenant, and these tables."""
    ours = {one for one in statements if _OURS.search(one) and not _TYPES_FOR_COPY.fullmatch(one)}
    found = {one: list(unbound_tables(one)) for one in ours}
    return {one: tables for one, tables in found.items() if tables}
