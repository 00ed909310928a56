"""One pass of a copy: compares both databases range by range, and writes what differs.

This one rule makes a copy go on after a kill, makes a second pass bring only what changed, and verifies.
"""

from __future__ import annotations

import asyncio
import hashlib
import marshal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Table

from chatledger.errors import StorageError
from chatledger.models import CopyReport, Progress
from chatledger.storage.append.kv import KEEP_VERSION
from chatledger.storage.schema.tables import (
    erasures,
    feedback,
    kept_scores,
    kv,
    tenants,
    threads,
)
from chatledger.storage.schema.text import UNREADABLE, decode_text, from_microseconds
from chatledger.storage.upgrade.versions import VERSION_TABLE
from chatledger.transfer.copy.cells import Row, RowChanges, cell, places, written_alike
from chatledger.transfer.copy.damage import find_damage, require_kinds
from chatledger.transfer.copy.ends import CopySource
from chatledger.transfer.copy.parts import (
    APART,
    COPIED,
    PARTS,
    THREADS,
    CopiedPart,
    Range,
    Unit,
    after,
    delete_rows,
    far_unit,
    is_there,
    keep_versions,
    select_rows,
)
from chatledger.transfer.copy.sides import DuplicateKey, NotUtf8, Side
from chatledger.transfer.copy.spool import Spool, TooLarge
from chatledger.transfer.copy.tombstones import Named, Tombstones, kept_with, missing, require_one_secret

ROWS = 20_000
"""The messages of a range, about: what one transaction writes, and what a kill loses."""
MOST_DIFFERENCES = 20
_TENANT_COLUMNS = ("encrypted_at", "digest_secret", "tombstone_secret")


@dataclass(frozen=True)
class LeftOut:
    """What tombstones name in a range."""

    threads: frozenset[Unit] = frozenset()
    before: int | None = None
    """Everything that was there when the tenant was erased."""


@dataclass
class DatabaseCopy:
    """`writes`: the pass copies; else it only compares. `scope` is a tenant as its column stores it, or "" for all."""

    source: CopySource
    target: Side
    scope: str
    writes: bool
    keep_open_runs: bool = False
    progress: Progress | None = None
    threads: int = 0
    copied: int = 0
    removed: int = 0
    done: int = 0
    total: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    named: Named | None = None
    changes: RowChanges | None = None
    tenant: str = ""

    async def run(self) -> None:
        """The source is in its snapshot."""
        self.total = await self._count(self.source.side, threads)
        recorded = await self._copy_record()
        for tenant in [self.scope] if self.scope else await self._tenants():
            await self._copy_tenant(tenant, recorded=recorded)
        if not self.writes:
            await self._compare_counts()

    def report(self, *, ended: bool = False) -> CopyReport:
        return CopyReport(
            threads=self.threads,
            copied=self.copied,
            removed=self.removed,
            rows=dict(self.rows),
            left_out=dict(self.left_out),
            differences=self.differences[:MOST_DIFFERENCES],
            ended=ended,
        )

    def _differs(self, what: str) -> None:
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(what)

    # --- Tenants

    async def require_encrypted(self) -> None:
        """Raises StorageError if a copy would put plain words where the target is recorded as encrypted."""
        if await self._record(self.source.side) is not None:
            return
        encrypted = await self._encrypted_tenants(self.target)
        recorded = await self._record(self.target) is not None
        if not (encrypted or recorded):
            return
        plain = set([self.scope] if self.scope else await _named_in(self.source.side, threads, kv))
        plain -= await self._encrypted_tenants(self.source.side)
        refused = sorted(plain if recorded else plain & encrypted)
        if refused:
            raise StorageError(
                f"{self.target.name} is recorded as encrypted, and tenant {decode_text(refused[0])!r} of "
                f"{self.source.side.name} is not; encrypt it there first, with chatledger --keys FILE reencrypt "
                "--plaintext, or copy into a new database"
            )

    async def _encrypted_tenants(self, side: Side) -> set[str]:
        own = " AND tenant_id = :scope" if self.scope else ""
        statement = f"SELECT tenant_id FROM {{schema}}tenants WHERE encrypted_at IS NOT NULL{own}"
        return {row[0] for row in await side.fetch(statement, {"scope": self.scope})}

    async def _tenants(self) -> list[str]:
        """The tenants of both databases. Every other table's rows belong to a thread."""
        names: set[str] = set()
        for side in (self.source.side, self.target):
            names |= await _named_in(side, threads, kv, tenants, erasures)
        return sorted(names)

    async def _copy_tenant(self, tenant: str, *, recorded: bool) -> None:
        source, target = self.source.side, self.target
        stones = [await Tombstones.read(side, tenant) for side in (source, target)]
        require_one_secret(*stones)
        self.tenant, self.named = tenant, Named(tenant, *stones)
        if self.scope and await self.named.tenant_ever_erased():
            raise StorageError(f"tenant {decode_text(tenant)!r} was erased; nothing of it is copied")
        erased = await self.named.tenant_erased()
        is_encrypted = await self._copy_facts(tenant, stones)
        await self._copy_deleted_version(tenant)
        self.changes = RowChanges(keep_open_runs=self.keep_open_runs, encrypted=is_encrypted or recorded)
        await self._copy_tombstones(tenant)
        for part in PARTS:
            async for span, left_out in self._ranges(part, erased, part.first):
                async for own in self._parted(part, span):
                    await self._copy_range(part, own, left_out)
                    if part is THREADS:
                        self.done += len(own.units)
                        if self.progress is not None:
                            self.progress(self.done, max(self.done, self.total))

    async def _copy_record(self) -> bool:
        """Return whether the source is recorded as encrypted as a whole. A copy of all tenants copies the record."""
        wanted, recorded_at = [await self._record(side) for side in (self.source.side, self.target)]
        if self.scope or wanted is None or recorded_at is not None:
            return wanted is not None
        if self.writes:
            async with self.target.writing(self.scope, self.source.identity):
                update = f"UPDATE {{schema}}{VERSION_TABLE} SET encrypted_at = :moment"
                await self.target.run(update, [{"moment": self._moment(wanted)}])
        else:
            self._differs("the source is recorded as encrypted")
        return True

    async def _record(self, side: Side) -> int | None:
        encrypted_at = cell(tenants.c.encrypted_at, side.dialect, "encrypted_at")
        rows = await side.fetch(f"SELECT {encrypted_at} FROM {{schema}}{VERSION_TABLE}", {})
        moment: int | None = rows[0][0]
        return moment

    def _moment(self, microseconds: int | None) -> Any:
        """A moment as the driver of the target takes it."""
        if microseconds is None or self.target.dialect == "sqlite":
            return microseconds
        return from_microseconds(microseconds)

    async def _copy_facts(self, tenant: str, stones: Sequence[Tombstones]) -> bool:
        """Copy the tenant's row, and return whether the tenant is encrypted. What the target has stays where the source
        has nothing: that the tenant is encrypted, and its secrets; and so does the secret of the target's tombstones.
        """
        of_source, of_target = [await self._facts(side, tenant) for side in (self.source.side, self.target)]
        if of_source is None:
            stays = of_target is None or of_target[0] is not None or stones[1].any
            if self.writes and not stays:  # the tenant vanished, with its threads
                async with self.target.writing(self.scope, self.source.identity):
                    await self.target.run(_FORGET, [{"tenant": tenant}])
            return False
        at, digest, stone = of_source
        if of_target is not None:
            at, digest = at if at is not None else of_target[0], digest or of_target[1]
            stone = (of_target[2] or stone) if stones[1].any else (stone or of_target[2])
        wanted = (at, digest, stone)
        if wanted == of_target:
            return at is not None
        if not self.writes:
            self._differs(f"{self._named_tenant()}: its row in tenants")
            return at is not None
        moment = self._moment(at)
        async with self.target.writing(self.scope, self.source.identity):
            columns = ", ".join(_TENANT_COLUMNS)
            changed = ", ".join(f"{name} = excluded.{name}" for name in _TENANT_COLUMNS)
            await self.target.run(
                f"INSERT INTO {{schema}}tenants (tenant_id, {columns}) VALUES (:tenant, :at, :digest, :stone)"
                f" ON CONFLICT (tenant_id) DO UPDATE SET {changed}",
                [{"tenant": tenant, "at": moment, "digest": digest, "stone": stone}],
            )
        self.rows["tenants"] += 1
        return at is not None

    async def _copy_deleted_version(self, tenant: str) -> None:
        """The highest version of the values that were deleted: no copy lowers that of the target."""
        if "tenants.kv_version" in self.source.lacking:
            return
        rows_of_both = [await side.fetch(_DELETED, {"tenant": tenant}) for side in (self.source.side, self.target)]
        for row in chain.from_iterable(rows_of_both):
            require_kinds(tenants, tenant, ("kv_version",), row, ())
        of_source, of_target = [rows[0][0] or 0 if rows else 0 for rows in rows_of_both]
        if of_source > of_target and self.writes:
            async with self.target.writing(self.scope, self.source.identity):
                await self.target.run(KEEP_VERSION, [{"tenant": tenant, "version": of_source}])
        elif of_source > of_target:
            self._differs(f"{self._named_tenant()}: the versions of its deleted values")

    async def _facts(self, side: Side, tenant: str) -> Row | None:
        cells = ", ".join(cell(tenants.c[name], side.dialect, name) for name in _TENANT_COLUMNS)
        rows = await side.fetch(f"SELECT {cells} FROM {{schema}}tenants WHERE tenant_id = :tenant", {"tenant": tenant})
        for row in rows:
            require_kinds(tenants, tenant, _TENANT_COLUMNS, row, ())
        return rows[0] if rows else None

    async def _copy_tombstones(self, tenant: str) -> None:
        async for page in missing(self.source.side, self.target, tenant):
            if page and not self.writes:
                self._differs(f"{self._named_tenant()}: {len(page)} tombstones")
            elif page:
                with Spool(bounded=False) as spool:
                    spool.add(erasures, page)
                    for stone in page:
                        async for scores in kept_with(self.source.side, stone):
                            spool.add(kept_scores, scores)
                    async with self.target.writing(self.scope, self.source.identity):
                        self.rows.update(await self._load(spool))

    def _named_tenant(self) -> str:
        return f"tenant {decode_text(self.tenant)!r}"

    # --- Ranges

    async def _ranges(self, part: CopiedPart, erased: int | None, low: Unit) -> AsyncIterator[tuple[Range, LeftOut]]:
        """Each range, with what is left out of it. The last one has no end, so what the target has behind the source's
        last unit is in it.
        """
        statement = part.units.replace("{moment}", cell(threads.c.created_at, self.source.side.dialect, "t.created_at"))
        while listed := await self._list_units(part, statement, low):
            begun, rows = 0, 0
            for index, row in enumerate(listed):
                rows += int(row[-1])
                if rows >= ROWS or index + 1 == len(listed):
                    own = listed[begun : index + 1]
                    units = [_unit_of(part, row) for row in own]
                    yield Range(low, units[-1], units), await self._left_out(part, own, erased)
                    low, begun, rows = units[-1], index + 1, 0
        yield Range(low, None), LeftOut(before=erased)

    async def _parted(self, part: CopiedPart, span: Range) -> AsyncIterator[Range]:
        """The range in ranges that have a bounded number of units in the target."""
        statement = far_unit(part, bounded=span.high is not None)
        while rows := await self.target.fetch(statement, span.values(self.tenant)):
            first, span = span.parted(_unit_of(part, rows[0]))
            yield first
        yield span

    async def _list_units(self, part: CopiedPart, statement: str, low: Unit) -> Sequence[Row]:
        try:
            return await self.source.side.fetch(statement, after(low, self.tenant))
        except NotUtf8:
            async for _ in self._read(part, Range(low, None), LeftOut()):  # it names the row
                pass
            raise

    async def _left_out(self, part: CopiedPart, units: Sequence[Row], erased: int | None) -> LeftOut:
        if part is not THREADS:
            return LeftOut(before=erased)
        for unit in units:
            require_kinds(threads, self.tenant, ("thread_id", "user_id", "created_at"), unit[:3], ("thread_id",))
        assert self.named is not None
        owners = await self.named.moments("user", [unit[1] for unit in units if unit[1] is not None])
        buried = await self.named.moments("thread", [unit[0] for unit in units])
        gone = [
            unit[0]
            for unit in units
            if unit[0] in buried or max(owners.get(unit[1], _NEVER), _NEVER if erased is None else erased) >= unit[2]
        ]
        return LeftOut(threads=frozenset(gone), before=erased)

    async def _copy_range(self, part: CopiedPart, span: Range, left_out: LeftOut) -> None:
        there = await self.target.fetch(is_there(part, bounded=span.high is not None), span.values(self.tenant))
        if self.writes and not there:
            await self._write(part, span, left_out, None, ())
            return
        of_source, of_target = await self._both(part, span, left_out)
        differing = {unit for unit, digest in of_source.items() if of_target.get(unit) != digest}
        gone = [unit for unit in of_target if unit not in of_source]
        if part is THREADS:
            self.threads += len(of_source)
            self.removed += len(gone) if self.writes else 0
        if not self.writes:
            for unit in sorted([*differing, *gone]):
                self._differs(f"{self._named_tenant()}: {_named_unit(part, unit)}")
        elif differing or gone:
            await self._write(part, span, left_out, differing, [*gone, *(differing & of_target.keys())])

    async def _both(
        self, part: CopiedPart, span: Range, left_out: LeftOut
    ) -> tuple[dict[Unit, bytes], dict[Unit, bytes]]:
        """The digests of both sides. A pass that only compares has a snapshot of the target already."""
        if self.writes:
            await self.target.begin()
        reading = [asyncio.create_task(self._digests(part, span, which)) for which in (left_out, None)]
        try:
            of_source, of_target = await asyncio.gather(*reading)
        finally:
            for task in reading:  # of one that failed, the other one is still reading
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            if self.writes:
                await self.target.end()
        return of_source, of_target

    async def _digests(self, part: CopiedPart, span: Range, left_out: LeftOut | None) -> dict[Unit, bytes]:
        """The digest of each unit: of all its cells, in the order of the tables and of their keys."""
        begun: dict[Unit, Any] = {}
        named: set[tuple[Unit, str]] = set()
        async for table, rows in self._read(part, span, left_out):
            for unit, own in groupby(rows, itemgetter(0)):
                digest = begun.get(unit)
                if digest is None:
                    digest = begun[unit] = hashlib.sha256()
                if (unit, table.name) not in named:
                    named.add((unit, table.name))
                    digest.update(table.name.encode())
                for row in own:
                    digest.update(marshal.dumps(row, 2))  # this version depends on values alone
        return {unit: digest.digest() for unit, digest in begun.items()}

    async def _read(
        self, part: CopiedPart, span: Range, left_out: LeftOut | None
    ) -> AsyncIterator[tuple[Table, Sequence[Row]]]:
        """The rows of a range by table, each with its unit before its cells. With `left_out`, those of the source, as
        they shall be in the target; else those of the target. Raises DamagedCell, and StorageError for rows of a thread
        that does not exist.
        """
        side = self.target if left_out is None else self.source.side
        lacking = frozenset[str]() if left_out is None else self.source.lacking
        units: set[Unit] = set()
        for table in part.tables:
            if table.name in lacking:
                continue
            selection = select_rows(part, table, side.dialect, lacking, bounded=span.high is not None)
            try:
                async for page in side.batches(selection, span.values(self.tenant)):
                    rows = await self._as_copied(part, table, page, left_out)
                    if table is part.tables[0]:
                        units.update(row[0] for row in rows)
                    elif left_out is not None:
                        self._require_units(table, units, rows)
                    yield table, rows
            except NotUtf8 as error:
                raise find_damage(table, [_with_unit(part, row) for row in error.rows]) or error from None

    async def _as_copied(
        self, part: CopiedPart, table: Table, page: Sequence[Row], left_out: LeftOut | None
    ) -> Sequence[Row]:
        rows = page if len(part.key) == 1 else [_with_unit(part, row) for row in page]
        try:
            rows = written_alike(table, rows)
            if left_out is None:
                return rows
            assert self.changes is not None
            return self.changes.apply(table, await self._keep(table, rows, left_out))
        except UNREADABLE as error:
            raise find_damage(table, rows) or error from None

    def _require_units(self, table: Table, units: set[Unit], rows: Sequence[Row]) -> None:
        for unit in {row[0] for row in rows} - units:
            if not isinstance(unit, str):  # no text, so no thread has this id
                damage = find_damage(table, [row for row in rows if row[0] == unit])
                assert damage is not None
                raise damage
            raise StorageError(
                f"{self.source.side.name} is damaged: {self._named_tenant()} has rows in {table.name} of the thread "
                f"{decode_text(unit)!r}, which does not exist; delete them, and copy again"
            )

    async def _keep(self, table: Table, rows: Sequence[Row], left_out: LeftOut) -> Sequence[Row]:
        """The rows that no tombstone names."""
        left = rows
        if left_out.threads:
            left = [row for row in left if row[0] not in left_out.threads]
        if table is kv and left and left[0][_KIND] == "user":
            left = await self._without_erased(left, _OWNER, _UPDATED_AT)
        if table is feedback and left:
            left = await self._without_erased(left, _SCORED_BY, _SCORED_AT)
        if table is kv and left_out.before is not None:
            left = [row for row in left if row[_UPDATED_AT] > left_out.before]
        self.left_out[table.name] += len(rows) - len(left)
        return left

    async def _without_erased(self, rows: Sequence[Row], user: int, moment: int) -> Sequence[Row]:
        """The rows that came after the erasure of their user."""
        assert self.named is not None
        erased = await self.named.moments("user", [row[user] for row in rows if row[user] is not None])
        return [row for row in rows if row[moment] > erased.get(row[user], _NEVER)] if erased else rows

    # --- Writing

    async def _write(
        self, part: CopiedPart, span: Range, left_out: LeftOut, units: set[Unit] | None, gone: Sequence[Unit]
    ) -> None:
        """Write these units of the range, or all of them, in one transaction; first delete what is `gone`. Units that
        are too large for one spool take several transactions.
        """
        before = self.left_out.copy()
        with Spool(bounded=len(span.units if units is None else units) > 1 and len(span.units) > 1) as spool:
            try:
                async for table, rows in self._read(part, span, left_out):
                    own = rows if units is None else [row for row in rows if row[0] in units]
                    if own:
                        spool.add(table, own)
            except TooLarge:
                self.left_out = before
            else:
                if units is not None:  # they were counted when they were compared
                    self.left_out = before
                if gone or len(spool):
                    await self._write_spool(part, span, spool, gone, is_new=units is None)
                return
        for half in span.halves():
            within = None if units is None else {unit for unit in units if half.holds(unit)}
            await self._write(part, half, left_out, within, [unit for unit in gone if half.holds(unit)])

    async def _write_spool(
        self, part: CopiedPart, span: Range, spool: Spool, gone: Sequence[Unit], *, is_new: bool
    ) -> None:
        try:
            written = await self._write_once(part, spool, gone)
        except DuplicateKey:
            # A message, a run or a score has moved here from a unit behind, where the target still has it.
            await self._delete_differing(part, span)
            written = await self._write_once(part, spool, ())
        self.rows.update(written)
        if part is THREADS:
            self.copied += written["threads"]
            self.threads += written["threads"] if is_new else 0

    async def _write_once(self, part: CopiedPart, spool: Spool, gone: Sequence[Unit]) -> Counter[str]:
        async with self.target.writing(self.scope, self.source.identity):
            await self._delete(part, gone)
            return await self._load(spool)

    async def _load(self, spool: Spool) -> Counter[str]:
        """Insert the rows, and return how many by table. Raises DamagedCell."""
        written: Counter[str] = Counter()
        for table, rows in spool:
            cells = [row[len(row) - len(table.columns) :] for row in rows]
            try:
                await self.target.load(table, cells)
            except (StorageError, *UNREADABLE) as error:
                raise find_damage(table, rows) or error from None
            written[table.name] += len(rows)
        return written

    async def _delete(self, part: CopiedPart, units: Iterable[Unit]) -> None:
        rows = [after(unit, self.tenant) for unit in units]
        if rows:
            await self.target.run(keep_versions(part), rows)
            for table in reversed(part.tables):
                await self.target.run(delete_rows(part, table), rows)

    async def _delete_differing(self, part: CopiedPart, span: Range) -> None:
        """Delete every unit of the target that differs, from this range on."""
        counted = self.left_out.copy()
        assert self.named is not None
        erased = await self.named.tenant_erased()
        async for later, left_out in self._ranges(part, erased, span.low):
            async for own in self._parted(part, later):
                of_source, of_target = await self._both(part, own, left_out)
                differing = [unit for unit, digest in of_target.items() if of_source.get(unit) != digest]
                async with self.target.writing(self.scope, self.source.identity):
                    await self._delete(part, differing)
        self.left_out = counted

    # --- Counts

    async def _count(self, side: Side, table: Table) -> int:
        if side is self.source.side and table.name in self.source.lacking:
            return 0
        own = " WHERE tenant_id = :tenant" if self.scope else ""
        rows = await side.fetch(f"SELECT count(*) FROM {{schema}}{table.name}{own}", {"tenant": self.scope})
        count: int = rows[0][0]
        return count

    async def _compare_counts(self) -> None:
        """Count every table too: a fault in how ranges are read could be the same on both sides."""
        for table in COPIED:
            of_source, of_target = [await self._count(side, table) for side in (self.source.side, self.target)]
            expected = of_source - self.left_out[table.name]
            if of_target < expected if table in APART else of_target != expected:
                self._differs(f"table {table.name}: {expected:,} rows in the source, {of_target:,} in the target")


async def _named_in(side: Side, *tables: Table) -> set[str]:
    """The tenants with rows in any of the tables."""
    names: set[str] = set()
    for table in tables:
        rows = await side.fetch(f"SELECT DISTINCT tenant_id FROM {{schema}}{table.name}", {})
        names.update(row[0] for row in rows)
    return names


def _unit_of(part: CopiedPart, row: Row) -> Unit:
    """The unit of a row of a statement, which begins with the columns of its key."""
    unit: Unit = row[0] if len(part.key) == 1 else row[: len(part.key)]
    return unit


def _with_unit(part: CopiedPart, row: Row) -> Row:
    """The row of a statement, with its unit as one cell."""
    return (_unit_of(part, row), *row[len(part.key) :])


def _named_unit(part: CopiedPart, unit: Unit) -> str:
    if isinstance(unit, str):
        return f"{part.name} {decode_text(unit)!r}"
    owner, namespace, key = map(decode_text, unit)
    of = f" of {part.name} {owner!r}" if owner else ""
    return f"value {key!r}{of}" + (f" in namespace {namespace!r}" if namespace else "")


_DELETED = "SELECT kv_version FROM {schema}tenants WHERE tenant_id = :tenant"
_FORGET = "DELETE FROM {schema}tenants WHERE tenant_id = :tenant AND kv_version IS NULL"
_NEVER = -(2**63)
"""Before every moment."""
_KIND, _OWNER, _UPDATED_AT = places(kv, "kind", "scope_id", "updated_at")
_SCORED_BY, _SCORED_AT = places(feedback, "user_id", "created_at")
