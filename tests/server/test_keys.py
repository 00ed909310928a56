"""An application without keys does not serve a database that is recorded as encrypted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.admin import migrate
from chatledger.errors import EncryptionError
from chatledger.server import create_app
from tests.conftest import Database
from tests.reasons import because
from tests.server.conftest import by_header, client_of, json_of
from tests.storage.words import RING

PATHS = ["/v1/threads", "/v1/threads/t/messages", "/", "/threads/t", "/v1/usage", "/healthz"]
SAYS = "open the ledger with encryption="


async def record(url: str) -> None:
    assert (await asyncio.to_thread(migrate, url, encrypted=True)).encrypted


async def test_the_application_does_not_start(database: Database) -> None:
    await record(database.url)
    for ledger in (Ledger.open(database.url), await Ledger.open(database.url)):
        app = create_app(ledger, authenticate=by_header)
        with pytest.raises(EncryptionError, check=because("tenant-encrypted"), match=SAYS):
            async with app.router.lifespan_context(app):
                raise AssertionError("it started")
        if isinstance(ledger, Ledger):
            await ledger.close()


async def test_a_mounted_application_refuses_each_request(database: Database) -> None:
    await record(database.url)
    async with Ledger.open(database.url) as ledger:
        other = FastAPI()
        other.mount("/conversations", create_app(ledger, authenticate=by_header))
        async with client_of(other) as client:
            for path in PATHS:
                for _ in range(2):
                    refused = await client.get(f"/conversations{path}", follow_redirects=True)
                    assert (path, refused.status_code, SAYS in refused.text) == (path, 500, True)


async def test_an_application_with_keys_and_one_without_the_record_are_served(
    database: Database, tmp_path: Path
) -> None:
    plain = str(tmp_path / "plain.db")
    await record(database.url)
    for url, keys in ((database.url, RING), (plain, None)):
        app = create_app(Ledger.open(url, encryption=keys), authenticate=by_header)
        async with app.router.lifespan_context(app), client_of(app) as client:
            assert json_of(await client.get("/v1/threads"))["items"] == []
            json_of(await client.get("/healthz"))


async def test_a_record_that_is_made_later_refuses_writes(database: Database) -> None:
    async with Ledger.open(database.url) as ledger, client_of(create_app(ledger, authenticate=by_header)) as client:
        json_of(await client.post("/v1/threads", json={"thread_id": "t"}), 201)
        await record(database.url)
        refused = await client.post("/v1/threads", json={"thread_id": "u"})
        assert json_of(refused, 500)["type"] == "urn:chatledger:EncryptionError"
