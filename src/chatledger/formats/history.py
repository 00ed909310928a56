"""A stored history in a format: as it is stored, or as the provider behind the format accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from chatledger.errors import UnknownFormat
from chatledger.formats.codec import Codec, Kind
from chatledger.formats.model_view import get_provider, model_view
from chatledger.formats.registry import BUILT_IN, get_codec, in_kind
from chatledger.models import FormattedHistory, History, Repair


def load_built_in() -> None:
    """Import the built-in formats and their model's views, which otherwise happens on first use."""
    for name in BUILT_IN:
        get_codec(name)
        with suppress(UnknownFormat):
            get_provider(name)


@dataclass(frozen=True, slots=True)
class HistoryFormat:
    """How a history is to be written. `kind` None writes objects or dicts, whichever the messages came in as."""

    codec: Codec
    view: Literal["stored", "model"]
    kind: Kind | None
    carry: bool

    @classmethod
    def of(cls, format: str, *, view: Literal["stored", "model"], as_: Kind | None, carry: bool) -> HistoryFormat:  # noqa: A002
        """Raises UnknownFormat, also for the model's view of a format that no provider stands behind."""
        codec = get_codec(format)
        if view == "model":
            get_provider(codec.name)
        return cls(codec, view, as_, carry)

    def write(self, history: History) -> FormattedHistory:
        repairs: Sequence[Repair] = ()
        if self.view == "model":
            encoded, repairs = model_view(self.codec, history.messages)
        else:
            encoded = self.codec.encode(history.messages, carry=self.carry)
        return FormattedHistory(
            payload=in_kind(self.codec, encoded.payload, history.messages, self.kind),
            messages=history.messages,
            version=history.version,
            mark=history.mark,
            losses=tuple(encoded.losses),
            repairs=tuple(repairs),
            previous_cursor=history.previous_cursor,
            next_cursor=history.next_cursor,
        )
