"""Data URIs: a medium as a URL that holds it."""

from __future__ import annotations


def is_data_uri(url: str | None) -> bool:
    return url is not None and url.startswith("data:")


def split_data_uri(url: str) -> tuple[str, str] | None:
    """(mime type, base64 data) of a data URI; None if it is not one in base64."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").split(";")[0], data
