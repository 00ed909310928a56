"""How a session of ADK is named in a ledger: its thread, its messages and runs, and the values of its state.

The adapter writes sessions so, and an import of a store of ADK's, so that the adapter finds what was imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from chatledger.models import ChatMessage
from chatledger.models.base import copy_with
from chatledger.models.limits import MAX_KEY_BYTES

_NAMESPACE = "google-adk"
_STATE = "state/"
"""The prefix of state keys among the values of a thread, a user or the tenant."""
UPDATED = "updated"
"""The key of the time of the last event, among the values of a thread. Until the first one, the time of the thread
stands for it.
"""


@dataclass(frozen=True, slots=True)
class SessionNames:
    """A session by its three names."""

    app_name: str
    user_id: str
    session_id: str

    @property
    def thread_id(self) -> str:
        return "/".join(quote(name, safe="") for name in (self.app_name, self.user_id, self.session_id))

    @property
    def scopes(self) -> tuple[tuple[str, ...], ...]:
        """The scopes of the values of the session, of its user and of its app."""
        return (
            ("thread", self.thread_id),
            state_of_user(self.app_name, self.user_id),
            state_of_app(self.app_name),
        )

    @classmethod
    def of_thread(cls, thread_id: str) -> SessionNames | None:
        """The session of a thread; None for an id that no session has."""
        names = [unquote(name) for name in thread_id.split("/")]
        place = cls(*names) if len(names) == 3 else None
        return place if place is not None and place.thread_id == thread_id else None


def state_of_app(app_name: str) -> tuple[str, ...]:
    """The scope of the values of an app's state."""
    return ("tenant", _namespace(app_name))


def state_of_user(app_name: str, user_id: str) -> tuple[str, ...]:
    """The scope of the values of a user's state."""
    return ("user", user_id, _namespace(app_name))


def _namespace(app_name: str) -> str:
    return f"{_NAMESPACE}/{quote(app_name, safe='')}"


def named(state: Mapping[str, Any]) -> dict[str, Any]:
    """State as values of a scope."""
    return {f"{_STATE}{key}": value for key, value in state.items()}


def unnamed(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The state among the values of a scope, with a prefix before its keys."""
    return {prefix + key.removeprefix(_STATE): value for key, value in values.items() if key.startswith(_STATE)}


def identified(
    rows: Sequence[ChatMessage], place: SessionNames, *, event_id: str, invocation_id: str, timestamp: float
) -> list[ChatMessage]:
    """The rows of one event under its id, its time and its run."""
    run_id: str | None = f"{place.thread_id}/{quote(invocation_id, safe='')}"
    if not invocation_id or len(run_id or "") > MAX_KEY_BYTES:
        run_id = None
    ids = [event_id, *(f"{quote(event_id, safe='')}/{number}" for number in range(1, len(rows)))]
    shared = {"run_id": run_id, "created_at": moment(timestamp)}
    return [copy_with(row, {**shared, "message_id": id_}) for row, id_ in zip(rows, ids, strict=True)]


def moment(timestamp: float) -> datetime | None:
    """The time of so many seconds since 1970; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None
