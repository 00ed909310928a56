"""An entry of the file of tokens: whose token it is, what the token may do, and until when."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from chatledger.arguments import STR_OR_NONE, require
from chatledger.errors import InvalidArgument
from chatledger.server.callers.access import Caller
from chatledger.storage.databases.scope import DEFAULT_TENANT

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ID_DIGITS = 12
FORM = (
    '{"tokens": [{"sha256": "…", "tenant": "default", "user_id": "ada", "scope": "write"}]}, or "admin": true for '
    '"user_id", or "scope": "operator" without either'
)


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """What the file knows of a token: never the token itself."""

    id: str
    """The id by which the token is listed and revoked. It can be shown: the token does not follow from it."""
    sha256: str
    """The SHA-256 of the token, as 64 hexadecimal digits."""
    caller: Caller
    """Whose token it is. Its `token_id` is the id of this entry."""
    name: str | None = None
    """A name for people, such as the device that has the token."""
    created_at: str | None = None
    """When the entry was made, as an ISO time with its zone; None if the file does not say."""
    expires_at: datetime | None = None
    """The time from which the token is refused; None for never."""

    @classmethod
    def of(cls, sha256: str, caller: Caller, *, name: str | None, expires_at: datetime | None) -> TokenEntry:
        """The entry of a new token. Raises InvalidArgument."""
        require(STR_OR_NONE, name=name)
        if expires_at is not None and (not isinstance(expires_at, datetime) or expires_at.tzinfo is None):
            raise InvalidArgument("expires_at", f"must be a time with its zone, not {expires_at!r}")
        now = datetime.now(UTC)
        if expires_at is not None and expires_at <= now:
            raise InvalidArgument("expires_at", f"must be in the future, not {expires_at.isoformat()}")
        id_ = sha256[:_ID_DIGITS]
        return cls(id_, sha256, caller.of_token(id_), name, now.isoformat(timespec="seconds"), expires_at)

    @classmethod
    def read(cls, entry: Any) -> TokenEntry:
        """The entry as the file has it. One that an earlier release wrote has neither id nor scope: its id is made of
        the hash, and it may write. Raises ValueError or InvalidArgument for another form.
        """
        sha256, id_ = _text(entry, "sha256"), _text(entry, "id")
        if sha256 is None or not _SHA256.fullmatch(sha256.lower()) or id_ == "":
            raise ValueError("no hash of a token")
        if entry.get("admin", True) is not True or ("user_id" in entry and entry["user_id"] is None):
            raise ValueError("no caller")
        id_ = id_ or sha256.lower()[:_ID_DIGITS]
        caller = Caller(
            entry.get("user_id"),
            "admin" in entry,
            entry.get("tenant", DEFAULT_TENANT),
            entry.get("scope", "write"),
            id_,
        )
        until = _text(entry, "expires_at")
        ends = None if until is None else datetime.fromisoformat(until)
        if ends is not None and ends.tzinfo is None:
            raise ValueError("a time without its zone")
        return cls(id_, sha256.lower(), caller, _text(entry, "name"), _text(entry, "created_at"), ends)

    def to_json(self) -> dict[str, Any]:
        """The entry as it is written. What it does not have stays out."""
        caller = self.caller
        written = {
            "id": self.id,
            "name": self.name,
            "sha256": self.sha256,
            "tenant": caller.tenant,
            "user_id": caller.user_id,
            "admin": caller.admin or None,
            "scope": caller.scope,
            "created_at": self.created_at,
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(timespec="seconds"),
        }
        return {name: value for name, value in written.items() if value is not None}

    @property
    def has_expired(self) -> bool:
        """Whether the token is refused because its time is over."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _text(entry: Any, name: str) -> str | None:
    if not isinstance(entry, dict) or not isinstance(text := entry.get(name), str | None):
        raise ValueError(f"{name} is no text")
    return text
