"""Messages of other formats as items: a user's message is a Message, what the assistant says an output of it, a call
a FunctionCall of it, and a result an output of its call. Total: what cannot be said is reported.
"""

from __future__ import annotations

import json
from typing import Any

from chatledger.formats.message_file.draft import Draft, Drafts
from chatledger.formats.message_file.media import from_part
from chatledger.formats.message_file.outputs import TEXT
from chatledger.formats.message_file.writing import NAME, Row
from chatledger.models import ChatMessage, TextPart, ToolCall
from chatledger.models.json import MAX_DEPTH, json_problem
from chatledger.rules.invariants import answer
from chatledger.rules.tip import Tip

RAW = "_raw"
UNNAMED = "?"
"""The name of a call that has none; every call of a file has one."""


class Adopter:
    """`place` is where a message stands in the branch, `index` where among those that are read."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts

    def adopt(self, message: ChatMessage, place: int, index: int) -> None:
        if message.role == "user":
            self._adopt_user(message, place, index)
        elif message.role == "assistant":
            self._adopt_assistant(message, place, index)
        elif message.role == "tool":
            self._adopt_result(message, place, index)

    def _adopt_user(self, message: ChatMessage, place: int, index: int) -> None:
        said = _said(message)
        lone = said[0] if len(said) == 1 else None
        content, mime_type = lone or ("".join(text for text, mime in said if mime == TEXT), TEXT)
        draft = self._add_message(message, place, index, content, mime_type)
        media = [] if lone else [(data, mime) for data, mime in said if mime != TEXT]
        draft.add_outputs(_outputs(place, media), index)
        _note_run(draft, message)

    def _adopt_assistant(self, message: ChatMessage, place: int, index: int) -> None:
        said = _said(message)
        if not said and not message.tool_calls:
            return
        owner = self._message_before(message, place)
        owner.add_outputs(_outputs(place, said), index)
        _note_run(owner, message)
        for idx, call in enumerate(message.tool_calls or ()):
            self._drafts.add(Draft(message, place, index, _call_fields(call, owner), call=idx, owner=owner))

    def _adopt_result(self, message: ChatMessage, place: int, index: int) -> None:
        call, _ = answer(Tip(open_calls=self._drafts.open_calls), message)
        outputs = _outputs(place, _said(message))
        draft = None if call is None else self._drafts.at(call.seq, call.idx)
        if draft is not None or outputs:
            self._drafts.answer(draft or self._message_before(message, place), outputs, index)

    def _message_before(self, message: ChatMessage, place: int) -> Draft:
        """The message that something belongs to; an empty one where none stands before it."""
        last = self._drafts.last_message
        return self._add_message(message, place, None, "", TEXT) if last is None else last

    def _add_message(self, message: ChatMessage, place: int, index: int | None, content: str, mime_type: str) -> Draft:
        own: Row = {"content": content, "mime_type": mime_type, "agent_name": None, "function_calls": []}
        return self._drafts.add(Draft(message, place, index, {**_common(None, "message"), **own}))


def _said(message: ChatMessage) -> list[tuple[str, str]]:
    """The contents with their mime types; neighbouring texts are one."""
    if isinstance(message.content, str):
        return [(message.content, TEXT)] if message.content or message.role != "assistant" else []
    said: list[tuple[str, str]] = []
    for part in message.content or ():
        found = from_part(part)
        if found is not None and isinstance(part, TextPart) and said and said[-1][1] == TEXT:
            said[-1] = (said[-1][0] + part.text, TEXT)
        elif found is not None:
            said.append(found)
    return said


def _outputs(place: int, said: list[tuple[str, str]]) -> list[Row]:
    """Outputs whose nonce is the same at every reading."""
    return [
        {"content": content, "mime_type": mime_type or TEXT, "nonce": f"output_{place}_{index}"}
        for index, (content, mime_type) in enumerate(said)
    ]


def _call_fields(call: ToolCall, owner: Draft) -> Row:
    name = call.id or None
    if name in {sibling.fields["name"] for sibling in owner.calls}:
        name = None
    fields = {"function_name": call.name or UNNAMED, "args": _arguments(call)}
    return {**_common(name, "function_call"), **fields}


def _arguments(call: ToolCall) -> Row:
    if isinstance(call.arguments, dict):
        return call.arguments
    return {} if call.arguments is None else _parsed(call.arguments)


def _note_run(draft: Draft, message: ChatMessage) -> None:
    entry = {"run_id": message.run_id}
    history: list[Any] = draft.fields["history"] if isinstance(draft.fields["history"], list) else []
    if message.run_id is not None and entry not in history and draft.message.format != NAME:
        draft.fields = {**draft.fields, "history": [*history, entry]}


def _common(name: str | None, kind: str) -> Row:
    return {"name": name, "timeout": None, "outputs": [], "type": kind, "history": [], "heading_level": None}


def _parsed(text: str) -> Row:
    """The object that the text is; any other text under a key of its own."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {RAW: text}
    if not isinstance(value, dict) or json_problem(value, max_depth=MAX_DEPTH) is not None:
        return {RAW: text}
    return value
