"""The counters of a ledger, and how far a long call has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pydantic import Field

from chatledger.models.base import Model


class Metrics(Model):
    """The counters of a ledger since it was opened, over all its tenants, users and transactions. Counters never fall.

    An append inside a transaction counts even if the transaction is rolled back later.
    """

    appends: int = 0
    """Appends that wrote, including those that open drafts."""
    messages: int = 0
    """Messages that those appends stored."""
    bytes: int = 0
    """UTF-8 bytes of the texts that those appends stored, before encryption. Later pieces of a draft do not count."""
    replays: int = 0
    """Appends that found their messages stored by an earlier call, and wrote nothing."""
    conflicts: int = 0
    """Appends and other writes that ended with a Conflict, such as VersionConflict or DraftLive."""
    unknown_outcomes: int = 0
    """Appends that ended with OutcomeUnknown."""
    retries: int = 0
    """Further attempts of a call on PostgreSQL: after a lost connection, when another writer was faster, and to find a
    message that is stored already.
    """
    lost_connections: int = 0
    """Retries that followed a lost or silent connection."""
    pool_waits: int = 0
    """Times that a call found no free connection, and waited for one or opened one. Always 0 on a SQLite file."""
    pool_wait_seconds: float = 0
    """Seconds that those calls waited in all."""
    queue_length: int = 0
    """Appends that now wait while others run; on SQLite, writes that wait for the writer."""
    cells: dict[str, int] = Field(default_factory=dict)
    """Cells that were encrypted, by the id of the key: replace a key before it has encrypted 2^32 for one tenant. It
    also counts those of appends that were tried again or failed.
    """
    running: int = 0
    """Reads, writes and transactions that are running or waiting now."""


Progress: TypeAlias = Callable[[int, int], None]
"""A function that a long call tells how far it is: the number of steps done, and the number of all steps. Steps are
threads in `check` and `reencrypt`, and pages of the file in `backup` and `restore`. The call waits for the function.
"""
