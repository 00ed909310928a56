"""Hostile values for the arguments of every public call, and how a call is made with them.

The calls and their arguments are read from the objects and their signatures, so one that is added is called as well.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any, NoReturn

from chatledger import ChatLedgerError, ChatMessage, Draft, Feedback, Thread, ToolCall, Usage
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.repositories import REPOSITORIES, Repositories
from chatledger.storage.schema.text import write_mark
from chatledger.types import OpenDraft
from tests.conversations import user

CANARY = "c4n4ry"
"""It stands in what a caller stores, and never as an id, a name or a word: those may be quoted by an error."""


class Telling:
    """An object whose text is what somebody said."""

    def __repr__(self) -> str:
        return CANARY


class Rude:
    """An object that answers no question."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError(CANARY)

    __bool__ = __eq__ = __hash__ = __repr__ = __str__ = _refuse


class Word(str):
    """A str to Python, and not to everybody."""


class Number(int):
    """An int to Python."""


@cache  # a deep one takes longer to make than the call that gets it
def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": CANARY}
    for _ in range(depth):
        value = {"a": value}
    return value


def endless() -> list[Any]:
    value: list[Any] = [CANARY]
    value.append(value)
    return value


NOW = datetime(2024, 5, 1, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=timezone(-timedelta(hours=23)))


PLAIN = ("str", "str | None", "int", "int | None", "bool")


def values() -> list[Any]:
    """Made anew for each argument, because an iterator can be read once."""
    return [
        *(None, True, False, 0, 1, -1, 2**31, -(2**31) - 1, 2**63, 10**400, 10**5_000, -(10**5_000), Number(1)),
        *(1.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), Decimal("NaN"), 1j),
        *("", " ", "t", "\0", "a\0b", "\ud800", "\ue000\\u0000", "x" * 600, "ä" * 200_000, "0/0", Word("t"), "t" * 512),
        *(b"", CANARY.encode(), bytearray(CANARY.encode()), memoryview(CANARY.encode())),
        *([], [None], [CANARY], [[CANARY]], [{"role": CANARY}], [{"role": "user", "content": {"a": CANARY}}]),
        *([object()], (), (CANARY,), {}, {"a": CANARY}, {1: CANARY}, {CANARY.encode(): 1}, {CANARY}),
        *({"a": object()}, {"a": (1, 2)}, {"a": {CANARY}}, {"n": 10**5_000}, {"a": "\ud800\0"}),
        *(nested(400), nested(5_000), endless(), {"role": "user", "content": CANARY}, {"a": [CANARY] * 1_000}),
        *(object(), Telling(), Rude(), [Rude()], {"a": Rude()}, {"a": Telling()}, lambda *_: None),
        *(NOW, NOW.replace(tzinfo=None), FIRST, LAST, timedelta(), timedelta.max, timedelta.min, timedelta(days=-1)),
        *(NotImplemented, ..., ValueError(CANARY), iter([CANARY]), (user("x") for _ in range(1))),
        *(
            user(CANARY),
            [user(CANARY), CANARY],
            *([message] for message in messages()),
            [user("x", message_id="m")] * 2,
        ),
        *(unchecked(Feedback, run_id="r", key=CANARY, score=Telling()), unchecked(Feedback)),
        Feedback(run_id="r", key="k", score=1e100, kwargs={"a": CANARY}, feedback_id="f" * 600),
        Feedback(run_id="r", key="k", score=1, message_id="m" * 600, author="\0", created_at=FIRST),
        unchecked(Thread, thread_id=5, title={CANARY}),
        Thread(thread_id="t" * 600, created_at=NOW, active_at=NOW),
        Thread(thread_id="u", user_id="\0" * 600, active_branch=2**80, created_at=NOW, active_at=NOW),
        unchecked(OpenDraft, thread_id=CANARY.encode(), branch=CANARY, seq=None, message_id=5),
        unchecked(OpenDraft, thread_id="t", branch=2**80, seq=-(2**80), message_id="m" * 600, since=CANARY),
        *(Usage(input_tokens=2**63 - 1, cost=Decimal("1e999")), unchecked(Usage, cost=Telling(), details={1: CANARY})),
        *(write_mark("t", 0, 0, 0), write_mark("t", 7, 2**62, 2**62), "A" * 32),
        [unchecked(Output, branch=2**80, seq=-(2**80), call_idx=2**80, nonce="n", mime_type="\0", text=CANARY)],
        [unchecked(Output, branch=CANARY, seq=Telling(), nonce=5, text={CANARY})],
        [ThreadAgent(name="n" * 600, definition={"a": CANARY})],
        [ThreadAgent(name="n", definition={})] * 2,
        [unchecked(ThreadAgent, name=5, definition=CANARY, settings={CANARY})],
    ]


def messages() -> list[ChatMessage]:
    """Copies that went past validation, and ids that do not fit."""
    return [
        unchecked(ChatMessage, role="user", content=Telling()),
        unchecked(ChatMessage, role=5, content=CANARY),
        unchecked(ChatMessage, content={CANARY}),
        unchecked(ChatMessage, role="assistant", tool_calls=[{"id": CANARY}]),
        unchecked(ChatMessage, role="assistant", tool_calls=CANARY, reasoning=5),
        user("x").model_copy(update={"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": "{}"}]}),
        user(CANARY).model_copy(update={"created_at": CANARY, "custom_data": Telling()}),
        user("x").model_copy(update={"custom_data": nested(5_000)}),
        user("x").model_copy(update={"message_id": 5, "run_id": b"r", "state": CANARY}),
        ChatMessage(role="assistant", tool_calls=[ToolCall(id="\ud800", name="f", arguments="{}")] * 2),
        user("x", message_id="m" * 600),
    ]


def unchecked(model: Any, **fields: Any) -> Any:
    return model.model_construct(**fields)


@dataclass(frozen=True)
class Call:
    """A public call by its name, such as `messages.append`, and the arguments that it has."""

    name: str
    function: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]

    @property
    def asked(self) -> list[str]:
        """The arguments that cannot be left out."""
        return [one.name for one in self.parameters.values() if one.default is one.empty]


def calls_of(owner: Repositories) -> Iterator[Call]:
    """The public calls of a ledger or a transaction and of all its repositories."""
    nouns = {f"{name}.": getattr(owner, name) for name in REPOSITORIES}
    for place, target in {"": owner, **nouns}.items():
        yield from public_calls(place, target)


def public_calls(place: str, target: object) -> Iterator[Call]:
    """Those of one object, or of a class."""
    kind = target if isinstance(target, type) else type(target)
    for name, _ in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_"):
            function = getattr(target, name)
            yield Call(place + name, function, inspect.signature(function).parameters)


def arguments_of(call: Call, usual: Mapping[str, Any], chance: random.Random, mixed: int) -> Iterator[dict[str, Any]]:
    """For each argument each value, with the others as usual; then so many mixtures of all. An argument that every
    other call has as well gets some of the values, by chance: all of them together get all.
    """
    asked = {name: usual.get(name) for name in call.asked}
    for name, parameter in call.parameters.items():
        every = values()
        for value in chance.sample(every, 20) if parameter.annotation in PLAIN else every:
            yield {**asked, name: value} if not _raises(name, value) else asked
    some = values()
    for _ in range(mixed if call.parameters else 0):
        names = [name for name in call.parameters if name in asked or chance.random() < 0.4]
        mixture = {
            name: usual[name] if name in usual and chance.random() < 0.6 else chance.choice(some) for name in names
        }
        yield {name: value for name, value in mixture.items() if not _raises(name, value)}


def _raises(name: str, value: object) -> bool:
    """Whether the value is a function that the call calls with arguments it does not take: what it raises is the
    caller's own error, and comes out.
    """
    return name == "progress" and (value is int or value is len)


A_MOMENT = 0.1
"""Seconds in which a call has read what it was asked to wait for."""


async def make(call: Call, arguments: Mapping[str, Any]) -> ChatLedgerError | None:
    """Make the call and use what it returns. Any error but one of ours comes out."""
    try:
        done = call.function(**arguments)
        if inspect.isawaitable(done):
            done = await done
        if isinstance(done, Draft):
            async with done:
                await done.feed("x")
        elif call.name == "messages.follow":
            async with aclosing(done):
                with suppress(TimeoutError):  # of a thread that is there, it would wait for ever
                    async with asyncio.timeout(A_MOMENT):
                        await anext(done)
        elif hasattr(done, "__aiter__"):
            async for _ in done:
                pass
        elif hasattr(done, "__aenter__") and not isinstance(done, Repositories):
            async with done:
                pass
    except ChatLedgerError as error:
        return error
    return None


def quoted(error: BaseException | None) -> bool:
    """Whether an error, or one that a traceback shows with it, says what stands in a value."""
    while error is not None:
        if CANARY in str(error):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
