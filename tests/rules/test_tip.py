"""The tip that a batch leaves behind."""

from __future__ import annotations

import pytest

from chatledger import ChatMessage
from chatledger.rules import Tip
from tests.conversations import assistant, call, result, turn, user
from tests.rules.folding import tip_of, waiting

ASKED = [user("?"), assistant(calls=[call("a"), call("b", "time")], run_id="r")]
A, B = waiting(2, 0, "a"), waiting(2, 1, "b", "time")
CUSTOM = ChatMessage(role="custom")
SYSTEM = ChatMessage(role="system")

TIPS: list[tuple[str, list[ChatMessage], Tip]] = [
    ("nothing", [], Tip()),
    ("a user", [user("?")], Tip(1, "user")),
    ("a turn", turn(), Tip(5, "assistant")),
    ("an assistant with a run", [assistant("!", run_id="r")], Tip(1, "assistant")),
    ("open calls", ASKED, Tip(2, "assistant", (A, B), (), "r")),
    ("half answered", [*ASKED, result("b")], Tip(3, "tool", (A,), ("b",), "r")),
    ("answered", [*ASKED, result("b"), result("a")], Tip(4, "tool", (), ("b", "a"), "r")),
    ("answered by name", [assistant(calls=[call(None)]), result(None)], Tip(2, "tool", (), (None,))),
    ("an orphan", [*ASKED, result("c")], Tip(3, "tool", (A, B), (), "r")),
    ("an answer", [*ASKED, result("b"), result("a"), assistant("!", run_id="r")], Tip(5, "assistant")),
    ("a user who did not wait", [*ASKED, user("?")], Tip(3, "user", (A, B))),
    ("custom", [*ASKED, result("a"), CUSTOM], Tip(4, "tool", (B,), ("a",), "r")),
    ("custom alone", [CUSTOM], Tip(1)),
    ("system", [SYSTEM], Tip(1, "system")),
    ("a late system message", [user("?"), SYSTEM], Tip(2, "user")),
    ("a partial", [user("?"), assistant("Su", state="partial")], Tip(2, "assistant", partial_seq=2)),
    ("an interrupted one", [user("?"), assistant("Su", state="interrupted")], Tip(2, "assistant")),
    ("a partial custom", [user("?"), ChatMessage(role="custom", state="partial")], Tip(2, "user", partial_seq=2)),
]


@pytest.mark.parametrize(("messages", "tip"), [case[1:] for case in TIPS], ids=[case[0] for case in TIPS])
def test_the_tip_after(messages: list[ChatMessage], tip: Tip) -> None:
    assert tip_of(*messages) == tip
