"""Formats: the shapes in which providers and frameworks write messages.

docs/contribute/write-a-format.md shows how to add one. The names here are for its author.
"""

from chatledger.formats.codec import Codec, Decoded, EarlyCodec, Kind, ModelCodec, Origins, Written
from chatledger.formats.losses.measure import losses_of
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
    "Kind",
    "ModelCodec",
    "Origins",
    "Written",
    "asked_before",
    "format_names",
    "get_codec",
    "in_kind",
    "keep_deep",
    "losses_of",
    "recognise",
    "recognition_order",
    "register",
    "require_json",
    "restore_deep",
    "unusable_formats",
]
