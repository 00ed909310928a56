"""What calls of these kinds send with other arguments than the shapes: so no statement of them is without a file."""

from __future__ import annotations

import re
from typing import Any

from tests.storage.databases.test_distributed import append_in_each_way
from tests.storage.databases.test_scope import CALLS, NOBODYS, NOON, THEIRS, fill, in_ledger, in_transaction, outcome
from tests.storage.statements.scene import Scene

ELSEWHERE = re.compile(
    r"check|frames|stats|storage\..*|erasures\..*|.*\.(usage|compare|summary)"
    r"|threads\.(create|copy|update|delete|delete_inactive)|branches\.(fork|activate)|runs\.(start|finish)"
    r"|feedback\.(record|remove)|kv\.(put|delete)|messages\.(erase|revise|revisions|remove|pop|rewind)"
)
"""Calls that create, change, remove, check or sum up. All others are of the kinds whose statements have files."""


async def the_rest(scene: Scene) -> None:
    """Every statement of these calls, for ids that are stored and for ids that are not, in a transaction too."""
    async with scene.open() as ledger:
        for name, scope in (("ledger", in_ledger), ("transaction", in_transaction)):
            own = ledger.tenant(f"{scene.tenant} {name}")
            await fill(own, THEIRS)
            await own.threads.create("mine", created_at=NOON)
            await own.runs.start("mine", run_id="my run")
            async with scope(own) as repositories:
                with scene.sending(once=True):
                    await _call(repositories)
                    await append_in_each_way(repositories)


async def _call(repositories: Any) -> None:
    for name, calls in CALLS.items():
        for one in () if ELSEWHERE.fullmatch(name) else calls:
            for ids in (THEIRS, NOBODYS):
                await outcome(repositories, one, ids)
