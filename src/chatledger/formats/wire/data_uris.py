"""Data URIs: a medium as a URL that holds it."""

from __future__ import annotations

from chatledger.models import MediaPart


def is_data_uri(url: str | None) -> bool:
    return url is not None and url.startswith("data:")


def split_data_uri(url: str) -> tuple[str, str] | None:
    """(mime type, base64 data) of a data URI; None if it is not one in base64."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").split(";")[0], data


def data_uri(part: MediaPart) -> str | None:
    """The part as a data URI; None for any other URL, and for data without a type."""
    if is_data_uri(part.url):
        return part.url
    if part.data is None or part.mime_type is None:
        return None
    return f"data:{part.mime_type};base64,{part.data}"
