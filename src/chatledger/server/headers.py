"""The headers by which a write is safe to send again, and refused if its caller has not seen the present state."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header

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
) -> str | None:
    return None if if_match is None or if_match.strip() == "*" else without_quotes(if_match)


def without_quotes(tag: str) -> str:
    """The value of an entity tag."""
    return tag.strip().removeprefix("W/").strip('"')


IdempotencyKey = Annotated[str | None, Depends(_key)]
"""The header `Idempotency-Key`."""
ExpectedMark = Annotated[str | None, Depends(_mark)]
"""The mark in the header `If-Match`."""
