"""A stored history in a format: as it is stored, or as the provider behind the format accepts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from chatledger.errors import UnknownFormat
from chatledger.formats.codec import Codec, Kind
from chatledger.formats.losses.later import LossesLater
from chatledger.formats.losses.measure import write
from chatledger.formats.model_view import get_provider, model_view
from chatledger.formats.registry import BUILT_IN, get_codec, in_kind
from chatledger.models import FormattedHistory, History, Loss, Repair


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
        """Raises EncodeError for a value that no object of the format can hold, and NothingToSend."""
        if self.view == "model":
            view, repairs = model_view(self.codec, history.messages)
            return self._result(history, view.payload, view.find_losses, repairs)
        find_losses = LossesLater.of(self.codec, history.messages, carry=self.carry)
        return self._result(history, write(self.codec, history.messages, carry=self.carry).payload, find_losses)

    def _result(
        self,
        history: History,
        payload: Any,
        find_losses: Callable[[], Sequence[Loss]],
        repairs: Sequence[Repair] = (),
    ) -> FormattedHistory:
        return FormattedHistory(
            payload=in_kind(self.codec, payload, history.messages, self.kind),
            messages=history.messages,
            version=history.version,
            mark=history.mark,
            repairs=tuple(repairs),
            previous_cursor=history.previous_cursor,
            next_cursor=history.next_cursor,
            _find_losses=find_losses,
        )
