"""A repeated append: its ids are stored already, so it gives the first result again and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chatledger.errors import IdConflict
from chatledger.models import Appended, ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.append.preflight import Seen
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import Moved
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import Segment, cut, load_range
from chatledger.storage.history.window import END
from chatledger.storage.rows.changes import decode_body
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.schema.text import decode_text, write_mark


@dataclass(frozen=True, slots=True)
class Replay:
    """The interval first … last of a path that holds all ids of the batch, in order. `branch` is the branch of the
    path. `stamp` is None if nobody has read it.
    """

    path: Sequence[Segment]
    branch: int
    first: int
    last: int
    stamp: int | None = None


def find_replay(request: AppendRequest, seen: Seen) -> Replay | None:
    """None if no id of the batch is stored. A repeat stands on the path of the requested branch, where it may be
    inherited. The repeat of a call with an idempotency key may stand on any other branch of the thread.

    Raises IdConflict if the ids are stored in another way: only some, in another order, or off the path. `load_replay`
    compares the content later. It also checks the messages between the ids: only synthetic results of this append may
    stand there.
    """
    if not seen.found or not request.message_ids:
        return None
    asked = seen.active_branch if request.branch is None else request.branch
    path, branch = seen.path, asked
    stamp: int | None = seen.stamp
    stray = next((id_ for id_, place in seen.found.items() if not _stands_on(path, *place)), None)
    if stray is not None:
        branch, seq = seen.found[stray]
        path, stamp = [Segment(branch, 1, END)], None
        on_any = request.has_key or request.ids_are_new  # where only a call with this key, or this call, stored it
        if not on_any or any(place[0] != branch for place in seen.found.values()):
            elsewhere = f"stands on branch {branch} already, not on branch {asked}"
            kept = f"was removed from branch {asked}, and another branch still has it; pass another id"
            raise IdConflict(decode_text(stray), seq, kept if branch == asked else elsewhere)
    found = [seen.found[id_][1] for id_ in request.message_ids if id_ in seen.found]
    consecutive = found == list(range(found[0], found[0] + len(request.message_ids)))
    in_order = len(found) == len(request.message_ids) and found == sorted(found)
    if not (consecutive or (in_order and request.close_open_calls)):
        stored_id, (_, seq) = next(iter(seen.found.items()))
        raise IdConflict(decode_text(stored_id), seq, "is stored already, but not the batch as a whole in this order")
    return Replay(path, branch, found[0], found[-1], stamp)


def _stands_on(path: Sequence[Segment], branch: int, seq: int) -> bool:
    return any(segment.branch == branch and segment.first <= seq <= segment.last for segment in path)


_STAMP = """
SELECT stamp FROM {schema}branches WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch
"""


def load_replay(sql: Sql, request: AppendRequest, replay: Replay) -> Appended | Moved:
    """The result of the first call again, if the content is the same. Raises IdConflict otherwise."""
    given = {row.message_id: row for row in request.rows}
    stored = []
    for segment in cut(replay.path, replay.first, replay.last):
        for message in load_range(sql, request.tenant, request.thread, *segment):
            encoded = encode_message(message)
            if encoded.message_id in given:
                if request.draft is not None and message.state == "partial" and replay.stamp is None:
                    raise IdConflict(message.message_id or "", message.seq, f"is partial on branch {replay.branch}")
                if encoded != given[encoded.message_id] and not _is_finished_draft(request, message):
                    raise IdConflict(message.message_id or "", message.seq, "is stored already with other content")
                stored.append(message)
            elif message.state != "synthetic":
                raise IdConflict(message.message_id or "", message.seq, "stands between the messages of the batch")
    stamp = replay.stamp
    if stamp is None:
        place = {"tenant": request.tenant.key, "thread": request.thread, "branch": replay.branch}
        stamp = next((row[0] for row in sql.fetch(_STAMP, place)), None)
    if stamp is None or len(stored) < len(given):  # the thread was deleted since the preflight found them
        return Moved()
    mark = write_mark(request.thread, replay.branch, replay.last, stamp)
    return Appended(stored[0].seq or 0, replay.last, replay.last, stored, replayed=True, mark=mark)


# --- A repeat of messages that were removed ---------------------------------------------------------------------------

# A key is a promise, an id is a name. Whoever repeats a call with its key gets the first result, even if a message of
# it was popped or retracted since. A caller's own id is free again. An id that was minted for this request shows that
# an earlier attempt of it, whose acknowledgement was lost, stored the message.

_REMOVED = {
    dialect: "SELECT branch, seq, idx, target_branch, target_seq, message_id, body FROM {schema}revisions"
    f" WHERE tenant_id = :tenant AND thread_id = :thread AND message_id {among} AND kind <> 'revised'"
    for dialect, among in (("postgresql", "= ANY(:ids::text[])"), ("sqlite", "IN (SELECT value FROM json_each(:ids))"))
}
_REMOVED_COLUMNS = ("branch", "seq", "idx", "target_branch", "target_seq", "message_id", "body")


def find_removed(
    sql: Sql, request: AppendRequest, seen: Seen, *, again: bool
) -> dict[str | None, list[ChatMessage | None]]:
    """The messages of the batch that were stored and then removed, by the id as stored; None for one whose words were
    redacted. Only minted ids are sought: those of an idempotency key, and with `again` those of an earlier attempt.
    Raises DamagedCell and EncryptionError.
    """
    if seen.absent is None or not (request.has_key or again):
        return {}
    pairs = zip(request.messages, request.message_ids, strict=True)
    ids = [id_ for message, id_ in pairs if message.message_id is None and id_ not in seen.found]
    if not ids:
        return {}
    given: object = ids if sql.dialect == "postgresql" else dumps(ids)
    rows = sql.fetch(_REMOVED[sql.dialect], {"tenant": request.tenant.key, "thread": request.thread, "ids": given})
    if (encryption := request.tenant.encryption) is not None:
        rows = encryption.decrypt("revisions", _REMOVED_COLUMNS, rows, request.thread)
    found: dict[str | None, list[ChatMessage | None]] = {}
    for row in rows:
        found.setdefault(row[5], []).append(
            decode_body(request.thread_id, dict(zip(_REMOVED_COLUMNS, row, strict=True)))
        )
    return found


def replay_removed(
    sql: Sql, request: AppendRequest, seen: Seen, removed: Mapping[str | None, Sequence[ChatMessage | None]]
) -> Appended:
    """The result of the first call again, some of whose messages were removed since. Raises IdConflict if the content
    is not the same.
    """
    stored = []
    for row in request.rows:
        if (place := seen.found.get(row.message_id or "")) is not None:
            branch, seq = place
            forms: Sequence[ChatMessage | None] = load_range(sql, request.tenant, request.thread, branch, seq, seq)
        else:
            forms = removed.get(row.message_id, ())
        same = [form for form in forms if form is not None and encode_message(form) == row]
        if not same:
            said = "is stored already with other content" if any(forms) else _GONE if forms else _HALF
            raise IdConflict(decode_text(row.message_id or ""), None, said)
        stored.append(same[0])
    first, last = stored[0].seq or 0, stored[-1].seq or 0
    mark = write_mark(request.thread, stored[-1].branch or 0, last, seen.stamp)
    return Appended(first, last, last, stored, replayed=True, mark=mark)


_GONE = "was stored and removed, and its words were redacted since"
_HALF = "is not stored, but other messages of the batch are"


def _is_finished_draft(request: AppendRequest, stored: ChatMessage) -> bool:
    return request.draft is not None and stored.role == "assistant" and stored.state != "partial"
