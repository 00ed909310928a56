"""Messages in a format, with everything that may be asked of them at once: most tests of a codec ask for it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats import Codec, Origins, Written
from chatledger.formats.losses.measure import measure, origins_of, write
from chatledger.models import ChatMessage, Loss, RulesLevel


@dataclass(frozen=True)
class Measured:
    payload: Any
    losses: list[Loss]
    origins: Origins


def origins_in(written: Written) -> Origins:
    return written.origins() if callable(written.origins) else written.origins


def encode(codec: Codec, messages: Sequence[ChatMessage], *, carry: bool = False) -> Measured:
    """The messages as the library writes them."""
    written = write(codec, messages, carry=carry)
    read = codec.decode(written.payload, rules="lenient").messages
    losses = measure(codec, messages, written, carry=carry)
    return Measured(written.payload, losses, origins_of(written, len(read)))


def refusal(codec: Codec, payload: Any, rules: RulesLevel = "strict") -> str:
    """The path of the first value for which the codec refuses the payload."""
    with pytest.raises(DecodeError) as caught:
        codec.decode(payload, rules=rules)
    return caught.value.path
