"""Stored messages as messages of the API: each group of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from chatledger.formats.anthropic.calls import write_call
from chatledger.formats.anthropic.contents import PARTS, write_parts
from chatledger.formats.anthropic.names import NAME, is_result, own_residual
from chatledger.formats.anthropic.results import reads_as_result, write_result
from chatledger.formats.anthropic.splitting import CALLS, CALLS_AT, NULL, REST_AT
from chatledger.formats.wire.pairing import Pairing, made_id
from chatledger.formats.wire.residual import KEYS, nested, put_back
from chatledger.models import ChatMessage, TextPart, continues
from chatledger.models.json import JsonValue

T = TypeVar("T")
Wire = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Linked:
    """A message, its place among those to write, and the ids of its calls, or of the call that it answers."""

    place: int
    message: ChatMessage
    call_ids: Sequence[str] = ()
    call_id: str = ""


def link(messages: Sequence[tuple[int, ChatMessage]]) -> list[Linked]:
    """The messages in their order, each with its place. An id that there is stays as it is."""
    pairing = Pairing()
    linked: list[Linked] = []
    for place, message in messages:
        call_ids, call_id = pairing.ask(message, place + 1), ""
        if is_result(message):
            answered = pairing.answer(message)
            call_id = made_id(message, place + 1) if answered is None else answered.id
        linked.append(Linked(place, message, call_ids, call_id))
    return linked


def joins(before: ChatMessage, message: ChatMessage) -> bool:
    """Whether it is written into the same message as the one before it.

    What came in this format says so itself. Of other origin results are one message, as the API wants them, and what
    the user says right after them belongs to it as well, so that user and assistant alternate.
    """
    if not is_result(before):
        return False
    if message.format == NAME:
        return continues(message) and (is_result(message) or message.role == "user")
    return is_result(message) or (message.role == "user" and bool(message.content))


def write_group(group: Sequence[Linked]) -> Wire:
    """One message of the API."""
    first = group[0].message
    if is_result(first):
        results = [write_result(linked.message, linked.call_id) for linked in group if is_result(linked.message)]
        rest = [linked.message for linked in group if not is_result(linked.message)]
        return _enveloped(first, "user", _with_rest(results, rest))
    return _enveloped(first, first.role, _content(group[0]))


def write_system(message: ChatMessage) -> JsonValue:
    """The value of `system` that one message says."""
    if nested(own_residual(message), NULL) == "null" and message.content is None:
        return None
    return "" if message.content is None else _plain_content(message)


def content_blocks(message: ChatMessage) -> list[Wire]:
    """The content as a list, whatever it is: a text is one block."""
    residual = own_residual(message)
    parts = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content or []
    blocks = write_parts(parts, residual)
    return [block for block in blocks if message.role != "user" or not reads_as_result(block)]


def _with_rest(results: list[Wire], rest: list[ChatMessage]) -> list[Wire]:
    for message in rest:
        return interleave(results, content_blocks(message), nested(own_residual(message), REST_AT))
    return results


def _content(linked: Linked) -> JsonValue:
    message = linked.message
    if message.role != "assistant" or not message.tool_calls:
        return _plain_content(message)
    residual = own_residual(message)
    calls = [
        write_call(call, call_id, nested(residual, CALLS, str(idx)))
        for idx, (call, call_id) in enumerate(zip(message.tool_calls, linked.call_ids, strict=True))
    ]
    return interleave(content_blocks(message), calls, nested(residual, CALLS_AT))


def _plain_content(message: ChatMessage) -> JsonValue:
    """The content of a message without calls: as it is, but a text with a residual stood in a list."""
    if isinstance(message.content, str) and nested(own_residual(message), PARTS) is None:
        return message.content
    return None if message.content is None else content_blocks(message)


def _enveloped(first: ChatMessage, role: str, content: JsonValue) -> Wire:
    residual = own_residual(first)
    return put_back({"role": role, **_said(content, residual), **_reply(first, residual)}, residual)


def _said(content: JsonValue, residual: JsonValue) -> Wire:
    """The content, and one that is none as it was spelled; the API wants one, so what it never saw is an empty text."""
    if content is not None:
        return {"content": content}
    spelled = nested(residual, NULL)
    if spelled == "absent":
        return {}
    return {"content": None if spelled == "null" else ""}


def _reply(message: ChatMessage, residual: JsonValue) -> Wire:
    """What a reply said of itself beside its content."""
    keys = nested(residual, KEYS)
    if message.role != "assistant" or not isinstance(keys, list):
        return {}
    metadata = message.response_metadata or {}
    return {key: value for key, value in metadata.items() if key in keys and key not in ("role", "content")}


def interleave(first: list[T], later: list[T], places: JsonValue) -> list[T]:
    """The things of `later` at their places among those of `first`; at the end where the places do not fit."""
    if not _are_places(places, len(later), len(first) + len(later)):
        return first + later
    taken, others, rest = set(places), iter(first), iter(later)
    return [next(rest) if place in taken else next(others) for place in range(len(first) + len(later))]


def _are_places(places: JsonValue, count: int, total: int) -> bool:
    if not isinstance(places, list) or len(places) != count:
        return False
    if not all(isinstance(place, int) and not isinstance(place, bool) for place in places):
        return False
    return all(before < after for before, after in zip(chain([-1], places), chain(places, [total]), strict=True))
