"""The end of a run whose draft is interrupted: in the write that marks the message, the run becomes `cancelled`.

The ledger cannot know whether the agent continues, so the application can still finish such a run with another status
(`runs.finish`).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from chatledger.storage.append.request import AppendRequest
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.schema.text import encode_key, encode_text

_REASON = "message {} of branch {} was interrupted before it was complete"
_IS_REASON = re.compile(_REASON.format(r"\d+", r"\d+"))

_RUN = """
SELECT r.run_id FROM {schema}messages m JOIN {schema}runs r ON r.tenant_id = m.tenant_id AND r.run_id = m.run_id
WHERE m.tenant_id = :tenant AND m.thread_id = :thread AND m.branch = :branch AND m.seq = :seq AND r.ended_at IS NULL
"""
END_RUN = (
    "UPDATE {schema}runs SET status = 'cancelled', error = :run_error, ended_at = :now"
    " WHERE tenant_id = :tenant AND run_id = :ended_run AND ended_at IS NULL"
)


class RunEnd(NamedTuple):
    """The run and its `error`, as stored."""

    run: str
    error: str

    @property
    def parameters(self) -> dict[str, Any]:
        return {"ended_run": self.run, "run_error": self.error}


def find_run_end(sql: WriteSql, request: AppendRequest, branch: int, seq: int) -> RunEnd | None:
    """The end of the run of the message that the append interrupts. None if the message has no run, if that run has
    ended, or if the append continues it.
    """
    place = {"tenant": request.tenant.key, "thread": request.thread, "branch": branch, "seq": seq}
    found = [row[0] for row in sql.fetch(_RUN, place)]
    goes_on = {message.run_id for message in request.messages if message.state != "synthetic"}
    if not found or found[0] in [encode_key(run, "run_id") for run in goes_on if run is not None]:
        return None
    error = encode_text(_REASON.format(seq, branch))
    if (encryption := request.tenant.encryption) is not None:
        ((error,),) = encryption.encrypt("runs", ("error",), [(error,)], found[0])
    return RunEnd(found[0], error)


def ended_by_ledger(status: str, error: str | None) -> bool:
    return status == "cancelled" and error is not None and _IS_REASON.fullmatch(error) is not None
