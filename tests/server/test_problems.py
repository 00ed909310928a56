"""Errors over HTTP: one table for all public errors, and what the responses say beside it."""

from __future__ import annotations

import inspect
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from chatledger import ChatMessage, Ledger, errors
from chatledger.server.problems import body_of, problem_of
from tests.docs.parts import DOCS
from tests.server.conftest import json_of

CLASSES = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.ChatLedgerError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_error_has_the_status_of_the_page_of_errors(kind: type[errors.ChatLedgerError]) -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    [said] = re.findall(rf"^\| [· ]*`{kind.__name__}` .*\| (\d+) \|$", page, re.MULTILINE)
    assert int(said) == kind._status


NOW = datetime.now(UTC)
EXAMPLES: list[tuple[errors.ChatLedgerError, int, dict[str, Any]]] = [
    (errors.ThreadNotFound("t"), 404, {"thread_id": "t"}),
    (errors.RuleViolation("R6", 1, "it answers no call"), 422, {"rule": "R6", "index": 1}),
    (errors.LimitExceeded("limit", 201, 200), 413, {"maximum": 200}),
    (errors.LimitExceeded("limit", 0, 200, minimum=1), 400, {"given": 0}),
    (errors.StorageError("away", retryable=True), 503, {"retryable": True}),
    (errors.StorageError("broken"), 500, {"retryable": False}),
    (errors.DamagedCell("messages", "text", {"seq": 1}, "a number"), 500, {"key": {"seq": 1}}),
    (errors.OutcomeUnknown(["m"]), 503, {"message_ids": ["m"]}),
    (errors.NothingToSend("anthropic", [(1, "empty")]), 422, {"reasons": [[1, "empty"]]}),
    (errors.InvalidCursor(object()), 400, {}),
    (errors.DraftLive("t", 0, 2, "m", NOW), 409, {"seq": 2, "until": NOW.isoformat()}),
]


@pytest.mark.parametrize(("error", "status", "facts"), EXAMPLES, ids=lambda it: type(it).__name__)
def test_a_problem_has_the_facts_of_its_error(
    error: errors.ChatLedgerError, status: int, facts: dict[str, Any]
) -> None:
    response = problem_of(error)
    body = json.loads(bytes(response.body))
    assert response.headers["Content-Type"] == "application/problem+json"
    assert (response.status_code, body["status"]) == (status, status)
    assert body["type"] == f"urn:chatledger:{type(error).__name__}"
    assert body["detail"] == str(error)
    assert {name: body[name] for name in facts} == facts
    assert ("Retry-After" in response.headers) == (status == 503 or isinstance(error, errors.DraftLive))


@pytest.mark.parametrize(("left", "wait"), [(7.5, 8), (0.1, 1), (-3, 1)])
def test_a_live_draft_says_when_its_lease_ends(left: float, wait: int) -> None:
    until = datetime.now(UTC) + timedelta(seconds=left)
    assert problem_of(errors.DraftLive("t", 0, 1, None, until)).headers["Retry-After"] == str(wait)


async def test_an_append_after_a_live_draft_is_told_to_wait(client: httpx.AsyncClient, ledger: Ledger) -> None:
    await ledger.messages.append("t", [ChatMessage(role="user", content="?")], create=True)
    async with ledger.messages.stream("t") as draft:
        await draft.feed("So far")
        await draft.flush()
        body = {"messages": [{"role": "user", "content": "Stop"}]}
        refused = await client.post("/v1/threads/t/messages", json=body)
        assert json_of(refused, 409)["type"] == "urn:chatledger:DraftLive"
        assert 0 < int(refused.headers["Retry-After"]) <= 10


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/nowhere", 404, "NoRoute"),
        ("GET", "/v1/threads/", 404, "NoRoute"),
        ("PUT", "/v1/threads", 405, "NoMethod"),
        ("GET", "/v1/threads?limit=many", 400, "InvalidRequest"),
        ("POST", "/v1/threads", 400, "InvalidRequest"),
        ("GET", "/v1/threads/%FF", 400, "InvalidRequest"),
    ],
)
async def test_a_request_that_fits_no_route_is_a_problem_too(
    client: httpx.AsyncClient, method: str, path: str, status: int, kind: str
) -> None:
    refused = await client.request(method, path)
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert json_of(refused, status)["type"] == f"urn:chatledger:{kind}"


async def test_a_field_that_the_route_does_not_have_is_named(client: httpx.AsyncClient) -> None:
    refused = json_of(await client.post("/v1/threads", json={"titel": "x"}), 400)
    assert [one["path"] for one in refused["errors"]] == ["body.titel"]
    for text in (b"{", b"\xff", b"[]", b"null"):
        refused = json_of(await client.post("/v1/threads", content=text), 400)
        assert refused["type"] == "urn:chatledger:InvalidRequest"


def test_the_words_of_the_database_driver_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    error = errors.StorageError("Connect call failed ('10.0.0.5', 5432)", retryable=True)
    error.__cause__ = OSError()
    assert "10.0.0.5" not in body_of(error)["detail"]
    assert "10.0.0.5" in caplog.text


async def test_an_odd_revision_is_refused(client: httpx.AsyncClient) -> None:
    refused = await client.patch("/v1/threads/t", json={}, headers={"If-Match": "9" * 5_000})
    assert json_of(refused, 400)["argument"] == "If-Match"


async def test_an_empty_key_is_refused(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "?"}], "create": True}
    for key in ("", '""'):
        refused = await client.post("/v1/threads/t/messages", json=body, headers={"Idempotency-Key": key})
        assert json_of(refused, 400)["limit"] == "bytes of Idempotency-Key"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/healthz", "GET, HEAD"),
        ("/v1/threads", "GET, HEAD, POST"),
        ("/v1/threads/a%2Fb", "DELETE, GET, HEAD, PATCH"),
        ("/v1/threads/t/messages/m", "DELETE, GET, HEAD, PUT"),
        ("/v1/conversations/c", "DELETE, GET, HEAD, POST"),
        ("/v1/me", "GET, HEAD"),
        ("/", "GET, HEAD"),
        ("/login", "GET, HEAD, POST"),
        ("/threads/t/score", "POST"),
        ("/v1/openapi.json", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_all_methods_of_the_path(
    client: httpx.AsyncClient, path: str, methods: str
) -> None:
    refused = await client.request("TRACE", path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, methods)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/threads", {"exist_ok": 0}, "exist_ok"),
        ("/v1/threads", {"exist_ok": "yes"}, "exist_ok"),
        ("/v1/threads/t/messages", {"messages": [{"role": "user"}], "create": 1}, "create"),
        ("/v1/threads/t/messages", {"messages": [{"role": "user"}], "branch": "0"}, "branch"),
        ("/v1/threads/t/branches", {"at": True}, "at"),
        ("/v1/threads/t/rewind", {"to": None, "branch": 1.5}, "branch"),
        ("/v1/feedback", {"run_id": "r", "key": "k", "score": "1"}, "score"),
        ("/v1/runs/r/finish", {"status": "failed", "usage": {"input_tokens": "5"}}, "usage"),
        ("/v1/runs/r/finish", {"status": "failed", "usage": {"details": {"cached": True}}}, "usage"),
    ],
)
async def test_a_value_of_another_type_is_refused(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    refused = json_of(await client.post(path, json=body), 400)
    places = [one["path"].split(".") for one in refused["errors"]]  # of a field of two types there is one for each
    assert {tuple(place[:2]) for place in places} == {("body", field)}


@pytest.mark.parametrize(
    "wrong",
    [{"is_error": 1}, {"is_error": "yes"}, {"created_at": 0.5}, {"created_at": "5"}, {"branch": False}, {"seq": "1"}],
    ids=str,
)
async def test_a_value_of_another_type_in_a_message_is_refused(
    client: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    message = {"role": "user", "content": "?"}
    for method, path, body in (
        ("POST", "/v1/threads/t/messages", {"messages": [message, {**message, **wrong}], "create": True}),
        ("PUT", "/v1/threads/t/messages/m", {**message, **wrong}),
    ):
        refused = json_of(await client.request(method, path, json=body), 400)
        place = ["body", "messages", "1"] if method == "POST" else ["body"]
        assert {one["path"] for one in refused["errors"]} == {".".join([*place, *wrong])}


async def test_a_whole_number_may_be_written_with_a_point(client: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "?"}], "create": True, "branch": 0.0}
    json_of(await client.post("/v1/threads/t/messages", json=body), 201)
    assert json_of(await client.post("/v1/threads/t/branches", json={"at": None, "branch": 0.0}), 201)["branch"] == 1
    assert json_of(await client.post("/v1/threads/t/rewind", json={"to": None, "branch": 1.0}))["items"] == []
