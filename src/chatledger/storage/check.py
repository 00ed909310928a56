"""Checking what is stored: a branch folded from its first message, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from chatledger.errors import RuleViolation
from chatledger.models import ChatMessage, RulesLevel
from chatledger.rules import Finding, check_messages
from chatledger.storage.path import HistoryRequest, Path, find_path, load_path
from chatledger.storage.sql import Sql
from chatledger.storage.tables import branches
from chatledger.storage.text import encode_key

BATCH = 1_000


def check_branch(sql: Sql, tenant: str, thread_id: str, branch: int | None) -> list[Finding]:
    """What the branch breaks, R13 included, in order of seq. Raises ThreadNotFound and BranchNotFound."""
    request = HistoryRequest(encode_key(tenant, "tenant"), encode_key(thread_id, "thread_id"), thread_id, branch)
    path = find_path(sql, request)
    return check_messages(_walk(sql, request, path))


def _walk(sql: Sql, request: HistoryRequest, path: Path) -> Iterator[ChatMessage]:
    for first in range(1, path.last_seq + 1, BATCH):
        yield from load_path(sql, request, path, first, first + BATCH - 1)


def require_level(sql: Sql, tenant: str, thread_id: str, level: RulesLevel) -> None:
    """Raises RuleViolation if any branch of the thread breaks the level already; `index` is then the seq."""
    own = (branches.c.tenant_id == tenant, branches.c.thread_id == thread_id)
    for branch in sql.execute(select(branches.c.branch).where(*own)).scalars().all():
        for finding in check_branch(sql, tenant, thread_id, branch):
            only_reported = finding.open or (level == "strict" and finding.rule in ("R9", "R13"))
            if not only_reported:
                where = f"seq {finding.seq} of branch {branch}"
                raise RuleViolation(finding.rule, finding.seq, finding.detail, where=where)
