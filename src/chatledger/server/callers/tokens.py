"""The tokens of a server: who may call it with which secret.

The file holds the SHA-256 of each token, and never a token. A token is 256 random bits, so a fast hash is safe: nobody
can try them all.
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request

from chatledger.errors import InvalidArgument
from chatledger.server.callers.access import Caller
from chatledger.server.callers.cookies import secret_of
from chatledger.server.callers.private_files import alone, state_of, write
from chatledger.server.callers.sessions import SessionFile
from chatledger.server.callers.token_entries import FORM, TokenEntry, hash_of
from chatledger.server.problems import TokensUnreadable
from chatledger.storage.drivers.private_file import NotPrivate, read_private

_PREFIX = "cl_"


class TokenFile:
    """The tokens in a file, to pass as `authenticate=`. It is read again when it changes, so that a token that is added
    or removed counts from the next request on.

    Raises InvalidArgument if the file cannot be read, has another form, or can be read by others than its owner.
    """

    sessions: SessionFile
    """The logins of the page, in a file beside this one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).resolve()
        self.sessions = SessionFile(self._path)
        """The logins of the page with these tokens."""
        self._read: tuple[int, ...] | None = None
        self._by_hash: dict[str, TokenEntry] = {}
        self._by_id: dict[str, TokenEntry] = {}
        self._refresh()

    async def __call__(self, request: Request) -> Caller | None:
        token = token_of(request)
        if token is not None:
            return self.find(token)
        token_id = await self.sessions.find(secret_of(request))
        return None if token_id is None else self.find_entry(token_id)

    def find(self, token: str | None) -> Caller | None:
        """The caller with that token; None if the file does not have it, or if its time is over. Raises
        TokensUnreadable, a StorageError, if the file cannot be read.
        """
        if token is None:
            return None
        self._refresh_while_serving()
        return _valid(self._by_hash.get(hash_of(token)))

    def find_entry(self, token_id: str) -> Caller | None:
        """The caller of the entry with that id, as it is now; None if it was revoked, or if its time is over. Raises
        TokensUnreadable.
        """
        self._refresh_while_serving()
        return _valid(self._by_id.get(token_id))

    def entries(self) -> list[TokenEntry]:
        """All entries in the order of the file, expired ones too. The newest is the last one."""
        self._refresh()
        return list(self._by_hash.values())

    def add(self, caller: Caller, *, name: str | None = None, expires_at: datetime | None = None) -> str:
        """Make a new token for the caller, store its hash, and return it. It cannot be shown again."""
        token = _PREFIX + secrets.token_urlsafe(32)
        entry = TokenEntry.of(hash_of(token), caller, name=name, expires_at=expires_at)
        with alone(self._path):
            _write(self._path, [*_load(self._path), entry.to_json()])
        self._refresh()
        return token

    def revoke(self, token_id: str) -> TokenEntry:
        """Remove the entry with that id, and return it. Raises InvalidArgument if there is none."""
        with alone(self._path):
            entries = [(raw, _read_entry(self._path, raw)) for raw in _load(self._path)]
            gone = [entry for _, entry in entries if entry.id == token_id]
            if not gone:
                detail = f"{token_id!r} is not in {self._path}; `chatledger token list` shows the ids"
                raise InvalidArgument("token_id", detail)
            _write(self._path, [raw for raw, entry in entries if entry.id != token_id])
        self._refresh()
        return gone[-1]

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> TokenFile:
        """The tokens in a file, which is made if it does not exist. Only its owner may read it."""
        with alone(Path(path)):
            if not Path(path).exists():
                _write(Path(path), [])
        return cls(path)

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except OSError as error:
            raise InvalidArgument("tokens", f"cannot be read: {error}") from None
        if state_of(status) == self._read:
            return
        raw, status = _read(self._path)
        entries = [_read_entry(self._path, raw_entry) for raw_entry in raw]
        self._by_hash, self._by_id = {entry.sha256: entry for entry in entries}, {entry.id: entry for entry in entries}
        if len(self._by_hash) != len(self._by_id):
            raise InvalidArgument("tokens", f"two entries of {self._path} have the same id")
        self._read = state_of(status)

    def _refresh_while_serving(self) -> None:
        try:
            self._refresh()
        except InvalidArgument as error:
            raise TokensUnreadable(str(error), retryable=True) from error


def token_of(request: Request) -> str | None:
    """The token of the header `Authorization: Bearer`."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _valid(entry: TokenEntry | None) -> Caller | None:
    return None if entry is None or entry.has_expired else entry.caller


def _load(path: Path) -> list[dict[str, Any]]:
    return _read(path)[0]


def _read(path: Path) -> tuple[list[dict[str, Any]], os.stat_result]:
    try:
        text, status = read_private(path)
        return list(json.loads(text)["tokens"]), status
    except OSError as error:
        raise InvalidArgument("tokens", f"cannot be read: {error}") from None
    except NotPrivate as error:
        raise InvalidArgument("tokens", str(error)) from None
    except (KeyError, TypeError, ValueError):
        raise _wrong_form(path) from None


def _read_entry(path: Path, entry: Any) -> TokenEntry:
    try:
        return TokenEntry.read(entry)
    except (InvalidArgument, ValueError):
        raise _wrong_form(path) from None


def _wrong_form(path: Path) -> InvalidArgument:
    return InvalidArgument("tokens", f"file {path} has another form than {FORM}; `chatledger token add` writes it")


def _write(path: Path, tokens: list[dict[str, Any]]) -> None:
    write(path, {"tokens": tokens})
