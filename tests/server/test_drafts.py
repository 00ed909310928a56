"""Drafts over HTTP: each character once, however often it is sent, by whomever, and though the server dies."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from chatledger import ChatMessage, Ledger, Limits, Payload, ToolCall
from chatledger.errors import DraftLost
from chatledger.server import create_app
from tests.conftest import Database
from tests.conversations import user
from tests.leases import pass_time
from tests.server.conftest import by_header, client_of, json_of, listening, serving

DRAFTS = "/v1/threads/t/drafts"
ANSWER = {"role": "assistant", "content": "Yes, it rains.", "refusal": None}


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.user("ada").messages.append("t", [user("?")], create=True)
    return ledger


@pytest.fixture
async def ada(asked: Ledger) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(asked, authenticate=by_header), "ada") as client:
        yield client


async def opened(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    made = await client.post(DRAFTS, json={"message_id": "m", **fields})
    draft: dict[str, Any] = json_of(made, 201)
    return draft


async def post(client: httpx.AsyncClient, draft: Any, offset: int, *pieces: Any) -> httpx.Response:
    body = {"token": draft["token"], "offset": offset, "pieces": pieces}
    return await client.post(f"{DRAFTS}/m/pieces", json=body)


async def end(client: httpx.AsyncClient, draft: Any, how: str = "complete", **fields: Any) -> httpx.Response:
    return await client.post(f"{DRAFTS}/m/{how}", json={"token": draft["token"], **fields})


async def last(ledger: Ledger) -> ChatMessage:
    history = await ledger.messages.history("t")
    return history.draft or history.messages[-1]


async def test_an_answer_grows_over_a_socket(asked: Ledger) -> None:
    async with (
        listening(create_app(asked, authenticate=by_header)) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"X-User": "ada"}) as client,
    ):
        draft = await opened(client)
        assert (draft["offset"], draft["replayed"], draft["message"]["state"]) == (0, False, "partial")
        first = json_of(await post(client, draft, 0, "It ", "stays "))
        assert first == {"offset": 9, "state": "partial"}
        assert (await last(asked)).content == "It stays "
        assert json_of(await post(client, draft, 9, "dry."))["offset"] == 13
        done = json_of(await end(client, draft, offset=13, custom_data={"a": 1}))
    assert (done["state"], done["messages"][0]["content"]) == ("complete", "It stays dry.")
    stored = await last(asked)
    assert (stored.content, stored.state, stored.message_id) == ("It stays dry.", "complete", "m")
    assert stored.custom_data == {"a": 1}


# --- Each character once ----------------------------------------------------------------------------------------------

TEXT = "".join(f"{number} ä😀\n" for number in range(300))
MIXED: list[Any] = [
    {"kind": "reasoning", "text": "Hm, "},
    {"kind": "reasoning", "text": "rain?", "signature": "s"},
    "It rains",
    {"kind": "text", "text": " until noon."},
    {"kind": "image", "url": "https://files.example/a.png"},
    "See?",
    {"kind": "call", "index": 0, "id": "c", "name": "lookup", "arguments": '{"a":'},
    {"kind": "call", "index": 0, "arguments": " 1}"},
    {"kind": "call", "index": 1, "id": "d", "name": "other"},
]


async def test_any_piece_may_be_sent_again(asked: Ledger, ada: httpx.AsyncClient) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    draft, offsets = await opened(ada), [0]
    for piece in MIXED:
        offsets.append(json_of(await post(ada, draft, offsets[-1], piece))["offset"])
        for begin in chance.sample(range(len(offsets) - 1), min(3, len(offsets) - 1)):
            again = await post(ada, draft, offsets[begin], *MIXED[begin : chance.randint(begin, len(offsets) - 1)])
            assert json_of(again)["offset"] == offsets[-1], (begin, piece)
    whole = json_of(await end(ada, draft, offset=offsets[-1]))["messages"][0]
    assert [part["kind"] for part in whole["content"]] == ["text", "image", "text"]
    stored = await last(asked)
    assert stored.text == "It rains until noon.See?"
    assert [getattr(part, "text", None) for part in stored.reasoning or ()] == ["Hm, rain?"]
    assert stored.tool_calls == [
        ToolCall(id="c", name="lookup", arguments='{"a": 1}'),
        ToolCall(id="d", name="other"),
    ]
    late = json_of(await post(ada, draft, offsets[2], *MIXED[2:]))
    assert late == {"offset": offsets[-1], "state": "complete"}
    assert json_of(await end(ada, draft))["messages"][0]["content"] == whole["content"]
    assert await last(asked) == stored


async def test_sixteen_writers_with_one_token_store_each_character_once(asked: Ledger) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    apps = [create_app(asked, authenticate=by_header) for _ in range(2)]
    async with client_of(apps[0], "ada") as first, client_of(apps[1], "ada") as second:
        draft = await opened(first)

        async def write(client: httpx.AsyncClient) -> None:
            offset = 0
            while offset < len(TEXT):
                sent = TEXT[offset : offset + chance.randint(1, 400)]
                cut = chance.randint(0, len(sent))
                offset = json_of(await post(client, draft, offset, sent[:cut], sent[cut:]))["offset"]

        async with asyncio.TaskGroup() as writers:
            for number in range(16):
                writers.create_task(write((first, second)[number % 2]))
        assert (await last(asked)).content == TEXT
        done = [json_of(await end(one, draft, offset=len(TEXT))) for one in (first, second)]
    assert done[0] == done[1]
    assert [message.text for message in await asked.messages.history("t")] == ["?", TEXT]


async def test_a_killed_server_goes_on_with_a_draft_by_token_and_offset(database: Database) -> None:
    async with Ledger.open(database.url) as ledger:
        await ledger.messages.append("t", [user("?")], create=True)
        draft: Any = None
        third = len(TEXT) // 3 + 1
        for begin in range(0, len(TEXT), third):
            with contextlib.ExitStack() as server:
                running = await asyncio.to_thread(server.enter_context, serving(database.url))
                async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
                    draft = draft or await opened(client)
                    offset = json_of(await post(client, draft, 0, TEXT[:begin]))["offset"]
                    assert begin <= offset <= begin + 5  # the last post before the kill may be stored
                    offset = json_of(await post(client, draft, offset, TEXT[offset : begin + third]))["offset"]
                    unanswered = asyncio.create_task(post(client, draft, offset, TEXT[offset : offset + 5]))
                    await asyncio.sleep(0.01)
                    running.stop(signal.SIGKILL)
                    with contextlib.suppress(httpx.HTTPError):
                        await unanswered
        with contextlib.ExitStack() as server:
            running = await asyncio.to_thread(server.enter_context, serving(database.url))
            async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
                json_of(await end(client, draft, offset=len(TEXT)))
        assert [message.text for message in await ledger.messages.history("t")] == ["?", TEXT]


# --- Whose it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caller", [("eve", "default"), ("ada", "acme"), ("*", "acme")], ids=str)
async def test_a_stranger_with_the_right_token_finds_nothing(
    asked: Ledger, ada: httpx.AsyncClient, caller: tuple[str, str]
) -> None:
    draft = await opened(ada)
    json_of(await post(ada, draft, 0, "It "))
    before = await last(asked)
    name, tenant = caller
    async with client_of(create_app(asked, authenticate=by_header), name, **{"X-Tenant": tenant}) as stranger:
        for answer in (
            await post(stranger, draft, 3, "forged"),
            await post(stranger, draft, 3),
            await end(stranger, draft),
            await end(stranger, draft, "interrupt"),
        ):
            assert json_of(answer, 404)["type"] == "urn:chatledger:ThreadNotFound"
            assert draft["token"] not in answer.text
    assert await last(asked) == before
    json_of(await post(ada, draft, 3, "rains."))


async def test_another_token_writes_nothing_and_no_answer_repeats_one(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await opened(ada)
    wrong = {"token": f"{int(draft['token'], 16) ^ 1:016x}"}
    for answer in (await post(ada, wrong, 0, "x"), await end(ada, wrong), await end(ada, wrong, "interrupt")):
        assert json_of(answer, 409)["type"] == "urn:chatledger:DraftLost"
        assert draft["token"] not in answer.text
    for body in ({"token": draft["token"]}, {"token": draft["token"] + "0", "offset": 0, "pieces": []}):
        refused = await ada.post(f"{DRAFTS}/m/pieces", json=body)
        assert refused.status_code == 400
        assert draft["token"] not in refused.text
    assert (await last(asked)).content is None


async def test_a_message_that_no_draft_wrote_is_not_found(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await opened(ada)
    question = (await asked.messages.history("t")).messages[0].message_id
    body = {"token": draft["token"], "offset": 0, "pieces": []}
    json_of(await ada.post(f"{DRAFTS}/{question}/pieces", json=body), 404)
    for how in ("complete", "interrupt"):
        json_of(await ada.post(f"{DRAFTS}/{question}/{how}", json={"token": draft["token"]}), 404)


# --- Leases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked_for", "seconds"), [({}, 10), ({"lease": 1}, 1), ({"lease": 300}, 300)])
async def test_a_lease_lasts_as_long_as_was_asked_for(
    asked: Ledger, ada: httpx.AsyncClient, asked_for: dict[str, float], seconds: int
) -> None:
    draft = await opened(ada, **asked_for)
    for offset in range(2):
        await pass_time(asked, 2 * seconds)
        assert len(await asked.drafts.list(abandoned_for=0)) == 1
        json_of(await post(ada, draft, offset, "x"))  # as long as nobody took it over
        await pass_time(asked, seconds * 0.3)
        assert await asked.drafts.list(abandoned_for=0) == []


@pytest.mark.parametrize("lease", [0, 0.5, 301, -1, "10"])
async def test_no_other_lease_is_taken(asked: Ledger, ada: httpx.AsyncClient, lease: Any) -> None:
    json_of(await ada.post(DRAFTS, json={"message_id": "m", "lease": lease}), 400)
    assert len(await asked.messages.history("t")) == 1


async def test_an_open_waits_for_the_lease_and_then_takes_over(asked: Ledger, ada: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "answer"}
    first = json_of(await ada.post(DRAFTS, json={}, headers=key), 201)
    path = f"{DRAFTS}/{first['message']['message_id']}"
    json_of(await ada.post(f"{path}/pieces", json={"token": first["token"], "offset": 0, "pieces": ["It"]}))
    assert json_of(await ada.post(DRAFTS, json={}, headers=key), 409)["until"]
    await pass_time(asked, 11)
    second = json_of(await ada.post(DRAFTS, json={"resume": True}, headers=key), 201)
    assert (second["offset"], second["message"]["message_id"]) == (2, first["message"]["message_id"])
    lost = await ada.post(f"{path}/pieces", json={"token": first["token"], "offset": 2, "pieces": ["!"]})
    assert json_of(lost, 409)["type"] == "urn:chatledger:DraftLost"
    json_of(await ada.post(f"{path}/complete", json={"token": second["token"]}))
    again = json_of(await ada.post(DRAFTS, json={}, headers=key))
    assert (again["replayed"], again["token"], again["message"]["content"]) == (True, "", "It")


async def test_a_draft_that_does_not_grow_is_renewed_for_ten_minutes_only(
    asked: Ledger, ada: httpx.AsyncClient
) -> None:
    draft = await opened(ada)
    json_of(await post(ada, draft, 0, "It "))
    await pass_time(asked, 400)
    assert json_of(await post(ada, draft, 0, "It "))["offset"] == 3
    await pass_time(asked, 400)
    for pieces in ((), ("It ",)):
        silent = json_of(await post(ada, draft, 0, *pieces), 409)
        assert (silent["type"], silent["offset"]) == ("urn:chatledger:DraftSilent", 3)
    assert len(await asked.drafts.list(abandoned_for=0)) == 1
    json_of(await post(ada, draft, 3, "rains."))
    json_of(await post(ada, draft, 9))


# --- The end ----------------------------------------------------------------------------------------------------------


async def test_a_missing_piece_is_a_conflict_that_tells_the_place(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await opened(ada)
    json_of(await post(ada, draft, 0, "It "))
    for refused in (await post(ada, draft, 4, "x"), await end(ada, draft, offset=4), await end(ada, draft, offset=2)):
        problem = json_of(refused, 409)
        assert (problem["type"], problem["offset"]) == ("urn:chatledger:OffsetMoved", 3)
    stored = await last(asked)
    assert (stored.content, stored.state) == ("It ", "partial")


async def test_the_providers_response_takes_the_place_of_the_pieces(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await opened(ada, run_id="r")
    json_of(await post(ada, draft, 0, "Yes, it"))
    wrong = await end(ada, draft, payload=[{"role": "user", "content": "forged"}], format="openai-chat")
    assert json_of(wrong, 400)["argument"] == "payload"
    done = json_of(await end(ada, draft, offset=7, payload=[ANSWER], format="openai-chat"))
    assert (done["state"], done["losses"]) == ("complete", [])
    stored = await last(asked)
    await asked.messages.append("other", Payload([ANSWER], "openai-chat"), create=True, rules="lenient")
    appended = (await asked.messages.history("other")).messages[0]
    assert (stored.residual, stored.format) == (appended.residual, appended.format)
    assert (stored.content, stored.message_id, stored.run_id, stored.seq) == ("Yes, it rains.", "m", "r", 2)
    again = json_of(await end(ada, draft, payload=[ANSWER], format="openai-chat"))
    assert again["messages"] == done["messages"]


async def test_a_draft_takes_as_much_at_once_as_an_append(asked: Ledger, ada: httpx.AsyncClient) -> None:
    long = "x" * 600_000
    draft = await opened(ada)
    assert json_of(await post(ada, draft, 0, long))["offset"] == len(long)
    json_of(await end(ada, draft, payload=[{**ANSWER, "content": long + "!"}], format="openai-chat"))
    assert (await last(asked)).text == long + "!"


async def test_an_interrupted_draft_keeps_what_came(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await opened(ada)
    json_of(await post(ada, draft, 0, "It ", {"kind": "call", "index": 0, "id": "c", "name": "f", "arguments": "{}"}))
    ended = [json_of(await end(ada, draft, "interrupt")) for _ in range(2)]
    assert [one["state"] for one in ended] == ["interrupted"] * 2
    assert ended[0]["messages"][0]["content"] == "It "
    assert json_of(await end(ada, draft), 409)["type"] == "urn:chatledger:DraftLost"
    assert json_of(await post(ada, draft, 6, "more"), 409)["type"] == "urn:chatledger:DraftLost"
    states = [(message.role, message.state) for message in await asked.messages.history("t")]
    assert states == [("user", "complete"), ("assistant", "interrupted"), ("tool", "synthetic")]


async def test_a_draft_grows_to_the_limit_of_a_message(database: Database) -> None:
    async with Ledger.open(database.url, limits=Limits(bytes=1_000)) as ledger:
        await ledger.messages.append("t", [user("?")], create=True)
        async with client_of(create_app(ledger, authenticate=by_header)) as client:
            draft = await opened(client)
            json_of(await post(client, draft, 0, "x" * 900))
            json_of(await post(client, draft, 900, "x" * 200), 413)
            assert json_of(await post(client, draft, 900, "x" * 50))["offset"] == 950


async def test_a_draft_in_python_loses_its_place_to_pieces_over_http(asked: Ledger, ada: httpx.AsyncClient) -> None:
    draft = await asked.messages.stream("t", message=ChatMessage(role="assistant", message_id="m")).__aenter__()
    await draft.feed("It ")
    await draft.flush()
    json_of(await post(ada, {"token": draft.token}, 3, "rains."))
    with pytest.raises(DraftLost):
        await draft.complete()
    await draft._stop()
    async with asked.messages.attach("t", "m", draft.token) as attached:
        assert attached.offset == 9
    assert (await last(asked)).content == "It rains."
