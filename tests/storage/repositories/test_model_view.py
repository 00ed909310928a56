from __future__ import annotations

import pytest

from chatledger import Ledger, UnknownFormat
from tests.conversations import assistant, call, turn, user


async def test_the_model_view_repairs_the_history_and_changes_no_row(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", [user("?"), assistant(calls=[call("a")]), user("Well?")], rules="lenient")
    stored = await ledger.history("t", format="openai-chat")
    viewed = await ledger.history("t", format="openai-chat", view="model")
    assert [wire["role"] for wire in viewed.payload] == ["user", "assistant", "tool", "user"]
    assert [(repair.code, repair.seq) for repair in viewed.repairs] == [("open-call", 2)]
    assert (viewed.messages, viewed.version) == (stored.messages, 3)
    assert await ledger.history("t", format="openai-chat") == stored


async def test_a_valid_history_is_viewed_as_it_is_stored(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    await ledger.messages.append("t", turn())
    stored = await ledger.history("t", format="openai-chat", last_turns=1)
    assert await ledger.history("t", format="openai-chat", view="model", last_turns=1) == stored


async def test_a_format_without_a_provider_has_no_model_view(ledger: Ledger) -> None:
    with pytest.raises(UnknownFormat, match=r"'kosong/0\.30' has no provider .* openai-chat") as caught:
        await ledger.history("nowhere", format="kosong", view="model")
    assert caught.value.format == "kosong/0.30"
