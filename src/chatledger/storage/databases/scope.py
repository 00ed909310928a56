"""Scopes: work on behalf of one tenant, with its rules and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from chatledger.models import Appended, Limits, RulesLevel
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.databases.database import Work
from chatledger.storage.databases.replica import TenantReplica, require_position
from chatledger.storage.drivers.sql import OneStatement, Sql
from chatledger.storage.rows.encryption import Seal

T = TypeVar("T")

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class TenantScope:
    """What repositories are built on: a ledger's database or a transaction, seen as one tenant."""

    work: Work
    tenant: str
    rules: RulesLevel
    limits: Limits
    replica: TenantReplica | None = None
    seal: Seal | None = None

    async def read(self, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        return await self.work.read(self._sealed(query), snapshot=snapshot)

    async def fetch(self, statement: OneStatement[T]) -> T:
        if self.seal is not None:
            statement = replace(statement, elsewhere=self._sealed(statement.elsewhere))
        return await self.work.fetch(statement)

    async def read_at(self, position: str, query: Callable[[Sql], T], *, snapshot: bool = False) -> T:
        require_position(position)
        asked = self.replica
        found = None if asked is None else await asked.read(position, self._sealed(query), snapshot=snapshot)
        return await self.read(query, snapshot=snapshot) if found is None else found.value

    async def write(self, command: Callable[[Sql], T], *, single: bool = False) -> T:
        return await self.work.write(self._sealed(command), single=single)

    async def append(self, request: AppendRequest) -> Appended:
        return await self.work.append(request if self.seal is None else replace(request, seal=self.seal))

    def _sealed(self, function: Callable[[Sql], T]) -> Callable[[Sql], T]:
        seal = self.seal
        return function if seal is None else lambda sql: function(sql.sealed_by(seal))
