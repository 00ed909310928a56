"""A stored history in a format: as it is stored, or as the provider behind the format accepts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chatledger.errors import EncodeError
from chatledger.formats.codec import Codec, Kind, ModelCodec
from chatledger.formats.model_view import get_provider, model_view
from chatledger.formats.registry import get_codec
from chatledger.models import ChatMessage, FormattedHistory, History, Repair


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
            payload=self._in_kind(encoded.payload, history.messages),
            messages=history.messages,
            version=history.version,
            losses=tuple(encoded.losses),
            repairs=tuple(repairs),
            next_cursor=history.next_cursor,
        )

    def _in_kind(self, payload: Any, messages: Sequence[ChatMessage]) -> Any:
        """The payload as objects or as dicts."""
        if isinstance(self.codec, ModelCodec):
            kind = self.kind or self.codec.given_as(messages)
            return self.codec.as_models(payload) if kind == "models" else payload
        if self.kind == "models":
            raise EncodeError("", f"{self.codec.name} has no classes of its own; it is written as dicts")
        return payload
