"""Assembles the messages of a branch, of any format, into items.

Messages of this format become their original items. In other formats, a user's message becomes a message, the
assistant's text becomes an output of this message, a call a function call of it, and a result an output of its call.
Every branch has items; `encode` reports what they cannot express.

Each item is a draft until the last message was read, since its outputs and calls may be far behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatledger.formats.message_file.models import TEXT
from chatledger.formats.message_file.write import (
    CALL,
    NAME,
    call_fields,
    from_part,
    note,
    text_fields,
    write_item,
    write_outputs,
)
from chatledger.models import BACK, ChatMessage, TextPart, ToolCall
from chatledger.models.json import MAX_DEPTH, JsonObject, json_problem, read_text
from chatledger.rules.judge import OpenCalls
from chatledger.rules.tip import OpenCall


@dataclass(slots=True, eq=False)
class GrowingItem:
    """An item that may still grow: its message, its fields, and its outputs and calls so far.

    `position` is the seq of the message, or its number in a payload that is not stored yet. `call` is the index among
    the calls of the message, None for the message itself. `source` is the index of the message in the input, None for
    a generated item; `answering` has the indexes of the messages with its outputs.
    """

    message: ChatMessage
    position: int
    source: int | None
    fields: JsonObject
    call: int | None = None
    owner: GrowingItem | None = None
    outputs: list[JsonObject] = field(default_factory=list)
    nonces: set[str] = field(default_factory=set)
    answering: list[int] = field(default_factory=list)
    calls: list[GrowingItem] = field(default_factory=list)

    def add_outputs(self, outputs: Sequence[JsonObject], source: int) -> None:
        """Add the outputs of a message. An output whose nonce is taken gets another nonce."""
        for output in outputs:
            is_taken = output["nonce"] in self.nonces
            self.outputs.append({**output, "nonce": f"{output['nonce']}_{len(self.nonces)}"} if is_taken else output)
            self.nonces.add(self.outputs[-1]["nonce"])
        if outputs:
            self.answering.append(source)

    def origins(self) -> Iterator[tuple[int, ...]]:
        """For each message that reading the item returns, the indexes of its original messages."""
        yield () if self.source is None else (self.source,)
        for call in self.calls:
            yield from call.origins()
        if self.outputs:
            yield tuple(dict.fromkeys(self.answering))

    def to_dict(self) -> JsonObject:
        whole = {**self.fields, "outputs": list(self.outputs)}
        if "function_calls" in whole:
            whole["function_calls"] = [call.to_dict() for call in self.calls]
        return whole


class Drafts:
    """The items so far, in file order and by their positions; and the calls that have no outputs yet."""

    def __init__(self) -> None:
        self.all: list[GrowingItem] = []
        self.open_calls = OpenCalls()
        self.last_message: GrowingItem | None = None
        self._at: dict[tuple[int, int | None], GrowingItem] = {}

    def add(self, draft: GrowingItem) -> GrowingItem:
        self.all.append(draft)
        self._at[draft.position, draft.call] = draft
        if draft.owner is not None:
            draft.owner.calls.append(draft)
        if draft.call is not None:
            self.open_calls.add([_open_call(draft, draft.call)])
        else:
            self.last_message = draft
        return draft

    def at(self, position: int | None, call: int | None) -> GrowingItem | None:
        return None if position is None else self._at.get((position, call))

    def answer(self, draft: GrowingItem, outputs: Sequence[JsonObject], source: int) -> None:
        draft.add_outputs(outputs, source)
        if draft.call is not None:
            self.open_calls.close(_open_call(draft, draft.call))


def _open_call(draft: GrowingItem, idx: int) -> OpenCall:
    call = (draft.message.tool_calls or [])[idx]
    return OpenCall(0, draft.position, idx, call.id, call.name)


RAW = "_raw"
UNNAMED = "?"
"""The function name of a call that has none: every call of a file needs one."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """All items in file order, including calls; and the indexes of the messages of this format."""

    drafts: list[GrowingItem]
    own_indexes: list[int]


def assemble(messages: Sequence[ChatMessage]) -> Assembled:
    drafts, own_indexes = Drafts(), list[int]()
    adopter = Adopter(drafts)
    for index, message in enumerate(messages):
        if _take(drafts, message, message.seq or index + 1, index):
            own_indexes.append(index)
        else:
            adopter.adopt(message, message.seq or index + 1, index)
    return Assembled(drafts.all, own_indexes)


def _take(drafts: Drafts, message: ChatMessage, position: int, index: int) -> bool:
    """Add a message of this format. False for other messages, and for outputs whose item is missing."""
    if message.format != NAME:
        return False
    outputs = write_outputs(message)
    back = note(message, BACK)
    owner = position - back if isinstance(back, int) else None
    if outputs is not None:
        draft = drafts.at(owner, note(message, CALL))
        if draft is None:
            return False
        drafts.answer(draft, outputs, index)
        return True
    if message.role == "user":
        drafts.add(GrowingItem(message, position, index, write_item(message)))
        return True
    if message.role == "assistant" and message.tool_calls and len(message.tool_calls) == 1:
        drafts.add(GrowingItem(message, position, index, write_item(message), call=0, owner=drafts.at(owner, None)))
        return True
    return False


class Adopter:
    """Adds messages of other formats. `index` is the index of a message in the input."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts

    def adopt(self, message: ChatMessage, position: int, index: int) -> None:
        if message.role == "user":
            self._adopt_user(message, position, index)
        elif message.role == "assistant":
            self._adopt_assistant(message, position, index)
        elif message.role == "tool":
            self._adopt_result(message, position, index)

    def _adopt_user(self, message: ChatMessage, position: int, index: int) -> None:
        own_text = _outputs_in(message)
        lone = own_text[0] if len(own_text) == 1 else None
        content, mime_type = lone or ("".join(text for text, mime in own_text if mime == TEXT), TEXT)
        draft = self._add_message(message, position, index, content, mime_type)
        media = [] if lone else [(data, mime) for data, mime in own_text if mime != TEXT]
        draft.add_outputs(_outputs(position, media), index)
        _note_run(draft, message)

    def _adopt_assistant(self, message: ChatMessage, position: int, index: int) -> None:
        own_text = _outputs_in(message)
        if not own_text and not message.tool_calls:
            return
        owner = self._message_before(message, position)
        owner.add_outputs(_outputs(position, own_text), index)
        _note_run(owner, message)
        for idx, call in enumerate(message.tool_calls or ()):
            self._drafts.add(GrowingItem(message, position, index, _call(call, owner), call=idx, owner=owner))

    def _adopt_result(self, message: ChatMessage, position: int, index: int) -> None:
        call = self._drafts.open_calls.find(message.tool_call_id, message.name)
        outputs = _outputs(position, _outputs_in(message))
        draft = None if call is None else self._drafts.at(call.seq, call.idx)
        if draft is not None or outputs:
            self._drafts.answer(draft or self._message_before(message, position), outputs, index)

    def _message_before(self, message: ChatMessage, position: int) -> GrowingItem:
        """The last message item before this message; an empty item if there is none."""
        last = self._drafts.last_message
        return self._add_message(message, position, None, "", TEXT) if last is None else last

    def _add_message(
        self, message: ChatMessage, position: int, index: int | None, content: str, mime_type: str
    ) -> GrowingItem:
        return self._drafts.add(GrowingItem(message, position, index, text_fields(None, content, mime_type)))


def _outputs_in(message: ChatMessage) -> list[tuple[str, str]]:
    """The contents with their MIME types. Adjacent texts are joined."""
    if isinstance(message.content, str):
        return [(message.content, TEXT)] if message.content or message.role != "assistant" else []
    outputs: list[tuple[str, str]] = []
    for part in message.content or ():
        output = from_part(part)
        if output is not None and isinstance(part, TextPart) and outputs and outputs[-1][1] == TEXT:
            outputs[-1] = (outputs[-1][0] + part.text, TEXT)
        elif output is not None:
            outputs.append(output)
    return outputs


def _outputs(position: int, outputs: list[tuple[str, str]]) -> list[JsonObject]:
    """Outputs whose nonces are the same each time the messages are read."""
    return [
        {"content": content, "mime_type": mime_type or TEXT, "nonce": f"output_{position}_{index}"}
        for index, (content, mime_type) in enumerate(outputs)
    ]


def _call(call: ToolCall, owner: GrowingItem) -> JsonObject:
    name = call.id or None
    if name in {sibling.fields["name"] for sibling in owner.calls}:
        name = None
    return call_fields(name, call.name or UNNAMED, _arguments(call))


def _arguments(call: ToolCall) -> JsonObject:
    if isinstance(call.arguments, dict):
        return call.arguments
    return {} if call.arguments is None else _parsed(call.arguments)


def _note_run(draft: GrowingItem, message: ChatMessage) -> None:
    entry = {"run_id": message.run_id}
    history: list[Any] = draft.fields["history"] if isinstance(draft.fields["history"], list) else []
    if message.run_id is not None and entry not in history and draft.message.format != NAME:
        draft.fields = {**draft.fields, "history": [*history, entry]}


def _parsed(text: str) -> JsonObject:
    """The object of a JSON text; any other text under the key RAW."""
    try:
        value = read_text(text)
    except (ValueError, RecursionError):
        return {RAW: text}
    if not isinstance(value, dict) or json_problem(value, max_depth=MAX_DEPTH) is not None:
        return {RAW: text}
    return value
