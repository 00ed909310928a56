"""Messages that come as objects, of ours or of the real package, and go out as ours.

An object is known by what it has, not by its class, so nothing is imported and any release will do. Its attributes
are read rather than its dump: the older dump writes `""` and `[]` alike, the newer one drops the class of a lone text.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.kosong.parts import ContentPart, UnknownPart, part_class
from chatledger.formats.kosong.revision import Revision
from chatledger.models.json import JsonValue

Row = dict[str, JsonValue]

_FIELDS = ("role", "name", "content", "tool_calls", "tool_call_id", "partial")


def is_object(value: object) -> bool:
    """Whether it is a Pydantic object with the fields of a message."""
    fields = getattr(type(value), "model_fields", None)
    return isinstance(fields, dict) and fields.keys() >= set(_FIELDS)


def row_of(message: Any, path: str) -> Row:
    """The fields of a message object, its parts and calls as their own dumps."""
    held = vars(message)
    missing = [name for name in _FIELDS if name not in held]
    if missing:
        raise DecodeError(f"{path}.{missing[0]}", "missing")
    row = {name: held[name] for name in _FIELDS}
    for name in ("content", "tool_calls"):
        if isinstance(row[name], list):
            row[name] = [dump_of(item, f"{path}.{name}[{index}]") for index, item in enumerate(row[name])]
    return row


def dump_of(value: Any, path: str) -> JsonValue:
    """An object's own dump. Whatever an application's serializer raises, it is the payload that cannot be read."""
    if not hasattr(type(value), "model_fields"):
        return value
    try:
        return value.model_dump(warnings=False)
    except Exception as error:
        raise DecodeError(path, f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error


def classes_of(message: Any) -> dict[int, str]:
    """The type that a part's class was registered under, for each part that states another one."""
    content = vars(message)["content"]
    stated = enumerate(content) if isinstance(content, list) else ()
    found = {index: (_registered_as(part), getattr(part, "type", None)) for index, part in stated}
    return {index: own for index, (own, given) in found.items() if own is not None and own != given}


def _registered_as(part: Any) -> str | None:
    field = getattr(type(part), "model_fields", {}).get("type")
    default = getattr(field, "default", None)
    return default if isinstance(default, str) else None


def is_plain_text(message: Any) -> bool:
    """Whether the content is one text part with nothing of its own: then the message keeps just the text."""
    content = vars(message)["content"]
    if not isinstance(content, list) or len(content) != 1 or type(content[0]).__name__ != "TextPart":
        return False
    held = vars(content[0])
    return held.get("type") == "text" and isinstance(held.get("text"), str) and len(held) == 2


def build(revision: Revision, row: Row, classes: Any) -> Any:
    """A message object from a row: parts of their classes, and those that no class takes as unknown ones."""
    content = row.get("content")
    if isinstance(content, list):
        named = classes if isinstance(classes, dict) else {}
        content = [_build_part(part, named.get(str(index)), revision) for index, part in enumerate(content)]
    return revision.message.model_validate({**row, "content": content})


def _build_part(value: JsonValue, part_type: Any, revision: Revision) -> ContentPart:
    stated = value.get("type") if isinstance(value, dict) else None
    if not isinstance(stated, str):
        return UnknownPart(type="", value=value)
    found = part_class(part_type if isinstance(part_type, str) else stated, videos=revision.has_videos)
    with suppress(ValidationError, TypeError):
        if found is not None:
            return found.model_validate(value)
    return UnknownPart(type=stated, value=value)
