"""A draft that goes on elsewhere by its token: each piece once, and no draft for a stranger who has the token."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    ImagePart,
    InvalidArgument,
    KeyRing,
    Ledger,
    ReasoningDelta,
    StorageError,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from chatledger.errors import DraftLost, MessageNotFound, RunLost, ThreadNotFound
from chatledger.models.deltas import Growing
from chatledger.transfer.export import export_thread
from tests.answers.agents import Model, Tools, agent_of
from tests.checks import findings_of
from tests.conftest import KEYS, Database
from tests.conversations import user
from tests.faults.client import nursery
from tests.faults.streamer import THREAD, word
from tests.faults.streams import SIZE, kill_after
from tests.leases import pass_time
from tests.storage.raw import query
from tests.storage.repositories.test_drafts import NEVER, last, stream, until
from tests.storage.repositories.test_secrets_everywhere import Way, owned, secured, way

__all__ = ["owned", "secured", "way"]  # fixtures

IMAGE = ImagePart(url="https://example.com/a.png")


@pytest.fixture
async def asked(ledger: Ledger) -> Ledger:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?")])
    return ledger


async def opened(ledger: Any, *pieces: Any, **options: Any) -> str:
    """The token of a draft with these pieces, whose process then died."""
    draft = await stream(ledger, message_id="m", **options).__aenter__()
    for piece in pieces:
        await draft.feed(piece)
    await draft.flush()
    await draft._stop()
    return draft.token


# --- The place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["alive", "left", "dead", "over"])
async def test_a_draft_goes_on_by_its_token(asked: Ledger, end: str) -> None:
    first = await stream(asked, message_id="m", lease=NEVER + 1).__aenter__()
    await first.feed("Yes, ")
    await first.feed(ToolCallDelta(name="f", arguments="{"))
    await first.flush()
    if end == "left":
        await first.leave()
    if end == "dead":
        await first._stop()
    if end == "over":
        await pass_time(asked, 2 * NEVER)
    async with asked.messages.attach("t", "m", first.token) as draft:
        assert (draft.replayed, draft.offset, draft.token) == (False, first.offset, first.token)
        assert draft.message.content == "Yes, "
        assert await asked.drafts.list(abandoned_for=0) == []
        await draft.feed("it rains.", offset=7)
        await draft.feed(ToolCallDelta(arguments="}"))
    whole = await last(asked)
    assert whole == draft.message
    assert (whole.content, whole.tool_calls) == ("Yes, it rains.", [ToolCall(name="f", arguments="{}")])
    assert (whole.message_id, whole.seq, whole.state) == ("m", 2, "complete")
    assert [found.open for found in await findings_of(asked, "t")] == [True]  # the call has no result yet
    if end != "left":
        with pytest.raises(DraftLost):
            await first.flush()
    await first._stop()
    async with asked.messages.attach("t", "m", first.token) as again:
        await again.feed("more", offset=999)
    assert (again.replayed, again.message, again.offset) == (True, whole, 17)


async def test_the_earlier_holder_writes_no_more_than_it_had(asked: Ledger) -> None:
    first = await stream(asked, message_id="m").__aenter__()
    await first.feed("Yes")
    second = await asked.messages.attach("t", "m", first.token).__aenter__()
    await second.feed("No")
    await second.flush()
    with pytest.raises(DraftLost):
        await first.flush()
    assert (await last(asked)).content == "No"
    with pytest.raises(DraftLost):
        await first.complete()
    await second.complete()
    await first._stop()


async def test_a_draft_that_was_taken_over_has_another_token(asked: Ledger) -> None:
    token = await opened(asked, "Rain", lease=NEVER + 1)
    await pass_time(asked, 2 * NEVER)
    async with stream(asked, message_id="m", resume=True) as draft:
        assert draft.token != token
        with pytest.raises(DraftLost):
            await asked.messages.attach("t", "m", token).__aenter__()
        await draft.feed("y")
    assert (await last(asked)).content == "Rainy"


async def test_a_partial_message_that_no_draft_opened_has_no_token(asked: Ledger) -> None:
    await asked.messages.append("t", [ChatMessage(role="assistant", content="As", state="partial", message_id="m")])
    with pytest.raises(DraftLost):
        await asked.messages.attach("t", "m", "0" * 16).__aenter__()


async def test_a_place_beyond_the_end_and_an_event_with_a_place_are_refused(asked: Ledger) -> None:
    async with stream(asked, format="openai-chat") as draft:
        await draft.feed("ab", offset=0)
        for wrong in (3, -1):
            with pytest.raises(InvalidArgument, match=f"from 0 to 2, the end of the draft, not {wrong}"):
                await draft.feed("c", offset=wrong)
        with pytest.raises(InvalidArgument, match="must be an int"):
            await draft.feed("c", offset="1")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="delta"):
            await draft.feed({"choices": []}, offset=0)
        for call in (ToolCallDelta(arguments="{}"), ToolCallDelta(index=3, arguments="{}")):
            with pytest.raises(InvalidArgument, match="the name of a call in its first piece"):
                await draft.feed(call, offset=2)
        await draft.feed(ToolCallDelta(index=0, id="a", name="f"), offset=2)
        with pytest.raises(InvalidArgument, match="in no other"):
            await draft.feed(ToolCallDelta(index=0, id="a", name="f"), offset=3)
    assert (draft.message.content, draft.offset) == ("ab", 3)


PIECES: list[Any] = [
    "Let me ", TextDelta(text="see 🌦"), ReasoningDelta(text="they "), ReasoningDelta(text="ask", signature="s"),
    ReasoningDelta(text="again"), ToolCallDelta(index=0, id="a", name="f", arguments='{"a'), " é\u0301 ", IMAGE,
    "\ud83d", ToolCallDelta(index=1, id="b", name="g"), ToolCallDelta(index=0, arguments='": 1}'), "", "\ude00",
    ToolCallDelta(index=1, arguments="{}"), "end",
]  # fmt: skip


def whole_of(growing: Growing) -> tuple[Any, ...]:
    return growing.content(), growing.reasoning(), growing.tool_calls(nameless=True)


def stored(growing: Growing) -> Growing:
    """As another process finds it."""
    content, reasoning, calls = whole_of(growing)
    return Growing.after(ChatMessage(role="assistant", content=content, reasoning=reasoning, tool_calls=calls))


def halves(piece: Any, rng: random.Random) -> list[Any]:
    """The same piece, cut somewhere."""
    if isinstance(piece, str):
        at = rng.randrange(len(piece) + 1)
        return [piece[:at], piece[at:]]
    if isinstance(piece, ToolCallDelta) and piece.arguments:
        at = rng.randrange(len(piece.arguments) + 1)
        rest = ToolCallDelta(index=piece.index, arguments=piece.arguments[at:])
        return [piece.model_copy(update={"arguments": piece.arguments[:at]}), rest]
    return [piece]


def test_pieces_that_are_sent_again_from_any_place_and_with_any_cut_are_added_once() -> None:
    rng = random.Random(7)
    once = Growing()
    ends = [0]
    for piece in PIECES:
        once.add(piece)
        ends.append(once.length)
    for _ in range(300):
        growing = Growing()
        while growing.length < once.length or not growing.length:
            begin = rng.choice([index for index, end in enumerate(ends[:-1]) if end <= growing.length])
            offset = ends[begin]
            for piece in PIECES[begin : rng.randrange(begin, len(PIECES)) + 1]:
                for cut in halves(piece, rng) if rng.random() < 0.5 else [piece]:
                    rest = growing.rest(cut, offset)
                    if rest is not None:
                        growing.add(rest)
                    offset += _length_of(cut)
                    growing = stored(growing) if rng.random() < 0.3 else growing
            assert growing.length == stored(growing).length
        assert whole_of(growing) == whole_of(once)


def _length_of(piece: Any) -> int:
    alone = Growing()
    if isinstance(piece, ToolCallDelta) and not piece.name:
        return len(piece.arguments or "")
    alone.add(piece)
    return alone.length


async def test_sixteen_holders_of_one_token_store_each_character_once(asked: Ledger) -> None:
    token = await opened(asked)
    text = "".join(chr(ord("a") + index % 26) for index in range(96))

    async def write(number: int) -> None:
        rng = random.Random(number)
        while True:
            try:
                draft = await asked.messages.attach("t", "m", token).__aenter__()
                begin = rng.randrange(draft.offset + 1)
                await draft.feed(text[begin : draft.offset + 12], offset=begin)
                await draft.flush()
                end = draft.offset
            except DraftLost:
                continue
            finally:
                await draft._stop()
            if end == len(text):
                return
            await asyncio.sleep(0)

    await asyncio.gather(*map(write, range(16)))
    async with asked.messages.attach("t", "m", token):
        pass
    assert (await last(asked)).content == text


async def stored_token(database: Database) -> str:
    """The token of the only draft, for a test that did not open it."""
    ((waiting,),) = await query(database, "SELECT open_calls FROM branches WHERE partial_seq IS NOT NULL")
    return f"{json.loads(waiting)['partial']['lease'][2]:016x}"


@pytest.mark.plain  # the process has no keys
async def test_the_draft_of_a_killed_process_goes_on(ledger: Ledger, database: Database) -> None:
    await ledger.threads.create(THREAD)
    with nursery() as streamers:
        streamer = streamers.stream(database.url, "k", interval=0.01, size=SIZE, lease=60)
        await asyncio.to_thread(kill_after, streamer, 5, 0.01)
    (left,) = await ledger.drafts.list()
    words = [word(number) for number in range(20_000)]  # more than it wrote
    assert left.message_id is not None
    async with ledger.messages.attach(THREAD, left.message_id, await stored_token(database)) as draft:
        offset = 1
        await draft.feed(ToolCallDelta(index=0, id="call of k", name="f", arguments=""), offset=0)
        for said in words:
            await draft.feed(said, offset=offset)
            await draft.feed(ToolCallDelta(index=0, arguments=said), offset=offset + len(said))
            offset += 2 * len(said)
    call = ToolCall(id="call of k", name="f", arguments="".join(words))
    assert (draft.message.text, draft.message.tool_calls) == ("".join(words), [call])


# --- Who may -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [None, KEYS], ids=["without keys", "with keys"])
async def test_a_right_token_opens_nothing_for_a_stranger(way: Way, keys: KeyRing | None) -> None:
    async with way.open(keys) as (tenant, own):
        for thread in "tu":
            await own.threads.create(thread)
        token = await opened(own, "mine")
        strangers: list[tuple[Any, str, str, type[Exception]]] = [
            (tenant.tenant("other"), "t", "m", ThreadNotFound),
            (tenant.user("eve"), "t", "m", ThreadNotFound),
            (tenant.tenant("other").user("ada"), "t", "m", ThreadNotFound),
            (own, "none", "m", ThreadNotFound),
            (own, "u", "m", MessageNotFound),
            (own, "t", "none", MessageNotFound),
        ]
        for stranger, thread, message, error in strangers:
            for given in (token, "0" * 16):
                with pytest.raises(error):
                    await stranger.messages.attach(thread, message, given).__aenter__()
        wrong = f"{int(token, 16) ^ 1:016x}"
        with pytest.raises(DraftLost):
            await own.messages.attach("t", "m", wrong).__aenter__()
        async with own.messages.attach("t", "m", token) as draft:
            await draft.feed(", still", offset=4)
        assert (await last(own)).content == "mine, still"


@pytest.mark.parametrize("token", ["", "1", "g" * 16, "f" * 16, "0" * 17, "0" * 15 + "٣"])
async def test_a_text_that_is_no_token_is_refused_and_not_repeated(asked: Ledger, token: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        asked.messages.attach("t", "m", token)
    assert str(refused.value) == "token is not the token of a draft"


async def test_the_token_is_in_no_list_event_log_repr_export_or_view(
    asked: Ledger, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    draft = await stream(asked, message_id="m").__aenter__()
    await draft.feed("Yes")
    await draft.flush()
    shown: list[Any] = [draft, draft._request, draft._held, draft.messages, await asked.drafts.list()]
    history = await asked.messages.history("t")
    async with aclosing(asked.messages.follow("t", cursor=history.mark)) as changes:
        await draft.feed("!")
        await draft.flush()
        shown.append(await asyncio.wait_for(anext(changes), 30))
    shown += [history, history.mark, history.draft, await asked.threads.get("t"), await asked.threads.list()]
    shown.append(await export_thread(asked, "t"))
    views = "SELECT name FROM sqlite_master WHERE type = 'view'"
    if database.kind == "postgresql":
        views = "SELECT viewname FROM pg_views WHERE schemaname = current_schema()"
    for (view,) in await query(database, views):
        shown.append(await query(database, f"SELECT * FROM {view}"))
    second = await asked.messages.attach("t", "m", draft.token).__aenter__()
    with pytest.raises(DraftLost) as lost:
        await draft.flush()
    shown += [lost.value, second, second._request, second._held]
    said = "\n".join([*map(repr, shown), *map(str, shown), caplog.text])
    number = int(draft.token, 16)
    for secret in (draft.token, str(number), str(second._request.draft.holder)):  # type: ignore[union-attr]
        assert secret not in said
    await second.complete()
    await draft._stop()


async def test_the_draft_of_an_answer_is_its_attempts_alone(ledger: Ledger, database: Database) -> None:
    gate = asyncio.Event()
    async with ledger.answers.serve({"a": agent_of(Model(calls=0, gate=gate), Tools())}):
        answer = await ledger.answers.start("t", "Tokyo?", create=True)
        await until(ledger.drafts.list, bool)
        (found,) = await ledger.drafts.list()
        with pytest.raises(RunLost):
            await ledger.messages.attach("t", found.message_id or "", await stored_token(database)).__aenter__()
        gate.set()
        assert (await asyncio.wait_for(answer.wait(), 30)).status == "completed"
    assert (await last(ledger)).content == "It is sunny."


async def test_an_attached_draft_is_fed_inside_its_block(asked: Ledger) -> None:
    token = await opened(asked, "a")
    draft = asked.messages.attach("t", "m", token)
    with pytest.raises(StorageError, match="not open"):
        await draft.feed("b")
