"""Making a source plain JSON in lenient: what json would change or refuse is kept as its text, and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatledger.errors import DecodeError
from chatledger.models import Loss
from chatledger.models.json import MAX_DEPTH, JsonValue, json_problem


def require_plain(source: Any, path: str) -> None:
    """Raise DecodeError with the path of the first value that is not JSON, or of what is nested too deep."""
    problem = json_problem(source, max_depth=MAX_DEPTH)
    if problem is not None:
        raise DecodeError(path + problem[0].removeprefix("$"), problem[1])


def make_plain(source: Any, path: str) -> tuple[JsonValue, list[Loss]]:
    """The source with each live object as its repr, tuples as lists, keys as text; a loss for each of them.

    Raises DecodeError only for what is nested too deep.
    """
    if json_problem(source, max_depth=MAX_DEPTH) is None:
        return source, []
    losses: list[Loss] = []
    plain = _plain(source, path, 1, losses)
    return plain, losses


def _plain(value: Any, path: str, depth: int, losses: list[Loss]) -> JsonValue:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if depth > MAX_DEPTH:
        raise DecodeError(path[:80], f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        keys = _text_keys(value, path, losses)
        return {text: _plain(value[key], f"{path}.{text}", depth + 1, losses) for text, key in keys}
    if isinstance(value, tuple):
        losses.append(Loss("coerced", None, path))
    if isinstance(value, (list, tuple)):
        return [_plain(child, f"{path}[{index}]", depth + 1, losses) for index, child in enumerate(value)]
    losses.append(Loss("coerced", None, path))
    return repr(value)


def _text_keys(value: dict[Any, Any], path: str, losses: list[Loss]) -> Iterator[tuple[str, Any]]:
    for key in value:
        text = key if isinstance(key, str) else repr(key)
        if text is not key:
            losses.append(Loss("coerced", None, f"{path}.{text}"))
        yield text, key
