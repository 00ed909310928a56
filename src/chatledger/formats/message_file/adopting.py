"""Messages of other formats as items: a user's message is a Message, what the assistant says an output of it, a call
a FunctionCall of it, and a result an output of its call. Total: what cannot be said is reported.
"""

from __future__ import annotations

import json
from typing import Any

from chatledger.formats.message_file.draft import Draft, Drafts
from chatledger.formats.message_file.losses import LossLog
from chatledger.formats.message_file.media import from_part
from chatledger.formats.message_file.outputs import TEXT
from chatledger.formats.message_file.writing import NAME, Row
from chatledger.models import ChatMessage, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.json import MAX_DEPTH, json_problem
from chatledger.rules.pairing import answer
from chatledger.rules.tip import Tip

RAW = "_raw"


class Adopter:
    def __init__(self, drafts: Drafts, log: LossLog) -> None:
        self._drafts = drafts
        self._log = log

    def adopt(self, message: ChatMessage, place: int) -> None:
        if message.role in ("user", "assistant", "tool"):
            self._log.add_fields(message)
        if message.role == "user":
            self._adopt_user(message, place)
        elif message.role == "assistant":
            self._adopt_assistant(message, place)
        elif message.role == "tool":
            self._adopt_result(message, place)
        else:
            self._log.add(message, "system" if message.role in ("system", "developer") else "role", "role")

    def _adopt_user(self, message: ChatMessage, place: int) -> None:
        said = self._said(message)
        lone = said[0] if len(said) == 1 else None
        content, mime_type = lone or ("".join(text for text, mime in said if mime == TEXT), TEXT)
        draft = self._add_message(message, place, content, mime_type)
        media = [] if lone else [(data, mime) for data, mime in said if mime != TEXT]
        draft.outputs += self._outputs(message, place, media)
        self._note_run(draft, message)

    def _adopt_assistant(self, message: ChatMessage, place: int) -> None:
        owner = self._message_before(message, place)
        owner.outputs += self._outputs(message, place, self._said(message))
        self._note_run(owner, message)
        for index, call in enumerate(message.tool_calls or ()):
            fields = self._call_fields(message, call, index, owner)
            self._drafts.add(Draft(message, place, fields, call=index, owner=owner))

    def _adopt_result(self, message: ChatMessage, place: int) -> None:
        call, _ = answer(Tip(open_calls=self._drafts.open_calls), message)
        draft = None if call is None else self._drafts.at(call.seq, call.idx)
        if draft is None:
            self._log.add(message, "orphan", "tool_call_id")
            draft = self._message_before(message, place)
        self._drafts.answer(draft, self._outputs(message, place, self._said(message)))

    def _message_before(self, message: ChatMessage, place: int) -> Draft:
        last = self._drafts.last_message
        if last is not None:
            return last
        self._log.add(message, "message", "role")
        return self._add_message(message, place, "", TEXT)

    def _add_message(self, message: ChatMessage, place: int, content: str, mime_type: str) -> Draft:
        own: Row = {"content": content, "mime_type": mime_type, "agent_name": None, "function_calls": []}
        return self._drafts.add(Draft(message, place, {**_common(None, "message"), **own}))

    def _said(self, message: ChatMessage) -> list[tuple[str, str]]:
        """The contents with their mime types; neighbouring texts are one."""
        if isinstance(message.content, str):
            return [(message.content, TEXT)] if message.content or message.role != "assistant" else []
        said: list[tuple[str, str]] = []
        for index, part in enumerate(message.content or ()):
            found = self._content_of(message, part, f"content[{index}]")
            if found is None:
                continue
            if isinstance(part, TextPart) and said and said[-1][1] == TEXT:
                said[-1] = (said[-1][0] + part.text, TEXT)
            else:
                said.append(found)
        return said

    def _content_of(self, message: ChatMessage, part: Part, path: str) -> tuple[str, str] | None:
        found = from_part(part)
        if found is None:
            self._log.add(message, "think" if isinstance(part, ThinkPart) else "opaque", path)
        elif not isinstance(part, TextPart):
            self._log.add(message, "media", path)
        if getattr(part, "extras", None) is not None:
            self._log.add(message, "extras", path)
        return found

    def _outputs(self, message: ChatMessage, place: int, said: list[tuple[str, str]]) -> list[Row]:
        """Outputs whose nonce is the same at every reading."""
        return [
            {"content": content, "mime_type": mime_type or TEXT, "nonce": f"output_{place}_{index}"}
            for index, (content, mime_type) in enumerate(said)
        ]

    def _call_fields(self, message: ChatMessage, call: ToolCall, index: int, owner: Draft) -> Row:
        name: str | None = call.id or None
        if name in {sibling.fields["name"] for sibling in owner.calls}:
            name = None
        if name != call.id:
            self._log.add(message, "id", f"tool_calls[{index}].id")
        if call.extras is not None:
            self._log.add(message, "extras", f"tool_calls[{index}].extras")
        args = self._arguments(message, call, f"tool_calls[{index}].arguments")
        return {**_common(name, "function_call"), "function_name": call.name, "args": args}

    def _arguments(self, message: ChatMessage, call: ToolCall, path: str) -> Row:
        if isinstance(call.arguments, dict):
            return call.arguments
        self._log.add(message, "arguments", path)
        return {} if call.arguments is None else _parsed(call.arguments)

    def _note_run(self, draft: Draft, message: ChatMessage) -> None:
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
