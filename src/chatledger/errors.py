"""Everything that chatledger raises.

    ChatLedgerError
      NotFound
        ThreadNotFound          .thread_id
        BranchNotFound          .thread_id .branch
        MessageNotFound         .thread_id .message_id .seq
        RunNotFound             .run_id
      Conflict
        VersionConflict         .thread_id .branch .expected .actual
        IdConflict              .id .seq
        RunConflict             .run_id
        AlreadyExists           .id
        Erased                  .thread_id
        DraftLost               .thread_id .branch .seq
      RuleViolation             .rule .index .message
      FormatError
        UnknownFormat           .format
        DecodeError             .path (and .record, .byte for a file)
        EncodeError             .path
      LimitExceeded             .limit .given .maximum
      InvalidArgument           .argument
      InvalidCursor             .cursor
      OutcomeUnknown            .message_ids
      StorageError              .retryable
      EncryptionError           .place
        KeyUnavailable          .key_id
        NotAuthentic            .key_id
        NotEncrypted
      SchemaMismatch            .found .expected .command
      MissingExtra              .extra

What a model can see by itself (an unknown role, a date without a zone, a NaN score) is Pydantic's ValidationError,
raised when the model is built; it and InvalidArgument are ValueErrors. No other type leaves the library. Another
tenant's ids are ids that do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ChatLedgerError(Exception):
    """The root of all errors of this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is copied by calling its class with `args`, the text; ours are made of facts instead.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ChatLedgerError], args: tuple[object, ...]) -> ChatLedgerError:
    return kind.__new__(kind, *args)


class NotFound(ChatLedgerError):
    """What was asked for does not exist for this tenant."""


class ThreadNotFound(NotFound):
    def __init__(self, thread_id: str) -> None:
        super().__init__(f"there is no thread {thread_id!r}")
        self.thread_id = thread_id


class BranchNotFound(NotFound):
    def __init__(self, thread_id: str, branch: int) -> None:
        super().__init__(f"thread {thread_id!r} has no branch {branch}")
        self.thread_id = thread_id
        self.branch = branch


class MessageNotFound(NotFound):
    """It was asked for by its id or by its place: the other is None."""

    def __init__(self, thread_id: str, message_id: str | None = None, *, seq: int | None = None) -> None:
        which = repr(message_id) if seq is None else f"at seq {seq}"
        super().__init__(f"thread {thread_id!r} has no message {which}")
        self.thread_id = thread_id
        self.message_id = message_id
        self.seq = seq


class RunNotFound(NotFound):
    def __init__(self, run_id: str) -> None:
        super().__init__(f"there is no run {run_id!r}")
        self.run_id = run_id


class Conflict(ChatLedgerError):
    """What is stored contradicts what was asked to be stored."""


class VersionConflict(Conflict):
    """The branch is not at the version that the caller expected; read it again and decide."""

    def __init__(self, thread_id: str, branch: int, expected: int, actual: int, detail: str = "") -> None:
        super().__init__(
            f"branch {branch} of thread {thread_id!r} is at version {actual}, not {expected}"
            + (detail and f": {detail}")
        )
        self.thread_id = thread_id
        self.branch = branch
        self.expected = expected
        self.actual = actual


class IdConflict(Conflict):
    """An id stands for something else already: `seq` is where, None if the id is twice in what was given."""

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
    """The thread was erased, and what was erased does not come back under its id."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id!r} was erased; its id is not used again")
        self.thread_id = thread_id


class DraftLost(Conflict):
    """A message that is being streamed was completed or interrupted by somebody else, or its thread was deleted."""

    def __init__(self, thread_id: str, branch: int, seq: int) -> None:
        super().__init__(f"message {seq} of branch {branch} of thread {thread_id!r} is no longer this draft's to write")
        self.thread_id = thread_id
        self.branch = branch
        self.seq = seq


class RuleViolation(ChatLedgerError):
    """A message breaks an invariant: `rule` is its name (R1 … R13), `index` the message's place in the batch, or its
    seq where stored messages are judged.
    """

    def __init__(self, rule: str, index: int, message: str, *, where: str | None = None) -> None:
        super().__init__(f"{where or f'message {index} of the batch'} breaks {rule}: {message}")
        self.rule = rule
        self.index = index
        self.message = message


class FormatError(ChatLedgerError):
    """A payload and a format do not fit each other."""


class UnknownFormat(FormatError):
    def __init__(self, format: str | None, detail: str) -> None:  # noqa: A002 - the attribute is `.format`
        super().__init__(detail)
        self.format = format


class DecodeError(FormatError):
    """A payload cannot be read: `path` leads to the place, `record` and `byte` do so in a file."""

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


class LimitExceeded(ChatLedgerError):
    def __init__(self, limit: str, given: int, maximum: int, *, minimum: int = 0, detail: str = "") -> None:
        bound = f"at least {minimum:,}" if given < minimum else f"at most {maximum:,}"
        super().__init__(detail or f"{limit}: {given:,} given, {bound} allowed")
        self.limit = limit
        self.given = given
        self.maximum = maximum


class InvalidArgument(ChatLedgerError, ValueError):
    """An argument of a call is of another type than it takes, or a word that it does not know; nothing was done."""

    def __init__(self, argument: str, detail: str) -> None:
        super().__init__(f"{argument} {detail}")
        self.argument = argument


class InvalidCursor(ChatLedgerError):
    def __init__(self, cursor: object, detail: str = "not a cursor that this list gave") -> None:
        super().__init__(detail if cursor is None else f"cursor {cursor!r}: {detail}")
        self.cursor = cursor


class OutcomeUnknown(ChatLedgerError):
    """The connection was lost and did not come back in time: the batch is stored whole or not at all.

    Append again with these message ids; what was stored is then found and not stored twice.
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


class EncryptionError(ChatLedgerError):
    """What is stored cannot be opened, or what was given not be sealed. `place` is the table, the column and the row's
    key behind the tenant, where that is known.
    """

    def __init__(self, detail: str, place: str | None = None) -> None:
        super().__init__(f"{place}: {detail}" if place else detail)
        self.place = place


class KeyUnavailable(EncryptionError):
    """The key is not there: no keys were given, or not this one, or it was taken away to erase what it sealed.
    `key_id` is None where the tenant has no keys at all and something was to be written.
    """

    def __init__(self, key_id: str | None, detail: str, place: str | None = None) -> None:
        super().__init__(detail, place)
        self.key_id = key_id


class NotAuthentic(EncryptionError):
    """The key of that id did not seal this, for this place: it was altered or moved, or the key is another one."""

    def __init__(self, key_id: str, place: str) -> None:
        super().__init__(
            f"not sealed by the key {key_id!r} for this place: altered, moved, or another key of that name", place
        )
        self.key_id = key_id


class NotEncrypted(EncryptionError):
    """Plain text where everything was to be sealed."""

    def __init__(self, place: str) -> None:
        super().__init__(
            "stored as plain text: planted, written without keys, or older than they are; plaintext=True reads it, "
            "and `chatledger reencrypt --plaintext` seals it",
            place,
        )


class SchemaMismatch(ChatLedgerError):
    """The database is at another revision than this code: `command` mends it."""

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
