"""Compares parts with the parts that came back: the content of messages, or their reasoning.

Parts are paired in order by identity: a text by its text, a medium by its URL or its data. A part without a pair is
lost, or is at another place; the fields of a pair are compared. If a single text came back, a text part counts as found
if the text contains it, in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from chatledger.formats.losses import codes
from chatledger.formats.wire.parts import split_data_uri
from chatledger.models import ChatMessage, MediaPart, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import dumps, same_json

V = TypeVar("V")
Form: TypeAlias = Literal["null", "text", "parts"]

_MEDIA_FIELDS = ("url", "data", "mime_type", "name", "id")


@dataclass(frozen=True, slots=True)
class Atom(Generic[V]):
    """A part or a call, the index of its message, and its path there."""

    value: V
    index: int
    path: str


@dataclass(frozen=True, slots=True)
class Channel:
    """The content or the reasoning of some messages in a row; `index` is the first that has any."""

    name: str
    form: Form
    atoms: list[Atom[Any]]
    index: int

    @property
    def texts(self) -> list[str]:
        return [atom.value.text for atom in self.atoms if isinstance(atom.value, (TextPart, ThinkPart))]


@dataclass(frozen=True, slots=True)
class Thoughts:
    """All reasoning that came back, at any place: whether its text is the `same`, and its signatures."""

    same: bool
    signatures: set[str]


def channel_of(messages: Sequence[tuple[int, ChatMessage]], name: str) -> Channel:
    """The content or reasoning of some messages together. Messages without any do not count, unless all are."""
    speaking = [(index, message) for index, message in messages if getattr(message, name)] or list(messages[:1])
    atoms = [atom for index, message in speaking for atom in _atoms(getattr(message, name), index, name)]
    form = _form(getattr(speaking[0][1], name)) if len(speaking) == 1 else "parts"
    return Channel(name, form, atoms, speaking[0][0])


def calls_of(messages: Sequence[tuple[int, ChatMessage]]) -> list[Atom[ToolCall]]:
    return [
        Atom(call, index, f"tool_calls[{place}]")
        for index, message in messages
        for place, call in enumerate(message.tool_calls or ())
    ]


def _atoms(content: str | list[Part] | None, index: int, name: str) -> list[Atom[Part]]:
    if isinstance(content, str):
        return [Atom(TextPart(text=content), index, name)] if content else []
    return [Atom(part, index, f"{name}[{place}]") for place, part in enumerate(content or ())]


def _form(content: str | list[Part] | None) -> Form:
    if content is None:
        return "null"
    return "text" if isinstance(content, str) else "parts"


def compare_parts(source: Channel, back: Channel, thoughts: Thoughts) -> Iterator[tuple[int, str, str]]:
    """The differences, as (index of the message, code, path). Reasoning that is missing altogether is one difference,
    beside its signatures."""
    thought = codes.REASONING_FORM if thoughts.same else codes.REASONING
    if source.name == "reasoning" and source.atoms and not back.atoms:
        yield from dict.fromkeys((atom.index, thought, source.name) for atom in source.atoms)
        yield from _lost_signatures(source.atoms, thoughts)
        return
    pairs, rest = _pairs_in_text(source, back) if back.form == "text" else _pairs(source.atoms, back.atoms)
    losses = list(_part_losses(source, pairs, rest, thought))
    lost = [atom for atom, pair in zip(source.atoms, pairs, strict=True) if pair is None]
    losses += _lost_signatures(lost, thoughts)
    yield from losses
    if source.form != back.form:
        if all(path != source.name for _, _, path in losses):
            yield source.index, codes.CONTENT_FORM if source.name == "content" else thought, source.name
    elif rest and not lost:
        only_thoughts = source.name == "reasoning" or all(isinstance(part, ThinkPart) for part in rest)
        yield source.index, thought if only_thoughts else codes.MADE_UP, source.name


def _part_losses(
    source: Channel, pairs: Sequence[Part | None], rest: Sequence[Part], thought: str
) -> Iterator[tuple[int, str, str]]:
    elsewhere = {anchor for part in rest for anchor in _anchors(part)}
    for atom, pair in zip(source.atoms, pairs, strict=True):
        if pair is not None:
            yield from ((atom.index, code, atom.path + name) for code, name in _differences(atom.value, pair))
        elif elsewhere.isdisjoint(_anchors(atom.value)):
            yield atom.index, _lost_code(atom.value, source.name, thought), atom.path
        else:
            yield atom.index, codes.ORDER, atom.path


def _lost_signatures(lost: Sequence[Atom[Part]], thoughts: Thoughts) -> Iterator[tuple[int, str, str]]:
    for atom in lost:
        signature = atom.value.signature if isinstance(atom.value, ThinkPart) else None
        if signature is not None and signature not in thoughts.signatures:
            yield atom.index, codes.SIGNATURE, f"{atom.path}.signature"


def _lost_code(part: Part, channel: str, thought: str) -> str:
    if isinstance(part, MediaPart):
        return codes.MEDIA
    if isinstance(part, OpaquePart):
        return codes.OPAQUE
    return codes.TEXT if isinstance(part, TextPart) and channel == "content" else thought


def _pairs(atoms: Sequence[Atom[Part]], back: Sequence[Atom[Part]]) -> tuple[list[Part | None], list[Part]]:
    """For each part the next part of the same identity; and the parts without a pair."""
    places: dict[_Anchor, list[int]] = {}
    for place, atom in enumerate(back):
        for anchor in _anchors(atom.value):
            places.setdefault(anchor, []).append(place)
    start, taken, pairs = 0, set[int](), list[Part | None]()
    for atom in atoms:
        nexts = [
            indexes[i]
            for a in _anchors(atom.value)
            if (i := bisect_left(indexes := places.get(a, []), start)) < len(indexes)
        ]
        if nexts:
            start = min(nexts) + 1
            taken.add(min(nexts))
        pairs.append(back[min(nexts)].value if nexts else None)
    return pairs, [atom.value for place, atom in enumerate(back) if place not in taken]


def _pairs_in_text(source: Channel, back: Channel) -> tuple[list[Part | None], list[Part]]:
    """Like `_pairs`, but for a single text that came back: finds the texts of the parts in it, in order."""
    text, start = "".join(back.texts), 0
    kinds = TextPart if source.name == "content" else (TextPart, ThinkPart)
    pairs: list[Part | None] = []
    for atom in source.atoms:
        part = atom.value
        if source.form == "text":
            place = 0 if part.text == text else -1
        else:
            place = text.find(part.text, start) if isinstance(part, kinds) else -1
        pairs.append(type(part)(text=part.text) if place >= 0 else None)
        start = place + len(part.text) if place >= 0 else start
    return pairs, [] if source.atoms else [atom.value for atom in back.atoms]


_Anchor: TypeAlias = tuple[str | None, ...]


def _anchors(part: Part) -> list[_Anchor]:
    """The identities of a part. A medium may have more than one."""
    if isinstance(part, (TextPart, ThinkPart)):
        return [(part.kind, part.text)]
    if isinstance(part, OpaquePart):
        return [(part.kind, dumps(part.value))]
    _, data, _ = _resolved(part)
    known: list[_Anchor] = [(part.kind, name, value) for name, value in (("url", part.url), ("data", data)) if value]
    return known or [(part.kind, part.id, part.name)]


def _resolved(part: MediaPart) -> tuple[str | None, str | None, str | None]:
    """(url, data, type) with a data URI taken apart."""
    split = split_data_uri(part.url) if part.url is not None and part.data is None else None
    return (None, split[1], split[0] or None) if split is not None else (part.url, part.data, part.mime_type)


def _differences(part: Part, back: Part) -> Iterator[tuple[str, str]]:
    """The fields in which two parts of one kind differ. Another form of the same medium is one difference."""
    if isinstance(part, MediaPart) and isinstance(back, MediaPart):
        fields: tuple[str, ...] = _MEDIA_FIELDS
        if _resolved(part) == _resolved(back) and (part.url, part.mime_type) != (back.url, back.mime_type):
            yield codes.MEDIA_FORM, ""
            fields = fields[3:]
        yield from ((codes.MEDIA, f".{name}") for name in fields if getattr(part, name) != getattr(back, name))
    if isinstance(part, ThinkPart) and isinstance(back, ThinkPart) and part.signature != back.signature:
        yield codes.SIGNATURE, ".signature"
    if isinstance(part, OpaquePart) and isinstance(back, OpaquePart):
        if part.type != back.type:
            yield codes.OPAQUE, ".type"
    elif not same_json(getattr(part, "extras", None), getattr(back, "extras", None)):
        yield codes.EXTRAS, ".extras"
