"""The logins of the page. The browser keeps a random secret, and a file beside the tokens its hash, with the id of the
entry whose token was typed. So the token itself stays out of the browser, and all processes know the login.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from chatledger.server.callers.private_files import alone, state_of, write
from chatledger.server.callers.token_entries import hash_of
from chatledger.server.problems import TokensUnreadable
from chatledger.storage.drivers.private_file import NotPrivate, read_private

IDLE = 12 * 3600
"""Seconds without a request after which a login ends."""
LONGEST = 7 * 86_400
"""Seconds after which a login ends in any case."""
MOST = 100
"""Maximum number of logins with one token. A further login ends the one that was not used for the longest time."""
_NOTED = 600
"""Seconds of use after which the file is told of it, so that few requests write."""


@dataclass(frozen=True, slots=True)
class Session:
    sha256: str
    token_id: str
    created_at: float
    used_at: float

    def checked(self) -> Session:
        """Raises ValueError or TypeError if a time is none."""
        return replace(self, created_at=float(self.created_at), used_at=float(self.used_at))

    @property
    def is_over(self) -> bool:
        now = time.time()
        return now >= self.used_at + IDLE or now >= self.created_at + LONGEST

    @property
    def is_to_be_noted(self) -> bool:
        return time.time() >= self.used_at + _NOTED


Sessions = dict[str, Session]
"""The sessions by their hashes."""


class SessionFile:
    """The logins of a file of tokens. Each method raises TokensUnreadable if the file cannot be read or written."""

    def __init__(self, tokens: Path) -> None:
        self._path = tokens.with_name(f"{tokens.name}.sessions")
        self._read: tuple[int, ...] | None = None
        self._sessions: Sessions = {}

    async def find(self, secret: str | None) -> str | None:
        """The id of the entry whose token began the session; None if it is over, or unknown."""
        if secret is None:
            return None
        self._refresh()
        session = self._sessions.get(hash_of(secret))
        if session is None or session.is_over:
            return None
        if session.is_to_be_noted:
            await self._change(lambda sessions: _used(sessions, session.sha256))
        return session.token_id

    async def begin(self, token_id: str, *, instead_of: str | None) -> str:
        """A new session of the token with that id, in place of the browser's former one."""
        secret, now = secrets.token_urlsafe(32), time.time()
        session = Session(hash_of(secret), token_id, now, now)
        former = None if instead_of is None else hash_of(instead_of)
        await self._change(lambda sessions: _added(_without(sessions, former), session))
        return secret

    async def end(self, secret: str | None) -> None:
        """End the session with that secret; nothing happens if there is none."""
        if secret is not None:
            await self._change(lambda sessions: _without(sessions, hash_of(secret)))

    async def _change(self, change: Callable[[Sessions], Sessions]) -> None:
        await asyncio.to_thread(self._write, change)
        self._refresh()

    def _write(self, change: Callable[[Sessions], Sessions]) -> None:
        try:
            with alone(self._path):
                open_sessions = [session for session in change(_load(self._path)).values() if not session.is_over]
                write(self._path, {"sessions": [asdict(session) for session in open_sessions]})
        except (OSError, NotPrivate) as error:
            raise TokensUnreadable(f"the file {self._path} cannot be written: {error}", retryable=True) from error

    def _refresh(self) -> None:
        try:
            if state_of(self._path.stat()) != self._read:
                self._sessions, status = _read(self._path)
                self._read = state_of(status)
        except FileNotFoundError:
            self._sessions, self._read = {}, None
        except (OSError, NotPrivate) as error:
            raise TokensUnreadable(f"the file {self._path} cannot be read: {error}", retryable=True) from error


def _used(sessions: Sessions, sha256: str) -> Sessions:
    """It stays ended if another process ended it meanwhile."""
    session = sessions.get(sha256)
    return sessions if session is None else {**sessions, sha256: replace(session, used_at=time.time())}


def _added(sessions: Sessions, begun: Session) -> Sessions:
    others = sorted(
        (session for session in sessions.values() if session.token_id == begun.token_id),
        key=lambda session: session.used_at,
    )
    for session in others[: max(0, len(others) + 1 - MOST)]:
        sessions = _without(sessions, session.sha256)
    return {**sessions, begun.sha256: begun}


def _without(sessions: Sessions, sha256: str | None) -> Sessions:
    return {known: session for known, session in sessions.items() if known != sha256}


def _load(path: Path) -> Sessions:
    try:
        return _read(path)[0]
    except FileNotFoundError:
        return {}


def _read(path: Path) -> tuple[Sessions, os.stat_result]:
    try:
        text, status = read_private(path)
        sessions = [Session(**entry) for entry in json.loads(text)["sessions"]]
        return {session.sha256: session.checked() for session in sessions}, status
    except (KeyError, TypeError, ValueError):
        detail = f"file {path} has another form than the server writes; delete it, and people log in again"
        raise TokensUnreadable(detail, retryable=True) from None
