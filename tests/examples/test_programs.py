"""Programs of the people who use the library, as they write them: each on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from chatledger import (
    ChatMessage,
    Cursor,
    Feedback,
    Ledger,
    Mark,
    Newest,
    NewThread,
    Oldest,
    Pace,
    Payload,
    Put,
    ThreadNotFound,
    Tokens,
    Turns,
    VersionConflict,
    blocking,
)
from chatledger.types import Window
from tests.conftest import Database


async def model(prompt: Any) -> AsyncIterator[str]:
    for word in ("You ", "said: ", prompt[-1]["content"]):
        yield word


@pytest.fixture
def ada(ledger: Ledger) -> Ledger:
    return ledger.user("ada")


# --- A chat service: ask and show -------------------------------------------------------------------------------------


async def ask(ledger: Ledger, thread_id: str, request_id: str, text: str) -> str | None:
    question = ChatMessage.user(text)
    await ledger.messages.append(thread_id, question, create=True, idempotency_key=f"{request_id}/question")
    async with ledger.messages.stream(thread_id, idempotency_key=f"{request_id}/answer") as draft:
        if not draft.replayed:
            prompt = await ledger.messages.prompt(thread_id, "openai-chat")
            async for piece in model(prompt.payload):
                await draft.feed(piece)
    return draft.message.text


async def show(ledger: Ledger, thread_id: str, before: str | None = None) -> dict[str, Any]:
    page = await ledger.messages.history(thread_id, Newest(2, before=Cursor(before) if before else None))
    return {"messages": [message.text for message in page], "previous": page.previous_cursor}


async def test_a_service_asks_once_for_each_request_and_shows_pages(ada: Ledger) -> None:
    for request, text in (("1", "Hello"), ("1", "Hello"), ("2", "Bye")):
        assert await ask(ada, "t", request, text) == f"You said: {text}"
    last = await show(ada, "t")
    assert last["messages"] == ["Bye", "You said: Bye"]
    assert await show(ada, "t", last["previous"]) == {"messages": ["Hello", "You said: Hello"], "previous": None}


# --- The same service: edit, regenerate, answer -----------------------------------------------------------------------


async def edit(ledger: Ledger, thread_id: str, question: str, text: str, key: str) -> ChatMessage:
    edited = ChatMessage.user(text)
    return (await ledger.messages.append(thread_id, edited, alternative_to=question, idempotency_key=key)).message


async def regenerate(ledger: Ledger, thread_id: str, old: ChatMessage) -> ChatMessage:
    async with ledger.messages.stream(thread_id, alternative_to=old) as draft:
        await draft.feed("another")
    return draft.message


async def answer(ledger: Ledger, thread_id: str, question: ChatMessage, key: str) -> ChatMessage:
    run_id = f"{thread_id}/{key}"
    async with ledger.messages.stream(
        thread_id, run_id=run_id, idempotency_key=key, resume=True, reply_to=question
    ) as draft:
        prompt = await ledger.messages.prompt(thread_id, "openai-chat", branch=draft.message.branch)
        async for piece in model(prompt.payload):
            await draft.feed(piece)
    return draft.message


async def test_questions_are_edited_and_answers_are_given_again(ada: Ledger) -> None:
    await ask(ada, "t", "1", "Hello")
    await ask(ada, "t", "2", "Bye")
    first, _, question, old = (await ada.messages.history("t")).messages
    edited = await edit(ada, "t", question.message_id or "", "Ciao", "e1")
    assert await edit(ada, "t", question.message_id or "", "Ciao", "e1") == edited
    assert (await answer(ada, "t", edited, "e1/0")).text == "You said: Ciao"
    again = await regenerate(ada, "t", old)
    assert [message.text for message in await ada.messages.history("t")][2:] == ["Bye", "another"]
    assert (edited.branch, again.branch) == (1, 2)
    beginning = await edit(ada, "t", first.message_id or "", "Hi", "e2")
    assert (beginning.seq, [message.text for message in await ada.messages.history("t")]) == (1, ["Hi"])
    assert [one.message.text for one in await ada.messages.alternatives("t", first)] == ["Hello", "Hi"]


# --- A reader: pages both ways, and a budget --------------------------------------------------------------------------


async def test_a_reader_pages_both_ways(ada: Ledger) -> None:
    for number in range(4):
        await ask(ada, "t", str(number), f"Question {number}")
    page = await ada.messages.history("t", Newest(2))
    back = page.messages
    while page.previous_cursor is not None:  # the cursor contains the branch
        page = await ada.messages.history("t", Newest(2, before=page.previous_cursor))
        back = page.messages + back
    forward, window = [], Oldest(3)
    while True:
        page = await ada.messages.history("t", window)
        forward += page.messages
        if page.next_cursor is None:
            break
        window = Oldest(3, after=page.next_cursor)
    assert back == forward == (await ada.messages.history("t")).messages
    assert len((await ada.messages.prompt("t", "openai-chat", Tokens(20))).payload) < len(back)


# --- The session of an adapter ----------------------------------------------------------------------------------------


class Session:
    def __init__(self, thread_id: str, ledger: Ledger, user_id: str) -> None:
        self.thread_id, self.ledger = thread_id, ledger.user(user_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        try:
            history = await self.ledger.messages.history(self.thread_id, Turns(limit) if limit else None)
        except ThreadNotFound:
            return []
        items: list[Any] = history.encode("openai-responses", as_="dicts").payload
        return items

    async def add_items(self, items: list[Any]) -> None:
        payload = Payload(items, "openai-responses")
        await self.ledger.messages.append(self.thread_id, payload, rules="lenient", create=True)

    async def pop_item(self) -> ChatMessage | None:
        async with self.ledger.begin() as tx:
            return await tx.messages.pop(self.thread_id)

    async def clear(self) -> None:
        await self.ledger.threads.delete(self.thread_id)


async def test_an_adapter_keeps_a_session(ledger: Ledger) -> None:
    session = Session("s", ledger, "ada")
    items = [{"role": "user", "content": text} for text in ("Hi", "Hello?")]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(1) == items[1:]
    popped = await session.pop_item()
    assert popped is not None
    assert (popped.text, await session.get_items()) == ("Hello?", items[:1])
    await session.clear()
    assert await session.get_items() == []


# --- Routes of a server -----------------------------------------------------------------------------------------------


def window_of(limit: int, before: str | None = None, after: str | None = None, tokens: int | None = None) -> Window:
    if tokens is not None:
        return Tokens(tokens)
    if after is not None:
        return Oldest(limit, after=Cursor(after))
    return Newest(limit, before=Cursor(before) if before else None)


async def get_route(ledger: Ledger, thread_id: str, window: Window, format: str | None = None) -> dict[str, Any]:  # noqa: A002
    history = await ledger.messages.history(thread_id, window)
    payload = {} if format is None else {"payload": history.encode(format, as_="dicts").payload}
    return {"messages": [m.text for m in history], "draft": history.draft, "next": history.next_cursor, **payload}


async def post_route(ledger: Ledger, thread_id: str, body: dict[str, Any], if_match: str | None = None) -> str:
    messages = Payload(body["payload"], body.get("format"))
    kv = {key: Put(**one) for key, one in body.get("kv", {}).items()}
    create = NewThread(**body["create"]) if "create" in body else False
    expected = Mark(if_match) if if_match else None
    return (await ledger.messages.append(thread_id, messages, create=create, kv=kv, expected=expected)).mark


async def test_routes_take_and_give_json(ada: Ledger) -> None:
    said = [{"role": "user", "content": "x"}]
    plan = {"plan": {"value": 1, "expected": 0}}
    mark = await post_route(ada, "t", {"payload": said, "create": {"kind": "eval", "title": "T"}, "kv": plan})
    assert await post_route(ada, "t", {"payload": [{"role": "assistant", "content": "y"}]}, mark) != mark
    with pytest.raises(VersionConflict):
        await post_route(ada, "t", {"payload": said}, mark)
    assert (await ada.threads.get("t")).kind == "eval"
    page = await get_route(ada, "t", window_of(1), "openai-chat")
    assert (page["messages"], page["payload"]) == (["y"], [{"role": "assistant", "content": "y"}])
    assert (await get_route(ada, "t", window_of(1, after=mark)))["messages"] == ["y"]


# --- An evaluation ----------------------------------------------------------------------------------------------------


async def test_an_evaluation_scores_the_answers_of_a_kind(ledger: Ledger) -> None:
    for number in range(3):
        thread_id = f"t{number}"
        await ledger.user("ada").messages.append(thread_id, ChatMessage.user("?"), create=NewThread(kind="eval"))
        await ledger.runs.start(thread_id, run_id=f"r{number}", model=f"m{number % 2}")
        await ledger.messages.append(thread_id, ChatMessage.assistant("!"), run_id=f"r{number}")
    for thread in await ledger.user("ada").threads.list(kind="eval", order="created"):
        for message in await ledger.messages.history(thread.thread_id):
            if message.run_id and message.role == "assistant":
                await ledger.feedback.record(Feedback(run_id=message.run_id, key="ok", score=1, source="eval"))
    assert [(one.value, one.count) for one in await ledger.feedback.compare("ok")] == [("m0", 2), ("m1", 1)]


# --- A mark that goes to a client and comes back ----------------------------------------------------------------------


async def test_a_mark_guards_polls_and_follows(ada: Ledger) -> None:
    await ada.messages.append("t", ChatMessage.user("?"), create=True)
    mark = Mark(str((await ada.messages.history("t", Newest(1))).mark))
    await ada.messages.append("t", ChatMessage.assistant("!"), expected=mark)
    with pytest.raises(VersionConflict):
        await ada.messages.append("t", ChatMessage.assistant("late"), expected=mark)
    assert [message.text for message in await ada.messages.history("t", Oldest(100, after=mark))] == ["!"]
    async with aclosing(ada.messages.follow("t", cursor=mark)) as changes:
        assert (await anext(changes)).kind == "appended"


async def test_nobody_has_to_remember_that_an_answer_is_half_written(ada: Ledger) -> None:
    await ada.messages.append("live", ChatMessage.user("?"), create=True)
    async with ada.messages.stream("live", pace=Pace(interval=0.01)) as draft:
        await draft.feed("half an answer")
        await draft.flush()
        history = await ada.messages.history("live", Newest(50))
        assert (len(history), history.draft and history.draft.text) == (1, "half an answer")
        assert len((await ada.messages.prompt("live", "openai-chat")).payload) == 1
        assert len(history.encode("openai-chat").payload) == 1
        assert len(await ada.messages.history("live", Oldest(9, after=history.mark))) == 0
    later = await ada.messages.history("live", Oldest(9, after=history.mark))
    assert [message.text for message in later] == ["half an answer"]


# --- A notebook -------------------------------------------------------------------------------------------------------


def test_a_notebook_has_the_same_calls_without_await(database: Database) -> None:
    with blocking.open(database.url) as ledger:
        thread = ledger.threads.create(title="Weather")
        ledger.messages.append(thread.thread_id, ChatMessage.user("Tokyo?"))
        with ledger.messages.stream(thread.thread_id) as draft:
            for piece in ("Sunny", ", 24 °C."):
                draft.feed(piece)
        history = ledger.messages.history(thread.thread_id, Newest(50))
        assert [message.text for message in history] == ["Tokyo?", "Sunny, 24 °C."]
        assert history.encode("openai-chat").payload[1]["content"] == "Sunny, 24 °C."
        assert len(ledger.messages.prompt(thread.thread_id, "anthropic", Tokens(1000)).payload["messages"]) == 2
        assert [message.seq for message in ledger.messages.iterate(thread.thread_id)] == [1, 2]
        assert [one.title for one in ledger.threads.list(limit=10)] == ["Weather"]
