"""The codec of one revision of kosong. One message is one ChatMessage.

A payload is a list of messages, as objects or as dicts. It is written as dicts: a message that came in as a dict is
that dict again, any other is its `model_dump`. `as_models` creates objects from a payload that `encode` wrote. Each of
these dicts refers to its message, because a dump does not determine its object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded, Written
from chatledger.formats.kosong.foreign import adapt, adapt_message, is_record
from chatledger.formats.kosong.models import MESSAGE_FIELDS, build, is_object, restore_given
from chatledger.formats.kosong.parts import AS_DICT, CLASSES, FAMILY, FIELDS, GIVEN, KosongRevision, residual_of
from chatledger.formats.kosong.read import read_message
from chatledger.formats.kosong.write import write_fields, write_message
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.formats.wire.residual import restore_deep
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.json import JsonObject


class KosongDump(dict[str, Any]):
    """The dict of a message, with a reference to the message, and whether that was read from an object."""

    __slots__ = ("message", "of_object")

    def __init__(self, fields: JsonObject, message: ChatMessage, *, of_object: bool) -> None:
        super().__init__(fields)
        self.message = message
        self.of_object = of_object


class KosongCodec:
    def __init__(self, revision: KosongRevision) -> None:
        self.revision = revision

    @property
    def name(self) -> str:
        return self.revision.name

    def recognises(self, payload: object) -> bool:
        return is_of_revision(payload, self.revision)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        if not isinstance(payload, (list, tuple)):
            raise DecodeError("$", f"expected a list of messages, not {type(payload).__name__}")
        losses: list[Loss] = []
        lenient = rules == "lenient"
        return Decoded(
            [self._read(message, f"$[{index}]", losses, lenient=lenient) for index, message in enumerate(payload)],
            losses,
        )

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts. `carry` has no effect: a kosong message has no free field."""
        return self._write(messages)

    def as_models(self, payload: Sequence[dict[str, Any]]) -> list[Any]:
        """The messages of a payload as objects of this revision's classes."""
        return [self._as_model(fields, f"$[{index}]") for index, fields in enumerate(payload)]

    def given_as(self, messages: Sequence[ChatMessage]) -> Literal["models", "dicts"]:
        """The kind in which all messages of this format came in; dicts if they differ, or if there are none."""
        own = [message for message in messages if message.format == self.name and not is_record(message)]
        as_models = bool(own) and not any(AS_DICT in residual_of(message) for message in own)
        return "models" if as_models else "dicts"

    def _write(self, messages: Sequence[ChatMessage]) -> Written:
        adapted = adapt(messages, self.revision)
        own_indexes = [index for index, message in enumerate(messages) if message.format == self.name]
        return Written(
            [
                KosongDump(
                    write_message(message, self.revision), message, of_object=_is_of_object(message, messages[first])
                )
                for message, (first, *_) in adapted
            ],
            [origins for _, origins in adapted],
            own_indexes,
        )

    def _read(self, source: object, path: str, losses: list[Loss], *, lenient: bool) -> ChatMessage:
        """The message of a dict or an object. An unchanged dump is read as its object, which it does not determine."""
        if (
            isinstance(source, KosongDump)
            and source.of_object
            and source == write_message(source.message, self.revision)
        ):
            source = self._as_model(source, path)
        return read_message(source, path, self.revision, losses, lenient=lenient)

    def _as_model(self, fields: dict[str, Any], path: str) -> Any:
        if isinstance(fields, KosongDump):
            message = fields.message
        else:
            message = read_message(fields, path, self.revision, [], lenient=True)
        residual = residual_of(message)
        is_dict = AS_DICT in residual
        source = fields if is_dict else restore_deep(write_fields(message, self.revision), residual.get(FIELDS))
        try:
            model = build(self.revision, source, residual.get(CLASSES))
        except (ValidationError, TypeError):
            return self._nearest(message)
        if not is_dict:
            restore_given(model, residual.get(GIVEN), is_text=isinstance(message.content, str))
        return model

    def _nearest(self, message: ChatMessage) -> Any:
        """A message that lenient rules accepted but no class accepts, written like one of another format. Its role
        stays.
        """
        foreign = message.model_copy(update={"format": FAMILY, "role": "user"})
        adapted = adapt_message(foreign, self.revision, Pairing(), 1)
        assert adapted is not None  # a user message is never left out
        model = build(self.revision, write_fields(adapted, self.revision), None)
        model.role = message.role
        return model


def _is_of_object(message: ChatMessage, stored: ChatMessage) -> bool:
    return message is stored and AS_DICT not in residual_of(message)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is certainly of a revision of kosong.


def is_of_revision(payload: object, revision: KosongRevision) -> bool:
    """True for objects of the revision, and for full dumps: short dumps look like OpenAI's.

    Only the older revision dumps empty content as null. Without such content, full dumps are taken for the newer
    revision.
    """
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    if not all(_is_message(message, revision) for message in payload):
        return False
    return not revision.null_is_empty or any(
        not isinstance(message, dict) or message["content"] is None for message in payload
    )


def _is_message(message: object, revision: KosongRevision) -> bool:
    is_newer = not revision.null_is_empty
    if isinstance(message, dict):
        return tuple(message) == MESSAGE_FIELDS and not (is_newer and message["content"] is None)
    return is_object(message) and hasattr(message, "extract_text") == is_newer
