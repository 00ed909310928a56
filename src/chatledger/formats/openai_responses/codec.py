"""The codec of `format="openai-responses"`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatledger.formats.codec import Decoded, Written
from chatledger.formats.openai_responses.detect import is_openai_responses
from chatledger.formats.openai_responses.foreign import fit
from chatledger.formats.openai_responses.items import Source, read_item
from chatledger.formats.openai_responses.read import grouped, read_payload
from chatledger.formats.openai_responses.write import NAME, PAYLOAD, shape_payload, write_message
from chatledger.formats.wire.pairing import Pairing
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The input or the output of a response, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_responses(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for consecutive items of the assistant up to its calls, and one for each other item.

        Lenient rules keep an unknown role as its text, and a malformed item or part whole.
        """
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of items, or the shape of the source. `carry` has no effect: no item has a free field."""
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The input: messages of the format as they came in, others fitted to the format."""
    items: list[Source] = []
    owners: list[int] = []
    kept: list[int] = []
    for index, (message, (own, fitted)) in enumerate(zip(messages, _each_written(messages), strict=True)):
        written = fitted if own is None else own
        if own is not None or _needs_no_items(message):
            kept.append(index)
        items += written
        owners += [index] * len(written)
    payload = shape_payload(messages[0], items) if messages else items
    return Written(payload, lambda: _origins(items, owners), kept)


def _each_written(messages: Sequence[ChatMessage]) -> Iterator[tuple[list[Source] | None, list[Source]]]:
    """For each message the items that it was read from, or None and its fitted items."""
    pairing = Pairing()
    for position, message in enumerate(messages, 1):
        answered = pairing.follow(message, position)
        own = write_message(message)
        yield own, fit(message, position, answered) if own is None else []


def _origins(items: Sequence[Source], owners: Sequence[int]) -> list[tuple[int, ...]]:
    """The messages of each group of items: reading may join the items of several assistant messages."""
    owner = iter(owners)
    groups = grouped(read_item(item, "", lenient=True) for item in items)
    return [tuple(sorted({next(owner) for _ in group})) for group in groups]


def _needs_no_items(message: ChatMessage) -> bool:
    """Whether it is a message of the format whose residual, if any, describes its payload and not its items."""
    if message.format != NAME:
        return False
    return message.residual is None or (isinstance(message.residual, dict) and message.residual.keys() == {PAYLOAD})


CODEC = OpenAIResponses()
