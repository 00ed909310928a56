"""Ids of which a call reads many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chatledger.arguments import STRINGS, require
from chatledger.errors import InvalidArgument, LimitExceeded
from chatledger.storage.schema.text import encode_key

AT_ONCE = 500
"""The most ids that one statement names."""


def read_ids(argument: str, ids: Sequence[str]) -> list[str]:
    """The ids without those that no row can have, and each once."""
    require(STRINGS, **{argument: ids})
    if isinstance(ids, str):  # each of its characters would be taken for an id
        raise InvalidArgument(argument, "must be a list of str, not str")
    return list(dict.fromkeys(filter(_is_key, ids)))


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(ids), AT_ONCE):
        yield ids[at : at + AT_ONCE]


def _is_key(text: str) -> bool:
    try:
        encode_key(text, "id")
    except (InvalidArgument, LimitExceeded):
        return False
    return True
