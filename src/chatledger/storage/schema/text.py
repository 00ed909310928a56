"""The one codec of every text column, keys included.

PostgreSQL refuses NUL, both drivers refuse lone surrogates, and people's words contain both. Text without NUL, without
lone surrogates and without a leading U+E000 is stored as it is. Any other text is stored as U+E000 followed by the text
with those characters (and the backslash) escaped. Decoding undoes each escape alone, and never joins two of them to a
pair. So the codec is injective: keys stay unique, joins on encoded text hold, and no flag is needed.

Ciphertext stands in the same columns. It begins with U+E001 and a header (`rows/encryption.py`). Text that begins like
such a header is escaped, so no text can be taken for ciphertext.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zlib import crc32

from chatledger.errors import EncryptionError, InvalidArgument, LimitExceeded
from chatledger.models import json, windows
from chatledger.models.limits import MAX_KEY_BYTES

ESCAPE_MARK = "\ue000"
CIPHERTEXT_MARK = "\ue001"
_MARKS = (ESCAPE_MARK, CIPHERTEXT_MARK)
CIPHERTEXT_HEADER = re.compile(f"{CIPHERTEXT_MARK}([0-9]{{1,3}}):([A-Za-z0-9._-]{{1,64}}):")
"""The groups are version and key id. Text with the mark but no header is plain text: some was stored before the ledger
could encrypt.
"""
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|\\)")
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""The errors of Python that the decoding of a damaged cell raises."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode_text(text: str) -> str:
    """The text as a text column stores it."""
    if text.isascii():  # most text is, and Python knows it without reading the text
        if "\x00" not in text:
            return text
    elif "\x00" not in text and not _has_surrogate(text) and not (text.startswith(_MARKS) and _begins_as_ours(text)):
        return text
    return ESCAPE_MARK + json.escape_surrogates(text.replace("\\", r"\\").replace("\x00", r"\u0000"))


def _has_surrogate(text: str) -> bool:
    """UTF-8 has none. To encode a text takes a tenth of the time of a search by a regular expression."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _begins_as_ours(text: str) -> bool:
    return text[0] == ESCAPE_MARK or CIPHERTEXT_HEADER.match(text) is not None


def decode_text(stored: str) -> str:
    """The text of a stored cell. Raises EncryptionError for ciphertext: with keys, the caller decrypts it before."""
    if stored < ESCAPE_MARK or not stored.startswith(_MARKS):  # the first test suffices for nearly all text
        return stored
    if stored[0] == ESCAPE_MARK:
        return _decoded(stored)
    if (header := CIPHERTEXT_HEADER.match(stored)) is not None:
        raise no_keys(header[2])
    return stored


def _decoded(stored: str) -> str:
    """The text of an escaped cell. Python's own codec leaves pairs of backslashes, and takes for an escape what the
    ledger does not write, so what it reads must be written as the same cell. A damaged cell keeps what is no escape.
    """
    try:
        text = stored[1:].encode("raw_unicode_escape").decode("raw_unicode_escape").replace(r"\\", "\\")
        if encode_text(text) == stored:
            return text
    except UnicodeDecodeError:
        pass
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\\", stored[1:])


def no_keys(key_id: str, place: str | None = None) -> EncryptionError:
    detail = f"encrypted with the key {key_id!r}, and no keys were given; open the ledger with encryption=…"
    return EncryptionError("no-key", detail, place, key_id=key_id)


def encode_key(key: str, what: str) -> str:
    """A key as its column stores it. Raises LimitExceeded unless it is 1 to 512 bytes, InvalidArgument for no str."""
    if not isinstance(key, str):
        raise InvalidArgument(what, f"must be a str, not {None if key is None else type(key).__name__}")
    stored = encode_text(key)
    size = len(stored) if stored.isascii() else len(stored.encode())
    if not 1 <= size <= MAX_KEY_BYTES:
        empty = "" if size else f"{what} must not be empty; 1 to {MAX_KEY_BYTES} bytes are allowed"
        raise LimitExceeded(f"bytes of {what}", size, MAX_KEY_BYTES, minimum=1, detail=empty)
    return stored


def encode_json(value: json.JsonValue) -> str | None:
    return None if value is None else encode_text(json.dumps(value))


def decode_json(stored: str | None) -> Any:
    return None if stored is None else json.loads(decode_text(stored))


def decode_object(stored: str) -> dict[str, Any]:
    """Raises ValueError for any other JSON: it would go into a model that is not validated again."""
    value = json.loads(decode_text(stored))
    if type(value) is not dict:
        raise ValueError("not a JSON object")
    return value


def to_microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


CLOCK = {"postgresql": "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", "sqlite": "NULL"}
"""The present time of the database in microseconds, for `read_tip`. On SQLite it is the time of this machine. It is the
time at which the statement began: a distributed database refuses `clock_timestamp()` in an UPDATE.
"""

# --- Marks: text as well, which callers keep and no column stores -----------------------------------------------------

_MARK = struct.Struct(">IIqq")  # the checksum of the thread's key, then the fields of a Mark
_PARTIAL = 2**31  # no branch has this number, so it can stand beside the branch


class Mark(NamedTuple):
    """The state of a branch that a reader remembers, because the next write must follow exactly that state."""

    branch: int
    version: int
    stamp: int


def write_mark(thread: str, branch: int, version: int, stamp: int, *, partial: bool = False) -> windows.Mark:
    """The mark as callers get it. `thread` is the key as stored. `partial`: the last message that comes with the mark
    was still being written, which matters to a follower.
    """
    fields = (branch | _PARTIAL if partial else branch, version, stamp)
    return windows.Mark(urlsafe_b64encode(_MARK.pack(crc32(thread.encode()), *fields)).decode())


def read_mark(mark: str, thread: str, argument: str) -> Mark:
    """Raises InvalidArgument for a text that is no mark, and for the mark of another thread."""
    try:
        checksum, *fields = _MARK.unpack(b64decode(mark, altchars=b"-_", validate=True))
    except (ValueError, struct.error) as error:
        detail = "is not a mark: pass the mark of a history or of an append as it is"
        raise InvalidArgument(argument, detail) from error
    if checksum != crc32(thread.encode()):
        raise InvalidArgument(argument, "is a mark of another thread")
    branch, version, stamp = fields
    return Mark(branch & ~_PARTIAL, version, stamp)


def ends_partial(mark: str) -> bool:
    """Whether the mark says that the last message was still being written. `read_mark` must have read the mark."""
    branch: int = _MARK.unpack(b64decode(mark, altchars=b"-_"))[1]
    return branch >= _PARTIAL
