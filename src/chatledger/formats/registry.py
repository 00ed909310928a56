"""The formats by name. The module of a format is loaded when its name is first used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from chatledger.errors import EncodeError, UnknownFormat
from chatledger.formats.codec import Codec, Kind, ModelCodec
from chatledger.models import ChatMessage

# Name -> module and attribute, in the order of recognition: the more telling shape first.
_CODECS = {
    "google-adk": "chatledger.formats.google_adk:CODEC",
    "message-file": "chatledger.formats.message_file:CODEC",
    "agent-service": "chatledger.formats.agent_service:CODEC",
    "kosong/0.30": "chatledger.formats.kosong:CODEC",
    "kosong/0.23": "chatledger.formats.kosong.v0_23:CODEC",
    "qwen-agent": "chatledger.formats.qwen_agent:CODEC",
    "anthropic": "chatledger.formats.anthropic:CODEC",
    "openai-responses": "chatledger.formats.openai_responses:CODEC",
    "openai-chat": "chatledger.formats.openai_chat:CODEC",
}
_ALIASES = {"kosong": "kosong/0.30"}  # resolved before the write: the stored name has the revision


def format_names() -> list[str]:
    """The names that `format=` takes, without aliases."""
    return sorted(_CODECS)


def recognition_order() -> list[str]:
    """The same names, the more telling shape first."""
    return list(_CODECS)


def get_codec(name: str) -> Codec:
    """The codec of a name or an alias. Raises UnknownFormat with the known names."""
    try:
        module, attribute = _CODECS[_ALIASES.get(name, name)].split(":")
    except KeyError:
        raise UnknownFormat(name, f"unknown format {name!r}; there are {', '.join(format_names())}") from None
    codec: Codec = getattr(importlib.import_module(module), attribute)
    return codec


def recognise(payload: object) -> Codec:
    """The first codec that is sure of the payload. Raises UnknownFormat when none is."""
    for name in _CODECS:
        codec = get_codec(name)
        if codec.recognises(payload):
            return codec
    raise UnknownFormat(
        None,
        f"no format recognises this {type(payload).__name__}; give a list of messages, or say what it is with format= "
        f"({', '.join(format_names())})",
    )


def in_kind(codec: Codec, payload: Any, messages: Sequence[ChatMessage], kind: Kind | None) -> Any:
    """The payload as objects or as dicts; `kind` None is the kind that the messages came in as. Raises EncodeError for
    objects of a format that has no classes.
    """
    if isinstance(codec, ModelCodec):
        return codec.as_models(payload) if (kind or codec.given_as(messages)) == "models" else payload
    if kind == "models":
        raise EncodeError("", f"{codec.name} has no classes of its own; it is written as dicts")
    return payload
