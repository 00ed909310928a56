"""No stored value proves a word: each form that can be computed of a word is searched in a dump and in the logs.

With keys this is so for what is stored and for what is gone. Without keys the words stand there in clear; but nothing
derives from them, so nothing is left to prove them once they are gone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from chatledger import Feedback, Ledger, ToolCall
from chatledger.admin import migrate
from chatledger.ids import derived_id
from chatledger.models.json import dumps
from chatledger.repositories import scope_of
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.tables import metadata
from chatledger.transfer.import_file import import_file
from chatledger.transfer.plan import ImportOptions
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.postgres import Server, own_server
from tests.storage.derived import search, short, windows
from tests.storage.raw import query
from tests.storage.words import RING, Said, say_everything

Files = Callable[[], Awaitable[bytes]]


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server whose files this test reads."""
    with own_server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_database")
        return
    server: Server = request.getfixturevalue("own")
    with server.database() as url:
        migrate(url)
        yield Database("postgresql", url)


@asynccontextmanager
async def read(database: Database) -> AsyncIterator[Files]:
    """What the database wrote since then: every cell of every table, and its file or the log that it writes ahead."""
    begun = "" if database.kind == "sqlite" else await _value(database, _LOG_FILE)

    async def everything() -> bytes:
        cells = [await query(database, f"SELECT * FROM {table.name}") for table in metadata.sorted_tables]
        if database.kind == "sqlite":
            paths = [Path(database.url), Path(f"{database.url}-wal")]
        else:
            folder = Path(await _value(database, "SHOW data_directory")) / "pg_wal"
            paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name >= begun)
        files = [path.read_bytes() for path in paths]
        assert files[-1]
        return b"".join([repr(cells).encode(), *files])

    yield everything


_LOG_FILE = "SELECT pg_walfile_name(pg_current_wal_lsn())"


async def _value(database: Database, statement: str) -> str:
    connection = await asyncpg.connect(database.url)
    try:
        return str(await connection.fetchval(statement))
    finally:
        await connection.close()


class SaidOnce(Said):
    """One word for each label: a word has very many forms."""

    def __init__(self) -> None:
        super().__init__()
        self._by_label: dict[str, str] = {}

    def __call__(self, label: str) -> str:
        if label not in self._by_label:
            self._by_label[label] = super().__call__(label)
        return self._by_label[label]


async def say_everywhere(ledger: Ledger, said: Said) -> None:
    """Words in every column, and in every call that makes an id."""
    await say_everything(ledger, said)
    await ledger.user("ada").threads.create("synced", metadata={"m": said("synced")})
    await ledger.messages.append("synced", short(said("key")), idempotency_key="k")
    await ledger.messages.sync("synced", [user(said("another"))], branch=0, on_difference="branch")
    shared = await ledger.messages.append("branched", short(said("first")), create=True)
    await ledger.messages.sync("branched", [shared.messages[0], user(said("edited"))], branch=0, on_difference="branch")
    await ledger.messages.append("branched", [user(said("after"))], reply_to=shared.message, branch=0)
    async with ledger.messages.stream("branched", idempotency_key="k") as draft:
        await draft.feed(said("streamed"))
    calls = [ToolCall(id="c", name="f", arguments=json.dumps({"q": said("argument")}))]
    await ledger.messages.append("branched", [assistant(calls=calls)])
    await ledger.threads.copy("branched", "copied")
    await ledger.runs.start("synced", run_id="r", input={"q": said("input")})
    score = Feedback(run_id="r", key="k", score=1, kwargs={"comment": said("comment")}, author=said("author"))
    await ledger.feedback.record(score, idempotency_key="k")
    await ledger.feedback.record(score.model_copy(update={"kwargs": {"comment": said("other")}}))
    await ledger.kv.put(("user", "ada"), "k", said("value"))
    await bring(ledger, {"messages": payload(said("record"))}, "record.json")
    await bring(ledger, payload(said("list")), "list.json")


async def bring(ledger: Ledger, record: object, file: str) -> None:
    await import_file(ledger, io.BytesIO(json.dumps(record).encode()), ImportOptions(), file=file)


async def forget(ledger: Ledger) -> None:
    """Redact, remove and erase what was said."""
    for name in ("synced", "branched"):
        for message in (await ledger.messages.history(name)).messages:
            await erase_at(scope_of(ledger), name, message.seq or 0)
    await ledger.messages.pop("synced")
    await ledger.erasures.erase(("thread", "branched"))
    await ledger.erasures.erase(("user", "ada"))


async def secrets_in_clear(database: Database) -> list[str]:
    rows = await query(database, "SELECT tombstone_secret FROM tenants WHERE tombstone_secret IS NOT NULL")
    return [row[0] for row in rows]


@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without"])
async def test_no_form_of_a_word_is_stored_or_logged(keyed: bool, kept: Database) -> None:
    said = SaidOnce()
    async with read(kept) as everything, kept.open(encryption=RING if keyed else None) as ledger:
        await say_everywhere(ledger, said)
        stored = await everything()
        await forget(ledger)
        wanted = windows(said.words, await secrets_in_clear(kept))
        seen = await everything()
    assert len(wanted) > 9_000 * len(said.words)
    assert search(stored, wanted) | search(seen, wanted) == set()
    spoken = [word for word in said.words if word.encode() in stored]
    assert spoken == [] if keyed else len(spoken) == len(said.words)


PLANTED: dict[str, Callable[[str], str]] = {
    "messages.sync of an earlier release": lambda word: derived_id(
        "message", "t", derived_id("sync", "0", "1", repr(None), repr(encode_message(user(word)))), "0"
    ),
    "an import of an earlier release": lambda word: derived_id("record", _sha256(dumps(payload(word))), "1"),
    "a shortened hash": lambda word: _sha256("t" + word)[:16],
    "a UUID of a name": lambda word: str(uuid.uuid5(uuid.NAMESPACE_OID, word)),
    "a code without a key": lambda word: base64.b64encode(hmac.digest(b"", word.encode(), "sha256")).decode(),
}


def payload(word: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": word}]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_an_id_that_was_made_of_a_word_is_found(kept: Database) -> None:
    """The search can fail: it finds each of these ids, in the log and the files also when the rows are gone."""
    said = Said()
    async with read(kept) as everything, kept.open(encryption=RING) as ledger:
        await ledger.threads.create("t")
        for name, make in PLANTED.items():
            word = said(name)
            await ledger.messages.append("t", [user(word, message_id=make(word))])
        wanted = windows(said.words)
        assert search(await everything(), wanted) == set(said.words)
        await ledger.threads.delete("t")
        assert search(await everything(), wanted) == set(said.words)
