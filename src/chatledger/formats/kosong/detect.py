"""Whether a payload is certainly of a revision of kosong."""

from __future__ import annotations

from chatledger.formats.kosong.models import MESSAGE_FIELDS, is_object
from chatledger.formats.kosong.parts import Revision


def is_of_revision(payload: object, revision: Revision) -> bool:
    """True for objects of the revision, and for full dumps of the newer one: short dumps look like OpenAI's."""
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(_is_message(message, revision) for message in payload)


def _is_message(message: object, revision: Revision) -> bool:
    is_newer = not revision.null_is_empty
    if isinstance(message, dict):
        return is_newer and tuple(message) == MESSAGE_FIELDS and message["content"] is not None
    return is_object(message) and hasattr(message, "extract_text") == is_newer
