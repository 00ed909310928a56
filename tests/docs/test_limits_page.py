"""The page of limits has the numbers of the code, and the names that LimitExceeded gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from chatledger import ChatMessage, Ledger, Limits, Tokens
from chatledger import ledger as ledger_module
from chatledger.errors import LimitExceeded
from chatledger.models import json
from chatledger.models.limits import MAX_KEY_BYTES
from chatledger.repositories import messages
from chatledger.server import ServerLimits
from chatledger.server.answers import pages
from chatledger.storage.append import attempt, kv, tip_cache
from chatledger.storage.append.request import LEASE
from chatledger.storage.changes import copy, deletion, reencrypt, removal
from chatledger.storage.check import branch as check
from chatledger.storage.check import threads as check_all
from chatledger.storage.databases import hints, poller
from chatledger.storage.databases.postgresql import database as postgresql
from chatledger.storage.databases.postgresql import options as postgresql_options
from chatledger.storage.databases.postgresql import replica
from chatledger.storage.databases.sqlite import database as sqlite
from chatledger.storage.drafts import draft as drafts
from chatledger.storage.drivers.urls import POOL, TIMEOUT
from chatledger.storage.follow import follower
from chatledger.storage.history import path, window_request
from chatledger.storage.lists import cursors, thread_list
from chatledger.storage.repositories import runs
from chatledger.storage.rows.keys import KEY_BYTES
from chatledger.storage.upgrade import migrate, revisions
from tests.docs.parts import DOCS

TEXT = (DOCS / "reference" / "limits.md").read_text(encoding="utf-8")

SAID = {
    "messages of an append": f"{Limits().messages:,} (",
    "text and JSON of an append": f"{Limits().bytes // 2**20} MiB, {Limits().bytes:,} bytes",
    "calls of a branch without": f"{attempt.MOST_OPEN_CALLS:,} ",
    "branches of a thread": f"{path.MOST_BRANCHES:,} ",
    "forks along a path": f"{path.MOST_SEGMENTS - 1} ",
    "messages that one `messages.rewind`": f"{removal.MOST_REMOVED:,}, and {removal.MOST_REMOVED_MIB} MiB",
    "messages of a `threads.copy`": f"{copy.MOST:,}, and {copy.MOST_MIB} MiB",
    "messages that stricter rules judge": f"{check.MOST_JUDGED:,}, and {check.MOST_JUDGED_MIB} MiB",
    "`kv` values that one append writes": f"{kv.MOST}",
    "one `kv` value": f"{Limits().bytes // 2**20} MiB",
    "nesting of JSON": f"{json.MAX_DEPTH} levels",
    "digits of an integer": f"{json._INTEGER_DIGITS:,}",
    "tenant, `thread_id`": f"1 to {MAX_KEY_BYTES} bytes",
    "name of an agent": f"1 to {MAX_KEY_BYTES} bytes",
    "encryption key": f"{KEY_BYTES} bytes",
    "`limit` of a list": f"50 | 1 to {cursors.MAX_PAGE:,}",
    "`messages.iterate`": f"{messages.PAGE} messages",
    "changes that `follow`": f"{follower.MOST}",
    "`preview`": f"{thread_list.PREVIEW_CHARACTERS} characters, out of the last {thread_list._POSITIONS} ",
    "runs that one page": f"{runs._SCANNED:,};",
    "`timeout` of a ledger": f"{TIMEOUT:g} | more than 0, at most {ledger_module._LONGEST_TIMEOUT:,}",
    "`lease`": f"{LEASE:g} | more than `interval`, at most {drafts._LONGEST:,}",
    "`interval`": f"{drafts.Pace().interval:g} | 0 to {drafts._LONGEST:,}",
    "`size`": f"{drafts.Pace().size:,} ",
    "poll of followed": f"every {poller.INTERVAL * 1000:g} ms",
    "notifications": f"at most every {hints.DISTANCE * 1000:g} ms",
    "a replica that failed": f"for {replica.RETRY_AFTER:g} s",
    "a migration on PostgreSQL": f"{revisions.LOCK_TIMEOUT:g} s, then tries again after 1, 2, 4, 8 and 16 s",
    "a migration of a SQLite": f"{migrate.WAIT_FOR_MIGRATOR} s",
    "`pool_size`": f"{POOL.size} | 1 to {postgresql_options._MOST_CONNECTIONS:,}",
    "`max_overflow`": f"{POOL.overflow} | 0 to {postgresql_options._MOST_CONNECTIONS:,}",
    "connections for calls": f"{postgresql.MOST_OF_COPY} more",
    "connections to a SQLite": f"{sqlite.READERS} that read",
    "branches whose state": f"{tip_cache.SIZE:,}",
    "body of a request": f"{ServerLimits().body // 2**20} MiB |",
    "a page | 8 MiB": f"{pages.MOST_VALUES:,} JSON values",
    "items of a page": f"50, at most {ServerLimits().page:,} | 1 to 1,000",
    "open event streams of a process": f"{ServerLimits().streams:,} | 0 to 100,000",
    "open event streams of one caller": f"{ServerLimits().caller_streams:,} | 0 to 100,000",
    "seconds until a response": f"{ServerLimits().request_seconds:g} | more than 0, at most 86,400",
    "seconds until an event stream": f"{ServerLimits().stream_seconds:,} | more than 0, at most 86,400",
    "`threads.delete_inactive`": f"{deletion.IDLE_BATCH} threads",
    "`reencrypt`": f"{reencrypt.BATCH:,} rows",
    "`ledger.check`": f"{check_all.THREADS} threads",
}


@pytest.mark.parametrize("row", SAID)
def test_the_page_has_the_number_of_the_code(row: str) -> None:
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {row}")]
    assert SAID[row] in line


def test_positions_end_where_the_page_says() -> None:
    assert (window_request.END, migrate.RETRY_AFTER) == (2**62, (1, 2, 4, 8, 16))


USER = ChatMessage(role="user", content="Hi" * 100)
LARGE: dict[str, Callable[[Ledger], Awaitable[object]]] = {
    "messages of an append": lambda ledger: ledger.messages.append("t", [USER] * 3),
    "bytes of an append": lambda ledger: ledger.messages.append("t", [USER, USER]),
    "values of kv": lambda ledger: ledger.messages.append("t", [USER], kv={str(n): n for n in range(65)}),
    "bytes of a value": lambda ledger: ledger.kv.put(("tenant",), "k", "v" * 300),
    "bytes of thread_id": lambda ledger: ledger.threads.create("t" * 513),
    "limit": lambda ledger: ledger.threads.list(limit=1_001),
    "tokens": lambda ledger: ledger.messages.history("t", Tokens(0)),
}


@pytest.mark.parametrize("limit", LARGE)
async def test_the_error_has_the_name_of_the_page(limit: str) -> None:
    async with Ledger.open("sqlite://", limits=Limits(messages=2, bytes=250)) as ledger:
        await ledger.messages.append("t", [USER], create=True)
        with pytest.raises(LimitExceeded) as raised:
            await LARGE[limit](ledger)
    assert raised.value.limit == limit
    assert f"`LimitExceeded`: `{limit}`" in TEXT
