"""The codec of `agent-service`: a list of messages or a ChatHistory, of objects or of dicts.

A payload is written as the dict of a ChatHistory, equal to the source; `as_models` creates the ChatHistory from it,
with the fields that were set on each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.foreign import carry, unpack
from chatledger.formats.agent_service.models import ChatHistory, ChatMessage
from chatledger.formats.agent_service.read import (
    MESSAGES,
    ServiceSource,
    check,
    fields_of,
    keep_around,
    keep_difference,
    open_payload,
    read_fields,
)
from chatledger.formats.agent_service.write import (
    AROUND,
    NAME,
    ROLE_OF_TYPE,
    ServiceDump,
    around_of,
    write_fields,
    write_message,
)
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.wire.residual import restore
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Loss, RulesLevel
from chatledger.models.json import JsonObject, same_json

_FIELDS = frozenset(ChatMessage.model_fields)


class AgentServiceCodec:
    name = NAME

    def given_as(self, messages: Sequence[LedgerMessage]) -> Kind:
        """Always models: the service's own API answers with a ChatHistory."""
        return "models"

    def recognises(self, payload: object) -> bool:
        return is_agent_service(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        opened = open_payload(payload, rules)
        messages = [_decode(source, rules) for source in opened.sources]
        losses = opened.losses + _keep_around(opened.around, messages, rules)
        return Decoded(messages, losses)

    def encode(self, messages: Sequence[LedgerMessage], *, carry: bool = False) -> Written:
        """The dict of a ChatHistory. `carry` puts the fields that a message cannot express into its custom_data."""
        return _write(messages, carry_all=carry)

    def as_models(self, payload: dict[str, Any]) -> ChatHistory:
        """The ChatHistory of a payload that `encode` returned.

        A message that lenient rules accepted but no model accepts is written like a message of another format: an
        unknown type becomes custom, and arguments that are not an object are under `_raw`.
        """
        return ChatHistory(messages=[_as_model(fields) for fields in payload[MESSAGES]])


def _decode(source: ServiceSource, rules: RulesLevel) -> LedgerMessage:
    check(source.fields, source.path, rules)
    message = read_fields(source.fields, lenient=rules == "lenient")
    carried = unpack(message, source.fields)
    if carried is not None:
        return carried
    return message.model_copy(update={"residual": keep_difference(source.fields, message, source.set_names)})


def _keep_around(around: JsonObject | None, messages: list[LedgerMessage], rules: RulesLevel) -> list[Loss]:
    residual = None if around is None else keep_around(around)
    if residual is None:
        return []
    for index, message in enumerate(messages):
        if message.format == NAME:
            messages[index] = message.model_copy(update={"residual": {**(message.residual or {}), AROUND: residual}})
            return []
    if rules != "lenient":
        raise DecodeError("$", "the history has no message to store its other keys with; add a message")
    return [Loss(AROUND, None, "$")]


def _write(messages: Sequence[LedgerMessage], *, carry_all: bool) -> Written:
    """The messages in their history.

    A thread may hold several payloads that were appended one after the other. Only the last payload's residual of the
    history is written.
    """
    fields = next((around for message in reversed(messages) if (around := around_of(message)) is not None), None)
    own_indexes = [
        index for index, message in enumerate(messages) if message.format == NAME and _is_written(message, fields)
    ]
    payload = restore({MESSAGES: [_write_message(message, carry_all) for message in messages]}, fields)
    return Written(payload, [(index,) for index in range(len(messages))], own_indexes)


def _write_message(message: LedgerMessage, carry_all: bool) -> JsonObject:
    if message.format == NAME:
        return write_message(message)
    encoded = write_fields(message)
    return carry(encoded, message) if carry_all else encoded


def _is_written(message: LedgerMessage, fields: JsonObject | None) -> bool:
    around = around_of(message)
    return around is None or same_json(around, fields)


def _as_model(fields: JsonObject) -> ChatMessage:
    try:
        message = ChatMessage.model_validate(fields)
    except ValidationError:
        message = ChatMessage.model_validate(write_fields(read_fields(fields)))
    if not isinstance(fields, ServiceDump):
        return message
    return ChatMessage.model_construct(set(fields.set_names & _FIELDS), **dict(message))


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is certainly of an agent service.


def is_agent_service(payload: object) -> bool:
    """True only for messages with a type and a content of this format and no key of another."""
    if isinstance(payload, ChatHistory):
        return True
    messages = payload if isinstance(payload, list) else (fields_of(payload) or {}).get(MESSAGES)
    return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))


def _is_message(value: object) -> bool:
    fields = fields_of(value)
    if fields is None or not isinstance(fields.get("type"), str) or not isinstance(fields.get("content"), str):
        return False
    if fields["type"] not in ROLE_OF_TYPE:
        return False
    return fields.keys() <= _FIELDS if isinstance(value, dict) else fields.keys() >= _FIELDS


CODEC = AgentServiceCodec()
