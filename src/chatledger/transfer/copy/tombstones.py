"""The tombstones of both ends. They are only ever added.

What the target erased does not come back. What stands in the source in spite of a tombstone of its own came after the
erasure, whatever times an import gave it, so it is copied.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from chatledger.errors import StorageError
from chatledger.models.json import dumps
from chatledger.storage.rows.secrets import subjects_of
from chatledger.storage.schema.tables import erasures, kept_scores
from chatledger.storage.schema.text import UNREADABLE, decode_text
from chatledger.transfer.copy.cells import Row, cell, columns_of, written_alike
from chatledger.transfer.copy.damage import find_damage
from chatledger.transfer.copy.parts import select_kept_scores
from chatledger.transfer.copy.sides import NotUtf8, Side

_ANY = "SELECT 1 FROM {schema}erasures WHERE tenant_id = :tenant LIMIT 1"
_KEYED_WITH = "SELECT tombstone_secret FROM {schema}tenants WHERE tenant_id = :tenant"
_NAMED = (
    "SELECT subject, {moment}, erasure_id FROM {schema}erasures"
    " WHERE tenant_id = :tenant AND kind = :kind AND subject IN {among}"
)
_KNOWN = "SELECT erasure_id FROM {schema}erasures WHERE tenant_id = :tenant AND erasure_id IN {among}"
_AMONG = {"postgresql": "(SELECT unnest(:among::text[]))", "sqlite": "(SELECT value FROM json_each(:among))"}
PAGE = 500


@dataclass(frozen=True)
class Tombstones:
    """Of one side and tenant. `secret` keys them; None if the side has none."""

    side: Side
    tenant: str
    secret: str | None
    any: bool

    @classmethod
    async def read(cls, side: Side, tenant: str) -> Tombstones:
        rows = await side.fetch(_KEYED_WITH, {"tenant": tenant})
        some = bool(await side.fetch(_ANY, {"tenant": tenant}))
        return cls(side, tenant, rows[0][0] if rows else None, some)

    async def naming(self, kind: str, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Each tombstone of one of these ids: the id as stored, its moment in microseconds, and its own id."""
        if not (self.any and ids):
            return []
        of = {subject: id_ for id_ in ids for subject in subjects_of(self.secret, kind, decode_text(id_))}
        template = _NAMED.replace("{moment}", cell(erasures.c.created_at, self.side.dialect, "created_at"))
        rows = await self._among(template, list(of), kind=kind)
        return [(of[subject], moment, erasure_id) for subject, moment, erasure_id in rows]

    async def known(self, erasure_ids: Sequence[str]) -> set[str]:
        """Those of these tombstones that this side has."""
        if not (self.any and erasure_ids):
            return set()
        return {row[0] for row in await self._among(_KNOWN, erasure_ids)}

    async def _among(self, template: str, texts: Sequence[str], **values: str) -> Sequence[Row]:
        among = texts if self.side.dialect == "postgresql" else dumps(list(texts))
        text = template.replace("{among}", _AMONG[self.side.dialect])
        return await self.side.fetch(text, {"tenant": self.tenant, "among": among, **values})


class Named:
    """What tombstones name. Of a user or of the tenant, only a tombstone that the target made counts, and for what was
    there when it was made. No thread can be made again once it was erased, so for threads those of both sides count.
    """

    def __init__(self, tenant: str, source: Tombstones, target: Tombstones) -> None:
        self._tenant = tenant
        self._source = source
        self._target = target

    async def moments(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """When each of these ids was erased last, in microseconds. The ids are as stored."""
        asked = list(dict.fromkeys(ids))
        naming = await self._target.naming(kind, asked)
        if kind == "thread":
            naming += await self._source.naming(kind, asked)
        else:
            copied = await self._source.known([erasure_id for _, _, erasure_id in naming])
            naming = [stone for stone in naming if stone[2] not in copied]
        latest: dict[str, int] = {}
        for id_, moment, _ in naming:
            latest[id_] = max(moment, latest.get(id_, moment))
        return latest

    async def tenant_erased(self) -> int | None:
        """When the target erased the tenant itself; None if it never did."""
        return (await self.moments("tenant", [self._tenant])).get(self._tenant)

    async def tenant_ever_erased(self) -> bool:
        """Whether either side erased the tenant itself."""
        return any([await side.naming("tenant", [self._tenant]) for side in (self._source, self._target)])


def require_one_secret(source: Tombstones, target: Tombstones) -> None:
    """Raises StorageError if the tombstones of both sides are keyed with different secrets: one column holds one."""
    if source.any and target.any and None not in (source.secret, target.secret) and source.secret != target.secret:
        raise StorageError(
            f"the tombstones of tenant {decode_text(source.tenant)!r} in {source.side.name} and in {target.side.name} "
            "are keyed with different secrets, so one of them would find nothing any more; copy into an empty database"
        )


async def missing(source: Side, target: Side, tenant: str) -> AsyncIterator[list[Row]]:
    """The tombstones that the target lacks: some at a time."""
    place = columns_of(erasures).index("erasure_id")
    low = ""
    while rows := await source.fetch(_page(source.dialect), {"tenant": tenant, "low": low}):
        high = rows[-1][place]
        known = {row[0] for row in await target.fetch(_BETWEEN, {"tenant": tenant, "low": low, "high": high})}
        yield [row for row in rows if row[place] not in known]
        low = high


async def kept_with(source: Side, stone: Row) -> AsyncIterator[Sequence[Row]]:
    """The scores that a tombstone kept."""
    cells = dict(zip(columns_of(erasures), stone, strict=True))
    if cells["scores"] != 0:
        values = {"tenant": cells["tenant_id"], "id": cells["erasure_id"]}
        try:
            async for rows in source.batches(select_kept_scores(source.dialect), values):
                yield _alike(rows)
        except NotUtf8 as error:
            raise find_damage(kept_scores, error.rows) or error from None


def _alike(rows: Sequence[Row]) -> Sequence[Row]:
    try:
        return written_alike(kept_scores, rows, behind=0)
    except UNREADABLE as error:
        raise find_damage(kept_scores, rows) or error from None


_BETWEEN = (
    "SELECT erasure_id FROM {schema}erasures WHERE tenant_id = :tenant AND erasure_id > :low AND erasure_id <= :high"
)


def _page(dialect: str) -> str:
    cells = ", ".join(cell(column, dialect, column.name) for column in erasures.columns)
    return (
        f"SELECT {cells} FROM {{schema}}erasures WHERE tenant_id = :tenant AND erasure_id > :low"
        f" ORDER BY erasure_id LIMIT {PAGE}"
    )
