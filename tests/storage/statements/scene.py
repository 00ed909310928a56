"""Where a shape of a call runs: a real database, ledgers on it, and what they tell their drivers to run."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from chatledger import Ledger, PostgreSQL
from chatledger.storage.append import attempt
from tests.storage.sent import Sent, note_asyncpg, note_sqlite

KINDS = ("sqlite", "postgresql", "distributed")
_NEW_CONNECTION = re.compile("SET jit|PRAGMA (?!data_version)")
"""What a connection is told before anything else."""


@dataclass
class Scene:
    """`tenant` is new for each shape, so the shapes share one database."""

    kind: str
    url: str
    tenant: str
    sent: list[Sent] = field(default_factory=list)
    _listens: bool = False
    _once: bool = False

    @property
    def on_sqlite(self) -> bool:
        return self.kind == "sqlite"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ledger]:
        """A ledger, as one process has it. Its connections are set up, and it remembers no thread yet."""
        given = None if self.on_sqlite else PostgreSQL(distributed=self.kind == "distributed")
        async with Ledger.open(self.url, tenant=self.tenant, postgresql=given) as ledger:
            await ledger.tenant("warm").threads.create("t", exist_ok=True)
            await ledger.tenant("warm").threads.find("t")
            yield ledger

    @contextmanager
    def sending(self, *, once: bool = False) -> Iterator[None]:
        """What is sent meanwhile is kept. `once`: each statement at its first time only, for calls that run at once,
        on connections that they take as it comes.
        """
        self._listens, self._once = True, once
        try:
            yield
        finally:
            self._listens = False

    def note(self, connection: object, sent: Sent) -> None:
        sent = sent._replace(text=_SAVEPOINT.sub("savepoint", sent.text))
        again = (sent.text, sent.many) in {(one.text, one.many) for one in self.sent}
        if self._listens and not (self._once and (again or _NEW_CONNECTION.match(sent.text))):
            self.sent.append(sent)


_SAVEPOINT = re.compile(r"sa_savepoint_\d+")  # SQLAlchemy numbers those of a connection


@contextmanager
def noting(scene: Scene) -> Iterator[None]:
    """While this is entered, the scene hears the drivers. No append moves the time of the thread's last activity, which
    it else does once a second: so the statements do not depend on the time.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(attempt, "ACTIVITY_RESOLUTION", timedelta(days=1))
        (note_sqlite if scene.on_sqlite else note_asyncpg)(patched, scene.note)
        yield
