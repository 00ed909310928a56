"""Reads the payload of an append in its format. A format's module is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chatledger.errors import DecodeError, InvalidArgument, ThreadNotFound
from chatledger.models import ChatMessage, Loss, Messages, NewThread, Payload, RulesLevel
from chatledger.models.weight import apart
from chatledger.repositories.threads import ThreadRepository
from chatledger.storage.databases.scope import Scope

if TYPE_CHECKING:
    from chatledger.formats.codec import Decoded


async def read_messages(
    scope: Scope,
    thread_id: str,
    messages: Messages,
    rules: RulesLevel | None,
    *,
    create: bool | NewThread = False,
) -> tuple[Sequence[ChatMessage], Sequence[Loss]]:
    """The messages that an append stores, and what their payload lost. Raises InvalidArgument for a bare text,
    UnknownFormat, DecodeError, and ThreadNotFound.
    """
    if isinstance(messages, Payload):
        decoded = await _decode(scope, thread_id, messages, rules, create)
        return decoded.messages, tuple(decoded.losses)
    if isinstance(messages, ChatMessage):
        return [messages], ()
    if isinstance(messages, str):
        raise InvalidArgument("messages", "is a text, which says not whose it is: pass ChatMessage.user(text)")
    return messages, ()


async def _decode(
    scope: Scope, thread_id: str, payload: Payload, rules: RulesLevel | None, create: bool | NewThread
) -> Decoded:
    """Decode a payload at the level that will judge its messages.

    All levels decode alike what strict accepts. So the thread's level is read only if strict refuses the payload.
    """
    from chatledger.formats import get_codec, recognise

    value = payload.value
    codec = await apart(lambda: recognise(value), value) if payload.format is None else get_codec(payload.format)
    if rules is not None:
        return await apart(lambda: codec.decode(value, rules=rules), value)
    try:
        return await apart(lambda: codec.decode(value), value)
    except DecodeError:
        stored = await ThreadRepository(scope).find(thread_id)
        if stored is None and not create:
            raise ThreadNotFound(thread_id) from None
        thread = stored or (create if isinstance(create, NewThread) else None)
        if ((thread and thread.rules) or scope.rules) != "lenient":
            raise
    return await apart(lambda: codec.decode(value, rules="lenient"), value)
