"""Finds out whether a failed append names a run that belongs to another thread."""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.models.json import dumps
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.errors import foreign_run, is_key, run_conflict
from chatledger.storage.drivers.sql import WriteSql


def raise_run_conflict(requests: Sequence[AppendRequest], error: Exception) -> None:
    """Raises RunConflict if that is what the error of PostgreSQL says."""
    foreign = foreign_run(error, [run for request in requests for run in request.runs])
    if foreign is not None:
        raise run_conflict(foreign) from error


_FOREIGN_RUN = (
    "SELECT run_id FROM {schema}runs"
    " WHERE tenant_id = :tenant AND thread_id <> :thread AND run_id IN (SELECT value FROM json_each(:runs))"
)


def refuse_foreign_run(sql: WriteSql, request: AppendRequest, error: Exception) -> None:
    """Raises RunConflict if that is why the write failed."""
    if sql.dialect == "postgresql":
        raise_run_conflict([request], error)
    elif request.runs and is_key(error):  # SQLite does not say which foreign key failed
        place = {"tenant": request.tenant.key, "thread": request.thread, "runs": dumps(request.runs)}
        foreign = sql.fetch(_FOREIGN_RUN, place)
        if foreign:
            raise run_conflict(foreign[0][0]) from error
