"""The findings of one branch."""

from __future__ import annotations

from chatledger.repositories import Repositories, scope_of
from chatledger.rules import Finding
from chatledger.storage.check.branch import check_thread


async def findings_of(own: Repositories, thread_id: str, *, branch: int | None = None) -> list[Finding]:
    return await check_thread(scope_of(own), thread_id, branch)
