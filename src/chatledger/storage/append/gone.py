"""The digests of words that a redaction removes, by which a repeated append that brings them is known.

A slow digest takes 50 ms, and a batch may need one for each message. So an attempt computes none: it writes nothing and
raises SlowDigests with those that it needs. They are computed in a thread, for one request at a time, while no
transaction of the ledger's own is open; then the attempt is made again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from chatledger.errors import ChatLedgerError
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.rows.digest import is_keyed, keyed_digest, slow_digest
from chatledger.storage.rows.encryption import Tenant, damaged_cell
from chatledger.storage.rows.messages import EncodedMessage
from chatledger.storage.rows.secrets import find_secret, make_secret
from chatledger.storage.schema.tables import tenants

T = TypeVar("T")
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class Needed:
    """A slow digest that is needed, and the stored ones that it may be equal to; None for a new one."""

    place: tuple[str, str, int, int]
    form: EncodedMessage
    stored: Collection[str] | None = None

    @property
    def name(self) -> str:
        return repr((self.place, self.form))


class SlowDigests(ChatLedgerError):
    """The attempt needs these digests. No caller of the library sees this."""

    def __init__(self, needed: list[Needed]) -> None:
        super().__init__(f"{len(needed)} slow digests are needed")
        self.needed = needed

    def compute(self, known: dict[str, str]) -> None:
        """Up to the first that is not stored: the append is refused there."""
        with _TURN:
            for one in self.needed:
                known[one.name] = slow_digest(*one.place, one.form)
                if one.stored is not None and known[one.name] not in one.stored:
                    return


async def with_digests(known: dict[str, str], attempt: Callable[[], Awaitable[T]]) -> T:
    """Make the attempt until `known` has the digests that it needs."""
    while True:
        try:
            return await attempt()
        except SlowDigests as slow:
            with ThreadPoolExecutor(1, "chatledger-digests") as thread:
                await asyncio.get_running_loop().run_in_executor(thread, slow.compute, known)


def new_digests(
    sql: WriteSql, tenant: Tenant, thread: str, forms: Sequence[tuple[int, int, EncodedMessage]], known: dict[str, str]
) -> list[str]:
    """The digests of the forms that stand at these branches and seqs, and that this transaction is about to remove;
    `thread` is the key as stored. Raises EncryptionError, and SlowDigests before anything is written.
    """
    if forms and tenant.encryption is not None:
        secret = make_secret(sql, tenant, "digest_secret")
        return [keyed_digest(secret, tenant.key, thread, *one) for one in forms]
    needed = [Needed((tenant.key, thread, branch, seq), form) for branch, seq, form in forms]
    missing = [one for one in needed if one.name not in known]
    if missing:
        raise SlowDigests(missing)
    return [known[one.name] for one in needed]


class Gone:
    """The digests of one attempt. `settle` after the last `matches`: until then a slow digest counts as equal."""

    def __init__(self, sql: WriteSql, request: AppendRequest, *, waits: bool | None = None) -> None:
        """`waits`: another attempt finds the same messages. So it is with an idempotency key and with the caller's own
        ids; but that an id was minted in an earlier attempt, only this attempt knows.
        """
        self.sql, self.request = sql, request
        own = request.has_key or all(message.message_id is not None for message in request.messages)
        self._waits = own if waits is None else waits
        self._secret: str | None = None
        self._needed: list[Needed] = []

    def matches(self, branch: int, seq: int, form: EncodedMessage, stored: Collection[str]) -> bool:
        """Whether one of the stored digests is that of the form at this place. Raises DamagedCell, EncryptionError."""
        place = (self.request.tenant.key, self.request.thread, branch, seq)
        keyed = [one for one in stored if is_keyed(one)]
        if keyed and keyed_digest(self._find_secret(), *place, form) in keyed:
            return True
        return len(keyed) < len(stored) and self._is_slow(Needed(place, form, stored))

    def settle(self) -> None:
        """Raises SlowDigests."""
        if self._needed:
            raise SlowDigests(self._needed)

    def _is_slow(self, needed: Needed) -> bool:
        known = self.request.digests.get(needed.name)
        if known is None and not self._waits:
            known = slow_digest(*needed.place, needed.form)
        if known is None:
            self._needed.append(needed)
        return known is None or known in (needed.stored or ())

    def _find_secret(self) -> str:
        self._secret = self._secret or find_secret(self.sql, self.request.tenant, "digest_secret")
        if self._secret is None:
            raise damaged_cell(tenants, "digest_secret", {})
        return self._secret
