"""What the parts of all formats share: data URIs, which are URLs that hold a medium, and signatures of reasoning."""

from __future__ import annotations

from typing import Any

from chatledger.formats.wire.residual import nested
from chatledger.models import MediaPart, ThinkPart


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


# --- Signatures -------------------------------------------------------------------------------------------------------
# Which provider signed a thought. It checks its signature and takes it back; every other provider refuses it.
#
# A format that stands in front of several providers keeps the name of the signer in the `extras` of the thought, under
# `provider`, and the id that this provider knows the thought by under `id`. A format of one provider needs no such
# word.

PROVIDER = "provider"
ID = "id"
ANTHROPIC = "anthropic"
GOOGLE = "google"
OPENAI = "openai"
_SIGNERS = {"anthropic": ANTHROPIC, "openai-responses": OPENAI}
"""The formats behind which one provider stands, with its name."""


def signed_by(provider: str | None, id_: str | None = None) -> dict[str, Any] | None:
    """The extras of a thought; None if neither is known."""
    told = {PROVIDER: provider, ID: id_}
    return {key: value for key, value in told.items() if value is not None} or None


def signer_of(part: ThinkPart, source_format: str | None) -> str | None:
    """The provider that signed a thought of a message in `source_format`; None if nobody says."""
    told = nested(part.extras, PROVIDER)
    return told if isinstance(told, str) else _SIGNERS.get(source_format or "")


def id_of(part: ThinkPart) -> str | None:
    """The id that the signer knows the thought by; None if the thought does not say it."""
    told = nested(part.extras, ID)
    return told if isinstance(told, str) else None
