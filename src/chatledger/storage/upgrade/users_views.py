"""The views of users that stand in the way of a migration on PostgreSQL.

PostgreSQL drops no view, table or column while another view reads it, and its error advises CASCADE, which drops the
user's view without a trace. So these views are named before anything is changed. SQLite does not mind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, text

from chatledger.errors import StorageError
from chatledger.storage.schema.views import VIEWS
from chatledger.storage.upgrade.discard import ADDED

MADE_ANEW: Mapping[str, tuple[str, ...]] = {
    "0001": ("transcript", "scores"),
    "0005": ("transcript", "scores", "calls", "run_usage", "usage_by_day"),
}
"""The views that each revision makes, or drops and makes anew. On the way down it drops them as well."""

_READERS = """
WITH RECURSIVE reader(view) AS (
  SELECT r.ev_class
  FROM pg_depend d
  JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
  JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = coalesce(pg_partition_root(d.refobjid), d.refobjid)
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
  WHERE n.nspname = :schema AND (c.relname = ANY(:names) OR c.relname || '.' || a.attname = ANY(:names))
  UNION
  SELECT r.ev_class
  FROM reader
  JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = reader.view
  JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
)
SELECT format('%I.%I', n.nspname, c.relname)
FROM reader JOIN pg_class c ON c.oid = reader.view JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND NOT (n.nspname = :schema AND c.relname = ANY(:ours))
ORDER BY 1
"""
"""The views that read one of the names, which are tables, views or `table.column`, and the views that read those."""


def require_no_readers(connection: Connection, schema: str, current: str, to: str) -> None:
    """Raises StorageError with the names of the users' views that the way from revision `current` to `to` breaks."""
    names = _dropped(current, to)
    if not names:
        return
    parameters = {"schema": schema, "names": names, "ours": list(VIEWS)}
    readers = connection.execute(text(_READERS), parameters).scalars().all()
    if readers:
        raise StorageError(
            f"this migration drops or replaces what these views read: {', '.join(readers)}; drop and create them again:"
            " drop them, migrate, and create them. Nothing was changed"
        )


def _dropped(current: str, to: str) -> Sequence[str]:
    """The views that are dropped on the way, even if made anew; on the way down the tables and columns too."""
    low, high = sorted((current, "" if to == "base" else to))
    lists = [MADE_ANEW, ADDED] if high == current else [MADE_ANEW]
    return [
        name for revisions in lists for revision, names in revisions.items() if low < revision <= high for name in names
    ]
