"""Which items are one message: what the assistant thinks, says and calls in one breath, and every other item alone.

    reasoning, message, function_call, function_call | function_call_output | function_call_output | message

Neighbours of the assistant's are one message, until it has said something without calling: then what it thinks or says
next is another. From its first call on, everything belongs to the message that waits for the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from chatledger.formats.openai_responses.items import CALL, MESSAGE


class Spoken(Protocol):
    """Who speaks in an item, and of which kind it is."""

    @property
    def role(self) -> str: ...

    @property
    def kind(self) -> str: ...


class Mark(NamedTuple):
    """An item of which no more is needed than where it belongs."""

    role: str
    kind: str


S = TypeVar("S", bound=Spoken)


def grouped(items: Iterable[S]) -> Iterator[list[S]]:
    """The items of each message, in their order."""
    group: list[S] = []
    said = called = False
    for item in items:
        if group and not (_are_the_assistants(group[-1], item) and (called or not said or item.kind == CALL)):
            yield group
            group, said, called = [], False, False
        group.append(item)
        said, called = said or item.kind == MESSAGE, called or item.kind == CALL
    if group:
        yield group


def _are_the_assistants(left: Spoken, right: Spoken) -> bool:
    return left.role == right.role == "assistant"
