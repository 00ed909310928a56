"""Who approves and refuses the calls for which an answer waits."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from chatledger.arguments import Kind
from chatledger.server.callers.access import Caller
from chatledger.server.problems import AdministratorOnly

ApprovalsBy: TypeAlias = Literal["admin", "owner"]
"""The tenant's administrator alone, or the user who owns the thread too."""
APPROVALS_BY = Kind("admin or owner", words=get_args(ApprovalsBy))


def require_approver(approvals: ApprovalsBy, caller: Caller) -> None:
    """Raises AdministratorOnly for a user, unless the owner of a thread may decide, and OutOfScope for a token that
    only reads.
    """
    caller.require("ask")
    if approvals == "admin" and caller.user_id is not None:
        raise AdministratorOnly("an approval or a refusal")
