"""Stored messages as UI messages: the steps of an assistant's answer, with their results, are one UI message.

A step is the row of an assistant's message. Its results stand inside its calls. A result without its call is written
with a call that is made up, so that a page that begins with it shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatledger.formats.ai_sdk.names import (
    CALL,
    CALLS,
    CALLS_AT,
    DYNAMIC,
    HEAD,
    ID,
    NAME,
    PART,
    PARTS,
    STEP,
    STEP_START,
    WHOLE,
    Source,
)
from chatledger.formats.ai_sdk.parts import write_part
from chatledger.formats.ai_sdk.tools import write_call, write_result
from chatledger.formats.wire.call_pairs import Pairing, made_id
from chatledger.formats.wire.residual import interleave, nested, own_residual, restore
from chatledger.models import ChatMessage, OpaquePart, TextPart, ToolCall, continues
from chatledger.models.json import JsonValue

_NAMELESS = "tool"
"""The name of a call that is made up for a result without a name."""


@dataclass(slots=True)
class CallSlot:
    """A call in a step, and the row of its result once there is one."""

    part: Source
    """The tool part; without a result if `row` is None."""
    id: str
    place: tuple[int, int] | None
    """Of the call: the position of its message, and its index in it. None if the call is made up."""
    row: int | None = None

    def answer(self, result: ChatMessage, row: int) -> None:
        section = nested(own_residual(result, NAME), PART)
        content = result.content if isinstance(result.content, str | None) else result.text
        self.part = write_result(self.part, content, is_error=result.is_error is True, section=section)
        self.row = row


@dataclass(slots=True)
class StepDraft:
    """A step; `row` is None if it holds results without their calls."""

    row: int | None
    start: JsonValue
    """The `step-start` before the parts; None for a first step without one."""
    parts: list[JsonValue] = field(default_factory=list)
    calls: list[CallSlot] = field(default_factory=list)
    calls_at: JsonValue = None

    def write(self) -> list[JsonValue]:
        tools: list[JsonValue] = [call.part for call in self.calls]
        return [*([] if self.start is None else [self.start]), *interleave(self.parts, tools, self.calls_at)]

    def origins(self) -> list[tuple[int, ...]]:
        own: list[tuple[int, ...]] = [() if self.row is None else (self.row,)]
        return own + [(call.row,) for call in self.calls if call.row is not None]


@dataclass(slots=True)
class UIMessageDraft:
    """A UI message. `alone` is a message that is one row; otherwise it is an answer, which has steps."""

    head: Source
    """The message without its parts, and `residual` that of its keys."""
    residual: JsonValue
    alone: list[JsonValue] | None = None
    row: int = -1
    steps: list[StepDraft] = field(default_factory=list)

    def write(self) -> Source:
        parts = self.alone if self.alone is not None else [part for step in self.steps for part in step.write()]
        return restore({**self.head, "parts": parts}, self.residual)

    def origins(self) -> list[tuple[int, ...]]:
        return [(self.row,)] if self.alone is not None else [rows for step in self.steps for rows in step.origins()]


@dataclass(slots=True)
class UIMessageWriter:
    """Collects UI messages. A result may come long after its call, so they are written at the end."""

    drafts: list[UIMessageDraft | tuple[JsonValue, int]] = field(default_factory=list)
    """UI messages, and values that are kept whole with their rows."""
    _pairing: Pairing = field(default_factory=Pairing)
    _slots: dict[tuple[int, int], CallSlot] = field(default_factory=dict)

    def add(self, message: ChatMessage, row: int) -> None:
        """Add a message that fits the format; a custom message that no reader made is left out."""
        residual = own_residual(message, NAME)
        if nested(residual, WHOLE) is True:
            value = _whole(message)
            if value is not None:
                self.drafts.append((value, row))
        elif message.role == "assistant":
            self._add_step(message, row, residual)
        elif message.role == "tool":
            self._add_result(message, row)
        elif message.role in ("system", "user"):
            parts = write_parts(message, of_assistant=False)
            self.drafts.append(UIMessageDraft(write_head(message, row), nested(residual, HEAD), parts, row))

    def _add_step(self, message: ChatMessage, row: int, residual: JsonValue) -> None:
        answer = self._answer(message, row)
        start: JsonValue = restore({"type": STEP_START}, nested(residual, STEP))
        if nested(residual, STEP) is False and not answer.steps:
            start = None
        ids = self._pairing.ask(message, row)
        calls = [
            CallSlot(write_call(call, id_, nested(residual, CALLS, str(index))), id_, (row, index))
            for index, (call, id_) in enumerate(zip(message.tool_calls or (), ids, strict=True))
        ]
        self._slots |= {call.place: call for call in calls if call.place is not None}
        parts = write_parts(message, of_assistant=True)
        answer.steps.append(StepDraft(row, start, parts, calls, nested(residual, CALLS_AT)))

    def _add_result(self, message: ChatMessage, row: int) -> None:
        slot = self._own_slot(message)
        if slot is None:
            answered = self._pairing.answer(message)
            slot = None if answered is None else self._slots[answered.call.seq, answered.call.idx]
        elif slot.place is not None:
            open_call = self._pairing.open_calls.at((0, *slot.place))
            if open_call is not None:
                self._pairing.open_calls.close(open_call)
        if slot is None or slot.row is not None:
            slot = self._made_up(message, row)
        slot.answer(message, row)

    def _own_slot(self, message: ChatMessage) -> CallSlot | None:
        """The call whose part a result was in. The id alone does not name it: a client may use one several times."""
        last, index = self._last_answer(), nested(own_residual(message, NAME), CALL)
        if last is None or not last.steps or not isinstance(index, int) or not continues(message):
            return None
        calls = last.steps[-1].calls
        slot = calls[index] if 0 <= index < len(calls) else None
        return slot if slot is not None and slot.row is None and slot.id == message.tool_call_id else None

    def _made_up(self, message: ChatMessage, row: int) -> CallSlot:
        answer = self._answer(message, row)
        if not answer.steps or answer.steps[-1].row is not None:
            answer.steps.append(StepDraft(None, {"type": STEP_START}))
        id_ = made_id(message, row) if message.tool_call_id is None else message.tool_call_id
        section = {DYNAMIC: nested(own_residual(message, NAME), PART, DYNAMIC)}
        slot = CallSlot(write_call(ToolCall(id=id_, name=message.name or _NAMELESS), id_, section), id_, None)
        answer.steps[-1].calls.append(slot)
        return slot

    def _answer(self, message: ChatMessage, row: int) -> UIMessageDraft:
        """The answer that the message belongs to. Rows of this format say where one begins; those of others join."""
        last = self._last_answer()
        if last is not None and (continues(message) if message.format == NAME else True):
            return last
        answer = UIMessageDraft(
            {**write_head(message, row), "role": "assistant"}, nested(own_residual(message, NAME), HEAD)
        )
        self.drafts.append(answer)
        return answer

    def _last_answer(self) -> UIMessageDraft | None:
        last = self.drafts[-1] if self.drafts else None
        return last if isinstance(last, UIMessageDraft) and last.alone is None else None


def write_parts(message: ChatMessage, *, of_assistant: bool) -> list[JsonValue]:
    """The parts of the content, without those that the format cannot hold."""
    residual = own_residual(message, NAME)
    content = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content or []
    written = (
        write_part(part, nested(residual, PARTS, str(index)), of_assistant=of_assistant)
        if not isinstance(part, OpaquePart) or message.format == NAME
        else None
        for index, part in enumerate(content)
    )
    return [part for part in written if part is not None]


def write_head(message: ChatMessage, row: int) -> Source:
    """A UI message without its parts. Its id is made up if the message has none."""
    own_id = nested(own_residual(message, NAME), ID)
    fallback = message.message_id or f"message-{row if message.seq is None else message.seq}"
    metadata: Source = {} if message.custom_data is None else {"metadata": message.custom_data}
    return {"id": own_id if isinstance(own_id, str) else fallback, **metadata, "role": message.role}


def _whole(message: ChatMessage) -> JsonValue:
    parts: Sequence[object] = message.content if isinstance(message.content, list) else ()
    value = parts[0].value if len(parts) == 1 and isinstance(parts[0], OpaquePart) else None
    return value if isinstance(value, dict) else None
