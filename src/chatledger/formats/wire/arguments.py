"""The arguments of a call as an object, for formats and servers that accept nothing else."""

from __future__ import annotations

from chatledger.models.json import JsonObject, JsonValue, dumps, json_problem, loads, read_text

RAW = "_raw"
"""The only key of an object that was made of other arguments; it holds their text."""
_DEPTH = 480  # less than the 500 levels of a payload: the object is a few levels down


def fit_arguments(arguments: str | JsonObject | None) -> JsonObject:
    """The arguments as an object. Any other value, such as a text that was cut off or that has too many values to be
    parsed, becomes text under one key.
    """
    value = as_object(arguments)
    if value is not None:
        return value
    return {RAW: arguments if isinstance(arguments, str) else dumps(arguments)}


def as_object(arguments: str | JsonObject | None) -> JsonObject | None:
    """The arguments as an object, parsed if they are JSON text; None if they are no object. Blank text means `{}`."""
    value = _parsed(arguments) if isinstance(arguments, str) else arguments or {}
    return value if isinstance(value, dict) and json_problem(value, max_depth=_DEPTH) is None else None


def value_of(text: str) -> JsonValue:
    """The JSON value of a text that a reader wrote; the text itself if a program has changed it."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _parsed(text: str) -> JsonValue:
    try:
        return read_text(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
