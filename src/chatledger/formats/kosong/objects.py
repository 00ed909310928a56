"""Messages that come as objects, of ours or of the real package, and go out as ours.

An object is known by its fields, not by its class, so nothing is imported and any release will do. Its attributes are
read rather than its dump: the older dump writes `""` and `[]` alike, the newer one drops the class of a lone text.

The residual also keeps which fields were given (Pydantic's `model_fields_set`), because an exclude_unset dump depends
on them. Three ways of making an object give predictable answers and cover nearly all messages: calling a constructor
with what matters (MADE, the default, costs nothing), reading a short dump (SHORT_READ), reading a full dump (READ).
For any other object the fields are listed, for each object inside the message that differs from MADE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from chatledger.errors import DecodeError
from chatledger.formats.kosong.models import ContentPart, UnknownPart, part_class
from chatledger.formats.kosong.revision import Revision
from chatledger.models.json import JsonObject, JsonValue

MESSAGE_FIELDS = ("role", "name", "content", "tool_calls", "tool_call_id", "partial")


def is_object(value: object) -> bool:
    """Whether it is a Pydantic object with the fields of a message."""
    fields = getattr(type(value), "model_fields", None)
    return isinstance(fields, dict) and fields.keys() >= set(MESSAGE_FIELDS)


def object_fields(message: Any, path: str) -> JsonObject:
    """The fields of a message object, its parts and calls as their own dumps."""
    held = vars(message)
    missing = [name for name in MESSAGE_FIELDS if name not in held]
    if missing:
        raise DecodeError(f"{path}.{missing[0]}", "missing")
    fields = {name: held[name] for name in MESSAGE_FIELDS}
    for name in ("content", "tool_calls"):
        if isinstance(fields[name], list):
            fields[name] = [dump_object(item, f"{path}.{name}[{index}]") for index, item in enumerate(fields[name])]
    return fields


def dump_object(value: Any, path: str) -> JsonValue:
    """An object's own dump. Raises DecodeError for anything that an application's serializer raises."""
    if not hasattr(type(value), "model_fields"):
        return value
    try:
        return value.model_dump(warnings=False)
    except Exception as error:
        raise DecodeError(path, f"{type(value).__name__}.model_dump raised {type(error).__name__}") from error


def classes_of(message: Any) -> dict[int, str]:
    """The type under which a part's class was registered, for each part that states another type; by index."""
    content = vars(message)["content"]
    stated = enumerate(content) if isinstance(content, list) else ()
    found = {index: (_registered_as(part), getattr(part, "type", None)) for index, part in stated}
    return {index: own for index, (own, given) in found.items() if own is not None and own != given}


def _registered_as(part: Any) -> str | None:
    field = getattr(type(part), "model_fields", {}).get("type")
    default = getattr(field, "default", None)
    return default if isinstance(default, str) else None


def is_plain_text(message: Any) -> bool:
    """Whether the content is one text part without further fields: then the message keeps only the text."""
    content = vars(message)["content"]
    if not isinstance(content, list) or len(content) != 1 or type(content[0]).__name__ != "TextPart":
        return False
    held = vars(content[0])
    return held.get("type") == "text" and isinstance(held.get("text"), str) and len(held) == 2


def build(revision: Revision, fields: JsonObject, classes: Any) -> Any:
    """A message object, with parts of their classes. A part that no class accepts is an UnknownPart."""
    content = fields.get("content")
    if isinstance(content, list):
        named = classes if isinstance(classes, dict) else {}
        content = [_build_part(part, named.get(str(index)), revision) for index, part in enumerate(content)]
    return revision.message.model_validate({**fields, "content": content})


def _build_part(value: JsonValue, part_type: Any, revision: Revision) -> ContentPart:
    stated = value.get("type") if isinstance(value, dict) else None
    if not isinstance(stated, str):
        return UnknownPart(type="", value=value)
    found = part_class(part_type if isinstance(part_type, str) else stated, videos=revision.has_videos)
    with suppress(ValidationError, TypeError):
        if found is not None:
            return found.model_validate(value)
    return UnknownPart(type=stated, value=value)


MADE, SHORT_READ, READ = "made", "short", "full"

_NAMED_BY_INIT = ("tool_calls", "tool_call_id")  # the newer constructor always passes them on
_TEXT_ITSELF = "content.0"


def keep_given(message: Any, *, is_text: bool) -> JsonValue:
    """The value that `restore_given` needs, None for MADE. `is_text` says that the residual keeps a lone text part as
    its text.
    """
    models = dict(_models(message, ""))
    found = {path: set(model.model_fields_set) for path, model in models.items()}
    for way in (MADE, SHORT_READ, READ):
        if found == {path: _expected(model, path, way, is_text=is_text) for path, model in models.items()}:
            return None if way == MADE else way
    made = {path: _expected(model, path, MADE, is_text=is_text) for path, model in models.items()}
    return {path: sorted(names) for path, names in found.items() if names != made[path]}


def restore_given(message: Any, kept: Any, *, is_text: bool) -> None:
    """Mark the fields that were given, on the message and the objects inside it."""
    listed = kept if isinstance(kept, dict) else {}
    way = kept if isinstance(kept, str) else MADE
    for path, model in _models(message, ""):
        given = model.model_fields_set
        names = listed.get(path)
        given.clear()
        given.update(names if isinstance(names, list) else _expected(model, path, way, is_text=is_text))


def _models(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The object and the objects inside it, with their paths. Free JSON is skipped: it holds none and may be deep."""
    if isinstance(getattr(type(value), "model_fields", None), dict):
        yield path, value
        for name, child in list(vars(value).items()):
            yield from _models(child, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and all(hasattr(type(item), "model_fields") for item in value):
        for index, item in enumerate(value):
            yield from _models(item, f"{path}.{index}")


def _expected(model: Any, path: str, way: str, *, is_text: bool) -> set[str]:
    if is_text and path == _TEXT_ITSELF:
        return {"text"}
    fields = type(model).model_fields
    values = vars(model)
    if way == READ:
        return set(fields)
    if way == SHORT_READ:
        names = (
            set(fields) if path.startswith("content.") else {name for name in fields if values.get(name) is not None}
        )
    else:
        names = {name for name, info in fields.items() if info.is_required() or values.get(name) != info.default}
    return names.union(_NAMED_BY_INIT) if path == "" and hasattr(model, "extract_text") else names
