"""The page of drafts says what each call does, on both databases."""

from __future__ import annotations

from functools import partial

import pytest

from chatledger import ChatMessage, Ledger
from tests.conftest import Database
from tests.conversations import assistant, user
from tests.docs.drafts import observe, on_sqlite, table
from tests.storage.raw import query


@pytest.fixture(scope="module")
def on_the_page() -> str:
    return on_sqlite()


async def test_each_call_does_with_a_draft_what_the_page_says(
    on_the_page: str, ledger: Ledger, database: Database
) -> None:
    assert table(await observe(ledger, partial(query, database))) == on_the_page


async def test_a_draft_is_the_last_message_of_its_branch(ledger: Ledger) -> None:
    half = assistant("half", state="partial", message_id="d")
    await ledger.messages.append("t", [user("?"), half, user("??"), assistant("!")], create=True, rules="lenient")
    history = await ledger.messages.history("t")
    assert ([message.state for message in history], history.draft) == (
        ["complete", "interrupted", "complete", "complete"],
        None,
    )


async def test_a_draft_of_another_branch_is_that_of_its_history_alone(ledger: Ledger) -> None:
    await ledger.messages.append("t", [user("?", message_id="q"), assistant("!")], create=True)
    async with ledger.messages.stream("t", reply_to="q") as draft:
        await draft.feed("Another")
        await draft.flush()
        await ledger.branches.activate("t", 0)
        assert (await ledger.messages.history("t")).draft is None
        there = (await ledger.messages.history("t", branch=1)).draft
        assert there is not None
        assert there.text == "Another"
        await ledger.messages.append("t", ChatMessage.user("Thanks"))
