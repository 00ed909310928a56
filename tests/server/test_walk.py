"""The walk: each route, asked for Bob's things by another user and by callers of another tenant, finds nothing and
changes no row. On a server that makes the ids, it cannot even tell Bob's ids from made-up ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import Caller, ServerLimits, create_app
from chatledger.storage.schema.tables import INSERTION_ORDER
from tests.conftest import Database
from tests.server.conftest import by_header, client_of
from tests.server.owned import UNMADE
from tests.server.test_scopes import routes_of
from tests.server.visits import AGENTS, IDS, SECRET, SERVICE, VISITS, Visit, as_sent, store_things
from tests.storage.raw import Run, raw_connection

_FOREIGN = re.compile(" /(agent-service|v1/ai-sdk)/")
"""The wires of other programs, which the description leaves out."""
CALLERS = {"another user": ("ada", "default"), "same name elsewhere": ("bob", "acme"), "elsewhere": ("*", "acme")}


@pytest.fixture
def app(ledger: Ledger) -> FastAPI:
    limits = ServerLimits(stream_seconds=0.1)
    return create_app(ledger, authenticate=by_header, answers=AGENTS, limits=limits, service=SERVICE)


@pytest.fixture
async def rows_of(database: Database) -> AsyncIterator[Run]:
    async with raw_connection(database) as run:
        yield run


def operations(app: FastAPI) -> dict[str, tuple[str, str]]:
    """The method and the path of each operation, by its id, and of each route of another wire, by both. Those that
    delete come last: a server that lets them pass has nothing more to show.
    """
    paths = app.openapi()["paths"]
    found = [
        (one["operationId"], method.upper(), path) for path, methods in paths.items() for method, one in methods.items()
    ]
    foreign = [route.split() for route in routes_of(app.routes) if _FOREIGN.search(route)]
    found += [(f"{method} {path}", method, path) for method, path in foreign]
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
    found.sort(key=lambda one: (methods.index(one[1]), one[0] == "delete_thread", -len(one[2])))
    return {operation: (method, path) for operation, method, path in found}


def test_each_operation_is_visited(app: FastAPI) -> None:
    assert set(operations(app)) == set(VISITS), "tests/server/visits.py says how another caller asks each route"


@pytest.mark.parametrize("caller", CALLERS)
async def test_nobody_finds_or_changes_what_is_not_theirs(
    caller: str, ledger: Ledger, app: FastAPI, rows_of: Run
) -> None:
    assert await walk(app, ledger, rows_of, caller, await store_things(ledger)) == []


async def test_the_walk_notices_a_server_that_shows_everything(
    ledger: Ledger, app: FastAPI, rows_of: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Caller, "view", lambda _caller, ledger: ledger)
    breaches = await walk(app, ledger, rows_of, "another user", await store_things(ledger))
    noticed = {breach.split(" Visit")[0] for breach in breaches}
    of_nobody = {"healthz", "get_me", "get_metrics", "create_conversation", "GET /agent-service/info", *UNMADE}
    assert set(VISITS) - noticed == of_nobody  # they name nothing of Bob's


async def test_a_server_that_makes_the_ids_answers_alike_for_bobs_and_for_made_up_ones(ledger: Ledger) -> None:
    limits = ServerLimits(stream_seconds=0.1)
    app = create_app(ledger, authenticate=by_header, answers=AGENTS, ids="server", limits=limits, service=SERVICE)
    assert await told_apart(app, await store_things(ledger)) == []


async def test_it_is_noticed_that_a_user_who_chooses_ids_can_tell_them_apart(ledger: Ledger, app: FastAPI) -> None:
    told = await told_apart(app, await store_things(ledger))
    chosen = {"create_thread", "copy_thread", "append_messages", "start_run", "record_feedback"}
    assert {one.split()[0] for one in told} >= chosen


_MARKS = {"MARK", "CHANGE"}


async def told_apart(app: FastAPI, given: dict[str, str]) -> list[str]:
    """The visits of Ada that get another answer if each id of Bob's, and his name, is one that nobody has."""
    told = []
    async with client_of(app, "ada") as client:
        for operation, (method, path) in operations(app).items():
            for visit in VISITS[operation]:
                if operation == "healthz" or _MARKS & {
                    str(one) for one in (*visit.query.values(), *visit.headers.values())
                }:
                    continue  # it says how long it took, and a mark is known to whom has it only
                cursors = {**given, "CURSOR": given.get(operation, "")}
                answers = [await ask(client, method, path, one, cursors) for one in (visit, of_nobody(visit))]
                bobs, nobodys = [(one.status_code, one.text.replace("bob", "zoe")) for one in answers]
                if bobs != nobodys:
                    told.append(f"{operation} {visit}: {bobs}, and for a made-up id {nobodys}")
    return told


def of_nobody(visit: Visit) -> Visit:
    """The same visit with ids that nobody has."""
    renamed = {name: value.replace("bob", "zoe") for name, value in {**IDS, **visit.path}.items()}
    query, body, headers = (
        json.loads(json.dumps(one).replace("bob", "zoe")) for one in (visit.query, visit.body, visit.headers)
    )
    return replace(visit, path=renamed, query=query, body=body, headers=headers)


async def walk(app: FastAPI, ledger: Ledger, rows_of: Run, caller: str, given: dict[str, str]) -> list[str]:
    """What went wrong in the visits of a caller."""
    name, tenant = CALLERS[caller]
    breaches = []
    described = {one["operationId"]: one["responses"] for ms in app.openapi()["paths"].values() for one in ms.values()}
    async with client_of(app, name, **{"X-Tenant": tenant}) as client:
        for operation, (method, path) in operations(app).items():
            for visit in VISITS[operation]:
                before = await dump(rows_of)
                response = await ask(client, method, path, visit, {**given, "CURSOR": given.get(operation, "")})
                what = f"{operation} {visit}: {response.status_code} {response.text}"
                expected = visit.elsewhere if tenant != "default" and visit.elsewhere is not None else visit.status
                if str(response.status_code) not in described.get(operation, str(response.status_code)):
                    breaches.append(f"{what}, which the description does not name")
                if response.status_code != expected:
                    breaches.append(f"{what}, not {expected}")
                elif expected == 200 and operation != "get_me" and (SECRET in response.text or "bob" in response.text):
                    breaches.append(f"{what} tells of Bob")
                elif await dump(rows_of) != before:
                    breaches.append(f"{what} changed rows")
                await empty(ledger.tenant("acme"))
    return breaches


async def empty(elsewhere: Ledger) -> None:
    """Delete what a visit created in the other tenant, so that the next one finds Bob's ids free again."""
    for thread in await elsewhere.threads.list():
        await elsewhere.threads.delete(thread.thread_id)


async def ask(client: httpx.AsyncClient, method: str, path: str, visit: Visit, given: dict[str, str]) -> httpx.Response:
    for name, value in {**IDS, **visit.path}.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    query, headers = (
        {name: given.get(value, value) if isinstance(value, str) else value for name, value in those.items()}
        for those in (visit.query, visit.headers)
    )
    return await client.request(method, path, params=query, headers=headers, **as_sent(visit.body))


async def dump(rows_of: Run) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tenant of Ada and Bob. A visit to another tenant may create rows there."""
    found = {}
    for table in INSERTION_ORDER:
        found[table.name] = sorted(await rows_of(f"SELECT * FROM {table.name} WHERE tenant_id = 'default'"), key=repr)
    return found
