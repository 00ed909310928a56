"""The session store, beside the framework's own."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import AgentSession, Message

from chatledger import Ledger
from chatledger.adapters.agent_framework import LedgerHistoryProvider, LedgerSessionStore


def session(**state: Any) -> AgentSession:
    made = AgentSession(session_id="s", service_session_id={"id": "resp_1"})
    made.state.update(state)
    return made


async def test_a_session_comes_back_as_a_new_object(ledger: Ledger) -> None:
    store = LedgerSessionStore(ledger)
    assert await store.get("k") is None
    given = session(plan=["a", {"b": None}], kept={"messages": [Message("user", ["Hello"])]})
    await store.set("k", given)
    found, again = await store.get("k"), await store.get("k")
    assert found.to_dict() == given.to_dict()
    assert type(found.state["kept"]["messages"][0]) is Message
    assert found is not again
    await store.set("k", session(plan=1))
    assert (await store.get("k")).state == {"plan": 1}
    await store.delete("k")
    await store.delete("k")
    assert await store.get("k") is None


async def test_messages_outlive_the_session(ledger: Ledger) -> None:
    store, history = LedgerSessionStore(ledger), LedgerHistoryProvider(ledger)
    await history.save_messages("s", [Message("user", ["Hello"])])
    await store.set("s", session())
    await store.delete("s")
    assert len(await history.get_messages("s")) == 1
    assert [thread.thread_id for thread in await ledger.threads.list()] == ["s"]


async def test_users_have_their_own_sessions(ledger: Ledger) -> None:
    ada, bob, nobody = (LedgerSessionStore(ledger, user_id=name) for name in ("ada", "bob", None))
    await ada.set("s", session(of="ada"))
    assert await bob.get("s") is None
    assert await nobody.get("s") is None
    await bob.set("s", session(of="bob"))
    await bob.delete("s")
    assert (await ada.get("s")).state == {"of": "ada"}


class Odd(AgentSession):  # type: ignore[misc]  # the type checker's environment lacks the framework
    pass


@pytest.mark.filterwarnings("ignore:AgentSession state value:RuntimeWarning")
@pytest.mark.parametrize(
    ("given", "error", "path"),
    [
        (session(a={"b": [float("nan")]}), ValueError, r"state\.a\.b\[0\]"),
        (session(a={"b": [object()]}), TypeError, r"state\.a\.b\[0\]"),
        (Odd(), TypeError, "Odd"),
        ("s", TypeError, "str"),
    ],
)
async def test_values_that_would_not_come_back_are_refused(ledger: Ledger, given: Any, error: Any, path: str) -> None:
    store = LedgerSessionStore(ledger)
    await store.set("k", session(old=True))
    with pytest.raises(error, match=path):
        await store.set("k", given)
    assert (await store.get("k")).state == {"old": True}


async def test_an_id_must_be_a_text(ledger: Ledger) -> None:
    store = LedgerSessionStore(ledger)
    for call in (lambda: store.get(""), lambda: store.set("", session()), lambda: store.delete("")):
        with pytest.raises(ValueError, match="non-empty"):
            await call()


async def test_a_snapshot_of_another_version_is_refused(ledger: Ledger) -> None:
    await ledger.kv.put(("tenant", "agent-framework"), "k", {"version": "2"})
    with pytest.raises(ValueError, match="version"):
        await LedgerSessionStore(ledger).get("k")
