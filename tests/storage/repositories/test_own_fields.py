"""A subclass of a model may add fields that no column holds. They are refused by name, and nothing is stored."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from chatledger import (
    AudioPart,
    ChatMessage,
    Feedback,
    FilePart,
    ImagePart,
    InvalidArgument,
    Ledger,
    OpaquePart,
    TextDelta,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallDelta,
    Usage,
    VideoPart,
)
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import scope_of
from chatledger.storage.repositories.bulk import prepare_thread
from chatledger.storage.repositories.outputs import add_outputs, replace_agents
from tests.conversations import assistant, user


class Scored(ChatMessage):
    score: float
    tags: list[str] | None = None


class Timed(ToolCall):
    seconds: float = 0.5


class Styled(TextPart):
    style: str = "bold"


def with_own_fields(kind: Any, **fields: Any) -> Any:
    """An instance of a subclass with a field of its own."""
    subclass = type(f"My{kind.__name__}", (kind,), {"__annotations__": {"mine": int}, "mine": 1})
    return subclass(**fields)


PARTS = [
    with_own_fields(TextPart, text="a"),
    with_own_fields(ThinkPart, text="a"),
    with_own_fields(ImagePart, url="u"),
    with_own_fields(AudioPart, url="u"),
    with_own_fields(VideoPart, url="u"),
    with_own_fields(FilePart, url="u"),
    with_own_fields(OpaquePart, value=1),
]
WHOLE = TextPart(text="b")


@pytest.fixture
async def t(ledger: Ledger) -> str:
    return (await ledger.threads.create("t")).thread_id


@pytest.mark.parametrize("rules", ["lenient", "strict", "ordered"])
async def test_a_message_with_fields_of_its_own_is_refused_with_their_names(ledger: Ledger, t: str, rules: Any) -> None:
    scored = Scored(role="user", content="Hi", score=0.5)
    for write in (ledger.messages.append, ledger.messages.sync):
        with pytest.raises(InvalidArgument, match=r"'score', 'tags', .* put that in custom_data") as caught:
            await write(t, [user("a"), scored], rules=rules)
        assert caught.value.argument == "messages"
    assert (await ledger.messages.history(t)).last_seq == 0


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
async def test_a_part_with_fields_of_its_own_is_refused_in_every_place(ledger: Ledger, t: str, part: Any) -> None:
    said: list[dict[str, Any]] = [{"content": [part]}, {"content": [part, WHOLE]}, {"reasoning": [part]}]
    for fields in said:
        with pytest.raises(InvalidArgument, match="would lose 'mine', which"):
            await ledger.messages.append(t, [user("a"), ChatMessage(role="assistant", **fields)])
    assert (await ledger.messages.history(t)).last_seq == 0


async def test_a_call_with_fields_of_its_own_is_refused(ledger: Ledger, t: str) -> None:
    with pytest.raises(InvalidArgument, match="'seconds', which ToolCall does not have; put that in the extras"):
        await ledger.messages.append(t, [user("a"), assistant(calls=[Timed(name="f")])])
    assert (await ledger.messages.history(t)).last_seq == 0


async def test_a_field_that_a_copy_was_given_is_refused(ledger: Ledger, t: str) -> None:
    changed = [
        user("Hi").model_copy(update={"score": 1}),
        assistant(calls=[ToolCall(name="f").model_copy(update={"score": 1})]),
    ]
    for message in changed:
        with pytest.raises(InvalidArgument, match="would lose 'score'"):
            await ledger.messages.append(t, [message], rules="lenient")


class Question(ChatMessage):
    """It adds nothing that would have to be stored."""

    role: str = "user"

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()


class Plain(TextPart):
    pass


class Search(ToolCall):
    name: str = "search"


async def test_a_subclass_without_fields_of_its_own_is_stored(ledger: Ledger, t: str) -> None:
    question = Question(content=[Plain(text="What now?")])
    assert question.words == ["What", "now?"]
    await ledger.messages.append(t, [question, assistant(calls=[Search(id="c")])])
    first, second = (await ledger.messages.history(t)).messages
    assert (first.content, second.tool_calls) == ([TextPart(text="What now?")], [ToolCall(id="c", name="search")])


async def test_scores_and_usage_with_fields_of_their_own_are_refused(ledger: Ledger, t: str) -> None:
    await ledger.runs.start(t, run_id="r")
    with pytest.raises(InvalidArgument, match="'mine', which Feedback does not have; put that in its kwargs"):
        await ledger.feedback.record(with_own_fields(Feedback, run_id="r", key="k", score=1))
    with pytest.raises(InvalidArgument, match="'mine', which Usage does not have; put that in its details"):
        await ledger.runs.finish("r", status="completed", usage=with_own_fields(Usage, input_tokens=1))
    assert (await ledger.runs.get("r")).status == "running"


async def test_outputs_and_agents_with_fields_of_their_own_are_refused(ledger: Ledger, t: str) -> None:
    await ledger.messages.append(t, [user("a")])
    output = with_own_fields(Output, branch=0, seq=1, nonce="n", mime_type="text/plain", text="x")
    with pytest.raises(InvalidArgument, match="'mine', which Output does not have"):
        await add_outputs(scope_of(ledger), t, [output])
    with pytest.raises(InvalidArgument, match="'mine', which ThreadAgent does not have"):
        await replace_agents(scope_of(ledger), t, [with_own_fields(ThreadAgent, name="a", definition={})], stored=[])


async def test_a_delta_with_fields_of_its_own_is_refused_when_it_is_fed(ledger: Ledger, t: str) -> None:
    deltas = [with_own_fields(TextDelta, text="a"), with_own_fields(ToolCallDelta, name="f"), *PARTS]
    async with ledger.messages.stream(t) as draft:
        for delta in deltas:
            with pytest.raises(InvalidArgument, match="would lose 'mine'"):
                await draft.feed(delta)
        await draft.feed("Hi")
    assert draft.message.content == "Hi"


async def test_a_whole_thread_with_fields_of_its_own_is_refused(ledger: Ledger, t: str) -> None:
    thread = await ledger.threads.get(t)
    with pytest.raises(InvalidArgument, match="'score', 'tags'"):
        prepare_thread(scope_of(ledger), thread, [Scored(role="user", score=1)])
