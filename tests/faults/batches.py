"""Batches by name: the name of a batch determines its stored content, to the last character.

Each is a whole turn, so that it may follow any other, and its name stands in every text, call and part of it: rows that
were mixed up, cut or altered cannot be equal to it. Every third batch comes with values of `kv`.

In a changing thread, clients also pop and revise messages. There a batch has a key in place of ids: an id of the
caller's is free again once its message was popped, so only a key lets the batch be sent again. And it has no calls,
because the next batch could not follow a call whose result was popped.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

from chatledger import ChatMessage, TextPart, ThinkPart, ToolCall
from chatledger.ids import derived_id
from tests.conversations import assistant, call, result, user

CHANGING = "changing "
"""How the id of a changing thread begins."""
LAST = "last"
"""The key of the value that names the last batch with values."""


def thread_ids(seed: int, count: int) -> list[str]:
    """Every other one is a changing thread."""
    return [f"{CHANGING * (number % 2)}{seed}-{number}" for number in range(count)]


def is_changing(thread: str) -> bool:
    return thread.startswith(CHANGING)


@lru_cache(maxsize=50_000)
def batch(name: str, *, changing: bool = False) -> tuple[ChatMessage, ...]:
    """The messages of this name; one of five shapes. With ids, unless they are for a changing thread."""
    shapes = _WITHOUT_CALLS if changing else _SHAPES
    messages = shapes[crc32(name.encode()) % len(shapes)](name)
    if changing:
        return tuple(messages)
    return tuple(one.model_copy(update={"message_id": f"{name}/{number}"}) for number, one in enumerate(messages))


def ids_of(name: str, thread: str) -> list[str | None]:
    """The ids that the messages of the batch have in the thread."""
    if not is_changing(thread):
        return [message.message_id for message in batch(name)]
    return [derived_id("message", thread, name, str(number)) for number in range(len(batch(name, changing=True)))]


def values(name: str) -> dict[str, str]:
    """The values of the thread that are written together with the batch."""
    return {LAST: name, f"of {name}": name} if crc32(name.encode()) // len(_SHAPES) % 3 == 0 else {}


def revised(message: ChatMessage, name: str) -> ChatMessage:
    """The message as the revision of that name leaves it."""
    return message.model_copy(update={"content": f"revised by {name}"})


def links(messages: tuple[ChatMessage, ...]) -> dict[int, tuple[int, int]]:
    """Which call each result of a batch answers: by place in it, the place of the message and the index of the call."""
    calls: dict[str | None, tuple[int, int]] = {}
    found = {}
    for place, message in enumerate(messages):
        if message.role == "tool":
            found[place] = calls[message.tool_call_id]
        calls |= {one.id: (place, idx) for idx, one in enumerate(message.tool_calls or ())}
    return found


def _question(name: str) -> list[ChatMessage]:
    return [user(f"{name}?"), assistant(f"{name}!")]


def _tools(name: str) -> list[ChatMessage]:
    """Ids of calls that stand in every turn, as some providers give them; results in another order."""
    return [
        user(f"{name}?"),
        assistant(calls=[_call(name, 0), _call(name, 1)]),
        result("call_1", f"{name} second"),
        result("call_0", f"{name} first"),
        assistant(f"{name}!"),
    ]


def _parts(name: str) -> list[ChatMessage]:
    content = [TextPart(text=f"{name} {part}") for part in range(3)]
    return [
        user("", custom_data={"name": name}).model_copy(update={"content": content}),
        assistant().model_copy(
            update={"content": [ThinkPart(text=f"{name}…", signature=name), *content], "reasoning": f"why {name}"}
        ),
    ]


def _odd_text(name: str) -> list[ChatMessage]:
    return [user(f"{name}\0\ud800 é 漢 😀"), assistant(f"'{name}'; --", response_metadata={"x": f"\0{name}"})]


def _long(name: str) -> list[ChatMessage]:
    """Over several pages of a SQLite file and of its WAL."""
    return [user(f"{name}? " * 600), assistant(calls=[_call(name, 0)]), result("call_0", f"{name} " * 900)]


def _call(name: str, number: int) -> ToolCall:
    return call(f"call_{number}", arguments=f'{{"of": "{name}"}}').model_copy(update={"extras": {"name": name}})


_SHAPES = (_question, _tools, _parts, _odd_text, _long)
_WITHOUT_CALLS = (_question, _parts, _odd_text)
