"""Runs a copy: opens both ends, puts the marker, makes a pass, and takes the marker away at the end."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import URL

from chatledger.errors import StorageError
from chatledger.models import CopyReport, Progress
from chatledger.storage.schema.text import encode_key
from chatledger.transfer.copy import marker
from chatledger.transfer.copy.database_copy import DatabaseCopy
from chatledger.transfer.copy.ends import CopySource, open_source, open_target, require_two
from chatledger.transfer.copy.marker import of
from chatledger.transfer.copy.sides import DuplicateKey, Side


async def copy_database(
    source: URL,
    target: URL,
    *,
    tenant: str | None,
    verify: bool,
    done: bool,
    keep_open_runs: bool,
    allow_empty: bool,
    schema: str,
    progress: Progress | None,
) -> CopyReport:
    require_two(source, target)
    scope = marker.ALL if tenant is None else encode_key(tenant, "tenant")
    reads = await open_source(source, schema)
    try:
        await _require_no_marker(reads.side, schema, scope)
        side = await open_target(target, schema, create=not (verify or done), read_only=verify and not done)
        try:
            markers = await marker.read(side, schema)
            if markers.get(scope) == reads.address:  # the copy began before the source was migrated
                reads = replace(reads, identity=reads.address)
            marker.require_same(markers, scope, reads.identity, side)
            if done:
                marker.require(markers, scope, side)
                return await _end(
                    reads,
                    side,
                    scope,
                    schema,
                    verify=verify,
                    keep=keep_open_runs,
                    progress=progress,
                )
            if verify:
                return await _compare(reads, side, scope, keep_open_runs, progress)
            work = DatabaseCopy(reads, side, scope, True, keep_open_runs, progress)
            await work.require_encrypted()
            if scope in markers:
                await _require_threads(reads.side, side, scope, allow_empty=allow_empty)
            else:
                await marker.put(side, schema, scope, reads.identity)
            try:
                await work.run()
            except DuplicateKey as error:
                raise StorageError(
                    f"another copy of {of(scope)} into {side.name} writes at the same time; run this one again when "
                    "that one has ended"
                ) from error
            return work.report()
        finally:
            await side.close()
    finally:
        await reads.side.close()


async def _compare(
    source: CopySource, target: Side, scope: str, keep_open_runs: bool, progress: Progress | None
) -> CopyReport:
    work = DatabaseCopy(source, target, scope, False, keep_open_runs, progress)
    await target.begin()
    try:
        await work.run()
    finally:
        await target.end()
    return work.report()


async def _end(
    source: CopySource,
    target: Side,
    scope: str,
    schema: str,
    *,
    verify: bool,
    keep: bool,
    progress: Progress | None,
) -> CopyReport:
    report = DatabaseCopy(source, target, scope, False).report()
    if verify:
        report = await _compare(source, target, scope, keep, progress)
        if report.differences:
            return report
    await marker.clear(target, schema, scope, source.identity)
    return report.model_copy(update={"ended": True})


async def _require_no_marker(source: Side, schema: str, scope: str) -> None:
    markers = await marker.read(source, schema)
    others = [other for other in markers if marker.ALL in (other, scope) or other == scope]
    if others:
        raise StorageError(
            f"a copy of {of(others[0])} into {source.name} is under way, so it is no source yet; end that copy first, "
            "with --done"
        )


async def _require_threads(source: Side, target: Side, scope: str, *, allow_empty: bool) -> None:
    """Raises StorageError for a source without threads, if the target has some: it may be the wrong file."""
    question = "SELECT 1 FROM {schema}threads" + (" WHERE tenant_id = :scope" if scope else "") + " LIMIT 1"
    if allow_empty or await source.fetch(question, {"scope": scope}):
        return
    if await target.fetch(question, {"scope": scope}):
        raise StorageError(
            f"{source.name} has no threads of {of(scope)}, and {target.name} has some, which the copy would remove; "
            "check --from, or give --allow-empty"
        )
