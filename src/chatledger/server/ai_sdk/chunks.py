"""Changes of a thread as chunks of the UI message stream.

A client that comes back says what it has, and gets what follows. A message that is begun anew, as after the death of
its process, comes whole behind `reset-step`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chatledger.formats import get_codec
from chatledger.models import ChatMessage, Part, Piece, TextPart, ThinkPart, ThreadChange, ToolCall
from chatledger.server.ai_sdk.known import OTHERS, Key, Known, KnownStep, Sent, UnitKind

Chunk: TypeAlias = dict[str, Any]
_FIELDS = ("reasoning", "content", "tool_calls")


@dataclass(slots=True)
class _Slot:
    """A text, a thought, a call or another part of a message, with its text so far."""

    kind: UnitKind
    text: str
    value: Part | ToolCall | None

    @classmethod
    def of(cls, name: str, value: Part | ToolCall | str) -> _Slot:
        if isinstance(value, str):
            return cls("reasoning" if name == "reasoning" else "text", value, None)
        if isinstance(value, ToolCall):
            return cls("call", value.arguments if isinstance(value.arguments, str) else "", value)
        if isinstance(value, TextPart | ThinkPart):
            is_text = isinstance(value, TextPart) and name == "content"
            return cls("text" if is_text else "reasoning", value.text, value)
        return cls("other", "", value)

    def stored(self) -> Any:
        if self.value is None:
            return TextPart(text=self.text)
        if isinstance(self.value, ToolCall):
            grows = isinstance(self.value.arguments, str | None) and self.text
            return self.value.model_copy(update={"arguments": self.text}) if grows else self.value
        return self.value if self.kind == "other" else self.value.model_copy(update={"text": self.text})


class _Step:
    """A stored message of the assistant, and what the client has of it."""

    def __init__(self, message: ChatMessage, known: KnownStep | None) -> None:
        self.seq = message.seq
        self.sent: dict[Key, Sent] = {} if known is None else known.sent
        self.holds = False
        """Whether no part ends before the message does, since one went on after its end."""
        self.take(message)

    @property
    def is_complete(self) -> bool:
        return self.message.state != "partial"

    def take(self, message: ChatMessage) -> None:
        self.message, self._grown = message, False
        self._slots: dict[str, list[_Slot]] = {}
        for name in _FIELDS:
            value = getattr(message, name)
            parts = [value] if isinstance(value, str) else value or ()
            self._slots[name] = [_Slot.of(name, part) for part in parts]

    def grow(self, pieces: Sequence[Piece], message: ChatMessage | None) -> None:
        """Add the pieces. `message` has the other fields of the message that is complete now."""
        self._grown = True
        for piece in pieces:
            name, _, index = piece.at.partition(".")
            slots, at = self._slots[name], int(index or 0)
            if at < len(slots):
                slots[at].text += piece.text
            else:
                slots.append(_Slot.of(name, piece.part or piece.call or piece.text))
        if message is not None:
            stored = {name: [slot.stored() for slot in slots] or None for name, slots in self._slots.items()}
            self.message = message.model_copy(update=stored)

    def news(self) -> list[Chunk]:
        """Bring the client what it lacks: behind `reset-step`, if the message does not begin with what it has."""
        chunks = self._after_sent()
        if chunks is None:
            self.sent = {}
            chunks = [{"type": "reset-step"}, *(self._after_sent() or ())]
        return chunks + (self._ending() if self.is_complete else [])

    def _after_sent(self) -> list[Chunk] | None:
        """None if that needs a new beginning."""
        units = dict(self._units())
        if any(key not in units and key[0] != "other" for key in self.sent):
            return None
        chunks: list[Chunk] = []
        for key, slot in units.items():
            sent = self.sent.get(key)
            rest = slot.text if sent is None else sent.rest_of(slot.text, grown=self._grown)
            if sent is not None and slot.kind == "call" and not sent.open:
                rest = ""  # the client has the input, and no text of it
            call_id = self.call_id(slot, key[1]) if slot.kind == "call" else None
            if rest is None or (sent is not None and sent.call_id not in (None, call_id)):
                return None
            if sent is not None and sent.call_id is None:
                sent.call_id = call_id
            if not rest and not (sent is None and slot.kind == "call"):
                if sent is not None:
                    sent.characters = len(slot.text)
                continue
            if sent is None:
                chunks += self.close() if not self.holds and slot.kind != "call" else []
                sent = self.sent[key] = Sent(call_id=call_id)
                chunks.append(self._start(key, slot, call_id))
            elif not sent.open:
                self.holds = True
                return None
            if rest:
                sent.add(rest)
                chunks.append(self._delta(key, sent, rest))
            sent.characters = len(slot.text)
        return chunks

    def _units(self) -> Iterator[tuple[Key, _Slot]]:
        """What a client can see, but for the parts that come with the end."""
        count: dict[UnitKind, int] = {}
        for name in _FIELDS:
            for slot in self._slots[name]:
                is_seen = slot.value.name if isinstance(slot.value, ToolCall) else slot.text
                if is_seen and slot.kind != "other":
                    ordinal = count[slot.kind] = count.get(slot.kind, -1) + 1
                    yield (slot.kind, ordinal), slot

    def call_id(self, slot: _Slot, ordinal: int) -> str:
        """The id of the call, or the one that formats make."""
        assert isinstance(slot.value, ToolCall)
        return f"call_{self.seq}_{ordinal}" if slot.value.id is None else slot.value.id

    def _id(self, key: Key) -> str:
        """The same in each process and at each connection, since the client knows an open text by it."""
        return f"{self.seq}.{key[0]}.{key[1]}"

    def _start(self, key: Key, slot: _Slot, call_id: str | None) -> Chunk:
        if isinstance(slot.value, ToolCall):
            return {"type": "tool-input-start", "toolCallId": call_id, "toolName": slot.value.name}
        return {"type": f"{key[0]}-start", "id": self._id(key)}

    def _delta(self, key: Key, sent: Sent, text: str) -> Chunk:
        if key[0] == "call":
            return {"type": "tool-input-delta", "toolCallId": sent.call_id, "inputTextDelta": text}
        checksum = {"chatledger": {"crc": f"{sent.checksum:08x}"}}
        return {"type": f"{key[0]}-delta", "id": self._id(key), "delta": text, "providerMetadata": checksum}

    def close(self) -> list[Chunk]:
        """End the open texts and thoughts."""
        chunks: list[Chunk] = []
        for key, sent in self.sent.items():
            if sent.open and key[0] in ("text", "reasoning"):
                sent.open = False
                chunks.append({"type": f"{key[0]}-end", "id": self._id(key)})
        return chunks

    def _ending(self) -> list[Chunk]:
        """The ends of the texts, the inputs of the calls, and the parts that no draft has."""
        chunks = self.close()
        sent_calls = {sent.call_id: sent for key, sent in self.sent.items() if key[0] == "call"}
        others = [sent for key, sent in self.sent.items() if key[0] == "other"]
        count = 0
        for part in _written(self.message):
            sent = sent_calls.get(part.get("toolCallId"))
            if part["type"].startswith(OTHERS):
                count += 1
                if count > len(others):
                    self.sent["other", count - 1] = Sent(open=False)
                    chunks.append(part)
            elif sent is not None and sent.open:
                sent.open = False
                name = part["type"].removeprefix("tool-") if "toolName" not in part else part["toolName"]
                whole = {"toolCallId": sent.call_id, "toolName": name, "input": part.get("input")}
                chunks.append({"type": "tool-input-available", **whole})
        return chunks


def _written(message: ChatMessage) -> list[Chunk]:
    """The parts of the message as a reader of the history gets them."""
    payload = get_codec("ai-sdk").encode([message]).payload
    parts = [part for source in payload for part in source.get("parts", ())]
    return [part for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str)]


@dataclass(slots=True)
class ChunkWriter:
    """The chunks of one answer. `run_id` is its run; None for a draft that no run answers with."""

    run_id: str | None
    known: Known | None = None
    refused: frozenset[str] = frozenset()
    """The calls that the request has refused."""
    has_ended: bool = False
    _begun: bool = False
    _step: _Step | None = None
    _steps: int = 0
    _calls: dict[str, Sent] = field(default_factory=dict)
    _earlier: list[ChatMessage] = field(default_factory=list)
    """What the client has said that it has, until the last step of it is compared."""

    def write(self, change: ThreadChange) -> list[Chunk]:
        message = change.message
        if change.kind == "run":
            return self._of_run(change)
        if self.run_id is None and change.kind in ("abandoned", "rewound", "activated"):
            return self.end({"type": "abort", "reason": "nobody writes the answer any more"})
        if change.kind == "activated":
            self._step = None
        if change.kind == "appended" and message is not None and self._is_own(message):
            return self._append(message) + self._without_run()
        if change.kind in ("grown", "completed") and self._step is not None and change.seq == self._step.seq:
            if change.pieces is not None:
                self._step.grow(change.pieces, message)
            elif message is not None:
                self._step.take(message)
            return self._news() + self._without_run()
        return []

    def _is_own(self, message: ChatMessage) -> bool:
        return message.role in ("assistant", "tool") and self.run_id in (None, message.run_id)

    def _append(self, message: ChatMessage) -> list[Chunk]:
        if message.role == "tool":
            return self._result(message)
        known = self.known
        if known is not None and not self._steps and known.message_id != message.message_id and not known.continues:
            known = self.known = None
        if known is not None and self._steps < len(known.steps):
            return self._compare(message, known)
        chunks: list[Chunk] = [*self._replay(), *([{"type": "finish-step"}] if self._step else [])]
        if not self._begun:
            self._begun = True
            chunks.append({"type": "start", "messageId": message.message_id})
        self._step, self._steps = _Step(message, None), self._steps + 1
        return [*chunks, {"type": "start-step"}, *self._news()]

    def _compare(self, message: ChatMessage, known: Known) -> list[Chunk]:
        """The step that the client has. Unless that is its last one, it has all of it, or the answer begins anew."""
        step = _Step(message, known.steps[self._steps])
        self._steps += 1
        if self._steps == len(known.steps):
            self._earlier, self._begun, self._step = [], True, step
            return self._news()
        self._earlier.append(message)
        self._step = step
        news = self._news()
        return self._anew() if news and not known.continues else []

    def _news(self) -> list[Chunk]:
        assert self._step is not None
        chunks = self._step.news()
        self._calls |= {sent.call_id: sent for sent in self._step.sent.values() if sent.call_id is not None}
        return chunks

    def _replay(self) -> list[Chunk]:
        """The client says that it has more than there is."""
        return self._anew() if self._earlier and self.known is not None and not self.known.continues else []

    def _anew(self) -> list[Chunk]:
        earlier, self._earlier, self.known = self._earlier, [], None
        self._step, self._steps, self._begun, self._calls = None, 0, False, {}
        return [chunk for message in earlier for chunk in self._append(message)]

    def _result(self, message: ChatMessage) -> list[Chunk]:
        if self._earlier:
            self._earlier.append(message)
        call_id, place = message.tool_call_id, message.answers
        if call_id is None:
            call_id = "" if place is None else f"call_{place.seq}_{place.index}"
        sent = self._calls.get(call_id)
        if sent is None or sent.answered:
            return []
        sent.answered = True
        (*_, part) = _written(message)
        if part.get("state") == "output-denied" or call_id in self.refused:
            return [{"type": "tool-output-denied", "toolCallId": call_id}]
        if part.get("state") == "output-error":
            return [{"type": "tool-output-error", "toolCallId": call_id, "errorText": part["errorText"]}]
        return [{"type": "tool-output-available", "toolCallId": call_id, "output": part.get("output")}]

    def _without_run(self) -> list[Chunk]:
        """The end of a draft that no run goes on behind."""
        step = self._step
        if self.run_id or step is None or not step.is_complete or step.message.run_id or step.message.tool_calls:
            return []
        return self.end(_finish("interrupted" if step.message.state == "interrupted" else "stop"))

    def _of_run(self, change: ThreadChange) -> list[Chunk]:
        own = self._step.message.run_id if self.run_id is None and self._step is not None else self.run_id
        if own is None or change.run_id != own:
            return []
        chunks = self._replay()
        if change.status == "paused":
            return [*chunks, *self._pause(change.waiting or {})]
        if change.status == "cancelled":
            return [*chunks, *self.end({"type": "abort", "reason": "the answer was stopped"})]
        if change.status == "failed":
            return [*chunks, *self.end({"type": "error", "errorText": "The answer failed."})]
        if change.status != "completed":
            return chunks
        interrupted = self._step is not None and self._step.message.state == "interrupted"
        return [*chunks, *self.end(_finish("interrupted" if interrupted else "stop"))]

    def _pause(self, waiting: Mapping[str, str | None]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for call_id, reason in waiting.items():
            sent = self._calls.get(call_id)
            if sent is not None and not sent.asked:
                sent.asked = True
                why = {} if reason is None else {"reason": reason}
                approval = {"approvalId": f"{self.run_id}/{call_id}", "toolCallId": call_id, **why}
                chunks.append({"type": "tool-approval-request", **approval})
        return [*chunks, *self.end(_finish("tool-calls"))]

    def end(self, last: Chunk) -> list[Chunk]:
        """The last chunks of the answer."""
        self.has_ended = True
        step = [] if self._step is None else [*self._step.close(), {"type": "finish-step"}]
        return [*step, last]


def _finish(reason: str) -> Chunk:
    return {"type": "finish", "finishReason": reason}
