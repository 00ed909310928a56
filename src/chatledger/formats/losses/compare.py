"""Compares one or several messages with the messages read back. Differences are (index of the message, code, path).

Both sides are joined first: the contents of all pieces one after the other, their calls likewise, and each field on
which the pieces agree. So a message in three pieces is compared as one, and so are two messages that became one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from chatledger.formats.losses import codes
from chatledger.formats.losses.compare_parts import Channel, Thoughts, calls_of, channel_of, compare_parts
from chatledger.models import ChatMessage, ThinkPart, ToolCall
from chatledger.models.json import JsonValue, read_text, same_json

Found: TypeAlias = tuple[int, str, str]
Source: TypeAlias = Sequence[tuple[int, ChatMessage]]

_DISAGREE = object()  # the value of a field whose values differ between the pieces


def compare(source: Source, read: Sequence[ChatMessage], kept_residuals: Collection[int]) -> Iterator[Found]:
    """The differences of a group. The residual of a message in `kept_residuals` is not compared."""
    yield from _compare_fields(source, read)
    yield from _compare_contents(source, read)
    yield from _compare_calls(source, read)
    residual = _agreed(read, "residual")
    for index, message in source:
        if message.residual is not None and index not in kept_residuals and not _same(message.residual, residual):
            yield index, codes.RESIDUAL, "residual"


def _compare_fields(source: Source, read: Sequence[ChatMessage]) -> Iterator[Found]:
    for name, code in codes.FIELDS.items():
        back = _agreed(read, name)
        for index, message in source:
            value = getattr(message, name)
            if value is not back and not _same(value, back):
                yield index, code, name


def _agreed(read: Sequence[ChatMessage], name: str) -> Any:
    """The value of a field, if all pieces that have the field agree on it."""
    if len(read) == 1:
        return getattr(read[0], name)
    values = [value for message in read if (value := getattr(message, name)) is not None]
    if not values:
        return None
    return values[0] if all(_same(values[0], value) for value in values) else _DISAGREE


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None or right is _DISAGREE:
        return left is right
    return same_json(left, right)


def _compare_contents(source: Source, read: Sequence[ChatMessage]) -> Iterator[Found]:
    if len(source) == len(read) == 1 and _same_texts(source[0][1], read[0]):
        return
    sources, back = {}, {}
    alone = [(0, message) for message in read]
    for name in ("content", "reasoning"):
        sources[name], back[name] = channel_of(source, name), channel_of(alone, name)
    thoughts = Thoughts(_thoughts(sources) == _thoughts(back), _signatures(back))
    for name in ("content", "reasoning"):
        yield from compare_parts(sources[name], back[name], thoughts)


def _same_texts(message: ChatMessage, back: ChatMessage) -> bool:
    """Whether both sides have equal texts and no parts: a cheap test for the common case."""
    content, reasoning = message.content, message.reasoning
    if isinstance(content, list) or isinstance(reasoning, list):
        return False
    return content == back.content and reasoning == back.reasoning


def _thoughts(channels: dict[str, Channel]) -> str:
    """All reasoning of one side, in the content and in the field `reasoning`."""
    own = "".join(channels["reasoning"].texts)
    return own + "".join(atom.value.text for atom in channels["content"].atoms if atom.value.kind == "think")


def _signatures(channels: dict[str, Channel]) -> set[str]:
    parts = [atom.value for channel in channels.values() for atom in channel.atoms]
    return {part.signature for part in parts if isinstance(part, ThinkPart) and part.signature is not None}


def _compare_calls(source: Source, read: Sequence[ChatMessage]) -> Iterator[Found]:
    sources, back = calls_of(source), [call for message in read for call in message.tool_calls or ()]
    if not sources:
        empty = [index for index, message in source if message.tool_calls == []]
        if back:
            yield source[0][0], codes.MADE_UP, "tool_calls"
        elif all((message.tool_calls is None) for message in read) == bool(empty):
            yield (empty or [source[0][0]])[0], codes.CALLS, "tool_calls"
        return
    pairs = _paired([atom.value for atom in sources], back)
    for atom, pair in zip(sources, pairs, strict=True):
        if pair is None:
            yield atom.index, codes.CALLS, atom.path
        else:
            yield from ((atom.index, code, f"{atom.path}.{name}") for code, name in _call_losses(atom.value, pair))
    if len(back) > sum(pair is not None for pair in pairs):
        yield source[0][0], codes.MADE_UP, "tool_calls"


def _paired(calls: Sequence[ToolCall], back: Sequence[ToolCall]) -> list[ToolCall | None]:
    """For each call the call that came back: by position, or if some are missing, the next call of the same name."""
    if len(calls) == len(back):
        return list(back)
    pairs: list[ToolCall | None] = []
    rest = iter(back)
    waiting = next(rest, None)
    for call in calls:
        pairs.append(waiting if waiting is not None and waiting.name == call.name else None)
        if pairs[-1] is not None:
            waiting = next(rest, None)
    return pairs


def _call_losses(call: ToolCall, back: ToolCall) -> Iterator[tuple[str, str]]:
    if call.id != back.id:
        yield codes.CALL_ID, "id"
    if call.name != back.name:
        yield codes.NAME, "name"
    if not _same(call.arguments, back.arguments):
        yield _arguments_code(call.arguments, back.arguments), "arguments"
    if not _same(call.extras, back.extras):
        yield codes.EXTRAS, "extras"


def _arguments_code(before: JsonValue, back: JsonValue) -> str:
    return codes.ARGUMENTS_FORM if _same(_meant(before), _meant(back)) else codes.ARGUMENTS


def _meant(arguments: JsonValue) -> JsonValue:
    """The JSON value of arguments. None, an empty object and a blank text all mean no arguments."""
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            return read_text(arguments)
        except (ValueError, RecursionError):
            return arguments
    return {} if arguments is None else arguments
