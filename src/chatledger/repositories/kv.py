"""Values of the application under keys: of a thread, a user or the tenant."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.arguments import BOOL, INT, INT_OR_NONE, STR, STR_OR_NONE, Kind, require
from chatledger.errors import InvalidArgument
from chatledger.models import KvValue, Page
from chatledger.models.json import JsonValue
from chatledger.models.kv import require_version
from chatledger.storage.append.kv import make_write
from chatledger.storage.databases.scope import Scope
from chatledger.storage.lists.cursors import page_size
from chatledger.storage.repositories.kv import (
    KvScope,
    delete_value,
    first_pages,
    get_value,
    list_values,
    merge_value,
    put_value,
    read_scope,
    refuse_too_large,
)
from chatledger.storage.schema.text import encode_key

_SCOPES = Kind("a list of scopes", list, tuple)


class KvRepository:
    """The values of applications and frameworks beside messages, such as preferences, plans and counters: `ledger.kv`,
    and `tx.kv` in a transaction.

    A scope names the owner of a value: `("tenant",)`, `("user", user_id)` or `("thread", thread_id)`. A namespace may
    follow, as in `("thread", thread_id, "adk")`: the same key is another value there. Keys and namespaces have 1 to
    512 bytes. Values are any JSON, null included, and come back with the order of their keys.

    The values of a thread are deleted with it, those of a user by `erasures.erase`. With keys, values are
    encrypted; scopes, namespaces and keys are not. A scope of a thread that does not exist raises ThreadNotFound. On a
    user's ledger, the scope of the tenant raises TenantOnly, and that of another user InvalidArgument.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def get(self, scope: KvScope, key: str) -> KvValue | None:
        """The value under a key, or None if there is none."""
        place = read_scope(scope)
        require(STR, key=key)
        encode_key(key, "key")
        return await self._scope.read(lambda sql: get_value(sql, self._scope.tenant, place, key))

    async def list(self, scope: KvScope, *, limit: int = 50, cursor: str | None = None) -> Page[KvValue]:
        """A page of the values of a scope, in the order of their keys. A scope without a namespace has only the values
        without one.

        `limit` is the maximum number of values, 50 by default and 1,000 at most. The page's `damaged` has the errors of
        values that cannot be read. Raises InvalidCursor and LimitExceeded.
        """
        place = read_scope(scope)
        require(INT, limit=limit)
        require(STR_OR_NONE, cursor=cursor)
        size = page_size(limit)
        return await self._scope.read(lambda sql: list_values(sql, self._scope.tenant, place, size, cursor))

    async def list_many(self, scopes: Sequence[KvScope], *, limit: int = 50) -> dict[KvScope, Page[KvValue]]:
        """The first page of each scope, as `list` returns it, keyed by scope. The scopes may be those of threads, users
        and the tenant. One statement reads up to 500 scopes. `list` continues behind the cursor of a page.

        Unlike `list`, it raises nothing for a thread that does not exist: its page is empty.
        """
        require(_SCOPES, scopes=scopes)
        require(INT, limit=limit)
        places = {scope: read_scope(scope) for scope in scopes}
        size = page_size(limit)
        return await self._scope.read(lambda sql: first_pages(sql, self._scope.tenant, places, size))

    async def put(
        self, scope: KvScope, key: str, value: JsonValue, *, merge: bool = False, expected: int | None = None
    ) -> KvValue:
        """Store a value under a key, in place of the value that it has, and return it with its version.

            stored = await ledger.kv.put(("user", "ada"), "theme", {"dark": True})
            await ledger.kv.put(("user", "ada"), "theme", {"dark": False}, expected=stored.version)

        With `merge=True`, `value` is an object whose keys are set in the stored object, which keeps its other keys; if
        there is no value, it is stored. The whole value is returned. Nested objects are replaced, not merged, and None
        is stored as null. Writers wait for each other, so none undoes the keys that another one set.

        With `expected`, the version of the value that the caller read, or 0 for no value, the call raises
        VersionConflict if the stored value has another version. Raises LimitExceeded for a value that has more bytes
        than an append may have, 64 MiB by default, and InvalidArgument if the stored value is no object to merge into.
        """
        place = read_scope(scope)
        require(STR, key=key)
        require(BOOL, merge=merge)
        _require_expected(expected)
        write = make_write(key, value, expected, named="key", argument="value")
        tenant, maximum = self._scope.tenant, self._scope.limits.bytes
        if not merge:
            refuse_too_large(write, maximum)
            return await self._scope.write(lambda sql: put_value(sql, tenant, place, write, value))
        if not isinstance(value, dict):
            raise InvalidArgument("merge", "needs an object as the value: the keys to set")
        return await self._scope.write(lambda sql: merge_value(sql, tenant, place, key, value, expected, maximum))

    async def delete(self, scope: KvScope, key: str, *, expected: int | None = None) -> bool:
        """Delete a value. Returns False if there is none. `expected` is that of `put`. Raises VersionConflict."""
        place = read_scope(scope)
        require(STR, key=key)
        _require_expected(expected)
        encode_key(key, "key")
        return await self._scope.write(lambda sql: delete_value(sql, self._scope.tenant, place, key, expected))


def _require_expected(expected: int | None) -> None:
    require(INT_OR_NONE, expected=expected)
    if expected is not None:
        require_version("expected", expected)
