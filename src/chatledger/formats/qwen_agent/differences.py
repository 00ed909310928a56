"""Where a source differs from the row that its typed fields give, object by object.

The message itself, each content item and the call have a residual of their own, so that one odd key of one item does
not keep the whole content twice. Those of the inner objects stand under "inner" by their path: `content.0`,
`reasoning_content.2`, `function_call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatledger.formats.wire.residual import INNER, keep, restore
from chatledger.models.json import JsonValue

_CALL = "function_call"
_LISTS = ("content", "reasoning_content")


def keep_row(source: Mapping[str, Any], row: dict[str, Any]) -> dict[str, JsonValue]:
    """The residual with which `restore_row` gives the source; empty if the row equals it."""
    theirs = _objects(source)
    kept = {path: keep(theirs[path], ours) for path, ours in _objects(row).items() if path in theirs}
    inner = {path: residual for path, residual in kept.items() if residual is not None}
    return (keep(source, _with_inner(row, inner)) or {}) | ({INNER: inner} if inner else {})


def restore_row(row: dict[str, JsonValue], residual: Any) -> dict[str, JsonValue]:
    """The source. A residual of another shape changes nothing."""
    if not isinstance(residual, dict):
        return row
    return restore(_with_inner(row, residual.get(INNER)), residual)


def _objects(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The objects inside a row, by their path."""
    found = {_CALL: row[_CALL]} if isinstance(row.get(_CALL), dict) else {}
    for key in _LISTS:
        items = row.get(key)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                found[f"{key}.{index}"] = item
    return found


def _with_inner(row: dict[str, Any], inner: Any) -> dict[str, Any]:
    if not isinstance(inner, dict) or not inner:
        return row
    restored = {path: restore(found, inner.get(path)) for path, found in _objects(row).items()}
    return {key: _replaced(key, value, restored) for key, value in row.items()}


def _replaced(key: str, value: Any, restored: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [restored.get(f"{key}.{index}", item) for index, item in enumerate(value)]
    return restored.get(key, value)
