"""Formats: how other programs and providers spell messages."""

from chatledger.formats.codec import Codec, Decoded, Encoded, Kind, ModelCodec
from chatledger.formats.registry import format_names, get_codec, in_kind, recognise, recognition_order

__all__ = [
    "Codec",
    "Decoded",
    "Encoded",
    "Kind",
    "ModelCodec",
    "format_names",
    "get_codec",
    "in_kind",
    "recognise",
    "recognition_order",
]
