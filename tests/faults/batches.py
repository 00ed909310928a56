"""Batches by name: whoever knows the name of a batch knows what must be stored of it, to the last character.

Each is a whole turn, so that it may follow any other, and its name stands in every text, call and part of it: rows that
were mixed up, cut or altered cannot be equal to it.
"""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

from chatledger import ChatMessage, TextPart, ThinkPart, ToolCall
from tests.conversations import assistant, call, result, user


@lru_cache(maxsize=50_000)
def batch(name: str) -> tuple[ChatMessage, ...]:
    """The messages of this name, with ids; one of five shapes."""
    shape = _SHAPES[crc32(name.encode()) % len(_SHAPES)]
    return tuple(
        message.model_copy(update={"message_id": f"{name}/{number}"}) for number, message in enumerate(shape(name))
    )


def name_of(message: ChatMessage) -> str:
    """The name of the batch that a stored message is of; empty for one that has no id of ours."""
    return (message.message_id or "").rpartition("/")[0]


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
