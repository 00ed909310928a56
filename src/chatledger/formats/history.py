"""Stored messages in a format: as they are stored, or as the provider behind the format accepts them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from chatledger.errors import UnknownFormat
from chatledger.formats.codec import Kind
from chatledger.formats.losses.measure import LossesLater, write
from chatledger.formats.model_view import get_provider, model_view
from chatledger.formats.registry import BUILT_IN, get_codec, in_kind
from chatledger.models import ChatMessage, Encoded, Repair


def load_built_in() -> None:
    """Import the built-in formats and their model's views, which otherwise happens on first use."""
    for name in BUILT_IN:
        get_codec(name)
        with suppress(UnknownFormat):
            get_provider(name)


def encode(format: str, messages: Sequence[ChatMessage], *, kind: Kind | None = None, carry: bool = False) -> Encoded:  # noqa: A002
    """The messages as they are stored. `kind` None writes objects or dicts, whichever they came in as. Raises
    UnknownFormat, and EncodeError for a value that no object of the format can hold.
    """
    codec = get_codec(format)
    find_losses = LossesLater.of(codec, messages, carry=carry)
    payload = in_kind(codec, write(codec, messages, carry=carry).payload, messages, kind)
    return Encoded(payload, find_losses)


def require_provider(format: str) -> None:  # noqa: A002
    """Raises UnknownFormat for a format that no provider stands behind."""
    get_provider(get_codec(format).name)


def prompt(
    format: str,  # noqa: A002
    messages: Sequence[ChatMessage],
    kind: Kind | None = None,
) -> tuple[Any, tuple[Repair, ...]]:
    """The messages as the provider accepts them, and what was changed. Raises UnknownFormat, EncodeError, and
    NothingToSend if there would be no message, such as for an empty thread.
    """
    codec = get_codec(format)
    view, repairs = model_view(codec, messages)
    return in_kind(codec, view.payload, messages, kind), tuple(repairs)
