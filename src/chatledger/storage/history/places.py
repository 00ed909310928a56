"""Where a message stands that a caller names: by itself or its id. Inside the library, a seq is a place too."""

from __future__ import annotations

from dataclasses import replace
from types import NoneType
from typing import NamedTuple, TypeAlias

from chatledger.arguments import STR, Kind, require
from chatledger.errors import InvalidArgument, MessageNotFound
from chatledger.models import ChatMessage
from chatledger.storage.drivers.sql import ReadSql
from chatledger.storage.history.path import Path, find_message, find_path, stands_on
from chatledger.storage.history.window_request import Window


class Place(NamedTuple):
    """The branch that stores a message, and its seq."""

    branch: int
    seq: int


At: TypeAlias = Place | str | int | None
"""A place, the id of a message, a seq of the branch, or None for the beginning."""

MESSAGE = Kind("a ChatMessage or its id", ChatMessage, str)
MESSAGE_OR_NONE = Kind("a ChatMessage, its id or None", ChatMessage, str, NoneType)


def read_place(thread_id: str, message: ChatMessage | str | None, kind: Kind = MESSAGE_OR_NONE, *, named: str) -> At:
    """Raises InvalidArgument for what is no stored message, and MessageNotFound for one of another thread."""
    require(kind, **{named: message})
    if not isinstance(message, ChatMessage):
        return message
    if message.thread_id not in (None, thread_id):
        raise MessageNotFound(thread_id, message.message_id, seq=message.seq, detail="that was given")
    if message.message_id is not None:
        return message.message_id
    if message.branch is None or message.seq is None:
        raise InvalidArgument(named, "is a message that no call returned, and has no message_id")
    return Place(message.branch, message.seq)


def read_id(thread_id: str, message: ChatMessage | str, *, named: str = "message") -> str:
    """The id of a stored message. Raises InvalidArgument and MessageNotFound as `read_place` does."""
    require(STR, thread_id=thread_id)
    place = read_place(thread_id, message, MESSAGE, named=named)
    if isinstance(place, str):
        return place
    raise InvalidArgument(named, "has no message_id")


def seek(sql: ReadSql, window: Window, at: At) -> tuple[Path, int]:
    """The path of the branch, and the seq of the message on it; 0 for None. If the window names no branch, and the
    active one does not have the message, it is the branch that stores it. Raises ThreadNotFound, BranchNotFound and
    MessageNotFound.
    """
    path = find_path(sql, window)
    place = find_place(sql, window, at)
    if window.branch is None and isinstance(place, Place) and not _has(path, place):
        path = find_path(sql, replace(window, branch=place.branch))
    return path, seq_on(window, path, place)


def find_place(sql: ReadSql, window: Window, at: At) -> Place | int:
    """Raises MessageNotFound for an id that the thread does not have."""
    if at is None:
        return 0
    if not isinstance(at, str):
        return at
    message = find_message(sql, window, at)
    if message is None or message.branch is None or message.seq is None:
        raise MessageNotFound(window.thread_id, at)
    return Place(message.branch, message.seq)


def seq_on(window: Window, path: Path, place: Place | int) -> int:
    """Raises MessageNotFound if the path does not have the message."""
    if not isinstance(place, Place):
        return place
    if not _has(path, place):
        raise MessageNotFound(
            window.thread_id, seq=place.seq, detail=f"of branch {place.branch} on branch {path.branch}"
        )
    return place.seq


def _has(path: Path, place: Place) -> bool:
    return place.seq <= path.last_seq and stands_on(path.segments, *place)
