"""Formats: how other programs and providers spell messages.

docs/formats/write-a-format.md shows how to add one, with the names that are for its author: `Codec` and its kin,
`register`, `measured` with `Written`, `require_json`, `keep_deep` and `restore_deep`.
"""

from chatledger.formats.codec import Codec, Decoded, EarlyCodec, Encoded, Kind, ModelCodec
from chatledger.formats.losses.measure import Written, measured
from chatledger.formats.registry import (
    asked_before,
    format_names,
    get_codec,
    in_kind,
    recognise,
    recognition_order,
    register,
    unusable_formats,
)
from chatledger.formats.wire.plain import require_json
from chatledger.formats.wire.residual import keep_deep, restore_deep

__all__ = [
    "Codec",
    "Decoded",
    "EarlyCodec",
    "Encoded",
    "Kind",
    "ModelCodec",
    "Written",
    "asked_before",
    "format_names",
    "get_codec",
    "in_kind",
    "keep_deep",
    "measured",
    "recognise",
    "recognition_order",
    "register",
    "require_json",
    "restore_deep",
    "unusable_formats",
]
