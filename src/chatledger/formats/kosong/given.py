"""Which fields of an object were given: Pydantic's `model_fields_set`, on which an exclude_unset dump depends.

Three ways of making an object give three predictable answers, and cover nearly all messages: a constructor was called
with what matters (MADE, the default, costs nothing), a short dump was read (SHORT_READ), a full dump was read (READ).
For any other the fields are listed, for each object inside the message that is not as MADE says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatledger.models.json import JsonValue

MADE, SHORT_READ, READ = "made", "short", "full"

_NAMED_BY_INIT = ("tool_calls", "tool_call_id")  # the newer constructor names them itself
_TEXT_ITSELF = "content.0"


def keep_given(message: Any, *, is_text: bool) -> JsonValue:
    """What `restore_given` needs, None for MADE. `is_text`: the one part of the message is kept as a bare text."""
    models = dict(_models(message, ""))
    found = {path: set(model.model_fields_set) for path, model in models.items()}
    for way in (MADE, SHORT_READ, READ):
        if found == {path: _expected(model, path, way, is_text=is_text) for path, model in models.items()}:
            return None if way == MADE else way
    made = {path: _expected(model, path, MADE, is_text=is_text) for path, model in models.items()}
    return {path: sorted(names) for path, names in found.items() if names != made[path]}


def restore_given(message: Any, kept: Any, *, is_text: bool) -> None:
    """Set the fields that were given, on the message and the objects inside it."""
    listed = kept if isinstance(kept, dict) else {}
    way = kept if isinstance(kept, str) else MADE
    for path, model in _models(message, ""):
        given = model.model_fields_set
        names = listed.get(path)
        given.clear()
        given.update(names if isinstance(names, list) else _expected(model, path, way, is_text=is_text))


def _models(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The object and the objects inside it. Free JSON is not entered: it may be deep, and holds none."""
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
