"""A repeated append: its ids are stored already, so it gives the first result again and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from chatledger.errors import IdConflict
from chatledger.models import Appended, ChatMessage
from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import Moved
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import load_range
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.text import decode_text


@dataclass(frozen=True, slots=True)
class Replay:
    """The interval of the requested branch that holds all ids of the batch, in order."""

    branch: int
    first: int
    last: int


def find_replay(request: AppendRequest, seen: Seen) -> Replay | None:
    """None if no id of the batch is stored. Raises IdConflict if only some are stored, or if they are stored in another
    order or on another branch.

    `load_replay` compares the content later. It also checks the messages between the ids: only synthetic results of
    this append may stand there.
    """
    if not seen.found or not request.message_ids:
        return None
    stored_id, (branch, seq) = next(iter(seen.found.items()))
    asked = seen.active_branch if request.branch is None else request.branch
    if branch != asked:
        raise IdConflict(decode_text(stored_id), seq, f"stands on branch {branch} already, not on branch {asked}")
    places = [seen.found.get(id_) for id_ in request.message_ids]
    found = [place[1] for place in places if place is not None and place[0] == asked]
    consecutive = found == list(range(found[0], found[0] + len(places)))
    in_order = len(found) == len(places) and found == sorted(found)
    if not (consecutive or (in_order and request.close_open_calls)):
        raise IdConflict(decode_text(stored_id), seq, "is stored already, but not the batch as a whole in this order")
    return Replay(asked, found[0], found[-1])


def load_replay(sql: Sql, request: AppendRequest, replay: Replay) -> Appended | Moved:
    """The result of the first call again, if the content is the same. Raises IdConflict otherwise."""
    given = {row.message_id: row for row in request.rows}
    stored = []
    for message in load_range(sql, request.tenant, request.thread, replay.branch, replay.first, replay.last):
        encoded = encode_message(message)
        if encoded.message_id in given:
            if encoded != given[encoded.message_id] and not _is_finished_draft(request, message):
                raise IdConflict(message.message_id or "", message.seq, "is stored already with other content")
            stored.append(message)
        elif message.state != "synthetic":
            raise IdConflict(message.message_id or "", message.seq, "stands between the messages of the batch")
    if len(stored) < len(given):  # the thread was deleted since the preflight found them
        return Moved()
    return Appended(stored[0].seq or 0, replay.last, replay.last, stored, replayed=True)


def _is_finished_draft(request: AppendRequest, stored: ChatMessage) -> bool:
    return request.draft is not None and stored.role == "assistant" and stored.state != "partial"
