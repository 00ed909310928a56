"""Formats: how other programs and providers spell messages."""

from chatledger.formats.codec import Codec, Decoded, EarlyCodec, Encoded, Kind, ModelCodec
from chatledger.formats.registry import (
    format_names,
    get_codec,
    in_kind,
    recognise,
    recognition_order,
    register,
    unusable_formats,
)

__all__ = [
    "Codec",
    "Decoded",
    "EarlyCodec",
    "Encoded",
    "Kind",
    "ModelCodec",
    "format_names",
    "get_codec",
    "in_kind",
    "recognise",
    "recognition_order",
    "register",
    "unusable_formats",
]
