"""The words of a message that is being written: how much of them a reader has, and the pieces that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from chatledger.models import ChatMessage, Part, Piece, TextPart, ThinkPart, ToolCall
from chatledger.models.json import dumps

FIELDS = ("content", "reasoning", "tool_calls")
"""The fields of a message that hold its words."""
FIELD, SIGNED, BARE, CHARACTERS = 3, 4, 8, 4
"""The bits of a length: which field, whether there is a signature, whether the field is a text and no list; and where
the number of characters begins.
"""
_MOST = 200  # a cursor has them all, and must fit the header in which a browser sends it


@dataclass(frozen=True, slots=True)
class Words:
    """What a reader has of a message: the length at each place, in the order of the fields, none if there are too many
    places, and a checksum of the words, which is never 0.
    """

    lengths: tuple[int, ...]
    checksum: int


@dataclass(frozen=True, slots=True)
class _Place:
    """One part of the content or of the reasoning, or one call. `text` grows, and a signature ends it; `rest` is what
    may not change.
    """

    field: int
    whole: Part | ToolCall | str
    text: str
    signature: str
    rest: str

    @property
    def length(self) -> int:
        signed, bare = SIGNED if self.signature else 0, BARE if isinstance(self.whole, str) else 0
        return len(self.text) << CHARACTERS | bare | signed | self.field


def words_of(message: ChatMessage) -> Words:
    places = list(_places(message))
    lengths = tuple(place.length for place in places)
    return Words(lengths if len(lengths) <= _MOST else (), _checksum(places, lengths))


def pieces_after(message: ChatMessage, known: Words) -> list[Piece] | None:
    """What follows the words that a reader has; None if the message does not begin with these."""
    of_field: list[list[_Place]] = [[], [], []]
    for place in _places(message):
        of_field[place.field].append(place)
    had = [[length for length in known.lengths if length & FIELD == field] for field in range(len(FIELDS))]
    begun = [place for places, lengths in zip(of_field, had, strict=True) for place in places[: len(lengths)]]
    if len(begun) != len(known.lengths) or _checksum(begun, known.lengths) != known.checksum:
        return None
    pieces: list[Piece] = []
    for name, places, lengths in zip(FIELDS, of_field, had, strict=True):
        alike = ~BARE if len(places) > 1 else ~0  # a text becomes the first part when a second one begins
        for index, place in enumerate(places):
            if index >= len(lengths):
                pieces.append(_begun_at(name, index, place))
            elif (place.length ^ lengths[index]) & alike:
                pieces.append(_grown_at(name, index, place, lengths[index]))
    return pieces


def without_words(message: ChatMessage) -> ChatMessage:
    """What pieces leave out. A field that is empty stays as it is, a list or None."""
    return message.model_copy(update={name: None for name in FIELDS if getattr(message, name)})


def _begun_at(name: str, index: int, place: _Place) -> Piece:
    if isinstance(place.whole, str):
        return Piece.model_construct(at=name, text=place.text)
    whole: dict[str, Any] = {"call" if isinstance(place.whole, ToolCall) else "part": place.whole}
    return Piece.model_construct(at=f"{name}.{index}", **whole)


def _grown_at(name: str, index: int, place: _Place, length: int) -> Piece:
    at = name if isinstance(place.whole, str) else f"{name}.{index}"
    signature = None if length & SIGNED else place.signature or None
    return Piece.model_construct(at=at, text=place.text[length >> CHARACTERS :], signature=signature)


def _checksum(places: Sequence[_Place], lengths: Sequence[int]) -> int:
    """Of the words up to these lengths. It is 0 if a text is shorter, or has lost its signature."""
    begun = []
    for place, length in zip(places, lengths, strict=True):
        characters, signed = length >> CHARACTERS, length & SIGNED
        if len(place.text) < characters or (signed and not place.signature):
            return 0
        begun.append((place.field, place.rest, place.text[:characters], place.signature if signed else ""))
    return crc32(repr(begun).encode("utf-8", "surrogatepass")) or 1


def _places(message: ChatMessage) -> Iterator[_Place]:
    for field, value in enumerate((message.content, message.reasoning)):
        if isinstance(value, str):
            yield _Place(field, value, value, "", "")
            continue
        for part in value or ():
            if isinstance(part, TextPart | ThinkPart):
                usual = isinstance(part, TextPart) is (field == 0) and part.extras is None
                rest = "" if usual else f"{part.kind} {dumps(part.extras)}"
                yield _Place(field, part, part.text, getattr(part, "signature", None) or "", rest)
            else:
                yield _Place(field, part, "", "", dumps(part.model_dump()))
    for call in message.tool_calls or ():
        text = call.arguments if isinstance(call.arguments, str) else ""
        whole = isinstance(call.arguments, dict)
        yield _Place(2, call, text, "", dumps(call.model_dump(exclude=None if whole else {"arguments"})))
