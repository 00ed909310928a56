"""The errors: the tree that is drawn is the tree that is."""

from __future__ import annotations

import copy
import inspect
import pickle
from datetime import UTC, datetime

import pytest

from chatledger import errors
from chatledger.errors import ChatLedgerError


def drawn() -> list[tuple[str, str]]:
    """(class, its base) of each line of the tree in the docstring, by indentation."""
    above: dict[int, str] = {0: "Exception"}
    found = []
    for line in (errors.__doc__ or "").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        if depth < 1:
            continue
        above[depth] = name = line.split()[0]
        found.append((name, above[depth - 1]))
    return found


def defined() -> list[tuple[str, str]]:
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, ChatLedgerError)
    ]
    return [(value.__name__, value.__base__.__name__) for value in classes if value.__base__]


def test_the_tree_in_the_docstring_is_that_of_the_classes() -> None:
    assert drawn() == defined()


MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ERRORS: list[tuple[ChatLedgerError, dict[str, object]]] = [
    (errors.ThreadNotFound("t"), {"thread_id": "t"}),
    (errors.BranchNotFound("t", 1), {"thread_id": "t", "branch": 1}),
    (errors.MessageNotFound("t", "m"), {"thread_id": "t", "message_id": "m", "seq": None}),
    (errors.RunNotFound("r"), {"run_id": "r"}),
    (errors.FeedbackNotFound("f"), {"feedback_id": "f"}),
    (
        errors.EncryptionError("tenant-encrypted", "no keys"),
        {"reason": "tenant-encrypted", "place": None, "key_id": None},
    ),
    (
        errors.VersionConflict("branch", 3, 4, thread_id="t", branch=0),
        {"what": "branch", "thread_id": "t", "branch": 0, "key": None, "expected": 3, "actual": 4},
    ),
    (
        errors.IdConflict("message", "m", "is stored", seq=3),
        {"what": "message", "id": "m", "seq": 3, "idempotency_key": None},
    ),
    (errors.RunConflict("r", "of another thread"), {"run_id": "r"}),
    (errors.RunLive("r", MOMENT), {"run_id": "r", "until": MOMENT}),
    (errors.RunLost("r"), {"run_id": "r"}),
    (errors.ModelFailed("ConnectionError"), {"reason": "ConnectionError"}),
    (
        errors.IdConflict("idempotency_key", "m", "its message", idempotency_key="k"),
        {"what": "idempotency_key", "id": "m", "seq": None, "idempotency_key": "k"},
    ),
    (errors.Erased("t"), {"thread_id": "t"}),
    (
        errors.DraftLive("t", 0, 3, "m", MOMENT),
        {
            "thread_id": "t",
            "branch": 0,
            "seq": 3,
            "message_id": "m",
            "until": MOMENT,
        },
    ),
    (errors.DraftLost("t", 0, 3), {"thread_id": "t", "branch": 0, "seq": 3}),
    (
        errors.VersionConflict("thread", 1, 2, thread_id="t"),
        {"what": "thread", "thread_id": "t", "branch": None, "key": None, "expected": 1, "actual": 2},
    ),
    (
        errors.VersionConflict("value", 0, 2, key="k"),
        {"what": "value", "thread_id": None, "branch": None, "key": "k", "expected": 0, "actual": 2},
    ),
    (errors.RuleViolation("R6", 2, "no call"), {"rule": "R6", "index": 2, "detail": "no call"}),
    (errors.UnknownFormat("x", "not known"), {"format": "x"}),
    (
        errors.DecodeError("$.a", "no", record=3, byte=70),
        {"path": "$.a", "detail": "no", "record": 3, "byte": 70},
    ),
    (errors.EncodeError("$.a", "no"), {"path": "$.a"}),
    (errors.NothingToSend("anthropic", [(1, "left out")]), {"format": "anthropic", "reasons": ((1, "left out"),)}),
    (
        errors.LimitExceeded("messages", 1_001, 1_000),
        {"argument": "messages", "limit": "messages", "given": 1_001, "maximum": 1_000},
    ),
    (errors.InvalidArgument("limit", "must be an int"), {"argument": "limit"}),
    (errors.InvalidCursor("x"), {"argument": "cursor", "cursor": "x"}),
    (errors.TenantOnly("reencrypt"), {"argument": "reencrypt", "call": "reencrypt"}),
    (errors.OutcomeUnknown(["m", "n"]), {"retryable": False, "message_ids": ("m", "n")}),
    (errors.StorageError("locked", retryable=True), {"retryable": True}),
    (
        errors.DamagedCell("tool_calls", "extras", {"thread_id": "t", "seq": 2}, "JSON"),
        {"table": "tool_calls", "column": "extras", "key": {"thread_id": "t", "seq": 2}, "retryable": False},
    ),
    (
        errors.EncryptionError("no-key", "no keys", key_id="k1"),
        {"reason": "no-key", "key_id": "k1", "place": None},
    ),
    (
        errors.EncryptionError("not-authentic", "moved", "messages.text of 't'", key_id="k1"),
        {"reason": "not-authentic", "key_id": "k1", "place": "messages.text of 't'"},
    ),
    (
        errors.SchemaMismatch("0001", "0002", "chatledger migrate"),
        {"retryable": False, "found": "0001", "expected": "0002", "command": "chatledger migrate"},
    ),
    (errors.MissingExtra("cli", "the command line"), {"extra": "cli"}),
]


def test_every_leaf_is_tested() -> None:
    bases = {base for _, base in drawn()}
    assert {name for name, _ in drawn() if name not in bases} <= {type(error).__name__ for error, _ in ERRORS}


@pytest.mark.parametrize(("error", "facts"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
def test_an_error_carries_its_facts(error: ChatLedgerError, facts: dict[str, object]) -> None:
    assert vars(error) == facts


@pytest.mark.parametrize("error", [error for error, _ in ERRORS], ids=lambda error: type(error).__name__)
def test_an_error_can_be_sent_to_another_process(error: ChatLedgerError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert str(copy.copy(error)) == str(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.RuleViolation("R6", 2, "no call"), "message 2 of the batch breaks R6: no call"),
        (errors.LimitExceeded("messages", 1_001, 1_000), "messages: 1,001 given, at most 1,000 allowed"),
        (errors.MessageNotFound("t", "m"), "thread 't' has no message 'm'"),
        (errors.MessageNotFound("t", seq=99), "thread 't' has no message at seq 99"),
        (errors.LimitExceeded("limit", -1, 1_000), "limit: -1 given, at least 0 allowed"),
        (errors.LimitExceeded("bytes of a key", 0, 512, minimum=1), "bytes of a key: 0 given, at least 1 allowed"),
        (errors.LimitExceeded("tokens", 7, 5, detail="no room"), "no room"),
        (errors.InvalidArgument("limit", "must be an int, not str"), "limit must be an int, not str"),
        (errors.InvalidCursor("x"), "cursor 'x': not a cursor that this list gave"),
        (errors.InvalidCursor(None, "two windows"), "two windows"),
        (errors.DecodeError("$.a", "no"), "$.a: no"),
        (errors.DecodeError("$.a", "no", record=3, byte=70), "record 3, byte 70: no"),
        (errors.DecodeError("", "no"), "no"),
        (
            errors.SchemaMismatch(None, "0001", "run"),
            "the database is at schema none, this release needs 0001; run: run",
        ),
        (errors.EncryptionError("no-key", "no keys", "threads.title of 't'"), "threads.title of 't': no keys"),
        (
            errors.DamagedCell("tool_calls", "extras", {"thread_id": "t", "seq": 2}, "a JSON object"),
            (
                "tool_calls.extras of 't', 2: damaged, because the column holds a JSON object; "
                "restore the row from a backup, or write the cell anew"
            ),
        ),
        (
            errors.DraftLive("t", 0, 3, "m", MOMENT),
            (
                "message 3 of branch 0 of thread 't' is still being written, and its writer holds it until "
                "2026-01-02T03:04:05+00:00; wait, or cut it short with on_open_calls='interrupt'"
            ),
        ),
        (errors.MissingExtra("cli", "it"), "it needs an extra: pip install 'chatledger[cli]'"),
        (
            errors.MissingExtra("chatledger.reports", "it"),
            "it needs chatledger.reports, which this installation lacks: install chatledger as it was released",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_says_what_happened(error: ChatLedgerError, text: str) -> None:
    assert str(error) == text
