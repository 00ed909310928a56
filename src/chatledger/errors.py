"""The errors that chatledger raises.

    ChatLedgerError
      NotFound
        ThreadNotFound          .thread_id
        BranchNotFound          .thread_id .branch
        MessageNotFound         .thread_id .message_id .seq
        RunNotFound             .run_id
        FeedbackNotFound        .feedback_id
      Conflict
        VersionConflict         .thread_id .branch .expected .actual
        IdConflict              .id .seq
        RunConflict             .run_id
        AlreadyExists           .id
        Erased                  .thread_id
        DraftLive               .thread_id .branch .seq .message_id .until
        DraftLost               .thread_id .branch .seq
        RevisionConflict        .thread_id .expected .actual
        KvConflict              .key .expected .found
      RuleViolation             .rule .index .message
      FormatError
        UnknownFormat           .format
        DecodeError             .path (and .record, .byte for a file)
        EncodeError             .path
        NothingToSend           .format .reasons
      LimitExceeded             .limit .given .maximum
      InvalidArgument           .argument
      InvalidCursor             .cursor
      TenantOnly                .call
      OutcomeUnknown            .message_ids
      StorageError              .retryable
        DamagedCell             .table .column .key
      EncryptionError           .place
        KeyUnavailable          .key_id
        NotAuthentic            .key_id
        NotEncrypted
        TenantEncrypted         .tenant
      SchemaMismatch            .found .expected .command
      MissingExtra              .extra

Building a model raises Pydantic's ValidationError for errors that the model itself can see: an unknown role, a date
without a zone, a NaN score. A call raises InvalidArgument for them. Both are ValueErrors. The library raises no other
types. To a tenant, the ids of another tenant do not exist, and to a user's ledger those of other users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any


class ChatLedgerError(Exception):
    """The base of all errors of this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default a copy calls the class with `args`, which is the text; our constructors take facts instead.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ChatLedgerError], args: tuple[object, ...]) -> ChatLedgerError:
    return kind.__new__(kind, *args)


def _text(given: object, form: str = "") -> str:
    """A number in that form, or another value as Python writes it."""
    try:
        return format(given, form) if isinstance(given, int) else repr(given)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of more than 4,300 digits"


class NotFound(ChatLedgerError):
    """The requested object does not exist for this tenant or, on a user's ledger, for this user."""


class ThreadNotFound(NotFound):
    def __init__(self, thread_id: str) -> None:
        super().__init__(f"there is no thread {thread_id!r}")
        self.thread_id = thread_id


class BranchNotFound(NotFound):
    def __init__(self, thread_id: str, branch: int) -> None:
        super().__init__(f"thread {thread_id!r} has no branch {_text(branch)}")
        self.thread_id = thread_id
        self.branch = branch


class MessageNotFound(NotFound):
    """The message was requested by its id or by its seq; the other is None."""

    def __init__(
        self, thread_id: str, message_id: str | None = None, *, seq: int | None = None, detail: str = ""
    ) -> None:
        which = repr(message_id) if seq is None else f"at seq {_text(seq)}"
        super().__init__(f"thread {thread_id!r} has no message {which}" + (detail and f" {detail}"))
        self.thread_id = thread_id
        self.message_id = message_id
        self.seq = seq


class RunNotFound(NotFound):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r}")
        self.run_id = run_id


class FeedbackNotFound(NotFound):
    def __init__(self, feedback_id: str) -> None:
        super().__init__(f"there is no feedback {feedback_id!r}")
        self.feedback_id = feedback_id


class Conflict(ChatLedgerError):
    """The stored data contradicts the request."""


class VersionConflict(Conflict):
    """The branch is not in the state that the caller expected. Read it again and decide. The versions may be the same
    if something else of it moved.
    """

    def __init__(self, thread_id: str, branch: int, expected: int, actual: int, detail: str = "") -> None:
        if actual == expected:
            moved = detail or "something else of it moved: a draft, an output, a fork, or the active branch"
            state = f"still at version {actual}, but {moved}"
        else:
            state = f"at version {actual}, not {_text(expected)}" + (detail and f": {detail}")
        super().__init__(f"branch {_text(branch)} of thread {thread_id!r} is {state}")
        self.thread_id = thread_id
        self.branch = branch
        self.expected = expected
        self.actual = actual


class IdConflict(Conflict):
    """The id belongs to something else already. `seq` is its position; None if the id occurs twice in the batch."""

    def __init__(self, id: str, seq: int | None, detail: str) -> None:  # noqa: A002 - the attribute is `.id`
        super().__init__(f"id {id!r}: {detail}")
        self.id = id
        self.seq = seq

    @property
    def message_id(self) -> str:
        return self.id


class RunConflict(Conflict):
    def __init__(self, run_id: str, detail: str) -> None:
        super().__init__(f"run {run_id!r}: {detail}")
        self.run_id = run_id


class AlreadyExists(Conflict):
    def __init__(self, id: str, detail: str) -> None:  # noqa: A002 - the attribute is `.id`
        super().__init__(detail)
        self.id = id


class Erased(Conflict):
    """The thread was erased, and its id cannot be used again."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id!r} was erased; its id is not used again")
        self.thread_id = thread_id


class DraftLive(Conflict):
    """The message at the end of the branch is partial, and its writer holds a lease on it `until` that time. The call
    wrote nothing.
    """

    def __init__(self, thread_id: str, branch: int, seq: int, message_id: str | None, until: datetime) -> None:
        super().__init__(
            f"message {seq} of branch {branch} of thread {thread_id!r} is still being written, and its writer holds it "
            f"until {until.isoformat(timespec='seconds')}; wait, or cut it short with on_open_calls='interrupt'"
        )
        self.thread_id = thread_id
        self.branch = branch
        self.seq = seq
        self.message_id = message_id
        self.until = until


class DraftLost(Conflict):
    """Somebody else completed, interrupted or took over the message that is being streamed, or deleted its thread."""

    def __init__(self, thread_id: str, branch: int, seq: int) -> None:
        super().__init__(f"message {seq} of branch {branch} of thread {thread_id!r} is no longer this draft's to write")
        self.thread_id = thread_id
        self.branch = branch
        self.seq = seq


class RevisionConflict(Conflict):
    """Somebody else updated the thread since the caller read it. Read it again and decide."""

    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        super().__init__(f"thread {thread_id!r} is at revision {actual}, not {_text(expected)}; read it again")
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual


class KvConflict(Conflict):
    """The value under a key does not have the version that the caller expected. `found` is the version that it has; 0
    if there is none. The call wrote nothing: read the value again and decide.
    """

    def __init__(self, key: str, expected: int, found: int) -> None:
        wanted = f"version {_text(expected)}" if expected else "no value"
        state = f"is at version {found}" if found else "has no value"
        super().__init__(f"key {key!r} {state}, and {wanted} was expected; read it again")
        self.key = key
        self.expected = expected
        self.found = found


class RuleViolation(ChatLedgerError):
    """A message breaks a rule. `rule` is its name (R1 … R13). `index` is the message's position in the batch, or its
    seq if stored messages are judged.
    """

    def __init__(self, rule: str, index: int, message: str, *, where: str | None = None) -> None:
        super().__init__(f"{where or f'message {index} of the batch'} breaks {rule}: {message}")
        self.rule = rule
        self.index = index
        self.message = message


class FormatError(ChatLedgerError):
    """A payload does not match a format."""


class UnknownFormat(FormatError):
    def __init__(self, format: str | None, detail: str) -> None:  # noqa: A002 - the attribute is `.format`
        super().__init__(detail)
        self.format = format


class DecodeError(FormatError):
    """A payload cannot be read. `path` locates the error in the payload, `record` and `byte` in a file."""

    def __init__(self, path: str, detail: str, *, record: int | None = None, byte: int | None = None) -> None:
        place = path if record is None else f"record {record}" + (f", byte {byte}" if byte is not None else "")
        super().__init__(f"{place}: {detail}" if place else detail)
        self.path = path
        self.detail = detail
        self.record = record
        self.byte = byte


class EncodeError(FormatError):
    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}" if path else detail)
        self.path = path


class NothingToSend(FormatError):
    """No message can be written in the format, and no provider accepts a request without messages. Append a message of
    the user first, or read a window that has one.

    `reasons` has for each message its seq and a sentence that says why it cannot be sent. It is empty if there is no
    message.
    """

    def __init__(self, format: str, reasons: Sequence[tuple[int | None, str]]) -> None:  # noqa: A002
        seqs: dict[str, list[int | None]] = {}
        for seq, reason in reasons:
            seqs.setdefault(reason, []).append(seq)
        why = "; ".join(f"{_first_seqs(found)}: {reason}" for reason, found in seqs.items()) or "there is no message"
        super().__init__(f"nothing to send as {format!r}, which needs a message of the user or the assistant: {why}")
        self.format = format
        self.reasons = tuple(reasons)


def _first_seqs(seqs: Sequence[int | None]) -> str:
    more = f" and {len(seqs) - 3:,} more" if len(seqs) > 3 else ""
    return ("message " if len(seqs) == 1 else "messages ") + ", ".join(map(str, seqs[:3])) + more


class LimitExceeded(ChatLedgerError):
    def __init__(self, limit: str, given: int, maximum: int, *, minimum: int = 0, detail: str = "") -> None:
        bound = f"at least {minimum:,}" if given < minimum else f"at most {maximum:,}"
        super().__init__(detail or f"{limit}: {_text(given, ',')} given, {bound} allowed")
        self.limit = limit
        self.given = given
        self.maximum = maximum


class InvalidArgument(ChatLedgerError, ValueError):
    """An argument has the wrong type, is an unknown word, or does not go with another. The call did nothing."""

    def __init__(self, argument: str, detail: str) -> None:
        super().__init__(f"{argument} {detail}")
        self.argument = argument


class InvalidCursor(ChatLedgerError):
    def __init__(self, cursor: object, detail: str = "not a cursor that this list gave") -> None:
        super().__init__(detail if cursor is None else f"cursor {_text(cursor)}: {detail}")
        self.cursor = cursor


class TenantOnly(ChatLedgerError):
    """The call concerns all users of a tenant, and this ledger is the view of one user. The call did nothing."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} concerns the whole tenant, and this ledger is a user's view; use the tenant's ledger")
        self.call = call


class OutcomeUnknown(ChatLedgerError):
    """The connection was lost and did not come back in time. The batch is stored completely or not at all.

    Append again with these message ids: messages that were stored are found, and not stored twice.
    """

    def __init__(self, message_ids: Sequence[str]) -> None:
        super().__init__(
            f"the database went away during an append of {len(message_ids)} messages and was not back in time; "
            "appending again with the same message ids is safe"
        )
        self.message_ids = tuple(message_ids)


class StorageError(ChatLedgerError):
    """The database failed. `retryable`: nothing was written, and the same call may succeed later."""

    def __init__(self, detail: str, *, retryable: bool = False) -> None:
        super().__init__(detail)
        self.retryable = retryable


class DamagedCell(StorageError):
    """A stored cell does not hold what its column holds. Somebody else wrote it, or the disk is damaged.

    `key` is the primary key of the row without the tenant, by column, as far as it is known. The error never holds the
    content of the cell.
    """

    def __init__(self, table: str, column: str, key: Mapping[str, object], holds: str) -> None:
        super().__init__(
            f"{table}.{column} of {', '.join(map(repr, key.values()))}: damaged, because the column holds {holds}; "
            "restore the row from a backup, or write the cell anew"
        )
        self.table = table
        self.column = column
        self.key = dict(key)


class EncryptionError(ChatLedgerError):
    """A stored value cannot be decrypted, or a new value cannot be encrypted.

    `place` is the table, the column and the row's key without the tenant, if they are known.
    """

    def __init__(self, detail: str, place: str | None = None) -> None:
        super().__init__(f"{place}: {detail}" if place else detail)
        self.place = place


class KeyUnavailable(EncryptionError):
    """The key is missing: no keys were given, this one is not among them, or it was removed to erase its data.

    `key_id` is None if the tenant has no keys at all and a value was to be written.
    """

    def __init__(self, key_id: str | None, detail: str, place: str | None = None) -> None:
        super().__init__(detail, place)
        self.key_id = key_id


class NotAuthentic(EncryptionError):
    """The value was not encrypted with this key for this place: it was altered or moved, or the key is another one."""

    def __init__(self, key_id: str, place: str) -> None:
        super().__init__(
            f"not encrypted with the key {key_id!r} for this place: altered, moved, or another key of that name", place
        )
        self.key_id = key_id


class NotEncrypted(EncryptionError):
    """A value is plain text, although all values should be encrypted."""

    def __init__(self, place: str) -> None:
        super().__init__(
            "stored as plain text: planted, written without keys, or older than the keys; plaintext=True reads it, "
            "and `chatledger reencrypt --plaintext` encrypts it",
            place,
        )


class TenantEncrypted(EncryptionError):
    """A ledger without keys was about to write for a tenant that is encrypted. Nothing was written."""

    def __init__(self, tenant: str) -> None:
        super().__init__(
            f"tenant {tenant!r} is encrypted; open the ledger with keys=…, or give `chatledger --keys FILE …`"
        )
        self.tenant = tenant


class SchemaMismatch(ChatLedgerError):
    """The schema of the database is not at the revision that this release needs. `command` migrates it."""

    def __init__(self, found: str | None, expected: str, command: str, detail: str = "") -> None:
        super().__init__(
            detail or f"the database is at schema {found or 'none'}, this release needs {expected}; run: {command}"
        )
        self.found = found
        self.expected = expected
        self.command = command


class MissingExtra(ChatLedgerError):
    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'chatledger[{extra}]'")
        self.extra = extra
