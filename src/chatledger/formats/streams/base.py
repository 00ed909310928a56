"""The stream of one response: assembles the whole payload from its events.

The codec of the format reads that payload, so a streamed response is stored like an append of the whole response. An
event that is not understood is put aside: it does not change the effect of other events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from chatledger.errors import DecodeError
from chatledger.formats.streams.tree import Object
from chatledger.formats.wire.plain import dump_all, dump_given, dumped, plain_value
from chatledger.models import Delta
from chatledger.models.json import dumps, json_problem, loads

# --- Events -----------------------------------------------------------------------------------------------------------
# Events as plain dicts, and their fields: a value of the right type, or DecodeError with the path.

T = TypeVar("T")

Event = dict[str, Any]
MAX_DEPTH = 480
"""How deep an event may nest. A payload may nest 500 levels, and holds parts of an event a few levels further down."""
_DEPTH = 8
"""How far down objects may stand in an event that is a dict."""


def plain_event(value: object) -> Event:
    """A dict, or the dict that an object dumps."""
    event = plain_value(dumped(value, "$", _dump_event), "$", _DEPTH, dump_given)
    if not isinstance(event, dict):
        raise DecodeError("$", f"expected an event as a dict or an object with model_dump, not {type(event).__name__}")
    return event


def _dump_event(model_dump: Callable[..., object]) -> object:
    """The fields that were set, and also the defaults if the class has the type of its events as a default."""
    set_fields = dump_given(model_dump)
    return (
        dump_all(model_dump)
        if isinstance(set_fields, dict) and not {"type", "choices"} & set_fields.keys()
        else set_fields
    )


def field(source: Event, key: str, kind: type[T], path: str = "$") -> T | None:
    """The value under a key; None if it is absent or null."""
    value = source.get(key)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DecodeError(f"{path}.{key}", f"expected {kind.__name__}, not {type(value).__name__}")
    return value


def needed(source: Event, key: str, kind: type[T], path: str = "$") -> T:
    """The value under a key that an event of its type must have."""
    value = field(source, key, kind, path)
    if value is None:
        raise DecodeError(f"{path}.{key}", "missing")
    return value


def some_text(source: Event, key: str, path: str) -> str | None:
    """The text under a key; None for an empty text too, which servers send when they have nothing to add."""
    return field(source, key, str, path) or None


def require(condition: bool, path: str, detail: str) -> None:
    """Raises DecodeError if the condition is false: the stream does not understand the event."""
    if not condition:
        raise DecodeError(path, detail)


def parsed_input(text: str) -> Any:
    """Parse the input of a call. Returns the text itself if it is not an object because the stream was cut off; the
    codec reads text too.
    """
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) and json_problem(value, max_depth=MAX_DEPTH) is None else text


def error_text(error: object) -> str:
    """The text of a provider's error: its code or type, and its message."""
    if not isinstance(error, dict):
        return error if isinstance(error, str) and error else "the provider gave no reason"
    code, message = error.get("code") or error.get("type"), error.get("message")
    texts = [str(text) for text in (code, message) if text]
    return ": ".join(texts) or dumps(error)


# --- Streams ----------------------------------------------------------------------------------------------------------

Read: TypeAlias = Callable[[Event], Sequence[Delta]]
"""Returns the pieces of the message in an event, with which a draft is written while its stream goes on.

Readers are simpler than the payload of the whole stream: an event that adds nothing to the message has no piece, and
blocks that only the provider can read have a piece late or not at all.
"""


class Stream(ABC):
    """One response that arrives in events.

    `usage` is the provider's object, `finish_reason` the provider's word for the end of the response. `failure` is the
    reason why the provider broke off the stream, else None. `unknown` has the events that were not understood.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._unknown: list[Event] = []
        self.usage: Object | None = None
        self.finish_reason: str | None = None
        self.failure: str | None = None

    @property
    def unknown(self) -> Sequence[Event]:
        """The events that were not understood, whole and in their order."""
        return self._unknown

    def feed(self, value: object) -> Sequence[Delta]:
        """Take an event. Returns the pieces of the message that it adds, as far as they are known.

        Raises DecodeError only for a value that is not a dict and does not dump a dict.
        """
        return self.take(self.plain(value))

    def plain(self, value: object) -> Event:
        """The event as a dict. Raises DecodeError."""
        try:
            return self._plain(value)
        except DecodeError:
            if not isinstance(value, dict):
                raise
            return value  # an object in it cannot be dumped, so the event is put aside

    def take(self, event: Event) -> Sequence[Delta]:
        """Take an event that is a dict."""
        try:
            problem = json_problem(event, max_depth=MAX_DEPTH)
            require(problem is None, *(problem or ("", "")))
            self._take(event)
        except DecodeError:
            self._unknown.append(event)
            return ()
        try:
            return self._read(event)
        except DecodeError:
            return ()

    def _plain(self, value: object) -> Event:
        return plain_event(value)

    @abstractmethod
    def payload(self) -> list[Object]:
        """The response so far, for the codec of the format; empty before the first event. The codec can decode it at
        any time, because a call without a name is put aside.
        """

    @abstractmethod
    def _take(self, event: Event) -> None:
        """Add an event. If the event is not understood, raises DecodeError before it changes anything."""
