"""On a server that makes the ids, a user cannot tell what another user has, or had before it was erased or deleted,
from what nobody ever had: the same status, words and headers, by as many statements. The page is asked too.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from chatledger import Ledger
from chatledger.server import ServerLimits, create_app
from chatledger.server.callers.chosen_ids import IdsBy
from chatledger.storage.drivers import sqlite
from tests.conftest import Database
from tests.conversations import user
from tests.faults.proxy import proxied
from tests.server.conftest import by_header, client_of
from tests.server.owned import REQUESTS, Sent, send
from tests.server.test_walk import ask, operations
from tests.server.visits import IDS, ITEM, MESSAGE, OWN, QUESTION, RUN, SERVICE, VISITS, Visit, store_things

HIS, NOBODYS = "bob", "zoe"
"""The beginnings of Bob's ids, and of those that nobody has: of the same length, so that headers can be compared."""
_TIMED = {"healthz", "GET /healthz"}
"""Routes that say how long they took."""
_MADE = re.compile(
    r"conv_[0-9a-f]{32}|[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|[\w-]{32}|\"created_at\":\d+|\"\d+\.[\w-]{12}\""
)
"""Ids, times and marks of what a request creates."""
PLAIN = {"Accept-Encoding": "identity"}
"""The length of a compressed answer depends on the letters of the id that was asked for."""
Request = Callable[[httpx.AsyncClient, str], Awaitable[httpx.Response]]


@dataclass(frozen=True)
class Counted:
    """A ledger, and how often it has asked its database so far."""

    ledger: Ledger
    count: Callable[[], int]
    """Statements on SQLite, round trips on PostgreSQL."""


@pytest.fixture
async def counted(database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Counted]:
    if database.kind == "postgresql":
        async with proxied(database.url) as proxy, Ledger.open(proxy.url) as ledger:
            yield Counted(ledger, lambda: proxy.round_trips)
        return
    ran: list[str] = []
    connect = sqlite._connect

    def traced(path: str, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.set_trace_callback(ran.append)
        return connection

    monkeypatch.setattr(sqlite, "_connect", traced)
    async with database.open() as ledger:
        yield Counted(ledger, lambda: len(ran))


async def remove(ledger: Ledger, state: str) -> None:
    """What becomes of Bob's threads."""
    if state == "erased":
        await ledger.erasures.erase(("user", HIS))
    elif state == "deleted":
        for thread in await ledger.user(HIS).threads.list(archived=None):
            await ledger.threads.delete(thread.thread_id)


@dataclass(frozen=True)
class Asked:
    """Each request of Ada's, with what is Bob's or with what is nobody's."""

    app: FastAPI
    given: Mapping[str, Mapping[str, str]]
    """The cursors and marks of each of the two."""

    def all(self) -> dict[str, Request]:
        of_operations = {
            f"{operation} {visit}": self.visit(operation, method, path, visit)
            for operation, (method, path) in operations(self.app).items()
            for visit in (*VISITS[operation], *BESIDES.get(operation, ()))
        }
        of_routes = {route: self.route(route, sent) for route, sent in REQUESTS.items()}
        more = {f"{route} {sent}": self.route(route, sent) for route, sent in FORMS}
        found = {**of_operations, **of_routes, **more}
        return {name: request for name, request in found.items() if name.split(" Visit")[0] not in _TIMED}

    def visit(self, operation: str, method: str, path: str, visit: Visit) -> Request:
        async def request(client: httpx.AsyncClient, whose: str) -> httpx.Response:
            given = self.given[whose]
            return await ask(client, method, path, renamed(visit, whose), {**given, "CURSOR": given.get(operation, "")})

        return request

    def route(self, route: str, sent: Sent) -> Request:
        async def request(client: httpx.AsyncClient, whose: str) -> httpx.Response:
            query, body, form, path, headers = (
                _renamed(one, whose) for one in (sent.query, sent.json, sent.form, {**IDS, **sent.path}, sent.headers)
            )
            return await send(client, route, Sent(body, form, query, path, headers))

        return request


def renamed(visit: Visit, whose: str) -> Visit:
    query, body, headers, path = (
        _renamed(one, whose) for one in (visit.query, visit.body, visit.headers, {**IDS, **visit.path})
    )
    return replace(visit, query=query, body=body, headers=headers, path=path)


def _renamed(value: Any, whose: str) -> Any:
    return json.loads(json.dumps(value).replace(HIS, whose))


_MINE = {"thread_id": OWN}
_RESULT = {"role": "tool", "tool_call_id": "bob's call", "content": "x"}
_CALL = {"role": "assistant", "tool_calls": [{"id": "bob's call", "name": "f", "arguments": "{}"}]}
BESIDES: Mapping[str, list[Visit]] = {
    "append_messages": [
        Visit(path=_MINE, body={"messages": [_RESULT]}),
        Visit(path=_MINE, body={"messages": [QUESTION], "kv": {"bob's key": {"value": 1, "expected": 5}}}),
        Visit(path=_MINE, body={"messages": [{**QUESTION, "run_id": RUN}]}),
    ],
    "get_message": [Visit(path={**_MINE, "message_id": ITEM})],
    "read_messages": [Visit(path=_MINE, query={"format": "openai-chat", "run_id": RUN})],
    "record_feedback": [
        Visit(body={"run_id": RUN, "key": "k", "score": 1, "message_id": MESSAGE, "call_index": 0}),
        Visit(body={"run_id": "ada's run", "key": "k", "score": 1, "message_id": MESSAGE, "call_index": 0}),
    ],
    "list_threads": [Visit(query={"kind": "conversation", "cursor": "CURSOR"})],
    "list_runs": [Visit(query={"cursor": "CURSOR", "status": "running"})],
    "follow_thread": [Visit(path=_MINE, query={"cursor": "MARK"})],
    "copy_thread": [Visit(body={}, headers={"Idempotency-Key": "bob's"})],
}
"""Further requests with what is Bob's: ids of calls, keys of values, his mark and his cursors."""
_APPEND = "POST /v1/threads/{thread_id}/messages"
TAKEN: Mapping[str, tuple[str, Sent]] = {
    "a message id": (_APPEND, Sent({"messages": [{**QUESTION, "message_id": MESSAGE}]})),
    "a call id": (_APPEND, Sent({"messages": [_CALL, _RESULT]})),
    "a key of a value": (_APPEND, Sent({"messages": [QUESTION], "kv": {"bob's key": {"value": 1}}})),
    "an idempotency key": (_APPEND, Sent({"messages": [QUESTION]}, headers={"Idempotency-Key": "bob's"})),
    "an idempotency key of a run": (
        "POST /v1/threads/{thread_id}/runs",
        Sent({}, headers={"Idempotency-Key": "bob's"}),
    ),
    "an idempotency key of a copy": (
        "POST /v1/threads/{thread_id}/copy",
        Sent({"branch": 0}, headers={"Idempotency-Key": "bob's"}),
    ),
    "an idempotency key of a thread": ("POST /v1/threads", Sent({}, headers={"Idempotency-Key": "bob's"})),
    "a title": ("PATCH /v1/threads/{thread_id}", Sent({"title": "bob's"})),
}
"""What Ada stores in a thread of her own under a name that Bob has used."""
_SCORE = {"run_id": RUN, "key": "k", "score": "1", "message_id": MESSAGE}
FORMS = [
    ("POST /threads/{thread_id}/score", Sent(form=_SCORE, path=_MINE)),
    ("POST /threads/{thread_id}/score", Sent(form={**_SCORE, "run_id": "ada's run"}, path=_MINE)),
    ("GET /threads/{thread_id}/messages/{message_id}/json", Sent(path=_MINE)),
    ("GET /threads/{thread_id}/media/{message_id}/{index}", Sent(path=_MINE)),
    ("GET /", Sent(query={"q": "bob's"})),
]


@pytest.mark.parametrize("state", ["stored", "erased", "deleted"])
async def test_what_another_user_has_or_had_looks_like_what_nobody_ever_had(counted: Counted, state: str) -> None:
    given = await store_both(counted.ledger)
    await remove(counted.ledger, state)
    told = await told_apart(Asked(app_of(counted, "server"), given), counted)
    assert told == [], "\n".join(told)


async def test_it_is_noticed_that_a_user_who_chooses_ids_is_told_what_was_erased(counted: Counted) -> None:
    given = await store_both(counted.ledger)
    await remove(counted.ledger, "erased")
    told = await told_apart(Asked(app_of(counted, "client"), given), counted)
    assert {one.split()[0] for one in told} >= {"create_thread", "copy_thread", "append_messages"}


@pytest.mark.parametrize("state", ["stored", "erased"])
@pytest.mark.parametrize("name", TAKEN)
async def test_a_name_that_another_user_has_used_is_as_free_as_any(counted: Counted, name: str, state: str) -> None:
    given = await store_both(counted.ledger)
    await counted.ledger.user(HIS).messages.append("bob's calls", [user("?", message_id=MESSAGE)], create=True)
    await remove(counted.ledger, state)
    asked = Asked(app_of(counted, "server"), given)
    route, sent = TAKEN[name]
    seen: dict[str, Any] = {}
    async with client_of(asked.app, "ada", **PLAIN) as ada:
        for number in range(2):  # first requests open connections and fill caches
            for whose in (HIS, NOBODYS):
                own = f"ada's {whose} {number}"
                await counted.ledger.user("ada").messages.append(own, [user("?")], create=True)
                request = asked.route(route, replace(sent, path={"thread_id": own}))
                before = counted.count()
                response = await request(ada, whose)
                assert response.status_code < 300, response.text
                seen[whose] = plain(response, given, whose), counted.count() - before
    assert seen[HIS] == seen[NOBODYS]


def app_of(counted: Counted, ids: IdsBy) -> FastAPI:
    limits = ServerLimits(stream_seconds=0.05)
    return create_app(counted.ledger, authenticate=by_header, ids=ids, limits=limits, service=SERVICE)


async def store_both(ledger: Ledger) -> dict[str, dict[str, str]]:
    """Bob's things, and cursors and marks of the same kind from another tenant: nobody here has what they are about."""
    return {HIS: await store_things(ledger), NOBODYS: await store_things(ledger.tenant("acme"), NOBODYS)}


async def told_apart(asked: Asked, counted: Counted) -> list[str]:
    """The requests that get another answer, or cost another number of statements, for what is Bob's."""
    told = []
    async with client_of(asked.app, "ada", **PLAIN) as ada:
        for name, request in asked.all().items():
            seen: dict[str, Any] = {}
            for whose in (HIS, NOBODYS) * 2:  # first requests open connections and fill caches
                before = counted.count()
                response = await request(ada, whose)
                seen[whose] = plain(response, asked.given, whose), counted.count() - before
            if seen[HIS] != seen[NOBODYS]:
                told.append(f"{name}: {seen[HIS]}, and of nobody {seen[NOBODYS]}")
    return told


def plain(response: httpx.Response, given: Mapping[str, Mapping[str, str]], whose: str) -> Any:
    """All that the answer says, without the names that the request gave, and without the ids and times that it made."""
    said = [str(response.status_code), *(f"{name}: {value}" for name, value in response.headers.items()), response.text]
    text = "\n".join(said)
    for name, value in filter(lambda one: one[1], given[whose].items()):
        text = text.replace(value, name)
    return _MADE.sub("MADE", text.replace(whose, HIS))
