"""Whether a payload is certainly of a revision of kosong."""

from __future__ import annotations

from chatledger.formats.kosong.models import MESSAGE_FIELDS, is_object
from chatledger.formats.kosong.parts import Revision


def is_of_revision(payload: object, revision: Revision) -> bool:
    """True for objects of the revision, and for full dumps: short dumps look like OpenAI's.

    Only the older revision dumps empty content as null. Without such content, full dumps are taken for the newer
    revision.
    """
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    if not all(_is_message(message, revision) for message in payload):
        return False
    return not revision.null_is_empty or any(not isinstance(one, dict) or one["content"] is None for one in payload)


def _is_message(message: object, revision: Revision) -> bool:
    is_newer = not revision.null_is_empty
    if isinstance(message, dict):
        return tuple(message) == MESSAGE_FIELDS and not (is_newer and message["content"] is None)
    return is_object(message) and hasattr(message, "extract_text") == is_newer
