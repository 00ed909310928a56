"""Checks a stored branch against the rules, from its first message on, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select

from chatledger.errors import RuleViolation
from chatledger.models import ChatMessage, RulesLevel
from chatledger.rules import Finding, check_messages
from chatledger.storage.drivers.sql import Sql
from chatledger.storage.history.path import Path, find_path, load_path
from chatledger.storage.history.window import Window
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import HalfStored
from chatledger.storage.schema.tables import branches

BATCH = 1_000


def check_branch(sql: Sql, tenant: Tenant, thread_id: str, branch: int | None) -> list[Finding]:
    """The rules that the branch breaks, R13 included, in order of seq. Raises ThreadNotFound and BranchNotFound.

    A half-stored message breaks R11, because it is not as it was committed; its content is not judged. A missing
    message breaks R2.
    """
    window = Window.of(tenant, thread_id, branch)
    path = find_path(sql, window)
    half: dict[int, Finding] = {}
    findings = check_messages(_walk(sql, window, path, half))
    findings = [found for found in findings if not (found.rule == "R2" and found.seq - 1 in half)]
    return sorted([*findings, *half.values()], key=lambda finding: finding.seq)


def _walk(sql: Sql, window: Window, path: Path, half: dict[int, Finding]) -> Iterator[ChatMessage]:
    """The messages that are stored whole. The others are recorded in `half`."""
    first, last = 1, 0
    while first <= path.last_seq:
        messages, following = _load(sql, window, path, first, half)
        yield from messages
        last = messages[-1].seq or 0 if messages else last
        first = following
    if max(last, *half, 0) < path.last_seq:
        half[path.last_seq] = Finding(path.last_seq, "R2", f"seq {path.last_seq} is missing at the end")


def _load(sql: Sql, window: Window, path: Path, first: int, half: dict[int, Finding]) -> tuple[list[ChatMessage], int]:
    """The next messages, up to a half-stored one, and the seq to continue from."""
    try:
        return load_path(sql, window, path, first, first + BATCH - 1), first + BATCH
    except HalfStored as found:
        half[found.seq] = Finding(found.seq, "R11", f"stored in half: {found.missing}")
        return load_path(sql, window, path, first, found.seq - 1), found.seq + 1


def require_level(sql: Sql, tenant: Tenant, thread_id: str, level: RulesLevel) -> None:
    """Raises RuleViolation if a branch of the thread breaks the level already; the error's `index` is then the seq."""
    own = (branches.c.tenant_id == tenant.name, branches.c.thread_id == thread_id)
    for branch in sql.execute(select(branches.c.branch).where(*own)).scalars().all():
        for finding in check_branch(sql, tenant, thread_id, branch):
            only_reported = finding.open or (level == "strict" and finding.rule in ("R9", "R13"))
            if not only_reported:
                where = f"seq {finding.seq} of branch {branch}"
                raise RuleViolation(finding.rule, finding.seq, finding.detail, where=where)
