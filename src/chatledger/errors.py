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
    """The thread does not exist, or belongs to another user."""

    thread_id: str
    """The requested id."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"there is no thread {thread_id!r}")
        self.thread_id = thread_id


class BranchNotFound(NotFound):
    """The thread has no such branch."""

    thread_id: str
    """The thread."""
    branch: int
    """The requested branch."""

    def __init__(self, thread_id: str, branch: int) -> None:
        super().__init__(f"thread {thread_id!r} has no branch {_text(branch)}")
        self.thread_id = thread_id
        self.branch = branch


class MessageNotFound(NotFound):
    """The thread has no such message."""

    thread_id: str
    """The thread."""
    message_id: str | None
    """The requested id; None if the message was requested by its seq."""
    seq: int | None
    """The requested position; None if the message was requested by its id."""

    def __init__(
        self, thread_id: str, message_id: str | None = None, *, seq: int | None = None, detail: str = ""
    ) -> None:
        which = repr(message_id) if seq is None else f"at seq {_text(seq)}"
        super().__init__(f"thread {thread_id!r} has no message {which}" + (detail and f" {detail}"))
        self.thread_id = thread_id
        self.message_id = message_id
        self.seq = seq


class RunNotFound(NotFound):
    """The run does not exist."""

    run_id: str
    """The requested id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r}")
        self.run_id = run_id


class FeedbackNotFound(NotFound):
    """The feedback does not exist."""

    feedback_id: str
    """The requested id."""

    def __init__(self, feedback_id: str) -> None:
        super().__init__(f"there is no feedback {feedback_id!r}")
        self.feedback_id = feedback_id


class Conflict(ChatLedgerError):
    """The stored data contradicts the request."""


class VersionConflict(Conflict):
    """The branch is not in the state that the caller expected. Read it again and decide.

    The versions may be equal if something else about the branch changed: a draft, an output, a fork, or the active
    branch.
    """

    thread_id: str
    """The thread."""
    branch: int
    """The branch."""
    expected: int
    """The version that the caller expected."""
    actual: int
    """The version that the branch has."""

    def __init__(self, thread_id: str, branch: int, expected: int, actual: int, detail: str = "") -> None:
        if actual == expected:
            moved = detail or "a draft, an output, a fork or the active branch changed"
            state = f"still at version {actual}, but {moved}"
        else:
            state = f"at version {actual}, not {_text(expected)}" + (detail and f": {detail}")
        super().__init__(f"branch {_text(branch)} of thread {thread_id!r} is {state}")
        self.thread_id = thread_id
        self.branch = branch
        self.expected = expected
        self.actual = actual


class IdConflict(Conflict):
    """The id already belongs to something else."""

    id: str
    """The id."""
    seq: int | None
    """The position of the message that has the id; None if no message has it, as for an id twice in the batch."""

    def __init__(self, id: str, seq: int | None, detail: str) -> None:  # noqa: A002 - the attribute is `.id`
        super().__init__(f"id {id!r}: {detail}")
        self.id = id
        self.seq = seq

    @property
    def message_id(self) -> str:
        """The same as `id`."""
        return self.id


class RunConflict(Conflict):
    """The run belongs to another thread, was started with other values, or has ended with another outcome."""

    run_id: str
    """The run."""

    def __init__(self, run_id: str, detail: str) -> None:
        super().__init__(f"run {run_id!r}: {detail}")
        self.run_id = run_id


class AlreadyExists(Conflict):
    """An object with this id exists already. The call did not change it."""

    id: str
    """The id."""

    def __init__(self, id: str, detail: str) -> None:  # noqa: A002 - the attribute is `.id`
        super().__init__(detail)
        self.id = id


class Erased(Conflict):
    """The thread was erased, and its id cannot be used again."""

    thread_id: str
    """The id of the erased thread."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id!r} was erased; its id is not used again")
        self.thread_id = thread_id


class DraftLive(Conflict):
    """The message at the end of the branch is still being written, and its writer holds a lease on it. The call wrote
    nothing.
    """

    thread_id: str
    """The thread."""
    branch: int
    """The branch."""
    seq: int
    """The position of the partial message."""
    message_id: str | None
    """The id of the partial message."""
    until: datetime
    """The time when the lease ends unless its writer renews it, in UTC."""

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
    """Another writer completed, interrupted or took over the streamed message, or deleted its thread."""

    thread_id: str
    """The thread."""
    branch: int
    """The branch."""
    seq: int
    """The position of the message."""

    def __init__(self, thread_id: str, branch: int, seq: int) -> None:
        super().__init__(
            f"message {seq} of branch {branch} of thread {thread_id!r} was completed, interrupted or taken over by "
            "another writer, or deleted; this draft can no longer write it"
        )
        self.thread_id = thread_id
        self.branch = branch
        self.seq = seq


class RevisionConflict(Conflict):
    """Another writer updated the thread since the caller read it. Read it again and decide."""

    thread_id: str
    """The thread."""
    expected: int
    """The revision that the caller expected."""
    actual: int
    """The revision that the thread has."""

    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        super().__init__(f"thread {thread_id!r} is at revision {actual}, not {_text(expected)}; read it again")
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual


class KvConflict(Conflict):
    """The value under a key does not have the version that the caller expected. The call wrote nothing: read the value
    again and decide.
    """

    key: str
    """The key."""
    expected: int
    """The version that the caller expected; 0 for no value."""
    found: int
    """The version that the value has; 0 if there is no value."""

    def __init__(self, key: str, expected: int, found: int) -> None:
        wanted = f"version {_text(expected)}" if expected else "no value"
        state = f"is at version {found}" if found else "has no value"
        super().__init__(f"key {key!r} {state}, and {wanted} was expected; read it again")
        self.key = key
        self.expected = expected
        self.found = found


class RuleViolation(ChatLedgerError):
    """A message breaks a rule, and the call refuses it."""

    rule: str
    """The name of the rule, R1 to R13."""
    index: int
    """The index of the message in the batch, from 0; its seq if stored messages are judged."""
    message: str
    """A sentence that says how the message breaks the rule."""

    def __init__(self, rule: str, index: int, message: str, *, where: str | None = None) -> None:
        super().__init__(f"{where or f'message {index} of the batch'} breaks {rule}: {message}")
        self.rule = rule
        self.index = index
        self.message = message


class FormatError(ChatLedgerError):
    """A payload does not match a format."""


class UnknownFormat(FormatError):
    """No format has this name, or no format recognises the payload."""

    format: str | None
    """The unknown name; None if the format was to be recognised."""

    def __init__(self, format: str | None, detail: str) -> None:  # noqa: A002 - the attribute is `.format`
        super().__init__(detail)
        self.format = format


class DecodeError(FormatError):
    """A payload does not match its format."""

    path: str
    """The place of the error in the payload, such as `[2].content`."""
    detail: str
    """A sentence that says what is wrong there."""
    record: int | None
    """The number of the record in a file; None if the payload is not from a file."""
    byte: int | None
    """The offset of the error in a file, in bytes, if it is known."""

    def __init__(self, path: str, detail: str, *, record: int | None = None, byte: int | None = None) -> None:
        place = path if record is None else f"record {record}" + (f", byte {byte}" if byte is not None else "")
        super().__init__(f"{place}: {detail}" if place else detail)
        self.path = path
        self.detail = detail
        self.record = record
        self.byte = byte


class EncodeError(FormatError):
    """A history cannot be written as the objects of a format."""

    path: str
    """The place of the error."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}" if path else detail)
        self.path = path


class NothingToSend(FormatError):
    """No message can be written in the format, and no provider accepts a request without messages. Append a message of
    the user first, or read a window that has one.
    """

    format: str
    """The format."""
    reasons: tuple[tuple[int | None, str], ...]
    """For each message its seq and a sentence that says why it cannot be sent. Empty if there is no message."""

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
    """A batch, an id, a page or a value is larger or smaller than allowed."""

    limit: str
    """What is limited, such as `messages of an append`."""
    given: int
    """The size that the caller gave."""
    maximum: int
    """The largest size that is allowed."""

    def __init__(self, limit: str, given: int, maximum: int, *, minimum: int = 0, detail: str = "") -> None:
        bound = f"at least {minimum:,}" if given < minimum else f"at most {maximum:,}"
        super().__init__(detail or f"{limit}: {_text(given, ',')} given, {bound} allowed")
        self.limit = limit
        self.given = given
        self.maximum = maximum


class InvalidArgument(ChatLedgerError, ValueError):
    """An argument has the wrong type, is an unknown word, or does not go with another. The call did nothing."""

    argument: str
    """The name of the argument."""

    def __init__(self, argument: str, detail: str) -> None:
        super().__init__(f"{argument} {detail}")
        self.argument = argument


class InvalidCursor(ChatLedgerError):
    """The cursor did not come from this list, or the branch has no such position."""

    cursor: object
    """The cursor."""

    def __init__(self, cursor: object, detail: str = "not a cursor that this list gave") -> None:
        super().__init__(detail if cursor is None else f"cursor {_text(cursor)}: {detail}")
        self.cursor = cursor


class TenantOnly(ChatLedgerError):
    """The call concerns all users of a tenant, and this ledger is the view of one user. The call did nothing."""

    call: str
    """The name of the call."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} concerns the whole tenant, and this ledger is a user's view; use the tenant's ledger")
        self.call = call


class OutcomeUnknown(ChatLedgerError):
    """An append was sent, and no answer came within the time limit; or a later attempt would refuse it, while what was
    sent may still be stored. The batch is stored completely, or not at all.

    Append again with these message ids: messages that were stored are found, and are not stored twice.
    """

    message_ids: tuple[str, ...]
    """The ids of the batch, including those that the ledger made."""

    def __init__(self, message_ids: Sequence[str], detail: str = "no answer came within the time limit") -> None:
        """`detail`: what is known of the append."""
        super().__init__(
            f"an append of {len(message_ids)} messages was sent: {detail}; "
            "appending again with the same message ids is safe"
        )
        self.message_ids = tuple(message_ids)


class StorageError(ChatLedgerError):
    """The database failed."""

    retryable: bool
    """Whether nothing was written, and the same call may succeed later."""

    def __init__(self, detail: str, *, retryable: bool = False) -> None:
        super().__init__(detail)
        self.retryable = retryable


class DamagedCell(StorageError):
    """A stored cell does not hold a value of its column: another program wrote it, or the disk is damaged. The error
    never contains the content of the cell.
    """

    table: str
    """The table."""
    column: str
    """The column."""
    key: dict[str, object]
    """The primary key of the row by column, without the tenant, as far as it is known."""

    def __init__(self, table: str, column: str, key: Mapping[str, object], holds: str) -> None:
        super().__init__(
            f"{table}.{column} of {', '.join(map(repr, key.values()))}: damaged, because the column holds {holds}; "
            "restore the row from a backup, or write the cell anew"
        )
        self.table = table
        self.column = column
        self.key = dict(key)


class EncryptionError(ChatLedgerError):
    """A stored value cannot be decrypted, or a new value cannot be encrypted."""

    place: str | None
    """The table, the column and the key of the row without the tenant, if they are known."""

    def __init__(self, detail: str, place: str | None = None) -> None:
        super().__init__(f"{place}: {detail}" if place else detail)
        self.place = place


class KeyUnavailable(EncryptionError):
    """The key is missing: no keys were given, this one is not among them, or it was removed to erase its data."""

    key_id: str | None
    """The id of the key; None if the tenant has no keys at all and a value was to be written."""

    def __init__(self, key_id: str | None, detail: str, place: str | None = None) -> None:
        super().__init__(detail, place)
        self.key_id = key_id


class NotAuthentic(EncryptionError):
    """The value was not encrypted with this key for this place: it was altered or moved, or the key is another one."""

    key_id: str
    """The id of the key."""

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
    """A ledger without keys tried to write for a tenant that is encrypted. Nothing was written."""

    tenant: str
    """The tenant."""

    def __init__(self, tenant: str) -> None:
        super().__init__(
            f"tenant {tenant!r} is encrypted; open the ledger with keys=…, or give `chatledger --keys FILE …`"
        )
        self.tenant = tenant


class SchemaMismatch(ChatLedgerError):
    """The schema of the database is not at the revision that this release needs."""

    found: str | None
    """The revision of the database; None if it has no tables of chatledger."""
    expected: str
    """The revision that this release needs."""
    command: str
    """The command to run."""

    def __init__(self, found: str | None, expected: str, command: str, detail: str = "") -> None:
        super().__init__(
            detail or f"the database is at schema {found or 'none'}, this release needs {expected}; run: {command}"
        )
        self.found = found
        self.expected = expected
        self.command = command


class MissingExtra(ChatLedgerError):
    """A call needs a package that is not installed."""

    extra: str
    """The name of the extra to install, as in `pip install "chatledger[otel]"`."""

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'chatledger[{extra}]'")
        self.extra = extra
