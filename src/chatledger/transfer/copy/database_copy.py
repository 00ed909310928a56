"""One pass of a copy: compares both databases range by range, and writes what differs.

This one rule makes a copy go on after a kill, makes a second pass bring only what changed, and verifies.
"""

from __future__ import annotations

import asyncio
import hashlib
import marshal
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

from sqlalchemy import Table

from chatledger.errors import StorageError
from chatledger.models import CopyReport, Progress
from chatledger.storage.schema.tables import (
    INSERTION_ORDER,
    erasures,
    feedback,
    kept_scores,
    kv,
    tenants,
    threads,
)
from chatledger.storage.schema.text import decode_text, from_microseconds
from chatledger.storage.upgrade.versions import VERSION_TABLE
from chatledger.transfer.copy.cells import Row, RowChanges, cell, places, written_alike
from chatledger.transfer.copy.ends import CopySource
from chatledger.transfer.copy.parts import (
    APART,
    PARTS,
    TENANT,
    THREADS,
    CopiedPart,
    Range,
    delete_rows,
    is_there,
    select_rows,
)
from chatledger.transfer.copy.sides import DuplicateKey, Side
from chatledger.transfer.copy.tombstones import Named, Tombstones, missing, require_one_secret

ROWS = 20_000
"""The messages of a range, about: what one transaction writes, and what a kill loses."""
MOST_DIFFERENCES = 20
_TENANT_COLUMNS = ("encrypted_at", "digest_secret", "tombstone_secret")


@dataclass(frozen=True)
class LeftOut:
    """What tombstones name in a range: whole units, and rows up to a moment of the user who is their owner."""

    units: frozenset[str] = frozenset()
    until: Mapping[str, int] = field(default_factory=dict)
    """By unit: its values that were written then or before."""
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
        self.changes = RowChanges(keep_open_runs=self.keep_open_runs, encrypted=is_encrypted or recorded)
        await self._copy_tombstones(tenant)
        for part in PARTS:
            async for span, left_out, units in self._ranges(part, erased):
                await self._copy_range(part, span, left_out)
                if part is THREADS:
                    self.done += units
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
                    await self.target.run("DELETE FROM {schema}tenants WHERE tenant_id = :tenant", [{"tenant": tenant}])
            return False
        at, digest, stone = of_source
        if of_target is not None:
            at, digest = at if at is not None else of_target[0], digest or of_target[1]
            stone = (of_target[2] or stone) if stones[1].any else stone
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

    async def _facts(self, side: Side, tenant: str) -> Row | None:
        cells = ", ".join(cell(tenants.c[name], side.dialect, name) for name in _TENANT_COLUMNS)
        rows = await side.fetch(f"SELECT {cells} FROM {{schema}}tenants WHERE tenant_id = :tenant", {"tenant": tenant})
        return rows[0] if rows else None

    async def _copy_tombstones(self, tenant: str) -> None:
        async for page in missing(self.source.side, self.target, tenant):
            if page and not self.writes:
                self._differs(f"{self._named_tenant()}: {len(page)} tombstones")
            elif page:
                scores = [score for _, own in page for score in own]
                async with self.target.writing(self.scope, self.source.identity):
                    await self.target.load(erasures, [row for row, _ in page])
                    await self.target.load(kept_scores, scores)
                self.rows.update({"erasures": len(page), "kept_scores": len(scores)})

    def _named_tenant(self) -> str:
        return f"tenant {decode_text(self.tenant)!r}"

    # --- Ranges

    async def _ranges(
        self, part: CopiedPart, erased: int | None, low: str = ""
    ) -> AsyncIterator[tuple[Range, LeftOut, int]]:
        """Each range, with what is left out of it and the number of its units in the source. The last one has no end,
        so what the target has behind the source's last unit is in it.
        """
        if part.units is None:
            yield Range(), LeftOut(before=erased), 1
            return
        statement = part.units.replace("{moment}", cell(threads.c.created_at, self.source.side.dialect, "t.created_at"))
        while True:
            listed = await self.source.side.fetch(statement, {"tenant": self.tenant, "low": low})
            if not listed:
                yield Range(low), LeftOut(), 0
                return
            begun, rows = 0, 0
            for index, unit in enumerate(listed):
                rows += int(unit[3])
                if rows >= ROWS or index + 1 == len(listed):
                    units = listed[begun : index + 1]
                    yield Range(low, unit[0]), await self._left_out(part, units, erased), len(units)
                    low, begun, rows = unit[0], index + 1, 0

    async def _left_out(self, part: CopiedPart, units: Sequence[Row], erased: int | None) -> LeftOut:
        assert self.named is not None
        owners = await self.named.moments("user", [unit[1] for unit in units if unit[1] is not None])
        if part is not THREADS:
            return LeftOut(until=owners, before=erased)
        buried = await self.named.moments("thread", [unit[0] for unit in units])
        gone = [
            unit[0]
            for unit in units
            if unit[0] in buried or max(owners.get(unit[1], _NEVER), _NEVER if erased is None else erased) >= unit[2]
        ]
        return LeftOut(units=frozenset(gone), before=erased)

    async def _copy_range(self, part: CopiedPart, span: Range, left_out: LeftOut) -> None:
        values = span.values(self.tenant)
        there = await self.target.fetch(is_there(part, bounded=span.high is not None), values)
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
                self._differs(self._place(part, unit))
        elif differing or gone:
            await self._write(part, span, left_out, differing, [*gone, *(differing & of_target.keys())])

    def _place(self, part: CopiedPart, unit: str) -> str:
        if part is TENANT:
            return f"{self._named_tenant()}: its values of kv"
        return f"{self._named_tenant()}: {part.name.removesuffix('s')} {decode_text(unit)!r}"

    async def _both(
        self, part: CopiedPart, span: Range, left_out: LeftOut
    ) -> tuple[dict[str, bytes], dict[str, bytes]]:
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

    async def _digests(self, part: CopiedPart, span: Range, left_out: LeftOut | None) -> dict[str, bytes]:
        """The digest of each unit: of all its cells, in the order of the tables and of their keys."""
        begun: dict[str, Any] = {}
        for table in part.tables:
            seen: set[str] = set()
            async for rows in self._read(part, table, span, left_out):
                for unit, own in groupby(rows, itemgetter(0)):
                    digest = begun.get(unit)
                    if digest is None:
                        digest = begun[unit] = hashlib.sha256()
                    if unit not in seen:
                        seen.add(unit)
                        digest.update(table.name.encode())
                    digest.update(b"".join(map(marshal.dumps, own, repeat(2))))  # version 2 depends on values alone
        return {unit: digest.digest() for unit, digest in begun.items()}

    async def _read(
        self, part: CopiedPart, table: Table, span: Range, left_out: LeftOut | None
    ) -> AsyncIterator[Sequence[Row]]:
        """The rows of a table in a range, each with its unit before its cells. With `left_out`, those of the source, as
        they shall be in the target; else those of the target.
        """
        side = self.target if left_out is None else self.source.side
        lacking = frozenset[str]() if left_out is None else self.source.lacking
        statement = select_rows(part, table, side.dialect, lacking, bounded=span.high is not None)
        async for batch in side.batches(statement, span.values(self.tenant)):
            rows = written_alike(table, batch)
            if left_out is not None:
                assert self.changes is not None
                rows = self.changes.apply(table, await self._keep(table, rows, left_out))
            yield rows

    async def _keep(self, table: Table, rows: Sequence[Row], left_out: LeftOut) -> Sequence[Row]:
        """The rows that no tombstone names."""
        assert self.named is not None
        left = rows
        if left_out.units:
            left = [row for row in left if row[0] not in left_out.units]
        if table is kv and (left_out.until or left_out.before is not None):
            left = [
                row
                for row in left
                if row[_UPDATED_AT] > max(left_out.until.get(row[0], _NEVER), left_out.before or _NEVER)
            ]
        if table is feedback and left:
            erased = await self.named.moments("user", [row[_SCORED_BY] for row in left if row[_SCORED_BY] is not None])
            if erased:
                left = [row for row in left if row[_SCORED_AT] > erased.get(row[_SCORED_BY], _NEVER)]
        self.left_out[table.name] += len(rows) - len(left)
        return left

    # --- Writing

    async def _write(
        self, part: CopiedPart, span: Range, left_out: LeftOut, units: set[str] | None, gone: Iterable[str]
    ) -> None:
        """Write these units of the range, or all of them, in one transaction; first delete what is `gone`."""
        before = self.left_out.copy()
        try:
            await self._write_once(part, span, left_out, units, gone)
        except DuplicateKey:
            # A message, a run or a score has moved here from a unit behind, where the target still has it.
            self.left_out = before
            await self._delete_differing(part, span)
            await self._write_once(part, span, left_out, units, ())

    async def _write_once(
        self, part: CopiedPart, span: Range, left_out: LeftOut, units: set[str] | None, gone: Iterable[str]
    ) -> None:
        written: Counter[str] = Counter()
        before = self.left_out.copy()
        async with self.target.writing(self.scope, self.source.identity):
            await self._delete(part, gone)
            for table in part.tables:
                async for rows in self._read(part, table, span, left_out):
                    cells = [row[1:] for row in rows if units is None or row[0] in units]
                    if cells:
                        await self.target.load(table, cells)
                    written[table.name] += len(cells)
        if units is not None:  # they were counted when they were compared
            self.left_out = before
        self.rows.update(written)
        if part is THREADS:
            self.copied += written["threads"]
            self.threads += written["threads"] if units is None else 0

    async def _delete(self, part: CopiedPart, units: Iterable[str]) -> None:
        rows = [{"tenant": self.tenant, "unit": unit} for unit in units]
        if rows:
            for table in reversed(part.tables):
                await self.target.run(delete_rows(part, table), rows)

    async def _delete_differing(self, part: CopiedPart, span: Range) -> None:
        """Delete every unit of the target that differs, from this range on."""
        counted = self.left_out.copy()
        assert self.named is not None
        erased = await self.named.tenant_erased()
        async for later, left_out, _ in self._ranges(part, erased, span.low):
            of_source, of_target = await self._both(part, later, left_out)
            differing = [unit for unit, digest in of_target.items() if of_source.get(unit) != digest]
            async with self.target.writing(self.scope, self.source.identity):
                await self._delete(part, differing)
        self.left_out = counted

    # --- Counts

    async def _count(self, side: Side, table: Table) -> int:
        own = " WHERE tenant_id = :tenant" if self.scope else ""
        rows = await side.fetch(f"SELECT count(*) FROM {{schema}}{table.name}{own}", {"tenant": self.scope})
        count: int = rows[0][0]
        return count

    async def _compare_counts(self) -> None:
        """Count every table too: a fault in how ranges are read could be the same on both sides."""
        for table in INSERTION_ORDER:
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


_NEVER = -(2**63)
"""Before every moment."""
(_UPDATED_AT,) = places(kv, "updated_at")
_SCORED_BY, _SCORED_AT = places(feedback, "user_id", "created_at")
