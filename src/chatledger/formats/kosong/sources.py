"""A message that came in, as a ChatMessage whose residual holds all that its fields do not say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import to_jsonable_python

from chatledger.errors import DecodeError
from chatledger.formats.kosong.given import keep_given
from chatledger.formats.kosong.objects import classes_of, dump_of, is_plain_text, row_of
from chatledger.formats.kosong.reading import read_message
from chatledger.formats.kosong.revision import AS_DICT, CLASSES, DUMP, FIELDS, GIVEN, PARTIAL, SHORT, Revision
from chatledger.formats.kosong.writing import Row, dump, shortened, write
from chatledger.formats.wire.plain import COERCED
from chatledger.formats.wire.residual import keep_deep
from chatledger.models import ChatMessage, Loss
from chatledger.models.json import MAX_DEPTH, json_problem, text_of


def decode_dict(source: Any, path: str, revision: Revision, losses: list[Loss], *, lenient: bool) -> ChatMessage:
    """A message from a dict: written again it is that dict, with its key order and the keys that nobody knows."""
    source = as_json(source, path, losses, lenient=lenient)
    message = read_message(source, path, revision, lenient=lenient)
    message = message.model_copy(update={"residual": _partial(source)})
    full = write(message, revision)
    is_short = len(source) < len(full)
    found = keep_deep(source, shortened(full) if is_short else full)
    residual = {AS_DICT: True, **({SHORT: True} if is_short else {}), **({FIELDS: found} if found else {})}
    return message.model_copy(update={"residual": {**residual, **(message.residual or {})}})


def decode_object(source: Any, path: str, revision: Revision, losses: list[Loss], *, lenient: bool) -> ChatMessage:
    """A message from an object: written again it is an equal object with equal dumps."""
    row = as_json(row_of(source, path), path, losses, lenient=lenient)
    own_dump = as_json(dump_of(source, path), path, [], lenient=lenient)
    classes = classes_of(source)
    if is_text := not revision.null_is_empty and is_plain_text(source):
        row["content"] = row["content"][0]["text"]
    message = read_message(row, path, revision, lenient=lenient, classes=classes)
    message = message.model_copy(update={"residual": _partial(row)})
    written = dump(row, revision)
    residual = {
        FIELDS: keep_deep(row, write(message, revision)),
        DUMP: keep_deep(own_dump, written),
        CLASSES: {str(index): name for index, name in classes.items()} or None,
        GIVEN: keep_given(source, is_text=is_text or isinstance(row["content"], str)),
        **(message.residual or {}),
    }
    return message.model_copy(update={"residual": {k: v for k, v in residual.items() if v is not None} or None})


def _partial(source: Row) -> dict[str, bool] | None:
    partial = source.get("partial")
    return {PARTIAL: partial} if isinstance(partial, bool) else None


def as_json(source: Row, path: str, losses: list[Loss], *, lenient: bool) -> Row:
    """The source, which must be JSON throughout; lenient makes it so and reports the first place."""
    problem = json_problem(source, max_depth=MAX_DEPTH)
    if problem is None:
        return source
    place = path + problem[0].removeprefix("$")
    if not lenient:
        raise DecodeError(place, problem[1])
    losses.append(Loss(COERCED, None, place))
    return _coerced(source, place)


def _coerced(source: Row, place: str) -> Row:
    """Live objects as their JSON or their text, tuples as lists, keys as text; too deep is refused even so."""
    if _holds_iterator(source):
        raise DecodeError(place, "an iterator, which may have no end")
    try:
        coerced: Row = to_jsonable_python(source, fallback=text_of, inf_nan_mode="constants")
    except Exception as error:  # of an application's class, its own
        raise DecodeError(place, "cannot be written as JSON") from error
    problem = json_problem(coerced, max_depth=MAX_DEPTH)
    if problem is not None:
        raise DecodeError(place, problem[1])
    return coerced


def _holds_iterator(source: Row) -> bool:
    pending, seen = [source], set[int]()
    while pending:
        item: Any = pending.pop()
        if isinstance(item, Iterator):
            return True
        if isinstance(item, (dict, list, tuple, set, frozenset)) and id(item) not in seen:
            seen.add(id(item))
            pending += item.values() if isinstance(item, dict) else item
    return False
