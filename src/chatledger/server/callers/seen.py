"""What a caller may see of a run."""

from __future__ import annotations

from chatledger.ledger import Ledger
from chatledger.models import Run
from chatledger.repositories import scope_of
from chatledger.storage.append.request import ANSWER


def as_seen(run: Run, ledger: Ledger) -> Run:
    """The run as the ledger's view may show it. Why an agent failed is for the administrator: it may tell of the
    server.
    """
    if scope_of(ledger).tenant.user_id is None or run.status != "failed" or not run.run_id.startswith(ANSWER):
        return run
    return run.model_copy(update={"error": "the answer failed"})
