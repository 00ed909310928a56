"""A format as the tests of all of them see it: what it can say, and what must come back.

`written` is how a payload reads as dicts, `levels` everything that may be asked of an object: its dumps with their key
order, its JSON, and where the format tells them, the fields given. `test_laws.py` has the laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel


@dataclass(frozen=True)
class RoundTrip:
    format: str
    messages: st.SearchStrategy[Any]
    """One message: an object of the format's own, or a dict where it has none."""
    rows: st.SearchStrategy[dict[str, Any]] | None = None
    """One message as a dict with any key order and unknown keys, where that is more than the dump of an object."""
    levels: Callable[[Any], Any] | None = None
    around: Callable[[list[Any]], Any] = list
    """The payload of some messages as dicts."""
    inside: Callable[[Any], Any] = list
    """The objects of a payload of objects."""
    whole: st.SearchStrategy[Any] | None = None
    """Payloads that are more than messages in a row: with something around them, or of another shape."""
    misshapen: st.SearchStrategy[Any] = field(default_factory=st.nothing)
    """Payloads of the right keys with anything under them."""
    residuals: st.SearchStrategy[Any] = field(default_factory=st.nothing)
    """Residuals of the right keys with anything under them."""
    filled: Callable[[Any], Any] = lambda message: message
    """A dict as an object of a class that fills in what the dict leaves out."""
    samples: Mapping[str, Any] = field(default_factory=dict)
    """Payloads that the format's own classes wrote."""

    @property
    def lists(self) -> st.SearchStrategy[list[Any]]:
        """Payloads that can stand one behind the other: objects, dicts, and both kinds mixed."""
        messages = self.messages if self.rows is None else self.messages | self.rows
        return st.lists(messages | self.messages.map(dumped), max_size=4)

    @property
    def payloads(self) -> st.SearchStrategy[Any]:
        return self.lists if self.whole is None else self.lists | self.whole

    def written(self, payload: Any) -> Any:
        """The payload as dicts, as it is written."""
        if isinstance(payload, (list, tuple)):
            return self.around([dumped(self.filled(message)) for message in payload])
        return payload if isinstance(payload, str) else dumped(payload)


def dumped(message: Any) -> Any:
    """A message as the dict that it reads as; any other value unchanged."""
    if not isinstance(message, BaseModel):
        return message
    return message.to_dict() if hasattr(message, "to_dict") else message.model_dump()


def json_or_refusal(message: Any, **options: Any) -> str:
    try:
        return str(message.model_dump_json(**options))
    except ValueError as error:  # a lone surrogate has no UTF-8
        return repr(error)


def levels_of_dumps(message: Any) -> tuple[Any, ...]:
    """The object and its dumps as text, in which NaN equals NaN and key order counts."""
    flags: list[dict[str, bool]] = [{"exclude_none": False}, {"exclude_none": True}]
    dumps = [(repr(message.model_dump(**options)), json_or_refusal(message, **options)) for options in flags]
    return type(message).__name__, repr(message), dumps


def levels_with_given_fields(message: Any) -> tuple[Any, ...]:
    given = repr(message.model_dump(exclude_unset=True)), json_or_refusal(message, exclude_unset=True)
    return *levels_of_dumps(message), given, message.model_fields_set
