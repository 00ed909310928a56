"""The headers by which a write is safe to send again, and refused if its caller has not seen the present state."""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated, Literal

from fastapi import Depends, Header

from chatledger.errors import InvalidArgument
from chatledger.models import Mark, Thread
from chatledger.server.answers.json_response import to_json
from chatledger.storage.schema.text import encode_key


async def _key(
    idempotency_key: Annotated[
        str | None,
        Header(
            description="A request with the same key is a repeat, and stores nothing. The key stands for the ids of "
            "messages that have none: send a message that has an id with the same id again."
        ),
    ] = None,
) -> str | None:
    """The key as a text, or as the quoted text that the draft of the header's standard asks for."""
    key = idempotency_key
    if key is not None:
        key = key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key
        encode_key(key, "Idempotency-Key")
    return key


async def _mark(
    if_match: Annotated[
        str | None, Header(description="Write only at this mark of the branch, the `ETag` of a read; else 412.")
    ] = None,
) -> Mark | None:
    return None if if_match is None or if_match.strip() == "*" else Mark(without_quotes(if_match))


async def _state(
    mark: Annotated[Mark | None, Depends(_mark)],
    if_none_match: Annotated[
        str | None, Header(description="`*`: write only if the branch has no message yet; else 412.")
    ] = None,
) -> Mark | Literal[0] | None:
    """Raises InvalidArgument for a tag, which says nothing about a write."""
    if if_none_match is None:
        return mark
    if if_none_match.strip() != "*":
        raise InvalidArgument("If-None-Match", "must be * with a write; send the mark that you have read in If-Match")
    if mark is not None:
        raise InvalidArgument("If-None-Match", "cannot be combined with If-Match; pass one of them")
    return 0


def is_known(if_none_match: str | None, tag: str | None) -> bool:
    """Whether the client has the state of this entity tag already, compressed or not."""
    if if_none_match is None or tag is None:
        return False
    known = {without_quotes(etag) for etag in if_none_match.split(",")}
    return "*" in known or without_quotes(tag) in known


def tag_of(thread: Thread) -> str:
    """The entity tag of a thread: its version, and what a message changes too, which no update waits for."""
    digest = hashlib.blake2b(to_json(thread).encode("ascii"), digest_size=9).digest()
    return f'"{thread.version}.{base64.urlsafe_b64encode(digest).decode()}"'


def without_quotes(tag: str) -> str:
    """The value of an entity tag."""
    return tag.strip().removeprefix("W/").strip('"')


IdempotencyKey = Annotated[str | None, Depends(_key)]
"""The header `Idempotency-Key`."""
ExpectedMark = Annotated[Mark | None, Depends(_mark)]
"""The mark in the header `If-Match`."""
ExpectedState = Annotated[Mark | Literal[0] | None, Depends(_state)]
"""The mark in the header `If-Match`, or 0 for `If-None-Match: *`."""
