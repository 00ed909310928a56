"""The codec of `format="openai-responses"`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chatledger.formats.codec import Decoded, Encoded
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.openai_responses.detect import is_openai_responses
from chatledger.formats.openai_responses.foreign import fit
from chatledger.formats.openai_responses.items import CALL, MESSAGE, OPAQUE, OUTPUT, ROLES, Source, read_item
from chatledger.formats.openai_responses.read import HasRoleAndKind, RoleAndKind, grouped, read_message, read_payload
from chatledger.formats.openai_responses.write import ITEMS, NAME, PAYLOAD, shape_payload, write_message
from chatledger.formats.wire.pairing import Pairing
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, MediaPart, Part, RulesLevel
from chatledger.models.json import same_json


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

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """A list of items, or the shape of the source. `carry` has no effect: no item has a free field."""
        return measured(self, messages, write_payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The input: messages of the format as they came in, others fitted to the format."""
    items: list[Source] = []
    owners: list[int] = []
    kept: list[int] = []
    as_read = True
    for index, (message, (own, fitted)) in enumerate(zip(messages, _each_written(messages), strict=True)):
        written = fitted if own is None else own
        if own is not None or _needs_no_items(message):
            kept.append(index)
        as_read = as_read and kept[-1:] == [index] and _is_as_read(message, written)
        items += written
        owners += [index] * len(written)
    payload = shape_payload(messages[0], items) if messages else items
    if as_read:
        grouping: Iterable[HasRoleAndKind] = (item for message in messages for item in _roles_and_kinds(message))
    else:
        grouping = (read_item(item, "", lenient=True) for item in items)
    return Written(payload, _origins(grouping, owners), kept, as_read)


def write_items(messages: Sequence[ChatMessage]) -> list[Source]:
    """The items alone, always as a list, for a reader that needs no losses: a fifth of the work."""
    return [item for own, fitted in _each_written(messages) for item in (fitted if own is None else own)]


def _each_written(messages: Sequence[ChatMessage]) -> Iterator[tuple[list[Source] | None, list[Source]]]:
    """For each message the items that it was read from, or None and its fitted items."""
    pairing = Pairing()
    for position, message in enumerate(messages, 1):
        answered = pairing.follow(message, position)
        own = write_message(message)
        yield own, fit(message, position, answered) if own is None else []


def _origins(items: Iterable[HasRoleAndKind], owners: list[int]) -> list[tuple[int, ...]]:
    """The messages of each group of items: reading may join the items of several assistant messages."""
    owner = iter(owners)
    return [tuple(sorted({next(owner) for _ in group})) for group in grouped(items)]


def _roles_and_kinds(message: ChatMessage) -> Iterator[RoleAndKind]:
    """The items of a message that is as it was read, without reading them again."""
    entries = nested(message.residual, ITEMS)
    if entries is None:
        if message.content is not None:
            yield RoleAndKind(message.role, OUTPUT if message.role == "tool" else MESSAGE)
        entries = [{"kind": CALL}] * len(message.tool_calls or ())
    calls = iter(message.tool_calls or ())
    for entry in entries:
        kind = entry["kind"]
        if kind == CALL and not next(calls).name:
            kind = OPAQUE  # like lenient rules read it
        yield RoleAndKind(message.role, kind)


def _needs_no_items(message: ChatMessage) -> bool:
    """Whether it is a message of the format whose residual, if any, describes its payload and not its items."""
    if message.format != NAME:
        return False
    return message.residual is None or (isinstance(message.residual, dict) and message.residual.keys() == {PAYLOAD})


def _is_as_read(message: ChatMessage, items: list[Source]) -> bool:
    """Whether the message has no value of a program that reading would not return.

    Such a message is written as it came in, so its losses need not be measured. Reading the items again is slow, so it
    is the last resort, for messages that a program probably made.
    """
    if message.reasoning is not None or message.name is not None:
        return False
    if any(call.extras for call in message.tool_calls or ()):
        return False
    parts = message.content if isinstance(message.content, list) else []
    if ITEMS in (message.residual or ()) and not any(_may_hold_more(part) for part in parts):
        return True
    if _is_plain(message):
        return True
    groups = list(grouped(read_item(item, "", lenient=True) for item in items))
    return len(groups) == 1 and _has_same_content(read_message(groups[0]), message)


def _is_plain(message: ChatMessage) -> bool:
    """Whether the message is just a text with a known role, a result that names its call, or a provider's calls, with
    or without a text before them.
    """
    content, calls = message.content, message.tool_calls
    if calls:
        says_nothing_else = content is None or (isinstance(content, str) and content != "")
        given = all(call.id is not None and call.name and isinstance(call.arguments, str) for call in calls)
        return message.role == "assistant" and says_nothing_else and given
    if not isinstance(content, str) or calls is not None:
        return False
    return message.role in ROLES if message.tool_call_id is None else message.role == "tool"


def _may_hold_more(part: Part) -> bool:
    return isinstance(part, MediaPart) or getattr(part, "extras", None) is not None


def _has_same_content(left: ChatMessage, right: ChatMessage) -> bool:
    fields = {"role", "content", "tool_calls", "tool_call_id"}
    return same_json(left.model_dump(include=fields), right.model_dump(include=fields))


CODEC = OpenAIResponses()
