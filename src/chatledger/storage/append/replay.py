"""A repeated append: its ids are already stored, so it returns the first result again and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatledger.errors import IdConflict
from chatledger.models import Appended, ChatMessage
from chatledger.models.json import dumps
from chatledger.storage.append.gone import Gone
from chatledger.storage.append.preflight import Preflight
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.write import TryAgain
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.path import Segment, cut, load_range, stands_on
from chatledger.storage.history.window_request import END
from chatledger.storage.rows.changes import decode_body
from chatledger.storage.rows.messages import EncodedMessage, encode_all, encode_message
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


def find_replay(request: AppendRequest, seen: Preflight) -> Replay | None:
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
    stray = next((id_ for id_, place in seen.found.items() if not stands_on(path, *place)), None)
    if stray is not None:
        branch, seq = seen.found[stray]
        path, stamp = [Segment(branch, 1, END)], None
        on_any = request.has_key or request.ids_are_new  # only this call, or one with its key, can have stored it
        if not on_any or any(place[0] != branch for place in seen.found.values()):
            elsewhere = f"is already stored, on branch {branch} and not on branch {asked}"
            kept = f"was removed from branch {asked}, and another branch still has it; pass another id"
            raise _taken(request, decode_text(stray), kept if branch == asked else elsewhere, seq)
    found = [seen.found[id_][1] for id_ in request.message_ids if id_ in seen.found]
    consecutive = found == list(range(found[0], found[0] + len(request.message_ids)))
    in_order = len(found) == len(request.message_ids) and found == sorted(found)
    if not (consecutive or (in_order and request.close_open_calls)):
        stored_id, (_, seq) = next(iter(seen.found.items()))
        detail = "is already stored, but not with the rest of the batch in this order; append only the new messages"
        raise _taken(request, decode_text(stored_id), detail, seq)
    return Replay(path, branch, found[0], found[-1], stamp)


def _taken(request: AppendRequest, message_id: str | None, detail: str, seq: int | None = None) -> IdConflict:
    """The error for an id that is stored in another way. A caller never chose an id that is made of its key."""
    id_, key = message_id or "", request.idempotency_key
    chosen = any(message.message_id == id_ for message in request.messages)
    if chosen or key is None:
        return IdConflict("message", id_, f"id {id_!r}: {detail}", seq=seq)
    detail = f"idempotency_key {key!r}: its message {id_!r} {detail}"
    return IdConflict("idempotency_key", id_, detail, seq=seq, idempotency_key=key)


_STAMP = """
SELECT stamp FROM {schema}branches WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch
"""


def load_replay(sql: WriteSql, request: AppendRequest, replay: Replay) -> Appended | TryAgain:
    """The result of the first call again, if the message has or had the same content: a revision or a redaction may
    have changed it since. The message is returned as it is now. Raises IdConflict otherwise.
    """
    given = {row.message_id: row for row in request.rows}
    gone, stored = Gone(sql, request), []
    for segment in cut(replay.path, replay.first, replay.last):
        messages = load_range(sql, request.tenant, request.thread, *segment)
        for message, encoded in zip(messages, encode_all(messages), strict=True):
            if encoded.message_id in given:
                if request.draft is not None and message.state == "partial" and replay.stamp is None:
                    raise _taken(request, message.message_id, f"is partial on branch {replay.branch}", message.seq)
                own = given[encoded.message_id]
                if encoded != own and not _is_finished_draft(request, message) and not had(gone, message, own):
                    # With a key, the caller may never have seen the id, which is made of the key.
                    remedy = "use another idempotency_key for a new request" if request.has_key else "use another id"
                    detail = f"is already stored, with other content; {remedy}"
                    raise _taken(request, message.message_id, detail, message.seq)
                stored.append(message)
            elif message.state != "synthetic":
                detail = "is stored between the messages of the batch"
                raise _taken(request, message.message_id, detail, message.seq)
    gone.settle()
    stamp = replay.stamp
    if stamp is None:
        place = {"tenant": request.tenant.key, "thread": request.thread, "branch": replay.branch}
        stamp = next((row[0] for row in sql.fetch(_STAMP, place)), None)
    if stamp is None or len(stored) < len(given):  # the thread was deleted since the preflight found them
        return TryAgain()
    return _first_result(request, replay, stamp, stored)


def replay_plainly(request: AppendRequest, replay: Replay, stored: Sequence[ChatMessage]) -> Appended | None:
    """The result of the first call again, if `stored`, the messages with the ids of the batch, are all of the replay
    and have the content of the batch. None if only `load_replay` can tell.
    """
    alone = replay.last - replay.first + 1 == len(stored) == len(request.rows)
    if replay.stamp is None or not alone or tuple(map(encode_message, stored)) != tuple(request.rows):
        return None
    return _first_result(request, replay, replay.stamp, stored)


def _first_result(request: AppendRequest, replay: Replay, stamp: int, stored: Sequence[ChatMessage]) -> Appended:
    mark = write_mark(request.thread, replay.branch, replay.last, stamp)
    return Appended(list(stored), mark, replay.last, replayed=True)


# --- A repeat of messages that were removed ---------------------------------------------------------------------------

# A caller who repeats a call with its key gets the first result, even if somebody popped or retracted a message of it
# since. A caller's own id is free again after that. An id that was minted for this request shows that an earlier
# attempt of the request stored the message, and that its acknowledgement was lost.

_COLUMNS = ("branch", "seq", "idx", "target_branch", "target_seq", "message_id", "body", "digest")
_CHANGES = {
    dialect: f"SELECT {', '.join(_COLUMNS)} FROM {{schema}}revisions"
    f" WHERE tenant_id = :tenant AND thread_id = :thread AND message_id {among} ORDER BY created_at"
    for dialect, among in (("postgresql", "= ANY(:ids::text[])"), ("sqlite", "IN (SELECT value FROM json_each(:ids))"))
}


@dataclass(slots=True)
class Removed:
    """A message that was stored before: the forms that it had, and the digests of the redacted forms."""

    forms: list[ChatMessage] = field(default_factory=list)
    digests: list[tuple[int, int, str]] = field(default_factory=list)
    """The branch and seq of the message, and the digest."""

    def find(self, gone: Gone, given: EncodedMessage) -> ChatMessage | None:
        """The message, if it ever had this form; for a draft, if the draft was finished, whatever its words."""
        request = gone.request
        if request.draft is not None:
            return next((form for form in reversed(self.forms) if _is_finished_draft(request, form)), None)
        same = next((form for form in self.forms if encode_message(form) == given), None)
        if same is not None or not self.forms:
            return same
        places = {(branch, seq) for branch, seq, _ in self.digests}
        known = any(
            gone.matches(*place, given, {one for *at, one in self.digests if tuple(at) == place}) for place in places
        )
        return self.forms[-1] if known else None


def find_removed(sql: WriteSql, request: AppendRequest, seen: Preflight, *, again: bool) -> dict[str | None, Removed]:
    """The messages of the batch that were stored and then removed, by the id as stored. Only minted ids show that the
    batch is a repeat: those of an idempotency key, and with `again` those of an earlier attempt. Raises DamagedCell and
    EncryptionError.
    """
    if seen.absent is None or not (request.has_key or again):
        return {}
    pairs = zip(request.messages, request.message_ids, strict=True)
    minted = {id_ for message, id_ in pairs if message.message_id is None}
    missing = [id_ for id_ in request.message_ids if id_ not in seen.found]
    if not minted or not missing:
        return {}
    found: dict[str | None, Removed] = {}
    for cells in _changes_of(sql, request, missing):
        removed = found.setdefault(cells["message_id"], Removed())
        if cells["body"] is not None:
            removed.forms.append(decode_body(request.thread_id, cells))
        if cells["digest"] is not None:
            removed.digests.append((cells["target_branch"], cells["target_seq"], decode_text(cells["digest"])))
    if request.draft is not None and not any(one.find(Gone(sql, request), request.rows[0]) for one in found.values()):
        return {}  # the removed draft was never finished, so this draft starts it again
    return {} if minted.isdisjoint({*found, *seen.found}) else found


def _changes_of(sql: WriteSql, request: AppendRequest, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of the changes of messages with these ids, as stored and decrypted."""
    given: object = ids if sql.dialect == "postgresql" else dumps(ids)
    rows = sql.fetch(_CHANGES[sql.dialect], {"tenant": request.tenant.key, "thread": request.thread, "ids": given})
    if (encryption := request.tenant.encryption) is not None:
        rows = encryption.decrypt("revisions", _COLUMNS, rows, request.thread)
    return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]


def replay_removed(
    sql: WriteSql, request: AppendRequest, seen: Preflight, removed: Mapping[str | None, Removed]
) -> Appended:
    """The result of the first call again, some of whose messages were removed since. Raises IdConflict if the content
    is not the same.
    """
    gone, stored = Gone(sql, request), []
    for row in request.rows:
        if row.message_id in removed:
            message = removed[row.message_id].find(gone, row)
        else:
            message = _find_stored(gone, seen, row)
        if message is None:
            raise _taken(request, decode_text(row.message_id or ""), "was stored before, with other content")
        stored.append(message)
    gone.settle()
    last = stored[-1].seq or 0
    mark = write_mark(request.thread, stored[-1].branch or 0, last, seen.stamp)
    return Appended(stored, mark, last, replayed=True)


def _find_stored(gone: Gone, seen: Preflight, given: EncodedMessage) -> ChatMessage | None:
    place = seen.found.get(given.message_id or "")
    if place is None:
        return None
    branch, seq = place
    request = gone.request
    for message in load_range(gone.sql, request.tenant, request.thread, branch, seq, seq):
        if encode_message(message) == given or had(gone, message, given):
            return message
    return None


def _is_finished_draft(request: AppendRequest, stored: ChatMessage) -> bool:
    return request.draft is not None and stored.role == "assistant" and stored.state != "partial"


# --- Forms that the message no longer has -----------------------------------------------------------------------------

_DIGEST = """
SELECT branch, seq, digest FROM {schema}messages
WHERE tenant_id = :tenant AND thread_id = :thread AND branch = :branch AND seq = :seq
"""


def had(gone: Gone, stored: ChatMessage, given: EncodedMessage) -> bool:
    """Whether the stored message had this form before it was revised or redacted. A redaction leaves only the digest of
    a form.
    """
    sql, request, branch, seq = gone.sql, gone.request, stored.branch or 0, stored.seq or 0
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": branch, "seq": seq}
    own = sql.fetch(_DIGEST, place)
    if (encryption := request.tenant.encryption) is not None:
        own = encryption.decrypt("messages", ("branch", "seq", "digest"), own, request.thread)
    changes = _changes_of(sql, request, [given.message_id or ""])
    changes = [one for one in changes if (one["target_branch"], one["target_seq"]) == (branch, seq)]
    bodies = (decode_body(request.thread_id, one) for one in changes if one["body"] is not None)
    if any(encode_message(body) == given for body in bodies):
        return True
    cells = (*(row[-1] for row in own), *(one["digest"] for one in changes))
    digests = {decode_text(cell) for cell in cells if cell is not None}
    return bool(digests) and gone.matches(branch, seq, given, digests)
