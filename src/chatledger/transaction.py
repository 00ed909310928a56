"""Several calls with one commit, on a connection of the ledger or of the caller."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from chatledger.arguments import RULES, STR, STR_OR_NONE, Kind, require
from chatledger.models import Limits, RulesLevel
from chatledger.removed import names_removed
from chatledger.repositories import Repositories, scope_of
from chatledger.storage.databases.external_connection import ExternalConnection
from chatledger.storage.databases.postgresql.options import POSTGRESQL_OR_NONE, PostgreSQL, refuse_on_sqlite
from chatledger.storage.databases.scope import DEFAULT_TENANT, LIMITS_OR_NONE, Scope
from chatledger.storage.rows.encryption import EncryptionKeys, Tenant
from chatledger.storage.rows.keys import ENCRYPTION, Encryption, KeyRing
from chatledger.storage.schema.text import encode_key
from chatledger.telemetry.calls import observed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_CONNECTION = Kind("an AsyncConnection", later="sqlalchemy.ext.asyncio:AsyncConnection")


class Transaction(Repositories):
    """Several calls with one commit. It has the same repositories as a ledger: `tx.messages` is `ledger.messages`
    inside the transaction. `ledger.begin` makes one.

    `Transaction(connection)` works in a transaction that the application has begun on an AsyncConnection, and becomes
    durable with its commit. Each call that writes is a savepoint, so a refused call does not end that transaction.

        async with engine.begin() as connection:
            await connection.execute(insert(orders).values(id=7))
            await Transaction(connection).messages.append(thread_id, messages)

    `tenant`, `rules`, `limits` and `encryption` are those of `Ledger.open`. Of `postgresql` it uses `schema`, `rls` and
    `distributed`, and it does not ask the database. With `PostgreSQL(rls=True)`, each call first sets the tenant for
    row-level security. Pass `PostgreSQL(distributed=True)` if the tables are distributed by tenant over several
    servers, as Citus does. With `user`, only that user's threads exist in it, as in `ledger.user`.
    """

    @names_removed("Transaction")
    def __init__(
        self,
        connection: AsyncConnection,
        *,
        tenant: str = DEFAULT_TENANT,
        user: str | None = None,
        rules: RulesLevel = "strict",
        limits: Limits | None = None,
        encryption: KeyRing | Encryption | None = None,
        postgresql: PostgreSQL | None = None,
    ) -> None:
        require(_CONNECTION, connection=connection)
        require(STR, tenant=tenant)
        require(STR_OR_NONE, user=user)
        require(RULES, rules=rules)
        require(LIMITS_OR_NONE, limits=limits)
        require(ENCRYPTION, encryption=encryption)
        require(POSTGRESQL_OR_NONE, postgresql=postgresql)
        if user is not None:
            encode_key(user, "user")
        options = postgresql or PostgreSQL()
        owner = Tenant.of(tenant, EncryptionKeys(encryption)).seen_by(user)
        super().__init__(Scope(_database(connection, options), owner, rules, limits or Limits()))

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


def _database(connection: AsyncConnection, options: PostgreSQL) -> ExternalConnection:
    if connection.dialect.name != "postgresql":
        refuse_on_sqlite(replace(options, replica=None))
        return ExternalConnection(connection, None, check=True)
    rls, distributed = options.rls is True, options.distributed is True
    return ExternalConnection(connection, options.schema, check=True, secured=rls, distributed=distributed)


def as_user(tx: Transaction, user_id: str | None) -> Transaction:
    """The same transaction as one user sees it; with None, as it is. An import writes for many users in one."""
    scope = scope_of(tx)
    return Transaction.over(replace(scope, tenant=scope.tenant.seen_by(user_id)))
