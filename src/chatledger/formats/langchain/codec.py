"""The codec of `format="langchain"`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import EncodeError, MissingExtra
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.formats.langchain.foreign import fit
from chatledger.formats.langchain.read import is_object, read_payload
from chatledger.formats.langchain.write import NAME, write_message
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonObject


@dataclass(frozen=True, slots=True)
class LangChain:
    """A list of messages, objects of langchain-core or dicts of `message_to_dict`, each of which becomes one
    message.
    """

    name: str = NAME

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: a program can read a thread without langchain-core."""
        return "dicts"

    def recognises(self, payload: object) -> bool:
        return is_langchain(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One ChatMessage for each message. Lenient rules keep malformed values in the residual."""
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """The dicts that `messages_from_dict` takes. `carry` has no effect: integrations would send it along."""
        return write_payload(messages)

    def as_models(self, payload: list[JsonObject]) -> list[Any]:
        """The messages of a payload that `encode` returned. Raises EncodeError for a message that langchain-core
        rejects, and MissingExtra if it is not installed.
        """
        return [as_model(message, f"$[{index}]") for index, message in enumerate(payload)]


def as_model(message: JsonObject, path: str) -> Any:
    """One message object of its dict. Raises EncodeError with the path."""
    try:
        messages = importlib.import_module("langchain_core.messages")
    except ImportError:
        raise MissingExtra(NAME, "messages of LangChain as objects") from None
    try:
        [model] = messages.messages_from_dict([message])
    except Exception as error:  # foreign code may raise anything; the error is the cause
        raise EncodeError(
            path, f"langchain-core rejects this message ({type(error).__name__}); use as_='dicts'"
        ) from error
    return model


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """One dict for each message: those of the format as they came in, others fitted to the format."""
    pairing = Pairing()
    payload: list[JsonObject] = []
    for index, message in enumerate(messages):
        call_ids = pairing.ask(message, index + 1)
        answered = pairing.answer(message) if message.role == "tool" else None
        own = message.format == NAME
        payload.append(write_message(message if own else fit(message, index + 1, call_ids, answered)))
    own_indexes = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(payload, [(index,) for index in range(len(messages))], own_indexes)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is certainly a list of LangChain's messages: objects, or dicts of a `type` and its `data`.


def is_langchain(payload: object) -> bool:
    """True only if every item is a message, and every dict repeats its type in its data."""
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(message) or _is_dict(message) for message in payload)


def _is_dict(message: Any) -> bool:
    if not isinstance(message, dict) or message.keys() != {"type", "data"}:
        return False
    data = message["data"]
    if not isinstance(data, dict) or not isinstance(data.get("content"), (str, list)):
        return False
    return isinstance(message["type"], str) and bool(data.get("type") == message["type"])


CODEC = LangChain()
