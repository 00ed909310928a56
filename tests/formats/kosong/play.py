"""Plays a golden case on any module that has kosong's classes: the real package, or ours.

A case says what to make. `{"$TextPart": {"text": "x"}}` is a call of that class, `{"$Message.model_validate": …}` one
of that method with its argument as it stands, `{"$merge": [left, right]}` a merge. What it gives is every dump, and
the fields that count as given.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

FLAGS: tuple[dict[str, bool], ...] = ({}, {"exclude_none": True}, {"exclude_unset": True})


def make(spec: Any, module: Any) -> Any:
    if isinstance(spec, list):
        return [make(item, module) for item in spec]
    if not isinstance(spec, dict):
        return spec
    name, argument = next(iter(spec.items()), ("", None))
    if not name.startswith("$"):
        return {key: make(value, module) for key, value in spec.items()}
    called = reduce(getattr, name[1:].split("."), module)
    return called(argument) if "model_validate" in name else called(**make(argument, module))


def play(spec: Any, module: Any) -> Any:
    """The result of a case: dumps and set fields, the outcome of a merge, or the name of the error."""
    try:
        if "$merge" in spec:
            left, right = make(spec["$merge"], module)
            return {"merged": left.merge_in_place(right), "left": left.model_dump(), "right": right.model_dump()}
        return dumps_of(make(spec, module))
    except Exception as error:
        return {"raises": type(error).__name__}


def dumps_of(message: Any) -> dict[str, Any]:
    """Every dump of a message. As JSON text, so that key order counts."""
    found: dict[str, Any] = {"given": sorted(message.model_fields_set)}
    for flags in FLAGS:
        name = "".join(f" {flag}" for flag in flags)
        found[f"dump{name}"] = json.dumps(message.model_dump(**flags), ensure_ascii=False)
        found[f"json{name}"] = message.model_dump_json(**flags)
    return found
