"""A key that made a thread: the same request again is a repeat, and another one a conflict."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chatledger import Ledger
from tests.server.conftest import json_of

KEY = {"Idempotency-Key": "k"}
FIRST = {"title": "Trip", "metadata": {"a": 1}, "kind": "chat", "rules": "strict"}


async def create(client: httpx.AsyncClient, body: dict[str, Any], status: int = 201) -> Any:
    return json_of(await client.post("/v1/threads", json=body, headers=KEY), status)


@pytest.mark.parametrize("body", [{}, FIRST, {"title": "", "metadata": {}}])
async def test_the_same_request_is_a_repeat(client: httpx.AsyncClient, ledger: Ledger, body: dict[str, Any]) -> None:
    first = await create(client, body)
    assert await create(client, body) == first
    await ledger.threads.update(first["thread_id"], title="Named since", metadata={"b": 2})
    assert (await create(client, body))["title"] == "Named since"
    assert await ledger.threads.count() == 1


@pytest.mark.parametrize(
    ("field", "other", "words"),
    [
        ("title", "Work", "another title"),
        ("metadata", {"a": 2}, "other metadata"),
        ("kind", "mail", "another kind"),
        ("rules", "lenient", "other rules"),
    ],
)
async def test_another_request_under_the_key_is_a_conflict(
    client: httpx.AsyncClient, ledger: Ledger, field: str, other: object, words: str
) -> None:
    """Its title was dropped without a word."""
    first = await create(client, FIRST)
    refused = await create(client, {**FIRST, field: other}, 409)
    assert refused["type"] == "urn:chatledger:IdConflict"
    remedy = "use another idempotency key for another thread"
    assert refused["detail"] == f"thread '{first['thread_id']}' has {words}; {remedy}"
    assert await create(client, FIRST) == first
