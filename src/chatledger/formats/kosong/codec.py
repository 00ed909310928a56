"""The codec of one revision of kosong. One message is one ChatMessage.

A payload is a list of messages, as objects or as dicts. It is written as dicts: a message that came in as a dict is
that dict again, any other is what `model_dump` gives. `as_models` makes objects of a payload that was written here;
each dict still knows its message, because a dump alone cannot tell the object that it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded, Encoded
from chatledger.formats.kosong.adapting import adapt, adapt_message, is_as_read, is_record
from chatledger.formats.kosong.given import restore_given
from chatledger.formats.kosong.objects import build, is_object
from chatledger.formats.kosong.revision import (
    AS_DICT,
    CLASSES,
    DUMP,
    FAMILY,
    FIELDS,
    GIVEN,
    SHORT,
    Revision,
    residual_of,
)
from chatledger.formats.kosong.sources import decode_dict, decode_object
from chatledger.formats.kosong.writing import Row, dump, shortened, write
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.wire.pairing import Pairing
from chatledger.formats.wire.residual import restore_deep
from chatledger.models import ChatMessage, Loss, RulesLevel

_FULL = ("role", "name", "content", "tool_calls", "tool_call_id", "partial")


class Dump(dict[str, Any]):
    """The dict of a message that still knows the message."""

    __slots__ = ("message",)

    def __init__(self, row: Row, message: ChatMessage) -> None:
        super().__init__(row)
        self.message = message


class KosongCodec:
    def __init__(self, revision: Revision) -> None:
        self.revision = revision

    @property
    def name(self) -> str:
        return self.revision.name

    def recognises(self, payload: object) -> bool:
        """Only objects of this revision, and for the newer one also full dumps: short ones look like OpenAI's."""
        if not isinstance(payload, (list, tuple)) or not payload:
            return False
        return all(self._is_of_revision(message) for message in payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        if not isinstance(payload, (list, tuple)):
            raise DecodeError("$", f"a list of messages is expected, not {type(payload).__name__}")
        losses: list[Loss] = []
        messages = [
            self._decode(message, f"$[{index}]", rules == "lenient", losses) for index, message in enumerate(payload)
        ]
        return Decoded(messages, losses)

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Encoded:
        """`carry` changes nothing: a kosong message has no free slot."""
        return measured(self, messages, self._write)

    def as_models(self, payload: Sequence[dict[str, Any]]) -> list[Any]:
        """The messages of a payload as objects of this revision's classes."""
        return [self._as_model(row, f"$[{index}]") for index, row in enumerate(payload)]

    def given_as(self, messages: Sequence[ChatMessage]) -> Literal["models", "dicts"]:
        """The kind in which the messages of this format came in; dicts if they differ or there are none."""
        own = [message for message in messages if message.format == self.name and not is_record(message)]
        as_models = bool(own) and not any(AS_DICT in residual_of(message) for message in own)
        return "models" if as_models else "dicts"

    def row_of(self, message: ChatMessage) -> Row:
        """The dict of a message that `adapt` gave."""
        residual = residual_of(message)
        row = write(message, self.revision)
        if AS_DICT in residual:
            return restore_deep(shortened(row) if SHORT in residual else row, residual.get(FIELDS))
        return restore_deep(dump(restore_deep(row, residual.get(FIELDS)), self.revision), residual.get(DUMP))

    def _write(self, messages: Sequence[ChatMessage]) -> Written:
        adapted = adapt(messages, self.revision)
        kept = [index for index, message in enumerate(messages) if message.format == self.name]
        return Written(
            [Dump(self.row_of(message), message) for message, _ in adapted],
            [origins for _, origins in adapted],
            kept,
            as_read=all(is_as_read(message, self.revision) for message in messages),
        )

    def _decode(self, message: object, path: str, lenient: bool, losses: list[Loss]) -> ChatMessage:
        if isinstance(message, dict):
            return decode_dict(message, path, self.revision, losses, lenient=lenient)
        if is_object(message):
            return decode_object(message, path, self.revision, losses, lenient=lenient)
        raise DecodeError(path, f"a message is a dict or a message object, not {type(message).__name__}")

    def _is_of_revision(self, message: object) -> bool:
        newer = not self.revision.null_is_empty
        if isinstance(message, dict):
            return newer and tuple(message) == _FULL and message["content"] is not None
        return is_object(message) and hasattr(message, "extract_text") == newer

    def _as_model(self, row: dict[str, Any], path: str) -> Any:
        message = row.message if isinstance(row, Dump) else self._decode(row, path, True, [])
        residual = residual_of(message)
        is_dict = AS_DICT in residual
        source = row if is_dict else restore_deep(write(message, self.revision), residual.get(FIELDS))
        try:
            model = build(self.revision, source, residual.get(CLASSES))
        except (ValidationError, TypeError):
            return self._nearest(message)
        if not is_dict:
            restore_given(model, residual.get(GIVEN), is_text=isinstance(message.content, str))
        return model

    def _nearest(self, message: ChatMessage) -> Any:
        """What lenient let in and no class takes, as if another revision had written it; its role stays."""
        foreign = message.model_copy(update={"format": FAMILY, "role": "user"})
        adapted = adapt_message(foreign, self.revision, Pairing(), 1)
        assert adapted is not None  # a user message is never left out
        model = build(self.revision, write(adapted, self.revision), None)
        model.role = message.role
        return model
