"""The formats by name: ours, those that a program registers, and those of installed packages.

A format has a place, `module:attribute`, which is loaded when its name is first used. Ours stand in a table. A package
names its own as entry points of the group `chatledger.formats`; they are looked for when a name is asked for that is
not known yet, or when all formats are needed. `register` adds a codec that is loaded already.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

from chatledger.errors import AlreadyExists, EncodeError, InvalidArgument, UnknownFormat
from chatledger.formats.codec import Codec, EarlyCodec, Kind, ModelCodec, checked
from chatledger.formats.packages import Place, find_places
from chatledger.models import ChatMessage

# Name -> module and attribute, in the order of recognition: the more telling shape first.
_CODECS = {
    "google-adk": "chatledger.formats.google_adk:CODEC",
    "langchain": "chatledger.formats.langchain:CODEC",
    "message-file": "chatledger.formats.message_file:CODEC",
    "agent-service": "chatledger.formats.agent_service:CODEC",
    "agent-framework": "chatledger.formats.agent_framework:CODEC",
    "pydantic-ai": "chatledger.formats.pydantic_ai:CODEC",
    "kosong/0.30": "chatledger.formats.kosong:CODEC",
    "kosong/0.23": "chatledger.formats.kosong.v0_23:CODEC",
    "qwen-agent": "chatledger.formats.qwen_agent:CODEC",
    "anthropic": "chatledger.formats.anthropic:CODEC",
    "openai-responses": "chatledger.formats.openai_responses:CODEC",
    "openai-chat": "chatledger.formats.openai_chat:CODEC",
}
_ALIASES = {"kosong": "kosong/0.30"}  # resolved before the write: the stored name has the revision
RECORD_NAMES = frozenset({"auto", "oasst", "sharegpt", "swe-agent"})
"""The names that an import has for other things, so that no format may have them."""

_log = logging.getLogger("chatledger.formats")


class Registry:
    """The formats of a process. `own` has the places of those that are there from the beginning."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self._places: dict[str, Place] | None = None
        self._codecs: dict[str, Codec] = {}
        self._faults: dict[str, str] = {}
        self._order: list[str] | None = None
        self._lock = RLock()  # reentrant, since a module may register formats while it is loaded

    def add(self, codec: Codec) -> None:
        name = checked(codec).name
        if name in RECORD_NAMES or name in _ALIASES:
            raise InvalidArgument("codec", f"cannot be named {name!r}, which means something else in chatledger")
        with self._lock:
            known = self.find(name)
            if known is codec:
                return
            if known is not None:
                detail = f"there is a format {name!r} already, a {_class_of(known)}; give the other one another name"
                raise AlreadyExists(name, detail)
            self._codecs[name] = codec
            self._order = None
            self._faults.pop(name, None)

    def find(self, name: str) -> Codec | None:
        """The codec of a name; None if there is none, or one of an installed package that cannot be loaded."""
        if name in self._codecs:
            return self._codecs[name]
        with self._lock:
            codec = _load(self._own[name]) if name in self._own else self._load_of_package(name)
            return None if codec is None else self._codecs.setdefault(name, codec)

    def order(self) -> list[str]:
        """The names of all formats that can be loaded, in the order of recognition."""
        order = self._order
        if order is None:
            with self._lock:
                for name in list(self._look()):
                    self.find(name)
                order = self._order = _ordered(list(self._own), self._codecs)
        return order

    def order_with(self, codec: Codec) -> list[str]:
        """The order as it is if the codec is registered."""
        self.order()
        return _ordered(list(self._own), {**self._codecs, codec.name: codec})

    def faults(self) -> dict[str, str]:
        """The reason for each format of an installed package that cannot be loaded. Those not tried yet are tried."""
        self.order()
        return self._faults

    def _look(self) -> dict[str, Place]:
        """The places that installed packages name and that nobody asked for yet. They are looked for once."""
        if self._places is None:
            self._places, faults = find_places(self._own.keys() | RECORD_NAMES | _ALIASES.keys())
            for name, fault in faults.items():
                self._note(name, fault)
        return self._places

    def _load_of_package(self, name: str) -> Codec | None:
        place = self._look().pop(name, None)
        if place is None:
            return None
        try:
            return place.load()
        except Exception as error:  # whatever the code of others raises
            self._note(name, f"cannot be loaded from {place}: {type(error).__name__}: {error}")
            return None

    def _note(self, name: str, fault: str) -> None:
        self._faults[name] = fault
        _log.warning("the format %r %s", name, fault)


_FORMATS = Registry(_CODECS)


def register(codec: Codec) -> None:
    """Make a format known to this process, so that it is used by its name wherever ours are.

    Raises InvalidArgument, which says what the codec lacks, and AlreadyExists for the name of another format. The same
    codec again changes nothing. A package can name its codec as an entry point of the group `chatledger.formats`
    instead, under the codec's own name: then the command line knows it as well, and nobody has to call this.
    """
    _FORMATS.add(codec)


def unusable_formats() -> dict[str, str]:
    """The formats of installed packages that cannot be used, each with the reason. Loads those not used so far."""
    return dict(_FORMATS.faults())


def format_names() -> list[str]:
    """The names that `format=` takes, without aliases."""
    return sorted(recognition_order())


def recognition_order() -> list[str]:
    """The same names, the more telling shape first."""
    return list(_FORMATS.order())


def asked_before(codec: Codec) -> list[str]:
    """The formats that are asked before this one whether they recognise a payload. It need not be registered."""
    order = _FORMATS.order_with(codec)
    return order[: order.index(codec.name)]


def get_codec(name: str) -> Codec:
    """The codec of a name or an alias. Raises UnknownFormat with the known names."""
    codec = _FORMATS.find(_ALIASES.get(name, name))
    if codec is not None:
        return codec
    if name in (faults := _FORMATS.faults()):
        raise UnknownFormat(name, f"the format {name!r} {faults[name]}")
    raise UnknownFormat(name, f"unknown format {name!r}; there are {', '.join(format_names())}")


def recognise(payload: object) -> Codec:
    """The first codec that is sure of the payload. Raises UnknownFormat when none is."""
    for name in _FORMATS.order():
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


def _load(place: str) -> Codec:
    module, attribute = place.split(":")
    return checked(getattr(importlib.import_module(module), attribute))


def _class_of(codec: Codec) -> str:
    return f"{type(codec).__module__}.{type(codec).__qualname__}"


def _ordered(own: list[str], codecs: Mapping[str, Codec]) -> list[str]:
    """Ours first, so that a package which is installed changes nothing for what they are sure of; then the others by
    name. A codec with `before` moves before the formats that it names.
    """
    others = sorted(codecs.keys() - set(own))
    order = [*own, *others]
    for name in others:
        codec = codecs[name]
        later = [_ALIASES.get(other, other) for other in codec.before] if isinstance(codec, EarlyCodec) else []
        places = [order.index(other) for other in (*later, name) if other in order]
        order.remove(name)
        order.insert(min(places), name)
    return order
