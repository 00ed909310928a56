"""The formats by name: the built-in ones, those that a program registers, and those of installed packages.

A format has a place, `module:attribute`, which is loaded when its name is first used. A table has the places of the
built-in formats. A package names its own as entry points of the group `chatledger.formats`; they are looked up when an
unknown name is requested, or when all formats are needed. `register` adds a codec that is loaded already.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from threading import RLock
from typing import TYPE_CHECKING, Any

from chatledger.errors import EncodeError, IdConflict, InvalidArgument, UnknownFormat
from chatledger.formats.codec import Codec, EarlyCodec, Kind, ModelCodec, checked
from chatledger.models import ChatMessage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Name -> module and attribute, in the order of recognition: more specific shapes first.
_CODECS = {
    "google-adk": "chatledger.formats.google_adk:CODEC",
    "langchain": "chatledger.formats.langchain:CODEC",
    "message-file": "chatledger.formats.message_file:CODEC",
    "agent-service": "chatledger.formats.agent_service:CODEC",
    "agent-framework": "chatledger.formats.agent_framework:CODEC",
    "pydantic-ai": "chatledger.formats.pydantic_ai:CODEC",
    "ai-sdk": "chatledger.formats.ai_sdk:CODEC",
    "kosong/0.30": "chatledger.formats.kosong:CODEC",
    "kosong/0.23": "chatledger.formats.kosong.v0_23:CODEC",
    "qwen-agent": "chatledger.formats.qwen_agent:CODEC",
    "anthropic": "chatledger.formats.anthropic:CODEC",
    "openai-responses": "chatledger.formats.openai_responses:CODEC",
    "openai-chat": "chatledger.formats.openai_chat:CODEC",
}
_ALIASES = {"kosong": "kosong/0.30"}  # resolved before the write: the stored name has the revision


def _is_here(place: str) -> bool:
    """Whether this installation has the folder of a format, which is a part that it may lack."""
    return find_spec(".".join(place.partition(":")[0].split(".")[:3])) is not None


_HERE = {name: place for name, place in _CODECS.items() if _is_here(place)}
BUILT_IN = tuple(_HERE)
"""The names of the built-in formats that this installation has, in the order of recognition."""
RECORD_NAMES = frozenset({"auto", "oasst", "sharegpt", "swe-agent"})
"""The names that mean something else to an import, so that no format may have them."""

_log = logging.getLogger("chatledger.formats")


class Registry:
    """The formats of a process. `own` has the places of the built-in formats."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self._places: dict[str, CodecPlace] | None = None
        self._codecs: dict[str, Codec] = {}
        self._faults: dict[str, str] = {}
        self._order: list[str] | None = None
        self._lock = RLock()  # reentrant, since a module may register formats while it is loaded

    def add(self, codec: Codec) -> None:
        name = checked(codec).name
        if name in RECORD_NAMES or name in _ALIASES:
            raise InvalidArgument("codec", f"cannot be named {name!r}: chatledger uses this name for something else")
        with self._lock:
            known = self.find(name)
            if known is codec:
                return
            if known is not None:
                detail = f"the format {name!r} is registered already, as {_class_of(known)}; choose another name"
                raise IdConflict("format", name, detail)
            self._codecs[name] = codec
            self._order = None
            self._faults.pop(name, None)

    def find(self, name: str) -> Codec | None:
        """The codec of a name; None if there is none, or if it belongs to a package and cannot be loaded."""
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
        """The order if the codec were registered."""
        self.order()
        return _ordered(list(self._own), {**self._codecs, codec.name: codec})

    def faults(self) -> dict[str, str]:
        """The reason for each format of an installed package that cannot be loaded. Loads those not loaded yet."""
        self.order()
        return self._faults

    def load_only(self, names: Collection[str]) -> None:
        """Of the formats of installed packages, load those of these names and no other. Raises InvalidArgument."""
        with self._lock:
            for name in names:
                if self.find(name) is None:
                    reason = self._faults.get(name, "is not a format of an installed package")
                    raise InvalidArgument("format", f"{name!r} {reason}")
            self._places, self._order = {}, None

    def _look(self) -> dict[str, CodecPlace]:
        """The places that installed packages name and that were not requested yet. They are looked up once."""
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


_FORMATS = Registry(_HERE)


def register(codec: Codec) -> None:
    """Make a format known to this process, so that its name can be used like those of the built-in formats.

    Registering the same codec again changes nothing. A package can name its codec as an entry point of the group
    `chatledger.formats` instead, under the codec's own name: then the command line knows it too, and no program needs
    to call this. Raises InvalidArgument with the member that the codec lacks, and IdConflict for the name of another
    format.
    """
    _FORMATS.add(codec)


def load_only(names: Collection[str]) -> None:
    """Load of the formats of other packages only these, for a process that must not run the code of any package that
    happens to be installed. Raises InvalidArgument for a name that no installed package has.
    """
    _FORMATS.load_only(names)


def unusable_formats() -> dict[str, str]:
    """The formats of installed packages that cannot be used, each with the reason. Loads those not loaded yet."""
    return dict(_FORMATS.faults())


_FIRST = 8  # elements of a list that are looked at first


def format_names() -> list[str]:
    """The names that `format=` takes, sorted and without aliases. Loads the formats of installed packages."""
    return sorted(recognition_order())


def recognition_order() -> list[str]:
    """The names of all formats in the order in which `recognise` asks them: more specific shapes first. Loads the
    formats of installed packages.
    """
    return list(_FORMATS.order())


def asked_before(codec: Codec) -> list[str]:
    """The names of the formats that `recognise` asks before this one. The codec need not be registered."""
    order = _FORMATS.order_with(codec)
    return order[: order.index(codec.name)]


def get_codec(name: str) -> Codec:
    """The codec of a name or an alias. Loads its module on first use. Raises UnknownFormat with the known names."""
    codec = _FORMATS.find(_ALIASES.get(name, name))
    if codec is not None:
        return codec
    if name in (faults := _FORMATS.faults()):
        raise UnknownFormat(name, f"the format {name!r} {faults[name]}")
    raise unknown_format(name, format_names())


def unknown_format(name: str, known: Sequence[str]) -> UnknownFormat:
    alike = get_close_matches(name, known, 1)
    more = f"did you mean {alike[0]!r}? K" if alike else "k"
    return UnknownFormat(name, f"unknown format {name!r}; {more}nown formats: {', '.join(known)}")


def recognise(payload: object) -> Codec:
    """The first codec that recognises the payload. Loads the formats that it asks. Raises UnknownFormat, for a long
    list as soon as no codec recognises its first elements: the beginning of a conversation is one, if only in a plainer
    format.
    """
    begins = not isinstance(payload, list) or len(payload) <= _FIRST or _recognised(payload[:_FIRST]) is not None
    codec = _recognised(payload) if begins else None
    if codec is not None:
        return codec
    raise UnknownFormat(
        None,
        f"no format recognises this {type(payload).__name__}; pass a list of messages, or name its format with format= "
        f"({', '.join(format_names())})",
    )


def _recognised(payload: object) -> Codec | None:
    return next((codec for codec in map(get_codec, _FORMATS.order()) if codec.recognises(payload)), None)


def in_kind(codec: Codec, payload: Any, messages: Sequence[ChatMessage], kind: Kind | None) -> Any:
    """The payload as objects or as dicts; with `kind=None`, as the kind that the messages came in as. Raises
    EncodeError for the objects of a format that has no classes.
    """
    if isinstance(codec, ModelCodec):
        return codec.as_models(payload) if (kind or codec.given_as(messages)) == "models" else payload
    if kind == "models":
        raise EncodeError("", f"{codec.name} has no classes of its own; use as_='dicts'")
    return payload


def _load(place: str) -> Codec:
    module, attribute = place.split(":")
    return checked(getattr(importlib.import_module(module), attribute))


def _class_of(codec: Codec) -> str:
    return f"{type(codec).__module__}.{type(codec).__qualname__}"


def _ordered(own: list[str], codecs: Mapping[str, Codec]) -> list[str]:
    """The built-in formats first, so that an installed package changes nothing for payloads that these recognise; then
    the others by name. A codec with `before` moves before the formats that it names.
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


# --- Installed packages -----------------------------------------------------------------------------------------------
# The formats that installed packages name, as entry points of the group `chatledger.formats`.

GROUP = "chatledger.formats"


@dataclass(frozen=True, slots=True)
class CodecPlace:
    """Where the codec of a package lies. Its text says it, with the name of the package."""

    point: EntryPoint

    def load(self) -> Codec:
        """Raises anything that the module of the package raises, and InvalidArgument for what is no codec."""
        codec = checked(self.point.load())
        if codec.name != self.point.name:
            raise InvalidArgument("codec", f"is named {codec.name!r}, but its entry point is named {self.point.name!r}")
        return codec

    def __str__(self) -> str:
        package = "" if self.point.dist is None else f" of the package {self.point.dist.name}"
        return f"{self.point.value}{package}"


def find_places(taken: Collection[str]) -> tuple[dict[str, CodecPlace], dict[str, str]]:
    """The places of formats by name, and why other names cannot be used. Loads no package."""
    from importlib.metadata import entry_points  # takes longer than loading a format, and few programs need it

    places_of: dict[str, list[CodecPlace]] = {}
    for point in entry_points(group=GROUP):
        places_of.setdefault(point.name, []).append(CodecPlace(point))
    places, faults = {}, {}
    for name, named in places_of.items():
        spelled = " and ".join(sorted({str(place) for place in named}))
        if name in taken:
            faults[name] = f"of {spelled} is not used: the name belongs to chatledger"
        elif len({place.point.value for place in named}) > 1:
            faults[name] = f"is not used: {spelled} have the same name; uninstall one of them"
        else:
            places[name] = named[0]
    return places, faults
