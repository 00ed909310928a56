"""The counters of a ledger."""

from __future__ import annotations

from chatledger.models.base import Model


class Metrics(Model):
    """What a ledger counted since it was opened, with all its tenants, users and transactions. A counter never falls.

    An append inside a transaction counts also if the transaction is rolled back later.
    """

    appends: int = 0
    """Appends that wrote, those that open drafts included."""
    messages: int = 0
    """Messages that those appends stored."""
    bytes: int = 0
    """UTF-8 bytes of the texts that those appends stored, before encryption. The later pieces of a draft are not in."""
    replays: int = 0
    """Appends that found their messages stored by an earlier call, and wrote nothing."""
    conflicts: int = 0
    """Appends and other writes that ended with a Conflict, such as VersionConflict or DraftLive."""
    unknown_outcomes: int = 0
    """Appends that ended with OutcomeUnknown."""
    retries: int = 0
    """Further attempts of a call on PostgreSQL: after a lost connection, where another writer was faster, and to find a
    message that is stored already.
    """
    lost_connections: int = 0
    """Those of the retries that followed a lost or silent connection."""
    pool_waits: int = 0
    """Times that a call found no free connection, and waited for one or opened one. Always 0 on a SQLite file."""
    pool_wait_seconds: float = 0
    """How long those calls waited, in all."""
    queue_length: int = 0
    """Now: the appends that wait for another one to the same thread; on SQLite the writes that wait for the writer."""
    running: int = 0
    """Now: the reads, writes and transactions that are running or waiting."""
