"""The tokens of a server: who may call it with which secret.

The file holds the SHA-256 of each token, and never a token. A token is 256 random bits, so a fast hash is safe: nobody
can try them all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request

from chatledger.errors import InvalidArgument
from chatledger.server.access import Caller
from chatledger.server.problems import TokensUnreadable
from chatledger.storage.databases.scope import DEFAULT_TENANT

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

COOKIE = "chatledger_token"
"""The cookie in which the page's login keeps the token."""
_PREFIX = "cl_"
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class TokenFile:
    """The tokens in a file, to pass as `authenticate=`. It is read again when it changes, so that a token that is added
    or removed counts from the next request on.

    Raises InvalidArgument if the file cannot be read, has another form, or can be read by others than its owner.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).resolve()
        self._read: tuple[int, ...] | None = None
        self._callers: dict[str, Caller] = {}
        self._refresh()

    async def __call__(self, request: Request) -> Caller | None:
        return self.find(token_of(request))

    def find(self, token: str | None) -> Caller | None:
        """The caller with that token; None if the file does not have it. Raises TokensUnreadable, a
        StorageError, if it cannot be read.
        """
        if token is None:
            return None
        try:
            self._refresh()
        except InvalidArgument as error:
            raise TokensUnreadable(str(error), retryable=True) from error
        return self._callers.get(_hash(token))

    def add(self, caller: Caller) -> str:
        """Make a new token for the caller, store its hash, and return it. It cannot be shown again."""
        token = _PREFIX + secrets.token_urlsafe(32)
        who = {"admin": True} if caller.user_id is None else {"user_id": caller.user_id}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        made = {"sha256": _hash(token), "tenant": caller.tenant, **who, "created_at": now}
        with _alone(self._path):
            _write(self._path, [*_load(self._path), made])
        self._refresh()
        return token

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> TokenFile:
        """The tokens in a file, which is made if it does not exist. Only its owner may read it."""
        with _alone(Path(path)):
            if not Path(path).exists():
                _write(Path(path), [])
        return cls(path)

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
        except OSError as error:
            raise InvalidArgument("tokens", f"cannot be read: {error}") from None
        state = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size)
        if state == self._read:
            return
        if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
            raise InvalidArgument("tokens", f"others than its owner may read {self._path}; run: chmod 600 {self._path}")
        self._callers = dict(_read_caller(self._path, one) for one in _load(self._path))
        self._read = state


def token_of(request: Request) -> str | None:
    """The token of the header `Authorization: Bearer`, else that of the page's cookie."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return request.cookies.get(COOKIE)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _load(path: Path) -> list[dict[str, Any]]:
    try:
        return list(json.loads(path.read_text(encoding="utf-8"))["tokens"])
    except OSError as error:
        raise InvalidArgument("tokens", f"cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError):
        raise _wrong_form(path) from None


def _read_caller(path: Path, entry: Any) -> tuple[str, Caller]:
    match entry:
        case {"sha256": str(hashed)} if (
            _SHA256.fullmatch(hashed) and {"user_id", "admin"} & entry.keys() and entry.get("admin", True) is True
        ):
            try:
                caller = Caller(entry.get("user_id"), "admin" in entry, entry.get("tenant", DEFAULT_TENANT))
            except InvalidArgument:
                raise _wrong_form(path) from None
            return hashed.lower(), caller
    raise _wrong_form(path)


def _wrong_form(path: Path) -> InvalidArgument:
    form = '{"tokens": [{"sha256": "…", "tenant": "default", "user_id": "ada"}]}, or "admin": true for "user_id"'
    return InvalidArgument("tokens", f"file {path} has another form than {form}; `chatledger token` writes it")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for another process that changes a token file of the same folder. Windows has no such lock."""
    if fcntl is None:
        yield
        return
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _write(path: Path, tokens: list[dict[str, Any]]) -> None:
    """Replace the file in one step, so that a server that reads it meets the old or the new one. The file keeps its
    owner, because the server may run as another user than the one who makes a token.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # only its owner can read it
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"tokens": tokens}, file, indent=2)
            file.write("\n")
        if os.name == "posix" and path.exists() and path.stat().st_uid != os.geteuid():
            os.chown(name, path.stat().st_uid, path.stat().st_gid)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
