"""Finds items: one by its id, and a page of them, which costs the same however long the conversation is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from chatledger.errors import MessageNotFound
from chatledger.ledger import Ledger
from chatledger.repositories import scope_of
from chatledger.server.answers.pages import LARGEST, fitting, fitting_section, written
from chatledger.server.conversations.items import ConversationItem, items_of_all, places_of
from chatledger.storage.history.window_request import END, Window


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: list[ConversationItem]
    has_more: bool


async def find_item(ledger: Ledger, conversation_id: str, item_id: str) -> ConversationItem:
    """Raises MessageNotFound."""
    for message_id, index in places_of(item_id):
        with suppress(MessageNotFound):
            items = await items_of_all([await ledger.messages.get(conversation_id, message_id)])
            if index < len(items):
                return items[index]
    raise MessageNotFound(conversation_id, item_id)


async def read_page(
    ledger: Ledger, conversation_id: str, *, after: str | None, limit: int, newest_first: bool
) -> ItemPage:
    """The items behind the item `after`, or the first ones. Raises MessageNotFound for an unknown `after`."""
    place = None if after is None else await _place_of(ledger, conversation_id, after)
    # The page begins with the message of `after`, which may hold further items.
    first = (END if newest_first else 0) if place is None else place[0] + (1 if newest_first else -1)
    items: list[ConversationItem] = []
    size, is_full = 0, False
    cursor: int | None = first
    while cursor is not None and len(items) <= limit:
        if items and (size > LARGEST or is_full):
            break
        asked = Window.shown(scope_of(ledger).tenant, conversation_id, None, None, None)
        asked = replace(asked, limit=limit + 2, before=cursor if newest_first else None)
        asked = asked if newest_first else replace(asked, after=cursor)
        section = await fitting_section(ledger, asked)
        read = await items_of_all(section.messages)
        items += [item for item in (reversed(read) if newest_first else read) if _is_behind(item, place, newest_first)]
        size += sum(await written(section.messages))
        is_full = len(section.messages) < limit
        cursor = section.before if newest_first else section.after
    sizes = await written([item.to_json() for item in items])
    count = min(limit, fitting(sizes)) if items else 0
    return ItemPage(items[:count], has_more=len(items) > count or cursor is not None)


def _is_behind(item: ConversationItem, place: tuple[int, int] | None, newest_first: bool) -> bool:
    return place is None or (item.place < place if newest_first else item.place > place)


async def _place_of(ledger: Ledger, conversation_id: str, item_id: str) -> tuple[int, int]:
    """The place of an item, also of one that was deleted: a client may delete the items of a page and then ask on."""
    try:
        return (await find_item(ledger, conversation_id, item_id)).place
    except MessageNotFound:
        for change in reversed(await ledger.messages.revisions(conversation_id, item_id)):
            if change.message is not None and change.message.seq is not None:
                return change.message.seq, 0
        raise
