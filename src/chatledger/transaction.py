"""Several calls with one commit, on a connection of the ledger or of the caller."""

from __future__ import annotations

from typing import Self

from sqlalchemy.ext.asyncio import AsyncConnection

from chatledger.arguments import BOOL, RULES, STR, STR_OR_NONE, Kind, require
from chatledger.models import Limits, RulesLevel
from chatledger.repositories import Repositories
from chatledger.storage.databases.external_connection import ExternalConnection
from chatledger.storage.databases.scope import DEFAULT_TENANT, LIMITS_OR_NONE, Scope
from chatledger.storage.rows.encryption import EncryptionKeys, Tenant
from chatledger.storage.rows.keys import KEYS, Encryption, KeyRing, Keys
from chatledger.storage.schema.distribution import only_servers_distribute
from chatledger.storage.schema.row_security import only_postgresql
from chatledger.storage.schema.tables import SCHEMA
from chatledger.storage.schema.text import encode_key
from chatledger.telemetry.calls import observed

_CONNECTION = Kind("an AsyncConnection", AsyncConnection)


class Transaction(Repositories):
    """Several calls with one commit. It has the same repositories as a ledger: `tx.messages` is `ledger.messages`
    inside the transaction. `ledger.begin` makes one.

    `Transaction(connection)` works in a transaction that the application has begun on an AsyncConnection, and becomes
    durable with its commit. Each call that writes is a savepoint, so a refused call does not end that transaction.

        async with engine.begin() as connection:
            await connection.execute(insert(orders).values(id=7))
            await Transaction(connection).messages.append(thread_id, messages)

    `tenant`, `rules`, `schema`, `limits`, `keys` and `plaintext` are those of `Ledger.open`. With `rls=True`, each call
    first sets the tenant for PostgreSQL's row-level security. Pass `distributed=True` if PostgreSQL distributes the
    tables by tenant over several servers, as Citus does: a transaction does not ask the database. With `user`, only
    that user's threads exist in it, as in `ledger.user`.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        *,
        tenant: str = DEFAULT_TENANT,
        rules: RulesLevel = "strict",
        schema: str = SCHEMA,
        limits: Limits | None = None,
        rls: bool = False,
        distributed: bool = False,
        keys: KeyRing | Keys | Encryption | None = None,
        plaintext: bool = False,
        user: str | None = None,
    ) -> None:
        require(_CONNECTION, connection=connection)
        require(STR, tenant=tenant, schema=schema)
        require(RULES, rules=rules)
        require(LIMITS_OR_NONE, limits=limits)
        require(BOOL, rls=rls, distributed=distributed, plaintext=plaintext)
        require(KEYS, keys=keys)
        require(STR_OR_NONE, user=user)
        if user is not None:
            encode_key(user, "user")
        postgresql = connection.dialect.name == "postgresql"
        if rls and not postgresql:
            raise only_postgresql()
        if distributed and not postgresql:
            raise only_servers_distribute()
        owner = Tenant.of(tenant, EncryptionKeys(keys, plaintext=plaintext)).seen_by(user)
        own_schema = schema if postgresql else None
        database = ExternalConnection(connection, own_schema, check=True, secured=rls, distributed=distributed)
        super().__init__(Scope(database, owner, rules, limits or Limits()))

    @classmethod
    def over(cls, scope: Scope) -> Transaction:
        """A Transaction on the scope of a transaction that the ledger began."""
        kind = observed(cls, "", scope.observer)
        transaction = kind.__new__(kind)
        Repositories.__init__(transaction, scope)
        return transaction

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None
