"""Mutation checks: each proof run without the protection that it is about, which must make it fail.

python -m tests.faults.mutants [NAME…]

A protection is replaced from here, in the process of the test or of its clients; nothing in the library knows of it.
pytest loads this module as a plugin. It applies the mutant that CHATLEDGER_MUTANT names before it collects the tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tests.faults import security_mutants
from tests.faults.mutant import Mutant
from tests.faults.mutant import put as _put
from tests.faults.mutant import reword as _reword

VARIABLE = "CHATLEDGER_MUTANT"
TIMEOUT = 240
AT_ONCE = 2
_FAULTS = "tests/faults/"


def activate(*, client: bool = False) -> None:
    """Take the protection away that the environment names, in a client's process or in the test's."""
    mutant = next((mutant for mutant in MUTANTS if mutant.name == os.environ.get(VARIABLE)), None)
    if mutant is not None and (client or not mutant.client_only):
        mutant.apply()


def pytest_configure() -> None:
    activate()


# --- What is taken away -----------------------------------------------------------------------------------------------


def commit_later() -> None:
    """SQLite: acknowledged when done, committed with every seventh."""
    from chatledger.storage.drivers.sqlite import SqliteConnection

    commit, execute, count = SqliteConnection.commit, SqliteConnection.execute, [0]

    def now_and_then(self: SqliteConnection) -> None:
        count[0] += 1
        if count[0] % 7 == 0:
            commit(self)

    def unless_begun(self: SqliteConnection, text: str) -> None:
        if not (text.startswith("BEGIN") and self.in_transaction):
            execute(self, text)

    SqliteConnection.commit = now_and_then  # type: ignore[method-assign]
    SqliteConnection.execute = unless_begun  # type: ignore[method-assign]


def write_in_two_statements() -> None:
    """PostgreSQL: the messages and their runs first, then their parts, calls and results."""
    from chatledger.storage.append import attempt, write
    from chatledger.storage.append.attempt import NeedsPreflight
    from chatledger.storage.append.guarded_write import TABLES
    from chatledger.storage.databases.postgresql import append as postgresql_append

    whole = write.write

    def in_two(sql: Any, plan: Any, **options: Any) -> Any:
        first = {name: rows if name in ("runs", "messages") else [] for name, rows in plan.rows.items()}
        written = whole(sql, replace(plan, rows=first), **options)
        place = (plan.request.tenant.key, plan.request.thread, plan.branch)
        for name, rows in plan.rows.items():
            if isinstance(written, write.Written) and rows and not first[name]:
                columns = ("tenant_id", "thread_id", "branch", *TABLES[name])
                sql.load(name, columns, [(*place, *row) for row in rows])
        return written

    _put(attempt, write=in_two)
    _put(postgresql_append, plan_on_cached_tip=lambda *_: NeedsPreflight())


def write_values_later() -> None:
    """PostgreSQL: the messages first, their values in a statement of its own."""
    from chatledger.storage.append import attempt, write
    from chatledger.storage.append.attempt import NeedsPreflight
    from chatledger.storage.databases.postgresql import append as postgresql_append

    whole = write.write

    def in_two(sql: Any, plan: Any, **options: Any) -> Any:
        written = whole(sql, replace(plan, request=replace(plan.request, kv=())), **options)
        if isinstance(written, write.Written):
            write.write_values(sql, plan.request)
        return written

    _put(attempt, write=in_two)
    _put(postgresql_append, plan_on_cached_tip=lambda *_: NeedsPreflight())


def write_tables_one_by_one() -> None:
    """A distributed PostgreSQL: each table in a transaction of its own."""
    from chatledger.storage.databases.postgresql.append import PostgresqlAppend

    def without(self: Any, request: Any, progress: Any, *, transaction: bool) -> Any:
        return self._connections.autocommit(self._timeout([request], progress))

    PostgresqlAppend._begin = without  # type: ignore[method-assign]


def write_tables_at_once() -> None:
    """A distributed PostgreSQL: all tables in one statement."""
    from chatledger.storage.drivers.sql import ReadSql

    begin = ReadSql.__init__

    def as_if_plain(self: Any, *args: Any, distributed: bool = False) -> None:
        begin(self, *args)

    ReadSql.__init__ = as_if_plain  # type: ignore[method-assign,assignment]


def read_internal_errors_by_their_state() -> None:
    from chatledger.storage.drivers import errors

    _put(errors, _RELAYED=re.compile("$."))


def forget_the_ids() -> None:
    """Each attempt of an append under ids of its own."""
    from chatledger.ids import new_ids
    from chatledger.storage.databases.postgresql.append import PostgresqlAppend
    from chatledger.storage.rows.messages import encode_message

    attempt = PostgresqlAppend._attempt

    def renamed(self: Any, request: Any, progress: Any, *, first: bool) -> Any:
        if not first:
            nameless = [message.model_copy(update={"message_id": None}) for message in request.messages]
            rows = tuple(map(encode_message, nameless, new_ids(len(nameless))))
            request = replace(request, messages=tuple(nameless), rows=rows)
        return attempt(self, request, progress, first=first)

    PostgresqlAppend._attempt = renamed  # type: ignore[method-assign]


def call_every_loss_retryable() -> None:
    from chatledger.storage.databases import external_connection
    from chatledger.storage.databases.postgresql import database as postgresql

    for module in (external_connection, postgresql):
        _put(module, commit_outcome_unknown=lambda _: None)


def read_once() -> None:
    from chatledger.storage.databases.postgresql import database as postgresql

    _put(postgresql, is_away=lambda _: False)


def keep_spoilt_connections() -> None:
    from chatledger.storage.drivers import asyncpg

    _put(asyncpg, is_spoilt=lambda _: False)


def say_goodbye() -> None:
    from chatledger.storage.drivers import urls

    _put(urls, _hang_up=lambda *_: None)


def commit_what_was_cancelled() -> None:
    from chatledger.storage.databases.sqlite.writer import WriterTransaction

    end = WriterTransaction.end

    async def always(self: WriterTransaction, *, commit: bool) -> None:
        await end(self, commit=True)

    WriterTransaction.end = always  # type: ignore[method-assign]


def write_without_transactions() -> None:
    """SQLite: each statement by itself."""
    from chatledger.storage.drivers.sqlite import SqliteConnection

    execute = SqliteConnection.execute

    def alone(self: SqliteConnection, text: str) -> None:
        if text.partition(" ")[0] not in ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"):
            execute(self, text)

    SqliteConnection.execute = alone  # type: ignore[method-assign]
    SqliteConnection.in_transaction = property(lambda _: True)  # type: ignore[method-assign,assignment]


def wait_for_no_lock() -> None:
    from chatledger.storage.drivers import sqlite

    pragmas = ("PRAGMA busy_timeout = 0", "PRAGMA journal_mode = WAL", "PRAGMA foreign_keys = ON")
    _put(sqlite, sqlite_pragmas=lambda _: pragmas)


def hear_of_no_failed_commit() -> None:
    from chatledger.storage.databases.sqlite import writer as sqlite_writer

    finish = sqlite_writer._finish

    def deaf(connection: Any, *, commit: bool) -> None:
        finish(connection, commit=commit)

    sqlite_writer._finish = deaf


def open_what_may_not_be_written() -> None:
    from chatledger.storage.drivers import sqlite

    _put(sqlite, _refuse_read_only=lambda _: None)


def order_by_time() -> None:
    from chatledger.storage.history import path

    path._SCANS = (path._SCANS[0].replace("ORDER BY seq", "ORDER BY created_at"), *path._SCANS[1:])


def damage_where_no_checksum_is() -> None:
    """A letter of a text in the main file, whose pages have none."""
    import shutil

    from tests.faults import damage

    def altered(left: Any, copy: Any, how: Any, chance: Any) -> Any:
        for path in (copy, damage.wal_of(copy), copy.with_name(f"{copy.name}-shm")):
            path.unlink(missing_ok=True)
        shutil.copyfile(left.database, copy)
        data = copy.read_bytes()
        copy.write_bytes(data.replace(b" second", b" SECOND"))
        return copy

    damage._damaged = altered


def write_without_the_stamp() -> None:
    from chatledger.storage.append import write
    from chatledger.storage.append.guarded_write import Guard

    def on_any(guard: Guard) -> Guard:
        texts = [text.replace(" AND stamp = :stamp", " AND (stamp = :stamp OR true)") for text in guard.alone]
        assert texts != list(guard.alone)
        return Guard(f"WITH tip AS ({texts[0]})", tuple(texts))

    _put(write, _WITH_KEYS=on_any(write._WITH_KEYS), _WITHOUT_KEYS=on_any(write._WITHOUT_KEYS))


def let_others_in() -> None:
    from chatledger import ThreadNotFound
    from chatledger.storage.changes import deletion
    from chatledger.storage.repositories import locks

    def as_before(sql: Any, tenant: Any, thread_id: str) -> None:
        if not sql.execute(locks._lock_branches(tenant, thread_id)).all():
            raise ThreadNotFound(thread_id)

    _put(deletion, hold_thread=as_before)


def trust_a_stale_memory() -> None:
    """A write that the stamp kept from happening is taken for done: nobody looks again."""
    from chatledger.storage.append import attempt
    from chatledger.storage.append.write import TryAgain, Written, read_written, write
    from chatledger.storage.databases.postgresql import append as postgresql_append

    def done(written: Written | TryAgain) -> Written:
        return Written(touched=False) if isinstance(written, TryAgain) else written

    _put(attempt, write=lambda sql, plan, **options: done(write(sql, plan, **options)))
    _put(postgresql_append, read_written=lambda rows: done(read_written(rows)))


def share_one_too_many() -> None:
    from chatledger.storage.append import new_branch
    from chatledger.storage.history.path import Segment, forked
    from chatledger.storage.repositories import branches

    def further(segments: list[Segment], branch: int, at: int) -> list[Segment]:
        return forked(segments, branch, at + 1 if at else at)

    _put(branches, forked=further)
    _put(new_branch, forked=further)


def meet_types_anywhere() -> None:
    from chatledger.storage.drivers import urls

    async def nothing(_: Any) -> None:
        pass

    _put(urls, _meet_arrays=nothing)


def let_every_tenant_in() -> None:
    from chatledger.storage.schema import row_security

    secure = row_security._secure

    def open_to_all(table: str, owner: str) -> list[str]:
        return [re.sub(r"\(tenant_id = .*\)", "(true)", statement) for statement in secure(table, owner)]

    _put(row_security, _secure=open_to_all)


def trust_the_replica() -> None:
    from chatledger.storage.databases.postgresql import replica

    _put(replica, _CAUGHT_UP="SELECT true OR :position::text IS NULL")


def see_no_lease() -> None:
    """Every append takes a partial message for abandoned."""
    from chatledger.rules.tip import Lease

    Lease.holds = lambda *_: False  # type: ignore[method-assign]


def cut_every_draft() -> None:
    """Every append goes past a partial message, as with `on_open_calls="interrupt"`."""
    from chatledger.storage.append import attempt

    _put(attempt, is_live=lambda _: False)


def compare_only_versions() -> None:
    from chatledger.storage.append import request

    read = request.read_expected

    def version(*given: Any, **options: Any) -> Any:
        mark = read(*given, **options)

        class Version(type(mark)):  # type: ignore[misc]
            __slots__ = ()

            def __ne__(self, other: object) -> bool:
                return bool(self[1] != other[1])  # type: ignore[index]

        return Version(*mark)

    _put(request, read_expected=version)


def look_only_on_the_branch_itself() -> None:
    from chatledger.storage.append import replay
    from chatledger.storage.history.path import stands_on

    _put(replay, stands_on=lambda path, branch, seq: stands_on(path[-1:], branch, seq))


def branch_off_whatever_moved() -> None:
    """The branch is made though its source is no longer what the batch was judged on."""
    from chatledger.storage.append import write

    _put(write, NEW_BRANCH=_reworded(write.NEW_BRANCH, " AND stamp = :stamp", ""))


def leave_the_active_branch_as_it_is() -> None:
    """The branch that a new one replaces keeps its stamp, so a writer that cached it as active continues there."""
    from chatledger.storage.append import write

    _put(write, NEW_BRANCH=_reworded(write.NEW_BRANCH, "stamp = :left_stamp", "stamp = stamp"))


def _reworded(guard: Any, words: str, instead: str) -> Any:
    assert words in guard.chain
    return type(guard)(guard.chain.replace(words, instead), tuple(one.replace(words, instead) for one in guard.alone))


def look_for_a_repeat_on_the_asked_branch_only() -> None:
    from chatledger.storage.append import attempt

    _put(attempt, find_other_branch=lambda request, seen: None)


def give_up_if_a_branch_is_made_already() -> None:
    from chatledger.storage.databases.postgresql import append as postgresql_append

    _put(postgresql_append, BRANCHES_KEY=())


def write_only_when_asked() -> None:
    from chatledger.storage.drafts.draft import Pace

    begin = Pace.__init__

    def never(self: Pace, interval: float, size: int) -> None:
        begin(self, 3_600, 2**40)

    Pace.__init__ = never  # type: ignore[method-assign,assignment]


def take_an_unheard_end_for_a_loss() -> None:
    from chatledger.storage.drafts.draft_write import DraftWrite

    def lost(self: Any, *_: Any) -> Any:
        raise self._lost()

    DraftWrite._found_whole = lost  # type: ignore[method-assign,assignment]


def leave_an_abandoned_draft_alone() -> None:
    from chatledger.storage.append import attempt, takeover

    overwrites = takeover.overwrites_partial

    def only_whole(request: Any, seen: Any) -> bool:
        return request.draft is None and overwrites(request, seen)

    _put(attempt, overwrites_partial=only_whole)


def begin_every_draft_anew() -> None:
    from chatledger.storage.append import attempt, takeover

    overwrite = takeover.overwrite_partial
    _put(attempt, overwrite_partial=lambda sql, request, seen: overwrite(sql, replace(request, continues=False), seen))


def take_from_the_living() -> None:
    from chatledger.storage.append import takeover

    _put(takeover, is_live=lambda _: False)


def let_the_old_writer_go_on() -> None:
    from chatledger.storage.append.draft_rows import find_held
    from chatledger.storage.drafts.draft_write import DraftWrite

    DraftWrite._find_held = lambda self, sql: find_held(sql, self._key(self.opened))  # type: ignore[method-assign]


def join_calls_of_two_responses() -> None:
    from chatledger.models.deltas import Growing

    Growing._find_call = lambda self, delta: next((one for one in self._calls if one.index == delta.index), None)  # type: ignore[method-assign]


def interrupt_after_what_the_draft_followed() -> None:
    from chatledger.storage.drafts import open_drafts

    _put(open_drafts, replace=lambda request, **fields: replace(request, **{**fields, "after": request.after}))


def leave_the_run_running() -> None:
    from chatledger.storage.append import attempt

    _put(attempt, find_run_end=lambda *_: None)


def end_a_run_that_goes_on() -> None:
    from chatledger.storage.append import attempt, takeover

    find = takeover.find_run_end
    _put(attempt, find_run_end=lambda sql, request, *place: find(sql, replace(request, messages=()), *place))


def take_each_end_for_the_last() -> None:
    from chatledger.storage.repositories import runs

    _put(runs, ended_by_ledger=lambda *_: False)


def take_no_end_for_the_last() -> None:
    from chatledger.storage.repositories import runs

    _put(runs, ended_by_ledger=lambda *_: True)


def count_an_unheard_end_again() -> None:
    from chatledger.storage.drafts.draft_write import DraftWrite

    find = DraftWrite._found_whole

    def counted(self: Any, sql: Any, rows: Any) -> Any:
        self._count(sql)
        return find(self, sql, rows)

    DraftWrite._found_whole = counted  # type: ignore[method-assign]


def store_the_first_message_alone() -> None:
    from chatledger.storage.drafts import draft_write

    _put(draft_write, plan_rows=lambda *_: {})


def take_a_lost_draft_for_done() -> None:
    from chatledger.rules import Tip
    from chatledger.storage.append.draft_rows import HeldDraft
    from chatledger.storage.drafts.draft_write import DraftWrite

    def done(self: Any, _: Any, rows: Any) -> Any:
        return HeldDraft(Tip(), 0, None), rows[0], self.messages

    DraftWrite._found_whole = done  # type: ignore[method-assign,assignment]


def migrate_side_by_side() -> None:
    from chatledger.storage.upgrade import migrate

    async def none(_: Any) -> None:
        pass

    _put(migrate, _lock=none)


def migrate_statement_by_statement() -> None:
    from chatledger.storage.upgrade import migrate
    from chatledger.storage.upgrade.revisions import run

    def alone(connection: Any, schema: str | None, to: str) -> Any:
        connection.commit()
        return run(connection.execution_options(isolation_level="AUTOCOMMIT"), schema, to)

    _put(migrate, run=alone)


def wait_for_any_lock() -> None:
    from chatledger.storage.upgrade import revisions

    config = revisions.alembic_config

    def unlimited(*given: Any) -> Any:
        made = config(*given)
        made.attributes["lock_timeout"] = 0
        return made

    _put(revisions, alembic_config=unlimited)


def take_a_half_made_index() -> None:
    import alembic.op

    drop = alembic.op.drop_index

    def but_the_half_made(*given: Any, **options: Any) -> None:
        if not options.get("if_exists"):
            drop(*given, **options)

    _put(alembic.op, drop_index=but_the_half_made)


def leave_the_arguments() -> None:
    from chatledger.storage.changes import redaction

    _put(redaction, _wordless_call=lambda call: call)


def redact_without_a_digest() -> None:
    from chatledger.storage.changes import redaction

    _put(redaction, _keep_digest=lambda *_: None)


def leave_the_bodies() -> None:
    from chatledger.storage.changes import redaction

    _put(redaction, load_bodies=lambda *_: [])


def delete_what_others_share() -> None:
    from chatledger.storage.changes import removal

    _put(removal, without=lambda segments, others: list(segments))


def forget_what_was_removed() -> None:
    from chatledger.storage.append import attempt

    _put(attempt, find_removed=lambda *_, **__: {})


def remove_without_a_position() -> None:
    from chatledger.storage.changes import removal
    from chatledger.storage.changes.record import take_position

    def stay(sql: Any, window: Any, held: Any, tip: Any, **given: Any) -> None:
        before = replace(held, path=replace(held.path, last_seq=held.path.last_seq - 1))
        take_position(sql, window, before, tip, **given)

    _put(removal, take_position=stay)


def answer_the_first_call() -> None:
    from chatledger.models import CallPlace
    from chatledger.storage.history import answer_links

    _put(answer_links, _call_place=lambda seq, _: CallPlace(seq=seq, index=0))


def tell_nobody_of_a_removal() -> None:
    from chatledger.storage.changes import removal

    _put(removal, note_changed=lambda *_: None)


def count_positions() -> None:
    from chatledger.storage.history import turns

    _put(turns, _counted=lambda sql, window, path, low, high: turns._interval(window, low, high))


def let_a_revision_change_all() -> None:
    from chatledger.storage.changes import revise

    _put(revise, _STAYS=())


def compare_only_what_is_stored_now() -> None:
    from chatledger.storage.append import replay

    _put(replay, had=lambda *_: False)


def let_the_erased_come_back() -> None:
    from chatledger.storage.repositories import bulk

    _put(bulk, refuse_erased=lambda *_: None)
    let_the_erased_come_back_with_an_append()


def count_the_latest_of_anybody() -> None:
    """The scores of all users of a target in turn, as if one user gave them."""
    from chatledger.storage.repositories import feedback

    _put(feedback, _TARGET=tuple(name for name in feedback._TARGET if name != "user_id"))


def count_what_is_left() -> None:
    """The latest score that is not retracted, in place of the latest one unless it is retracted."""
    from chatledger.storage.repositories import feedback
    from chatledger.storage.schema import tables

    current = feedback.current_scores
    _put(feedback, current_scores=lambda *which: current(*which, tables.feedback.c.retracted_at.is_(None)))


def forget_scores_elsewhere() -> None:
    from chatledger.storage.changes import erasures

    def bury(sql: Any, tenant: Any, user_id: str, rows: Any, scores: int, keep_scores: bool) -> Any:
        return erasures._bury(sql, tenant, "user", user_id, rows, scores)

    _put(erasures, _erase_feedback=bury)


def let_the_erased_come_back_with_an_append() -> None:
    from chatledger.storage.append import create

    _put(create, ERASED="SELECT 1 WHERE :subject::text IS NULL", find_erased=lambda *_: None)


def keep_every_tip() -> None:
    """Nothing leaves the cache of tips but the entry that is used."""
    from chatledger.storage.append.tip_cache import TipCache

    def keep(self: TipCache, key: Any, seen: Any) -> None:
        self._seen[key] = seen

    TipCache._keep = keep  # type: ignore[method-assign]


def trust_the_cached_owner() -> None:
    """The cached tip is used for every user."""
    from chatledger.storage.append import attempt, group_insert
    from chatledger.storage.databases.postgresql import append as postgresql_append
    from chatledger.storage.databases.sqlite import database as sqlite

    plan = attempt.plan_on_cached_tip

    def of_anybody(request: Any, cached: Any) -> Any:
        return plan(request, replace(cached, user_id=request.tenant.user))

    for module in (attempt, postgresql_append, sqlite, group_insert):
        _put(module, plan_on_cached_tip=of_anybody)


def look_at_threads_of_others() -> None:
    """A preflight sees the threads of all users."""
    from chatledger.storage.append import create, preflight

    read = preflight.read_preflight

    def of_all(request: Any, rows: Any) -> Any:
        return read(replace(request, tenant=replace(request.tenant, user=None)), rows)

    _put(preflight, read_preflight=of_all)
    _put(create, read_preflight=of_all)


def own_everything() -> None:
    """Rows of all users of the tenant, outside of appends and histories."""
    from chatledger.storage.drafts import open_drafts
    from chatledger.storage.repositories import feedback, runs

    def of_tenant(table: Any, tenant: Any) -> Any:
        return table.c.tenant_id == tenant.name

    for module in (feedback, open_drafts, runs):
        _put(module, owned=of_tenant)


def delete_what_was_idle() -> None:
    from chatledger.storage.changes import deletion

    _put(deletion, is_idle=lambda *_: True)


def log_what_an_error_says() -> None:
    import logging

    from chatledger.telemetry.calls import SlowCalls

    def begin(self: object, name: str, *_: object) -> Any:
        return lambda error, _: logging.getLogger("chatledger.calls").warning("%s: %s", name, error)

    SlowCalls.begin = begin  # type: ignore[assignment, method-assign]


def tell_what_an_error_says() -> None:
    from opentelemetry.sdk.trace import Span

    from chatledger.telemetry.otel import _ObservedLedger

    begin = _ObservedLedger.begin

    def talkative(self: Any, *given: Any) -> Any:
        from opentelemetry import trace

        end, span = begin(self, *given), trace.get_current_span()

        def ended(error: BaseException | None, found: str | None) -> None:
            if error is not None and isinstance(span, Span):
                span.record_exception(error)
            end(error, found)

        return ended

    _ObservedLedger.begin = talkative  # type: ignore[assignment, method-assign]


def close_at_once() -> None:
    from chatledger.storage.databases.scope import LedgerGuard

    close = LedgerGuard.close
    LedgerGuard.close = lambda self, timeout: close(self, 0)  # type: ignore[method-assign]


def cut_no_connection() -> None:
    from chatledger.storage.drivers.asyncpg import AsyncpgConnections

    AsyncpgConnections._in_use = False  # type: ignore[assignment, method-assign]


def give_places_to_anybody() -> None:
    from chatledger.storage.drivers.gate import PoolGate

    leave = PoolGate.leave

    def to_the_last(self: PoolGate, place: Any = None) -> None:
        self.line.reverse()
        leave(self, place)
        self.line.reverse()

    PoolGate.leave = to_the_last  # type: ignore[method-assign]


def wait_like_all() -> None:
    from chatledger.storage.drivers.gate import PoolGate

    PoolGate._count_holders = lambda self: len(self.line)  # type: ignore[method-assign]


def close_without_a_request() -> None:
    from chatledger.storage.drivers import hang_up

    _put(hang_up, _request=lambda *_: None)


def forget_what_is_stalled() -> None:
    from chatledger.storage.databases.postgresql.stalled import Stalled

    Stalled.__contains__ = lambda *_: False  # type: ignore[method-assign]


def roll_back_nothing() -> None:
    from chatledger.storage.databases.sqlite.writer import WriterTransaction

    WriterTransaction.abandon = lambda self: None  # type: ignore[method-assign]


def copy_the_file_alone() -> None:
    import shutil

    from chatledger.storage.upgrade import backup

    _put(backup, _copy=lambda source, target, _: shutil.copyfile(source, target))


def take_anything_for_json() -> None:
    from chatledger.models import json

    _put(json, _is_plain=lambda *_: True)


def tell_every_path() -> None:
    from chatledger.models import json

    problem = json.json_problem

    def eager(value: Any, **options: Any) -> Any:
        paths = [(value, "$")]
        for item, path in paths:
            if isinstance(item, dict):
                paths += [(child, f"{path}.{key}") for key, child in item.items()]
            elif isinstance(item, list):
                paths += [(child, f"{path}[{index}]") for index, child in enumerate(item)]
        return problem(value, **options)

    for module in list(sys.modules.values()):
        if getattr(module, "json_problem", None) is problem:
            _put(module, json_problem=eager)


def read_without_care() -> None:
    import json

    from chatledger.transfer import records

    _put(records, _loads=lambda raw: (json.loads(raw), ()))


def mask_nothing() -> None:
    from chatledger.storage.repositories import runs

    _put(runs, masked=lambda value: value)


def write_values_into_statements() -> None:
    from chatledger.storage.drivers.sql import _PARAMETER, ReadSql

    fetch = ReadSql._fetch

    def spelt(self: ReadSql, template: str, parameters: Any) -> Any:
        def value(match: re.Match[str]) -> str:
            given = parameters[match[1]]
            return f"'{given}'" if isinstance(given, str) else match[0]

        return fetch(self, _PARAMETER.sub(value, template), parameters)

    ReadSql._fetch = spelt  # type: ignore[method-assign]


def encrypt_for_any_place() -> None:
    from chatledger.storage.rows.keys import Cipher

    encrypt, decrypt = Cipher.encrypt, Cipher.decrypt
    Cipher.encrypt = lambda self, text, place: encrypt(self, text, "")  # type: ignore[method-assign]
    Cipher.decrypt = lambda self, data, place: decrypt(self, data, "")  # type: ignore[method-assign]


def read_plain_text() -> None:
    from chatledger.storage.rows.encryption import CellEncryption

    CellEncryption.plaintext = property(lambda self: True, lambda self, given: None)  # type: ignore[assignment,misc]


def see_no_mark_before_an_append() -> None:
    from chatledger.storage.append import preflight
    from chatledger.storage.rows.encrypted import ENCRYPTED_TENANT

    mark = f"EXISTS ({ENCRYPTED_TENANT})"
    _put(preflight, _PREFLIGHTS={key: text.replace(mark, "false") for key, text in preflight._PREFLIGHTS.items()})


def see_no_mark_before_a_write() -> None:
    from chatledger.storage.databases import scope

    _put(scope, refuse_without_keys=lambda *_: None)


def remember_a_mark_that_may_go() -> None:
    """Also one that a transaction may take back."""
    from chatledger.storage.databases.scope import Scope

    mark = Scope.mark_encrypted

    async def and_remember(self: Any) -> None:
        await mark(self)
        if self.tenant.encryption is not None:
            self.tenant.encryption.remember_marked()

    Scope.mark_encrypted = and_remember  # type: ignore[method-assign]


def plan_without_encryption() -> None:
    """And read what comes of it: nothing but the search of the files is to notice."""
    from chatledger.storage.append import attempt, write

    read_plain_text()
    planned = write.plan_rows

    def plain(request: Any, *judged: Any) -> Any:
        return planned(replace(request, tenant=replace(request.tenant, encryption=None)), *judged)

    _put(attempt, plan_rows=plain)


def connect_without_a_pause() -> None:
    from chatledger.storage.databases import retries

    _put(retries, _PAUSES=(0.0,))


def repeat_the_nonce() -> None:
    from types import SimpleNamespace

    from chatledger.storage.rows import keys

    _put(keys, os=SimpleNamespace(urandom=bytes))


def append_whatever_the_values_are() -> None:
    from chatledger.storage.append import kv

    _put(kv, moved=lambda _: "count(*)")


def expect_no_version() -> None:
    from chatledger.storage.append import kv

    store = kv.store
    _put(kv, store=lambda sql, tenant, place, write, now: store(sql, tenant, place, replace(write, expected=None), now))


def share_a_statement_with_values() -> None:
    from chatledger.storage.append.write import Plan
    from chatledger.storage.databases.postgresql.group import PostgresqlGroups

    Plan.is_plain = property(lambda plan: True)  # type: ignore[assignment]
    PostgresqlGroups.can_share = lambda self, request: request in self._tips  # type: ignore[method-assign]


def wait_for_locked_branches() -> None:
    from chatledger.storage.append import group_insert

    _put(group_insert, _FREE=group_insert._FREE.replace(" SKIP LOCKED", ""))


def write_together_on_any_stamp() -> None:
    from chatledger.storage.append import group_insert

    _put(group_insert, _FREE=group_insert._FREE.replace(" AND o.stamp = g.stamp", ""))


def wait_for_the_locks_of_others() -> None:
    from chatledger.storage.append import group_insert

    _put(group_insert, LOCK_TIMEOUT="0")


def wait_for_every_statement() -> None:
    from chatledger.storage.databases.postgresql import append_queue

    _put(append_queue, STALLED_AFTER=3_600)


def take_an_unheard_group_for_unsent() -> None:
    from chatledger.storage.databases.postgresql.append import PostgresqlAppend

    until_known: Any = PostgresqlAppend.until_known

    async def hopeful(self: Any, request: Any, *, unanswered: Any, since: float) -> Any:
        return await until_known(self, request, unanswered=None, since=since)

    PostgresqlAppend.until_known = hopeful  # type: ignore[method-assign]


def say_refused_while_it_may_run() -> None:
    from chatledger.storage.databases.postgresql.unanswered import Unanswered

    Unanswered.may_write = lambda *_: False  # type: ignore[method-assign]


def write_whatever_is_stored() -> None:
    """The shared statement does not look up ids, so that its keys refuse all of it."""
    from chatledger.storage.append import group_insert

    none = "SELECT 0::bigint WHERE :messages_message_id::text[] IS NULL"
    _put(group_insert, _STORED_IDS=none)


def wait_for_the_append_before() -> None:
    from chatledger.storage.databases.postgresql.append_queue import AppendQueue

    AppendQueue._end_waits = lambda self: None  # type: ignore[method-assign]


def say_goodbye_to_a_discarded_connection() -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    from chatledger.storage.drivers import urls

    _put(urls, _hang_up=create_async_engine("postgresql+asyncpg://").sync_engine.dialect.do_terminate)


def merge_without_the_lock() -> None:
    from chatledger.storage.repositories import kv

    _put(kv, _hold=kv.get_value)


def put_beside_a_deletion() -> None:
    from chatledger.storage.repositories import kv

    require = kv._require_scope
    _put(kv, _require_scope=lambda sql, tenant, place, lock=False: require(sql, tenant, place))


def update_without_the_lock() -> None:
    from chatledger.storage.repositories import threads

    _put(threads, _lock_row=lambda *_: None)


def expect_no_revision() -> None:
    from chatledger.repositories import threads
    from chatledger.storage.repositories.threads import update_thread

    _put(threads, update_thread=lambda a, b, c, change: update_thread(a, b, c, replace(change, expected=None)))


def link_what_was_not_linked() -> None:
    from chatledger.storage.history import answer_links

    _put(answer_links, _is_linked=lambda _: True)


def link_the_earliest_call() -> None:
    from chatledger.storage.history import answer_links

    _put(answer_links, _latest=lambda calls: calls[0] if calls else None)


def link_where_the_call_may_be_answered() -> None:
    from chatledger.storage.history import answer_links

    _reword(
        answer_links, "answer_linker", "sure_from = seq\n                    else", "pass\n                    else"
    )


def link_over_interrupted_calls() -> None:
    """As if no call were open where a turn begins."""
    from chatledger.storage.history import answer_links

    _put(answer_links, _interrupts=lambda _: False)


def list_all_but(**kept: Any) -> Callable[[], None]:
    """Lists without some of their filters."""

    def apply() -> None:
        from chatledger.storage.lists.thread_list import ThreadFilter

        condition = ThreadFilter.condition
        ThreadFilter.condition = lambda self, *given: condition(replace(self, **kept), *given)  # type: ignore[method-assign]

    return apply


def list_every_tenant() -> None:
    from chatledger.storage.lists.thread_list import ThreadFilter

    condition = ThreadFilter.condition

    def of_all(self: Any, *given: Any) -> Any:
        where, parameters = condition(self, *given)
        return where.replace("t.tenant_id = :tenant", ":tenant = :tenant"), parameters

    ThreadFilter.condition = of_all  # type: ignore[method-assign,assignment]


def take_a_cursor_of_any_order() -> None:
    from chatledger.storage.lists.thread_list import ThreadWindow

    ThreadWindow.name = property(lambda _: "list")  # type: ignore[assignment,method-assign]


def preview(words: str, instead: str) -> Callable[[], None]:
    """Previews without a condition of their look-up, on SQLite."""

    def apply() -> None:
        from chatledger.storage.lists import thread_list

        statements = {name: vars(thread_list)[name] for name in ("_SQLITE", "_IN_SEGMENT")}
        assert any(words in text for text in statements.values())
        _put(thread_list, **{name: text.replace(words, instead) for name, text in statements.items()})

    return apply


def cut_no_preview() -> None:
    from chatledger.storage.lists import thread_list

    _put(thread_list, PREVIEW_CHARACTERS=10**9)


def pop_a_live_draft() -> None:
    from chatledger.storage.changes import removal

    _put(removal, refuse_live=lambda *_: None)


def retract_before_a_live_draft() -> None:
    from chatledger.storage.changes import removal

    _put(removal, settle=lambda *_: False)


def revise_before_a_live_draft() -> None:
    from chatledger.storage.changes import revise

    _put(revise, settle=lambda *_: False)


def leave_half_a_pair() -> None:
    from chatledger.storage.changes import removal

    _reword(removal, "_part_from_pairs", 'level != "lenient"', "False")


def say_nothing_of_half_a_pair() -> None:
    from chatledger.storage.changes import removal

    _reword(removal, "_part_from_pairs", "for (branch, seq), detail in halves:", "for (branch, seq), detail in ():")


def remove_whatever_moved() -> None:
    from chatledger.storage.changes import removal

    _reword(removal, "_hold", "expected is not None and", "False and")


def change_without_the_lock() -> None:
    from chatledger.storage.changes import record

    def unlocked(sql: Any, tenant: Any, thread_id: str) -> None:
        pass

    _put(record, hold_branches=unlocked)


def share_no_stamp_of_a_revision() -> None:
    """The branches that share a revised message keep their stamps."""
    from chatledger.storage.changes import revise

    _reword(revise, "revise_message", "other is not held", "False")


def revise_an_abandoned_message() -> None:
    from chatledger.storage.changes import revise

    _reword(revise, "revise_message", 'stored.state == "partial"', "False")


def retract_scores_in_any_order() -> None:
    from chatledger.storage.repositories import feedback

    _reword(feedback, "retract", ".with_for_update(key_share=True)")


def retract_one_score() -> None:
    from chatledger.storage.repositories import feedback

    _reword(
        feedback,
        "retract",
        "up_to_it = tuple_(feedback.c.created_at, feedback.c.feedback_id) <=",
        "up_to_it = tuple_(feedback.c.created_at, feedback.c.feedback_id) ==",
    )


def copy_without_the_lock() -> None:
    from chatledger.storage.changes import copy

    _reword(copy, "copy_thread", ".with_for_update(read=True, key_share=True)")


def copy_whatever_changes() -> None:
    from chatledger.storage.changes import copy

    _reword(copy, "_copy_messages", "!= (path.absent or 0)", "is None")


def copy_the_distances() -> None:
    from chatledger.storage.changes import copy

    _put(copy, _linked=lambda message, *_: message)


def forget_that_a_call_waits_again() -> None:
    from chatledger.storage.changes import removal

    _put(removal, _record_waiting=lambda *_: None)


def pair_the_results_anew() -> None:
    """Pairs the results as if they were appended now, although some of their calls no longer have a result."""
    from chatledger.storage.history import fold

    _put(fold, load_links=lambda *_: None)


def copy_a_partial_message() -> None:
    from chatledger.storage.changes import copy

    _reword(copy, "_store", "if partial is not None", "if False")


def sync_on_whatever_is_there() -> None:
    """The messages that follow are appended to a history that may have moved since it was compared."""
    from chatledger.repositories.messages import MessageRepository

    append = MessageRepository.append

    async def anywhere(self: Any, *given: Any, expected: Any = None, **options: Any) -> Any:
        return await append(self, *given, **options)

    MessageRepository.append = anywhere  # type: ignore[method-assign]


def shorten_whatever_moved() -> None:
    from chatledger.storage.repositories import sync

    fork = vars(sync)["make_fork"]
    _put(sync, make_fork=lambda sql, window, at, activate, mark, rules: fork(sql, window, at, activate, None, rules))


def create_it_twice() -> None:
    from chatledger.storage.append import create

    _reword(create, "_insert_thread", " ON CONFLICT DO NOTHING")


def take_a_missed_creation_for_a_missing_thread() -> None:
    from chatledger import ThreadNotFound
    from chatledger.storage.append import create
    from chatledger.storage.append.write import TryAgain
    from chatledger.storage.databases.postgresql import append as postgresql_append

    read = create.read_created

    def or_missing(request: Any, rows: Any) -> Any:
        found = read(request, rows)
        if isinstance(found, TryAgain):
            raise ThreadNotFound(request.thread_id)
        return found

    for module in (create, postgresql_append):
        if hasattr(module, "read_created"):
            _put(module, read_created=or_missing)


def follow_without(name: str) -> Callable[[], None]:
    """Following, without what this function of it tells."""

    def apply() -> None:
        from chatledger.storage.follow import follower

        _put(follower, **{name: lambda *_: None})

    return apply


def follow_any_thread_of_that_id() -> None:
    from chatledger.storage.follow import follower

    find = follower._find_branch
    _put(follower, _find_branch=lambda *given: replace(find(*given), created=0))


def tell_settled_changes() -> None:
    from chatledger.storage.follow import follower
    from chatledger.storage.follow.follow_cursor import Position

    _put(follower, Position=lambda branch, version, _, *others: Position(branch, version, version, *others))


def mark_no_draft() -> None:
    from chatledger.storage.follow import follow_cursor

    _put(follow_cursor, ends_partial=lambda _: False)


def follow_without_trying_again() -> None:
    from chatledger.storage.follow import follower

    _put(follower, StorageError=type("Never", (Exception,), {}))


def forget_hints_before_the_wait() -> None:
    from chatledger.storage.databases.poller import Poller

    moved = Poller.moved
    Poller.moved = lambda self, followed, state, since: moved(self, followed, state, float("inf"))  # type: ignore[method-assign]


def trust_that_no_hint_is_lost() -> None:
    from chatledger.storage.databases.scope import LedgerGuard

    hear = LedgerGuard._hear
    LedgerGuard._hear = lambda self, buckets: hear(self, buckets or set())  # type: ignore[method-assign]


MUTANTS = (
    Mutant(
        "kill-client-sqlite",
        "test_kill.py::test_a_killed_client_loses_nothing_acknowledged[sqlite]",
        "the commit before the acknowledgement",
        r"'lost': \d",
        commit_later,
        client_only=True,
    ),
    Mutant(
        "kill-client-postgresql",
        "test_kill.py::test_a_killed_client_loses_nothing_acknowledged[postgresql]",
        "the one statement of an append: messages first, their parts and calls after",
        r"'altered': \d|in half|rows of the message are missing",
        write_in_two_statements,
        client_only=True,
    ),
    Mutant(
        "kill-client-values",
        "test_kill.py::test_a_killed_client_loses_nothing_acknowledged[postgresql]",
        "the one statement of an append and its values",
        r"'value': \d",
        write_values_later,
        client_only=True,
    ),
    Mutant(
        "kill-server",
        "test_kill.py::test_a_killed_server_loses_nothing_acknowledged",
        "the ids that an append keeps through its attempts",
        r"'stranger': \d",
        forget_the_ids,
    ),
    Mutant(
        "cut-append",
        "test_boundaries.py::test_an_append_cut_at_any_message_is_stored_once",
        "the ids that an append keeps through its attempts",
        r"'stranger': \d",
        forget_the_ids,
    ),
    Mutant(
        "cut-append-whole",
        "test_boundaries.py::test_an_append_cut_at_any_message_is_stored_once",
        "the one statement of an append",
        r"'altered': \d|in half|rows of the message are missing|with other content",
        write_in_two_statements,
    ),
    Mutant(
        "distributed-whole",
        "../storage/databases/test_distributed.py -k 'lost_at_any_round_trip'",
        "the transaction of an append that writes one table a statement",
        "IdConflict|assert",
        write_tables_one_by_one,
    ),
    Mutant(
        "distributed-tables",
        "../storage/databases/test_distributed.py -k 'binds_its_tables'",
        "writing one table a statement where the tables are distributed",
        r"WITH tip AS|WITH made AS",
        write_tables_at_once,
    ),
    Mutant(
        "distributed-errors",
        "../storage/drivers/test_relayed_errors.py -k 'is_a_replay or is_a_conflict'",
        "reading a violation that another server relays by its words",
        "StorageError",
        read_internal_errors_by_their_state,
    ),
    Mutant(
        "cut-locked-append",
        "test_boundaries.py::test_an_append_under_the_lock_cut_at_any_message_is_stored_once",
        "the ids that an append keeps through its attempts",
        r"'stranger': \d",
        forget_the_ids,
    ),
    Mutant(
        "cut-transaction",
        "test_boundaries.py::test_a_transaction_cut_at_any_message_is_stored_whole_or_not_at_all",
        "distinguishing an unanswered COMMIT from one that did not happen",
        r"any\(unanswered\)|'ghost': \d",
        call_every_loss_retryable,
    ),
    Mutant(
        "cut-read",
        "test_boundaries.py -k read",
        "repeating a read on another connection",
        "StorageError: the connection failed",
        read_once,
    ),
    Mutant(
        "cancel-postgresql",
        "test_cancellation.py -k postgresql-rename",
        "discarding a connection that was cancelled in the middle of a statement",
        "idle in transaction",
        keep_spoilt_connections,
    ),
    Mutant(
        "cancel-sqlite",
        "test_cancellation.py -k sqlite-transaction-cancelled",
        "rolling back a cancelled transaction",
        "AssertionError: half of a cancelled transaction is stored",
        commit_what_was_cancelled,
    ),
    Mutant(
        "time-out",
        "test_cancellation.py -k fires",
        "closing the connection to a silent server at once",
        r"== 1",
        say_goodbye,
    ),
    Mutant(
        "locked",
        "test_sqlite_files.py -k locked_for_a_while",
        "waiting for the lock of another process",
        "locked|assert",
        wait_for_no_lock,
    ),
    Mutant(
        "full",
        "test_sqlite_files.py -k 'full or grow'",
        "noticing a commit that failed",
        r"'lost': \d|refused",
        hear_of_no_failed_commit,
    ),
    Mutant(
        "read-only",
        "test_sqlite_files.py -k may_not_be_written",
        "refusing to write to a read-only file",
        "attempt to write a readonly database",
        open_what_may_not_be_written,
    ),
    Mutant(
        "after-moved",
        "../storage/append/test_after.py -k 'with_one_mark_is_stored and postgresql'",
        "the stamp of the branch whose path a new branch shares",
        r"assert 0 == 1",
        branch_off_whatever_moved,
    ),
    Mutant(
        "after-left",
        "../storage/append/test_after.py -k 'branch_that_was_left'",
        "the new stamp of the branch that an append after an earlier message leaves",
        "assert 0 == 1",
        leave_the_active_branch_as_it_is,
    ),
    Mutant(
        "after-repeat",
        "../storage/append/test_after.py -k 'gives_the_first_result'",
        "looking for a repeat on every branch",
        "IdConflict",
        look_for_a_repeat_on_the_asked_branch_only,
    ),
    Mutant(
        "after-number",
        "../storage/append/test_after.py -k 'beside_each_other and postgresql'",
        "trying again when another writer made the branch with that number",
        "StorageError: a unique key is violated",
        give_up_if_a_branch_is_made_already,
    ),
    Mutant("clock", "test_clock.py -k commit_order", "the position that orders messages", r"'gap': \d", order_by_time),
    Mutant(
        "damage",
        "test_damage.py -k damaged_wal",
        "the checksums of the WAL: without them a damaged text is read",
        "kind='altered'",
        damage_where_no_checksum_is,
    ),
    Mutant(
        "writers",
        "test_shapes.py::test_writers_together[postgresql-1]",
        "the stamp that guards a branch's row",
        "unique key|'misplaced': \\d",
        write_without_the_stamp,
    ),
    Mutant(
        "writers-sqlite",
        "test_shapes.py::test_writers_together[sqlite-1]",
        "the transaction around an append",
        r"'\w+': \d|changed inside|in half|rows of the message are missing",
        write_without_transactions,
    ),
    Mutant(
        "turns",
        "test_interleavings.py -k 'every_order'",
        "judging again when the stamp has changed",
        "AssertionError: the branch lacks acknowledged messages",
        trust_a_stale_memory,
    ),
    Mutant(
        "interleavings",
        "test_interleavings.py -k 'halted and (score or start)'",
        "locking the thread and its runs while the thread is deleted",
        "all\\(map\\(known",
        let_others_in,
    ),
    Mutant(
        "machine",
        "test_machine.py",
        "the seq at which the shared part of a fork ends",
        r"AssertionError: branch \d holds other messages than the model|DID NOT RAISE IdConflict",
        share_one_too_many,
    ),
    Mutant(
        "machine-removed",
        "test_machine.py",
        "keeping the rows that another branch shares",
        r"AssertionError: (branch \d holds|a search finds) other messages than the model",
        delete_what_others_share,
    ),
    Mutant(
        "machine-answers",
        "test_machine.py",
        "the index of the call that a result answers",
        "AssertionError: a result answers another call",
        answer_the_first_call,
    ),
    Mutant(
        "positions",
        "test_checker.py -k 'records_what_changes and sqlite'",
        "the position that a removal takes",
        r"'gap': \d",
        remove_without_a_position,
    ),
    Mutant(
        "pooler",
        "test_pooler.py -k large_batch",
        "looking up the types of arrays inside a transaction",
        r"\['jit'\]",
        meet_types_anywhere,
    ),
    Mutant(
        "row-security",
        "../storage/schema/test_row_security.py -k 'still_no_foreign_row and in_ledger'",
        "the tenant in the policies",
        "IdConflict|assert",
        let_every_tenant_in,
    ),
    Mutant(
        "replica",
        "../storage/databases/test_replica.py -k 'ever_lacks'",
        "asking the standby which position it has replayed",
        "AssertionError: the standby answered with an older state",
        trust_the_replica,
    ),
    Mutant(
        "log-secrets",
        "../telemetry/test_log.py -k 'no_record_holds and sqlite'",
        "logging the type of an error, and not its text",
        "c4n4ry",
        log_what_an_error_says,
    ),
    Mutant(
        "span-secrets",
        "../telemetry/test_otel.py -k 'no_content and sqlite'",
        "recording only the type of an error in a span",
        "assert 's3cr3t' not in",
        tell_what_an_error_says,
    ),
    Mutant(
        "close-waits",
        "../storage/databases/test_lifetime.py -k 'waits_for_a_transaction'",
        "waiting for running calls",
        "StorageError|assert",
        close_at_once,
    ),
    Mutant(
        "close-cuts",
        "../storage/databases/test_lifetime.py -k 'never_ends and postgresql'",
        "cutting the connections of calls that do not end",
        "assert",
        cut_no_connection,
    ),
    Mutant(
        "close-rolls-back",
        "../storage/databases/test_lifetime.py -k 'never_ends and sqlite'",
        "rolling back a transaction that does not end",
        "TimeoutError",
        roll_back_nothing,
    ),
    Mutant(
        "stream-lease",
        "test_streaming.py -k 'loses_no_more and sqlite'",
        "the lease of the writer of a draft",
        "DID NOT RAISE",
        see_no_lease,
    ),
    Mutant(
        "marks",
        "../storage/append/test_marks.py -k 'other_answer and sqlite'",
        "the branch and the stamp of a mark",
        "DID NOT RAISE",
        compare_only_versions,
    ),
    Mutant(
        "kv-append",
        "../storage/repositories/test_kv.py -k 'of_eight_appends and postgresql'",
        "the versions that the statement of an append compares",
        r"== 1",
        append_whatever_the_values_are,
    ),
    Mutant(
        "kv-expected",
        "../storage/repositories/test_kv.py -k 'conflict_of_one_value and sqlite'",
        "the version that a write expects",
        "DID NOT RAISE",
        expect_no_version,
    ),
    Mutant(
        "kv-group",
        "../storage/repositories/test_kv.py -k 'wait_behind_each_other and postgresql'",
        "keeping an append with values out of a group",
        "assert",
        share_a_statement_with_values,
    ),
    Mutant(
        "shared-locked",
        "../storage/databases/test_shared_statements.py -k skipped",
        "skipping the locked branches of a statement that appends share",
        "assert",
        wait_for_locked_branches,
    ),
    Mutant(
        "shared-stamp",
        "../storage/databases/test_shared_statements.py -k created_again",
        "the stamp in a statement that appends share",
        "assert",
        write_together_on_any_stamp,
    ),
    Mutant(
        "shared-run",
        "../storage/databases/test_shared_statements.py -k inserts_a_run",
        "the limit of a wait for a lock in a statement that appends share",
        "TimeoutError",
        wait_for_the_locks_of_others,
    ),
    Mutant(
        "shared-patience",
        "../storage/databases/test_shared_statements.py -k let_others_pass",
        "letting others pass a statement that waits for a lock",
        "TimeoutError",
        wait_for_every_statement,
    ),
    Mutant(
        "shared-unanswered",
        "test_append_queue.py -k not_stored_again",
        "looking under the lock for an append whose shared statement was not heard",
        "assert",
        take_an_unheard_group_for_unsent,
    ),
    Mutant(
        "shared-may-run",
        "test_may_still_run.py -k unknown_while",
        "the outcome that is unknown while a statement may still run",
        "breaks R6",
        say_refused_while_it_may_run,
    ),
    Mutant(
        "shared-ids",
        "../storage/databases/test_repeats_in_groups.py -k 'read_together and plain'",
        "leaving stored ids out of a statement that appends share",
        "assert",
        write_whatever_is_stored,
    ),
    Mutant(
        "shared-wait",
        "test_held_lock.py -k sends_nothing",
        "the limit of an append that waits for another",
        "assert",
        wait_for_the_append_before,
    ),
    Mutant(
        "cancelled-twice",
        "test_held_lock.py -k cancelled_twice",
        "hanging up without an await",
        "ancellation",
        say_goodbye_to_a_discarded_connection,
    ),
    Mutant(
        "kv-merge",
        "../storage/repositories/test_kv.py -k 'no_merge_undoes and postgresql'",
        "the lock of the row that is merged",
        "assert",
        merge_without_the_lock,
    ),
    Mutant(
        "kv-deletion",
        "../storage/repositories/test_kv.py -k 'outlives and postgresql'",
        "the lock of the thread whose value is put",
        "assert",
        put_beside_a_deletion,
    ),
    Mutant(
        "thread-merge",
        "../storage/repositories/test_threads.py -k 'no_merge_of_metadata and postgresql'",
        "the lock of the thread that is updated",
        "assert",
        update_without_the_lock,
    ),
    Mutant(
        "thread-revision",
        "../storage/repositories/test_threads.py -k 'each_update and sqlite'",
        "the revision that an update expects",
        "DID NOT RAISE",
        expect_no_revision,
    ),
    Mutant(
        "repeats-after-a-fork",
        "../storage/append/test_marks.py -k 'inherited_part and sqlite'",
        "looking for a repeat on the shared part of a fork",
        "IdConflict",
        look_only_on_the_branch_itself,
    ),
    Mutant(
        "stream-live",
        "../storage/repositories/test_drafts.py -k 'protected_at_every_level and sqlite'",
        "refusing an append after a live draft",
        "DID NOT RAISE",
        cut_every_draft,
    ),
    Mutant(
        "stream-interval",
        "test_streaming.py -k 'loses_no_more and sqlite'",
        "writing a draft while it grows",
        "characters are lost",
        write_only_when_asked,
        client_only=True,
    ),
    Mutant(
        "stream-unanswered",
        "test_streaming.py -k 'cut_connection and complete'",
        "finding a draft that an unanswered attempt completed",
        "DraftLost",
        take_an_unheard_end_for_a_loss,
    ),
    Mutant(
        "stream-retry",
        "test_streaming.py -k 'retry_answers and sqlite'",
        "starting a message with an abandoned draft again",
        "with other content",
        leave_an_abandoned_draft_alone,
    ),
    Mutant(
        "stream-continue",
        "test_streaming.py -k 'another_process and sqlite-continue'",
        "keeping the words of a draft that is continued",
        "AssertionError",
        begin_every_draft_anew,
    ),
    Mutant(
        "stream-takers",
        "../storage/repositories/test_takeover.py -k 'several_takers and sqlite'",
        "the lease of the draft that took a message over first",
        "too many values to unpack",
        take_from_the_living,
    ),
    Mutant(
        "stream-replaced",
        "../storage/repositories/test_takeover.py -k 'wakes_up and sqlite'",
        "the writer that a lease names",
        "DID NOT RAISE",
        let_the_old_writer_go_on,
    ),
    Mutant(
        "stream-calls",
        "../storage/repositories/test_takeover.py -k 'another_response and sqlite'",
        "distinguishing the calls of two responses",
        "AssertionError",
        join_calls_of_two_responses,
    ),
    Mutant(
        "stream-after",
        "../storage/repositories/test_drafts.py -k 'earlier_message_is and sqlite'",
        "interrupting a draft at the end of its own branch",
        "AssertionError",
        interrupt_after_what_the_draft_followed,
    ),
    Mutant(
        "run-end",
        "../storage/repositories/test_run_ends.py -k 'interruption_of_a_draft and sqlite'",
        "ending the run of a draft that is interrupted",
        "AssertionError",
        leave_the_run_running,
    ),
    Mutant(
        "run-end-own",
        "../storage/repositories/test_run_ends.py -k 'goes_on_behind and sqlite'",
        "leaving a run that continues after its own draft running",
        "AssertionError",
        end_a_run_that_goes_on,
    ),
    Mutant(
        "run-end-by-ledger",
        "../storage/repositories/test_run_ends.py -k 'last_word and sqlite'",
        "distinguishing a run that the ledger ended from one that the application ended",
        "RunConflict",
        take_each_end_for_the_last,
    ),
    Mutant(
        "run-end-by-application",
        "../storage/repositories/test_run_ends.py -k 'last_word and sqlite'",
        "refusing an end that contradicts the application's",
        "DID NOT RAISE",
        take_no_end_for_the_last,
    ),
    Mutant(
        "usage-once",
        "../storage/repositories/test_run_ends.py -k 'answer_was_lost and sqlite'",
        "counting the usage of a draft in the write that ends it",
        "AssertionError",
        count_an_unheard_end_again,
    ),
    Mutant(
        "stream-following",
        "test_streaming.py -k 'retry_answers and postgresql'",
        "the messages of a response after the first one",
        "assert",
        store_the_first_message_alone,
    ),
    Mutant(
        "stream-once",
        "test_streaming.py -k 'interrupted_as_abandoned and sqlite'",
        "raising an error in a draft that another writer ended",
        "DID NOT RAISE",
        take_a_lost_draft_for_done,
    ),
    Mutant(
        "migrate-together",
        "../migrations/test_at_once.py -k 'waits_for and postgresql'",
        "the migrators' lock",
        "already exists|duplicate key|deadlock|concurrently|lock",
        migrate_side_by_side,
        client_only=True,
    ),
    Mutant(
        "migrate-killed",
        "../migrations/test_traffic.py -k 'killed and postgresql-0002'",
        "the transaction around a revision",
        "already exists",
        migrate_statement_by_statement,
        client_only=True,
    ),
    Mutant(
        "migrate-half-made",
        "../migrations/test_half_made.py",
        "dropping an index that a migrator left incomplete",
        "assert",
        take_a_half_made_index,
    ),
    Mutant(
        "migrate-traffic",
        "../migrations/test_locks.py -k 'requested_again'",
        "giving up when a table's lock is not available soon",
        "TimeoutError",
        wait_for_any_lock,
    ),
    Mutant(
        "redact",
        "../storage/repositories/test_redaction.py -k 'no_word and sqlite'",
        "removing the words from arguments too",
        "canary",
        leave_the_arguments,
    ),
    Mutant(
        "redact-digest",
        "../storage/repositories/test_redaction.py -k 'brings_no_word and sqlite'",
        "keeping a digest of the removed words",
        "is already stored, with other content",
        redact_without_a_digest,
    ),
    Mutant(
        "redact-repeat",
        "../storage/repositories/test_redaction.py -k 'by_key and sqlite'",
        "recognizing a repeat of an earlier form of a message",
        "is already stored, with other content",
        compare_only_what_is_stored_now,
    ),
    Mutant(
        "redact-revisions",
        "../storage/repositories/test_revise.py -k 'redaction_covers and sqlite'",
        "removing the words of earlier forms of a message",
        "canary",
        leave_the_bodies,
    ),
    Mutant(
        "pop-shared",
        "../storage/repositories/test_removal.py -k 'shares_the_messages_keeps and sqlite'",
        "keeping the rows that another branch shares",
        "AssertionError",
        delete_what_others_share,
    ),
    Mutant(
        "pop-repeat",
        "../storage/repositories/test_removal.py -k 'result_after_a_removal and sqlite and pop'",
        "looking for a repeat with a key among the removed messages",
        "IdConflict|assert False",
        forget_what_was_removed,
    ),
    Mutant(
        "pop-unaware",
        "../storage/repositories/test_removal.py -k 'knew_of_no_change and sqlite'",
        "recording on the other branches that a message was removed",
        "AssertionError",
        tell_nobody_of_a_removal,
    ),
    Mutant(
        "holes",
        "../storage/history/test_holes.py -k 'every_read and sqlite and 0'",
        "counting messages instead of positions where positions are empty",
        "AssertionError",
        count_positions,
    ),
    Mutant(
        "revise-words-only",
        "../storage/repositories/test_revise.py -k 'must_stay_is_refused and sqlite'",
        "comparing the fields that a revision must not change",
        "DID NOT RAISE",
        let_a_revision_change_all,
    ),
    Mutant(
        "erase",
        "../storage/repositories/test_erasures.py -k 'come_back and sqlite and not user'",
        "looking for a tombstone",
        "DID NOT RAISE",
        let_the_erased_come_back,
    ),
    Mutant(
        "erased-by-create",
        "../storage/append/test_create.py -k 'stays_erased and sqlite'",
        "looking for a tombstone when an append creates its thread",
        "DID NOT RAISE",
        let_the_erased_come_back_with_an_append,
    ),
    Mutant(
        "erased-by-create-pg",
        "../storage/append/test_create.py -k 'stays_erased and postgresql'",
        "looking for a tombstone in the statement that creates a thread",
        "DID NOT RAISE",
        let_the_erased_come_back_with_an_append,
    ),
    Mutant(
        "owner-cached",
        "../storage/repositories/test_users.py -k 'cached_tip and sqlite'",
        "the owner in the cached tip",
        "DID NOT RAISE",
        trust_the_cached_owner,
    ),
    Mutant(
        "growth",
        "test_growth.py -k 'nothing_behind and postgresql'",
        "dropping the oldest entry of the cache of tips",
        "PER_APPEND",
        keep_every_tip,
    ),
    Mutant(
        "owner-preflight",
        "../storage/repositories/test_users.py -k 'judges_the_owner and sqlite'",
        "the owner in the preflight",
        "DID NOT RAISE|IdConflict",
        look_at_threads_of_others,
    ),
    Mutant(
        "owner-rows",
        "../storage/repositories/test_users.py -k 'any_call and sqlite'",
        "the owner in the condition on rows",
        "assert|Error",
        own_everything,
    ),
    Mutant(
        "retain",
        "../storage/repositories/test_deletion.py -k 'meanwhile and sqlite'",
        "checking a thread again once it is locked",
        "ThreadNotFound|assert",
        delete_what_was_idle,
    ),
    Mutant(
        "score-of-each-user",
        "../storage/repositories/test_feedback.py::test_each_target_key_and_user_counts_by_itself",
        "the user in the key that groups scores",
        r"assert \[",
        count_the_latest_of_anybody,
    ),
    Mutant(
        "score-after-retraction",
        "../storage/repositories/test_feedback.py"
        "::test_an_earlier_score_that_comes_late_does_not_count_after_a_retraction",
        "ranking the scores before leaving out the retracted ones",
        r"assert \[Feedback",
        count_what_is_left,
    ),
    Mutant(
        "scores-of-the-erased",
        "../storage/repositories/test_erasures.py::test_the_feedback_of_an_erased_user_on_other_threads_goes_too",
        "the deletion of an erased user's feedback on other threads",
        r"feedback|assert \(",
        forget_scores_elsewhere,
    ),
    Mutant(
        "backup",
        "../storage/upgrade/test_backup.py -k 'under_writers'",
        "copying the content of the WAL too, as one state",
        "assert|StorageError|damaged",
        copy_the_file_alone,
    ),
    Mutant(
        "hostile-payloads",
        "../hostile/test_decoders.py -k 'something_wrong and responses'",
        "the check that a payload is JSON",
        "Error",
        take_anything_for_json,
    ),
    Mutant(
        "hostile-bombs",
        "../hostile/test_bombs.py -k 'a_long_list_below'",
        "building the path of a place only when it is needed",
        "MemoryError",
        tell_every_path,
        client_only=True,
    ),
    Mutant(
        "hostile-files",
        "../hostile/test_import_files.py -k 'cut'",
        "reporting unreadable input as a failed record",
        "JSONDecodeError|UnicodeDecodeError",
        read_without_care,
    ),
    Mutant("secrets", "../hostile/test_secrets.py -k 'reach_no_row'", "masking secrets", "c4n4ry", mask_nothing),
    Mutant(
        "sql",
        "../hostile/test_sql_stays_data.py -k 'sqlite and in_every_place'",
        "the parameters of statements",
        "syntax error|near|StorageError",
        write_values_into_statements,
    ),
    Mutant(
        "encryption-place",
        "../storage/rows/test_encryption.py -k 'moved_altered and sqlite'",
        "the place of a cell in the authenticated data",
        "DID NOT RAISE",
        encrypt_for_any_place,
    ),
    Mutant(
        "encryption-only",
        "../storage/rows/test_encryption.py -k 'moved_altered and sqlite'",
        "refusing plain text for a tenant with keys",
        "DID NOT RAISE",
        read_plain_text,
    ),
    Mutant(
        "mark-append",
        "../storage/rows/test_encrypted_tenants.py::test_every_call_that_writes_is_refused_and_stores_nothing",
        "looking for the mark of an encrypted tenant before an append without keys",
        r"assert \{",
        see_no_mark_before_an_append,
    ),
    Mutant(
        "mark-write",
        "../storage/rows/test_encrypted_tenants.py::test_every_call_that_writes_is_refused_and_stores_nothing",
        "looking for the mark of an encrypted tenant before any other write without keys",
        r"assert \{",
        see_no_mark_before_a_write,
    ),
    Mutant(
        "mark-remembered",
        "../storage/rows/test_encrypted_tenants.py"
        "::test_a_transaction_of_the_caller_that_is_rolled_back_leaves_no_mark_and_no_memory",
        "looking again for a mark that a rollback may have removed",
        r"assert \[\] == \['default'\]",
        remember_a_mark_that_may_go,
    ),
    Mutant(
        "encryption-append",
        "../storage/rows/test_leaks.py -k 'beside and keys'",
        "encrypting the rows of an append",
        r"assert \['",
        plan_without_encryption,
    ),
    Mutant(
        "connect-pauses",
        "test_outcome.py -k 'reading_while'",
        "the pauses between attempts while the database is away",
        r"assert \d+ < 60",
        connect_without_a_pause,
    ),
    Mutant(
        "nonces",
        "../storage/rows/test_cells.py -k 'never_encrypted_alike'",
        "a separate nonce for each cell",
        "assert 1 == 5000",
        repeat_the_nonce,
    ),
    Mutant(
        "answers-nothing",
        "../storage/history/test_answers.py -k 'was_linked_or_nothing'",
        "the violation of a result that answers nothing",
        r"assert .*CallPlace|AssertionError",
        link_what_was_not_linked,
    ),
    Mutant(
        "answers-latest",
        "../storage/history/test_answers.py -k 'repeated_id and sqlite'",
        "choosing the latest call with an id",
        r"assert \[",
        link_the_earliest_call,
    ),
    Mutant(
        "answers-unsure",
        "../storage/history/test_answers.py -k 'may_have_its_result and sqlite'",
        "not naming a call that may already have its result",
        r"assert \[",
        link_where_the_call_may_be_answered,
    ),
    Mutant(
        "answers-interrupted",
        "../storage/history/test_answers.py -k 'was_linked_or_nothing'",
        "the calls that are still open where a turn begins",
        r"assert .*CallPlace|AssertionError",
        link_over_interrupted_calls,
    ),
    Mutant(
        "list-tenant",
        "../storage/repositories/test_thread_lists.py -k 'that_fit and sqlite'",
        "the tenant in the condition of a list",
        r"assert \[",
        list_every_tenant,
    ),
    Mutant(
        "list-user",
        "../storage/repositories/test_users.py -k 'any_call and sqlite'",
        "the user in the condition of a list",
        "assert|Error",
        list_all_but(user_id=None),
    ),
    Mutant(
        "list-archived",
        "../storage/repositories/test_thread_lists.py -k 'put_away or archived_thread and sqlite'",
        "leaving archived threads out of a list",
        r"assert \[",
        list_all_but(archived=None),
    ),
    Mutant(
        "list-cursor",
        "../storage/repositories/test_thread_lists.py -k 'cursor_of_another_order and sqlite'",
        "the order in the cursor of a list",
        "DID NOT RAISE",
        take_a_cursor_of_any_order,
    ),
    Mutant(
        "preview-role",
        "../storage/repositories/test_thread_lists.py -k 'are_no_preview and sqlite'",
        "the roles whose messages give a preview",
        "AssertionError",
        preview("m.role IN ('user', 'assistant')", "true"),
    ),
    Mutant(
        "preview-channel",
        "../storage/repositories/test_thread_lists.py -k 'of_several_parts and sqlite'",
        "leaving reasoning out of a preview",
        "AssertionError",
        preview("p.channel = 'content'", "true"),
    ),
    Mutant(
        "preview-kind",
        "../storage/repositories/test_thread_lists.py -k 'of_several_parts and sqlite'",
        "leaving parts other than text out of a preview",
        "AssertionError",
        preview("p.kind = 'text'", "true"),
    ),
    Mutant(
        "preview-path",
        "../storage/repositories/test_thread_lists.py -k 'what_its_path and sqlite'",
        "the end of the shared part of a fork, in a preview",
        "AssertionError",
        preview("AND min(coalesce(", "AND 1 + max(coalesce("),
    ),
    Mutant(
        "preview-positions",
        "../storage/repositories/test_thread_lists.py -k 'in_50_positions and sqlite'",
        "the positions in which a preview is searched",
        "AssertionError",
        preview("b.last_seq - 49", "0"),
    ),
    Mutant(
        "preview-cut",
        "../storage/repositories/test_thread_lists.py -k 'at_most_200 and sqlite'",
        "cutting a preview that had escapes",
        "AssertionError",
        cut_no_preview,
    ),
    Mutant(
        "preview-beginning",
        "../storage/repositories/test_thread_lists.py -k 'beginning_leaves and sqlite'",
        "cutting a text before it leaves the database",
        "assert",
        preview("substr(m.text, 1, 200)", "m.text"),
    ),
    Mutant(
        "pop-live",
        "../storage/repositories/test_removal.py -k 'a_live_draft and sqlite'",
        "refusing to pop or rewind a live draft",
        "DID NOT RAISE",
        pop_a_live_draft,
    ),
    Mutant(
        "retract-live",
        "../storage/repositories/test_removal.py -k 'a_live_draft and sqlite'",
        "refusing to retract a message before a live draft",
        "DID NOT RAISE",
        retract_before_a_live_draft,
    ),
    Mutant(
        "revise-live",
        "../storage/repositories/test_revise.py -k 'a_live_draft and sqlite'",
        "refusing to revise a message before a live draft",
        "DID NOT RAISE",
        revise_before_a_live_draft,
    ),
    Mutant(
        "revise-abandoned",
        "../storage/repositories/test_revise.py -k 'abandoned_message and sqlite'",
        "refusing to revise a message that its writer abandoned",
        "DID NOT RAISE",
        revise_an_abandoned_message,
    ),
    Mutant(
        "retract-half",
        "../storage/repositories/test_removal.py -k 'half_a_pair and sqlite'",
        "refusing to retract half of a call and its result",
        "DID NOT RAISE",
        leave_half_a_pair,
    ),
    Mutant(
        "retract-half-record",
        "../storage/repositories/test_removal.py -k 'other_half and sqlite'",
        "recording the violation of a message that lost its other half",
        "AssertionError|assert",
        say_nothing_of_half_a_pair,
    ),
    Mutant(
        "pop-expected",
        "../storage/repositories/test_removal.py -k 'mark_guards and sqlite'",
        "the mark that a pop or a rewind expects",
        "DID NOT RAISE",
        remove_whatever_moved,
    ),
    Mutant(
        "pop-lock",
        "../storage/repositories/test_removal.py -k 'forty_pops and postgresql'",
        "the lock of the branches whose messages are changed",
        "assert|unique key",
        change_without_the_lock,
    ),
    Mutant(
        "score-lock",
        "../storage/repositories/test_feedback.py -k 'retractions_cross'",
        "the lock of the run whose scores are retracted",
        "deadlock|StorageError|assert",
        retract_scores_in_any_order,
    ),
    Mutant(
        "score-up-to-it",
        "../storage/repositories/test_feedback.py -k 'earlier_ones_do_not_count and sqlite'",
        "retracting the earlier scores too",
        "assert",
        retract_one_score,
    ),
    Mutant(
        "copy-lock",
        "../storage/repositories/test_copy.py -k 'nobody_deletes'",
        "the lock of the thread that is copied",
        "DID NOT RAISE",
        copy_without_the_lock,
    ),
    Mutant(
        "copy-changed",
        "../storage/repositories/test_copy.py -k 'removed_meanwhile'",
        "looking again for changes of the copied messages",
        "DID NOT RAISE",
        copy_whatever_changes,
    ),
    Mutant(
        "copy-links",
        "../message_file/test_storage.py -k 'without_the_removed and sqlite'",
        "counting the distance to an item again when a copy closes positions",
        "AssertionError",
        copy_the_distances,
    ),
    Mutant(
        "retract-waiting",
        "../storage/repositories/test_removal.py -k 'an_earlier_turn and sqlite'",
        "recording on later turns that a call waits again",
        r"R6|R7|AssertionError",
        forget_that_a_call_waits_again,
    ),
    Mutant(
        "retract-links",
        "../storage/repositories/test_removal.py -k 'keeps_its_result and sqlite'",
        "the stored links of results when a tip is folded after a removal",
        r"assert \[",
        pair_the_results_anew,
    ),
    Mutant(
        "copy-partial",
        "../storage/repositories/test_copy.py -k 'still_written and sqlite'",
        "refusing to copy a message that is still being written",
        "DID NOT RAISE",
        copy_a_partial_message,
    ),
    Mutant(
        "sync-moved",
        "../storage/repositories/test_sync.py -k 'change_since and sqlite'",
        "the mark of the history that a sync compared",
        "DID NOT RAISE",
        sync_on_whatever_is_there,
    ),
    Mutant(
        "sync-shorter",
        "../storage/repositories/test_sync.py -k 'change_since and sqlite'",
        "the mark of the history that a sync cuts short",
        "DID NOT RAISE",
        shorten_whatever_moved,
    ),
    Mutant(
        "create-at-once",
        "../storage/append/test_create.py -k 'another_creation'",
        "yielding to the writer that creates the thread first",
        "unique key|StorageError",
        create_it_twice,
    ),
    Mutant(
        "create-missed",
        "../storage/append/test_create.py -k 'another_creation'",
        "looking again for a thread that another writer is creating",
        "ThreadNotFound",
        take_a_missed_creation_for_a_missing_thread,
    ),
    Mutant(
        "follow-partial",
        "../storage/repositories/test_follow.py -k 'each_kind and sqlite'",
        "reporting a message that is being written",
        "TimeoutError|AssertionError",
        follow_without("_tell_partial"),
    ),
    Mutant(
        "follow-shared",
        "../storage/repositories/test_follow.py -k 'each_kind and sqlite'",
        "reporting a revision that another branch shares",
        "TimeoutError|AssertionError",
        follow_without("_tell_shared"),
    ),
    Mutant(
        "follow-created",
        "../storage/repositories/test_follow.py -k 'is_gone and made and sqlite'",
        "the time of the thread's creation in a follower's position",
        "DID NOT RAISE",
        follow_any_thread_of_that_id,
    ),
    Mutant(
        "follow-settled",
        "../storage/repositories/test_follow.py -k 'each_kind and sqlite'",
        "skipping the changes that the messages of another branch have settled",
        "AssertionError",
        tell_settled_changes,
    ),
    Mutant(
        "follow-mark",
        "../storage/repositories/test_follow.py -k 'mark_of_a_draft and sqlite'",
        "the draft at the end of a mark",
        "AssertionError|TimeoutError",
        mark_no_draft,
    ),
    Mutant(
        "follow-retry",
        "../storage/repositories/test_follow.py -k 'database_that_is_away'",
        "a follower that tries again while the database is away",
        "StorageError",
        follow_without_trying_again,
    ),
    Mutant(
        "hint-before-wait",
        "../storage/repositories/test_follow_hints.py -k 'this_process and sqlite'",
        "a hint that came before the follower waited",
        "TimeoutError",
        forget_hints_before_the_wait,
    ),
    Mutant(
        "pool-order",
        "../storage/databases/test_fair_pool.py -k 'overtakes and 5-0'",
        "giving a place to the first in line",
        "AssertionError|assert",
        give_places_to_anybody,
    ),
    Mutant(
        "pool-second",
        "../storage/databases/test_fair_pool.py -k 'goes_first'",
        "a transaction that needs a second connection before others",
        "AssertionError|TimeoutError",
        wait_like_all,
    ),
    Mutant(
        "pool-cancel",
        "test_stalled.py -k 'leaves_no_server_process'",
        "the request to cancel the statement of a closed connection",
        "wait, not 0",
        close_without_a_request,
    ),
    Mutant(
        "pool-stalled",
        "test_stalled.py -k 'no_more_connections and rows'",
        "the turns of appends to stalled threads",
        "assert",
        forget_what_is_stalled,
    ),
    Mutant(
        "hint-lost",
        "../storage/repositories/test_follow_hints.py -k 'lost_listener'",
        "the poll after the listener reconnects",
        "TimeoutError",
        trust_that_no_hint_is_lost,
    ),
    *security_mutants.MUTANTS,
)


# --- Running them -----------------------------------------------------------------------------------------------------


def main() -> int:
    from tests.postgres import URL_VARIABLE, server

    wanted = sys.argv[1:]
    mutants = [mutant for mutant in MUTANTS if not wanted or mutant.name in wanted]
    survivors = []
    with server() as running, ThreadPoolExecutor(AT_ONCE) as pool:
        os.environ[URL_VARIABLE] = running.url
        for mutant, (outcome, seconds) in zip(mutants, pool.map(_timed, mutants), strict=True):
            print(f"{mutant.name:24} {outcome:10} {seconds:5.1f} s   without {mutant.without}", flush=True)
            if outcome != "found":
                survivors.append(mutant.name)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} proofs fail without their protection")
    if survivors:
        print(f"without mutants: {', '.join(survivors)}")
    return bool(survivors)


def _timed(mutant: Mutant) -> tuple[str, float]:
    began = time.monotonic()
    return _outcome(mutant), time.monotonic() - began


def _outcome(mutant: Mutant) -> str:
    """found, or why that cannot be said of it."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.faults.mutants", "-p", "no:cacheprovider"]
    file, *flags = mutant.test.split(" -k ")
    command += [_FAULTS + file, *(("-k", flags[0].strip("'")) if flags else ())]
    with tempfile.TemporaryDirectory(prefix="chatledger-mutants-") as folder:
        environment = os.environ | {
            VARIABLE: mutant.name,
            "CHATLEDGER_FAILURES": folder,
            "CHATLEDGER_HYPOTHESIS": "first failure",
        }
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    if done.returncode == 0:
        return "PASSES"
    if done.returncode != 1 or not re.search(mutant.finds, done.stdout):
        print(done.stdout[-3_000:], done.stderr[-1_000:])
        return "breaks"
    return "found"


if __name__ == "__main__":
    sys.exit(main())
