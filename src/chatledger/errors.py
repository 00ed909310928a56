"""The errors that chatledger raises.

    ChatLedgerError             .http_status .retry_after
      NotFound
        ThreadNotFound          .thread_id
        BranchNotFound          .thread_id .branch
        MessageNotFound         .thread_id .message_id .seq
        RunNotFound             .run_id
        FeedbackNotFound        .feedback_id
      Conflict
        VersionConflict         .what .thread_id .branch .key .expected .actual
        IdConflict              .what .id .seq .idempotency_key
        RunConflict             .run_id
        RunLive                 .run_id .until
        RunLost                 .run_id
        Erased                  .thread_id
        DraftLive               .thread_id .branch .seq .message_id .until
        DraftLost               .thread_id .branch .seq
      RuleViolation             .rule .index .detail
      FormatError
        UnknownFormat           .format
        DecodeError             .path .detail (and .record, .byte for a file)
        EncodeError             .path
        NothingToSend           .format .reasons
      InvalidArgument           .argument
        InvalidCursor           .cursor
        LimitExceeded           .limit .given .maximum
        TenantOnly              .call
      StorageError              .retryable
        OutcomeUnknown          .message_ids
        DamagedCell             .table .column .key
        SchemaMismatch          .found .expected .command
      EncryptionError           .reason .place .key_id
      MissingExtra              .extra
      ModelFailed               .reason

Building a model raises Pydantic's ValidationError for errors that the model itself can see: an unknown role, a date
without a zone, a NaN score. A call raises InvalidArgument for them. Both are ValueErrors. The library raises no other
types. To a tenant, the ids of another tenant do not exist, and to a user's ledger those of other users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any, ClassVar, Literal

__all__ = [
    "BranchNotFound",
    "ChatLedgerError",
    "Conflict",
    "DamagedCell",
    "DecodeError",
    "DraftLive",
    "DraftLost",
    "EncodeError",
    "EncryptionError",
    "Erased",
    "FeedbackNotFound",
    "FormatError",
    "IdConflict",
    "InvalidArgument",
    "InvalidCursor",
    "LimitExceeded",
    "MessageNotFound",
    "MissingExtra",
    "ModelFailed",
    "NotFound",
    "NothingToSend",
    "OutcomeUnknown",
    "RuleViolation",
    "RunConflict",
    "RunLive",
    "RunLost",
    "RunNotFound",
    "SchemaMismatch",
    "StorageError",
    "TenantOnly",
    "ThreadNotFound",
    "UnknownFormat",
    "VersionConflict",
]


class ChatLedgerError(Exception):
    """The base of all errors of this library."""

    _status: ClassVar[int] = 500

    @property
    def http_status(self) -> int:
        """The status with which a service answers: 404, 409, 400, 413, 503 and so on. Our own server uses it."""
        return self._status

    @property
    def retry_after(self) -> int | None:
        """The seconds after which the same call may succeed; None if waiting does not help."""
        return 1 if self.http_status == 503 else None

    def __reduce__(self) -> tuple[Any, ...]:
        # By default a copy calls the class with `args`, which is the text; our constructors take facts instead.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ChatLedgerError], args: tuple[object, ...]) -> ChatLedgerError:
    return kind.__new__(kind, *args)


_LONGEST = 200
"""Characters of a given text that an error repeats."""


def _text(value: object, form: str = "") -> str:
    """A number in that form, or another value as Python writes it. The end of a long text is left out."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]!r}…"
    try:
        return format(value, form) if isinstance(value, int) else repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of more than 4,300 digits"


class NotFound(ChatLedgerError):
    """The requested object does not exist for this tenant or, on a user's ledger, for this user."""

    _status = 404


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

    _status = 409


class VersionConflict(Conflict):
    """What the caller read has changed since: a branch, a thread or a value. The call wrote nothing: read it again and
    decide.

    The versions of a branch may be equal if something else about it changed: a draft, an output, a fork, or the active
    branch.
    """

    _status = 412
    what: Literal["branch", "thread", "value"]
    """What has changed."""
    thread_id: str | None
    """The thread; None for a value."""
    branch: int | None
    """The branch, if it has changed."""
    key: str | None
    """The key of the value, if it has changed."""
    expected: int
    """The version that the caller expected; 0 for nothing."""
    actual: int
    """The version that it has; 0 if there is nothing."""

    def __init__(
        self,
        what: Literal["branch", "thread", "value"],
        expected: int,
        actual: int,
        detail: str = "",
        *,
        thread_id: str | None = None,
        branch: int | None = None,
        key: str | None = None,
    ) -> None:
        name = {"branch": f"branch {_text(branch)} of thread {thread_id!r}", "thread": f"thread {thread_id!r}"}
        super().__init__(f"{name.get(what, f'key {key!r}')} {_stands(what, expected, actual, detail)}")
        self.what = what
        self.thread_id = thread_id
        self.branch = branch
        self.key = key
        self.expected = expected
        self.actual = actual


def _stands(what: str, expected: int, actual: int, detail: str) -> str:
    if what == "value":
        wanted = f"version {_text(expected)}" if expected else "no value"
        return f"{f'is at version {actual}' if actual else 'has no value'}, and {wanted} was expected; read it again"
    if actual == expected:
        return (
            f"is still at version {actual}, but {detail or 'a draft, an output, a fork or the active branch changed'}"
        )
    why = detail and f": {detail}"
    return f"is at version {actual}, not {_text(expected)}" + (why if what == "branch" else "; read it again")


class IdConflict(Conflict):
    """The id or the key already belongs to something else. The call changed nothing."""

    what: Literal["message", "thread", "run", "feedback", "idempotency_key", "format", "agent", "item", "value"]
    """What has the id: a thing that is stored, a format that is registered, or an agent or item of a message file."""
    id: str
    """The id."""
    seq: int | None
    """The position of the message that has the id; None if no message has it, as for an id twice in the batch."""
    idempotency_key: str | None
    """The key that the caller chose, if it was the cause; `id` is then the id that the ledger made of it."""

    def __init__(
        self,
        what: Literal["message", "thread", "run", "feedback", "idempotency_key", "format", "agent", "item", "value"],
        id: str,  # noqa: A002 - the attribute is `.id`
        detail: str,
        *,
        seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.what = what
        self.id = id
        self.seq = seq
        self.idempotency_key = idempotency_key


class RunConflict(Conflict):
    """The run belongs to another thread, was started with other values, or has ended with another outcome."""

    run_id: str
    """The run."""

    def __init__(self, run_id: str, detail: str) -> None:
        super().__init__(f"run {run_id!r}: {detail}")
        self.run_id = run_id


class RunLive(Conflict):
    """Another answer of the thread has not ended. The call wrote nothing."""

    run_id: str
    """The run of that answer."""
    until: datetime | None
    """The time, in UTC, when the lease of the process that works on it ends unless it is renewed; None if the answer is
    paused, and waits for `answers.resume`.
    """

    def __init__(self, run_id: str, until: datetime | None) -> None:
        state = "is paused; resume it" if until is None else "has not ended; wait for it"
        super().__init__(f"run {run_id!r}, an answer of this thread, {state}, or stop it with when_live='stop'")
        self.run_id = run_id
        self.until = until

    @property
    def retry_after(self) -> int | None:
        """The seconds until the lease ends, at least 1; None if the answer is paused."""
        return None if self.until is None else max(1, ceil((self.until - datetime.now(UTC)).total_seconds()))


class RunLost(Conflict):
    """The run is an answer that another attempt works on, or that has ended or is paused: the caller may not write for
    it. The call wrote nothing.
    """

    run_id: str
    """The run."""

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"run {run_id!r} is an answer that another attempt works on, or that has ended or is paused; only its own "
            "attempt writes for it"
        )
        self.run_id = run_id


class Erased(Conflict):
    """The thread was erased, and its id cannot be used again."""

    _status = 410

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
    """The time when the lease ends unless its writer renews it, in UTC, by the clock of this process."""

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

    @property
    def retry_after(self) -> int:
        """The seconds until the lease ends, at least 1."""
        return max(1, ceil((self.until - datetime.now(UTC)).total_seconds()))


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


class RuleViolation(ChatLedgerError):
    """A message breaks a rule, and the call refuses it."""

    _status = 422
    rule: str
    """The name of the rule, R1 to R13."""
    index: int
    """The index of the message in the batch, from 0; its seq if stored messages are judged."""
    detail: str
    """A sentence that says how the message breaks the rule."""

    def __init__(self, rule: str, index: int, detail: str, *, where: str | None = None) -> None:
        super().__init__(f"{where or f'message {index} of the batch'} breaks {rule}: {detail}")
        self.rule = rule
        self.index = index
        self.detail = detail


class FormatError(ChatLedgerError):
    """A payload does not match a format."""

    _status = 422


class UnknownFormat(FormatError):
    """No format has this name, or no format recognises the payload."""

    _status = 400
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
        why = (
            "; ".join(f"{_first_seqs(reason_seqs)}: {reason}" for reason, reason_seqs in seqs.items())
            or "there is no message"
        )
        super().__init__(f"nothing to send as {format!r}, which needs a message of the user or the assistant: {why}")
        self.format = format
        self.reasons = tuple(reasons)


def _first_seqs(seqs: Sequence[int | None]) -> str:
    more = f" and {len(seqs) - 3:,} more" if len(seqs) > 3 else ""
    return ("message " if len(seqs) == 1 else "messages ") + ", ".join(map(str, seqs[:3])) + more


class InvalidArgument(ChatLedgerError, ValueError):
    """An argument has the wrong type, is an unknown word, or does not go with another. The call did nothing."""

    _status = 400
    argument: str
    """The name of the argument."""

    def __init__(self, argument: str, detail: str, *, text: str | None = None) -> None:
        """`text`: the whole sentence, if it does not begin with the argument."""
        super().__init__(text or f"{argument} {detail}")
        self.argument = argument


class InvalidCursor(InvalidArgument):
    """The cursor did not come from this list, or the branch has no such position."""

    cursor: object
    """The cursor."""

    def __init__(self, cursor: object, detail: str = "not a cursor that this list gave") -> None:
        super().__init__("cursor", detail, text=detail if cursor is None else f"cursor {_text(cursor)}: {detail}")
        self.cursor = cursor


class LimitExceeded(InvalidArgument):
    """A batch, an id, a page or a value is larger or smaller than allowed."""

    _status = 413
    limit: str
    """What is limited, such as `messages of an append`."""
    given: int
    """The size that the caller gave."""
    maximum: int
    """The largest size that is allowed."""

    def __init__(self, limit: str, given: int, maximum: int, *, minimum: int = 0, detail: str = "") -> None:
        bound = f"at least {minimum:,}" if given < minimum else f"at most {maximum:,}"
        super().__init__(limit, detail, text=detail or f"{limit}: {_text(given, ',')} given, {bound} allowed")
        self.limit = limit
        self.given = given
        self.maximum = maximum

    @property
    def http_status(self) -> int:
        """413, or 400 for too little."""
        return self._status if self.given > self.maximum else 400


class TenantOnly(InvalidArgument):
    """The call concerns all users of a tenant, and this ledger is the view of one user. The call did nothing."""

    _status = 403
    call: str
    """The name of the call."""

    def __init__(self, call: str) -> None:
        super().__init__(call, "concerns the whole tenant, and this ledger is a user's view; use the tenant's ledger")
        self.call = call


class StorageError(ChatLedgerError):
    """The database failed."""

    retryable: bool
    """Whether nothing was written, and the same call may succeed later."""

    def __init__(self, detail: str, *, retryable: bool = False) -> None:
        super().__init__(detail)
        self.retryable = retryable

    @property
    def http_status(self) -> int:
        """503 if the same call may succeed later, else 500."""
        return 503 if self.retryable else self._status


class OutcomeUnknown(StorageError):
    """An append was sent, and no answer came within the time limit; or a later attempt would refuse it, while what was
    sent may still be stored. The batch is stored completely, or not at all.

    Append again with these message ids: messages that were stored are found, and are not stored twice. `retryable` is
    False, since without the ids they may be.
    """

    _status = 503
    message_ids: tuple[str, ...]
    """The ids of the batch, including those that the ledger made."""

    def __init__(self, message_ids: Sequence[str], detail: str = "no answer came within the time limit") -> None:
        """`detail`: what is known of the append."""
        super().__init__(
            f"an append of {len(message_ids)} messages was sent: {detail}; "
            "appending again with the same message ids is safe"
        )
        self.message_ids = tuple(message_ids)


class DamagedCell(StorageError):
    """A stored cell does not hold a value of its column: another program wrote it, or the disk is damaged. The error
    never contains the content of the cell.
    """

    table: str
    """The table."""
    column: str
    """The column."""
    key: dict[str, object]
    """The primary key of the row by column, as far as it is known. Only a copy gives the tenant too."""

    def __init__(self, table: str, column: str, key: Mapping[str, object], holds: str) -> None:
        super().__init__(
            f"{table}.{column} of {', '.join(map(repr, key.values()))}: damaged, because the column holds {holds}; "
            "restore the row from a backup, or write the cell anew"
        )
        self.table = table
        self.column = column
        self.key = dict(key)


class SchemaMismatch(StorageError):
    """The schema of the database is not at the revision that this release needs."""

    _status = 503
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


class EncryptionError(ChatLedgerError):
    """A stored value cannot be decrypted, or a new value cannot be encrypted or stored as plain text."""

    reason: Literal["no-key", "not-authentic", "not-encrypted", "tenant-encrypted", "unknown-version", "not-recorded"]
    """no-key: no keys were given, or this one is not among them, or it was removed to erase its data. not-authentic:
    the value was not encrypted with this key for this place, so it was altered or moved, or the key is another one.
    not-encrypted: the value is plain text, although all values should be encrypted. tenant-encrypted: a ledger without
    keys tried to write for a tenant that is encrypted. unknown-version: a newer release encrypted the value.
    not-recorded: the ledger may not record that the database is encrypted.
    """
    place: str | None
    """The table, the column and the key of the row without the tenant, if they are known."""
    key_id: str | None
    """The id of the key, if it is about one."""

    def __init__(
        self,
        reason: Literal[
            "no-key", "not-authentic", "not-encrypted", "tenant-encrypted", "unknown-version", "not-recorded"
        ],
        detail: str,
        place: str | None = None,
        *,
        key_id: str | None = None,
    ) -> None:
        super().__init__(f"{place}: {detail}" if place else detail)
        self.reason = reason
        self.place = place
        self.key_id = key_id

    @property
    def http_status(self) -> int:
        """503 for a missing key, which somebody can add, else 500."""
        return 503 if self.reason == "no-key" else 500


class MissingExtra(ChatLedgerError):
    """A call needs a package, or a part of chatledger, that is not installed."""

    _status = 501
    extra: str
    """The name of the extra to install, as in `pip install "chatledger[otel]"`; of a part of chatledger, its module."""

    def __init__(self, extra: str, what: str) -> None:
        remedy = f"an extra: pip install 'chatledger[{extra}]'"
        if extra.startswith("chatledger."):
            remedy = f"{extra}, which this installation lacks: install chatledger as it was released"
        super().__init__(f"{what} needs {remedy}")
        self.extra = extra


class ModelFailed(ChatLedgerError):
    """The model of an answer raised, or its provider broke the stream off. The message is stored as interrupted."""

    _status = 502
    reason: str
    """The type of the model's error, or what the provider said."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the model gave no whole message: {reason}")
        self.reason = reason
