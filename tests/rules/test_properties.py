"""What holds of any list of messages."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger import ChatMessage, RuleViolation, ToolCall
from chatledger.models import LENIENT
from chatledger.rules import (
    Judged,
    Judgement,
    OpenCall,
    Tip,
    check_messages,
    close_gaps,
    closing_results,
    interrupted,
    judge,
)
from chatledger.rules.judge import Fold, arguments_not_json, broken_order
from chatledger.rules.synthetic_results import _closed, _in_order_of_answers
from chatledger.storage.append.preflight import read_tip, write_open_calls
from chatledger.storage.schema.text import encode_text
from tests.rules.folding import find_call, fold, recorded

# Few ids, names and runs, so that they meet; a lone surrogate and a NUL, which the tip's column must carry.
IDS = st.sampled_from([None, "a", "b", "", "\ud800\x00"])
NAMES = st.sampled_from(["f", "g", "\udfff"])
RUNS = st.sampled_from([None, "r", "s"])
ROLES = st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system", "developer", "custom", "bot"])
CALLS = st.builds(ToolCall, id=IDS, name=NAMES, arguments=st.sampled_from([None, "{}", "{"]))


@st.composite
def messages(draw: st.DrawFn) -> ChatMessage:
    role = draw(ROLES)
    has_calls = draw(st.booleans()) if role == "assistant" else draw(st.integers(0, 9)) == 0
    fields = {
        "role": role,
        "name": draw(st.none() | NAMES) if role == "tool" else None,
        "tool_calls": draw(st.lists(CALLS, max_size=3)) if has_calls else None,
        "tool_call_id": draw(IDS) if role == "tool" else None,
        "run_id": draw(RUNS) if role in ("assistant", "tool", "user") else None,
        "state": draw(st.sampled_from(["complete"] * 9 + ["partial"])),
    }
    return ChatMessage.model_validate(fields, context=LENIENT)


LISTS = st.lists(messages(), max_size=12)


def one_by_one(batch: list[ChatMessage]) -> Judgement:
    """As if each message were appended alone, and the tip stored and read between them."""
    tip, judged = Tip(), list[Judged]()
    for message in batch:
        step = judge(stored(tip), [message], branch=0, level="lenient")
        if step.interrupted is not None:
            index = step.interrupted - 1
            cut = judged[index].message.model_copy(update={"state": "interrupted"})
            judged[index] = Judged(cut, judged[index].seq, judged[index].violations, judged[index].answers)
        tip, judged = step.tip, judged + step.messages
    return Judgement(tip, judged)


def stored(tip: Tip) -> Tip:
    role = None if tip.last_role is None else encode_text(tip.last_role)
    return read_tip("t", 0, tip.last_seq, role, write_open_calls(tip), tip.partial_seq)


def refused(batch: list[ChatMessage]) -> RuleViolation | None:
    try:
        fold(batch, level="strict")
    except RuleViolation as violation:
        return violation
    return None


@settings(max_examples=200)
@given(LISTS)
def test_a_batch_is_judged_as_its_messages_one_by_one(batch: list[ChatMessage]) -> None:
    assert fold(batch) == one_by_one(batch)


@settings(max_examples=200)
@given(LISTS)
def test_strict_refuses_the_first_message_that_lenient_keeps_with_a_record(batch: list[ChatMessage]) -> None:
    judgement = fold(batch)
    broken = [(seq - 1, rule) for seq, rule in recorded(judgement) if rule != "R9"]
    pairs = zip(batch, judgement.messages, strict=True)
    broken += [(index + 1, "R10") for index, (given, judged) in enumerate(pairs) if given != judged.message]
    violation = refused(batch)
    first = min((index for index, _ in broken), default=None)
    assert (violation and violation.index) == first
    assert violation is None or (violation.index, violation.rule) in broken


@settings(max_examples=200)
@given(LISTS)
def test_ordered_accepts_what_strict_accepts_and_no_disorder_is_found_in(batch: list[ChatMessage]) -> None:
    findings = [finding for finding in check_messages(batch) if not finding.open and finding.rule != "R9"]
    try:
        fold(batch, level="ordered")
    except RuleViolation:
        assert findings
    else:
        assert not findings


@settings(max_examples=200)
@given(LISTS)
def test_a_position_is_open_at_most_once_and_answered_at_most_once(batch: list[ChatMessage]) -> None:
    judgement = fold(batch)
    places = [(call.seq, call.idx) for call in judgement.tip.open_calls]
    answered = [(judged.answers.seq, judged.answers.idx) for judged in judgement.messages if judged.answers]
    asked = [(seq, idx) for seq, given in enumerate(batch, 1) for idx, _ in enumerate(given.tool_calls or ())]
    assert sorted(places + answered) == asked


@settings(max_examples=200)
@given(LISTS)
def test_the_tip_comes_back_from_its_columns(batch: list[ChatMessage]) -> None:
    tip = fold(batch).tip
    assert stored(tip) == tip


@settings(max_examples=200)
@given(LISTS)
def test_closing_closes_every_call_and_breaks_nothing(batch: list[ChatMessage]) -> None:
    tip = fold(batch).tip
    judgement = judge(tip, closing_results(tip), branch=0, level="strict")
    assert (judgement.tip.open_calls, recorded(judgement)) == ((), [])
    assert [judged.answers and judged.answers.id for judged in judgement.messages] == [
        judged.message.tool_call_id for judged in judgement.messages
    ]


def pairing_steps(open_calls: tuple[OpenCall, ...]) -> Iterator[OpenCall]:
    """The order of answers as its definition says, one call after the other."""
    while open_calls:
        call = find_call(open_calls, open_calls[0].id, open_calls[0].name) or open_calls[0]
        yield call
        open_calls = tuple(other for other in open_calls if other is not call)


@settings(max_examples=300)
@given(LISTS)
def test_calls_are_closed_in_the_order_of_their_answers(batch: list[ChatMessage]) -> None:
    open_calls = fold(batch).tip.open_calls
    assert [*_in_order_of_answers(open_calls)] == [*pairing_steps(open_calls)]


@settings(max_examples=200)
@given(LISTS, LISTS)
def test_closing_in_between_leaves_the_tip_that_its_results_leave(
    before: list[ChatMessage], batch: list[ChatMessage]
) -> None:
    tip = interrupted(fold(before).tip)
    results = closing_results(tip)
    assert not results or _closed(tip, results) == judge(tip, results, branch=0, level="strict").tip


@settings(max_examples=200)
@given(LISTS, LISTS)
def test_a_call_closed_in_between_does_not_interfere(before: list[ChatMessage], batch: list[ChatMessage]) -> None:
    tip = fold(before).tip
    closed = list(batch)
    for index, results in reversed(close_gaps(tip, batch, branch=0)):
        closed[index:index] = results
    assert "R8" not in [rule for _, rule in recorded(fold(closed, tip=tip))]


@settings(max_examples=200)
@given(LISTS)
def test_check_finds_the_records_the_disorder_and_the_open_ends(batch: list[ChatMessage]) -> None:
    judgement = fold(batch)
    kept = [judged.message.model_copy(update={"seq": judged.seq, "branch": 0}) for judged in judgement.messages]
    expected = recorded(judgement) + disorder(batch)
    expected += [(call.seq, "R6") for call in judgement.tip.open_calls]
    expected += [(judgement.tip.partial_seq, "R10")] if judgement.tip.partial_seq else []
    found = [(finding.seq, finding.rule) for finding in check_messages(kept)]
    assert (sorted(found), [seq for seq, _ in found]) == (sorted(expected), sorted(seq for seq, _ in found))


def disorder(batch: list[ChatMessage]) -> list[tuple[int, str]]:
    """Without arguments that are not JSON, which are told once, as what is recorded."""
    found = []
    for index, message in enumerate(batch):
        told = {violation.detail for violation in arguments_not_json(message)}
        broken = broken_order(Fold(fold(batch[:index]).tip), message)
        found += [(index + 1, violation.rule) for violation in broken if violation.detail not in told]
    return found
