"""Reads the request of a chat: the server takes the last message of the user and its place, or decisions about calls.

A client sends its whole history. Nothing of that is stored: an id in it may show that the client has not seen how the
conversation went on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from starlette.exceptions import HTTPException

from chatledger.errors import InvalidArgument, MessageNotFound, NotFound, RunNotFound
from chatledger.formats import get_codec
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Newest, Oldest
from chatledger.server.answers.sizes import require_small
from chatledger.server.callers.access import Caller
from chatledger.server.callers.ask_scope import refuse_all_but_questions
from chatledger.server.requests.bodies import Body

_COMPARED = 50
"""The most messages of the thread that are read to find an answer which the client has."""
_LONGEST_REASON = 4 * 1024
_RESULTS = "results of tools come from the server: POST /v1/answers/{run_id}/resume takes them, with the scope write"


class ChatRequest(Body):
    """A request as `useChat` sends it."""

    id: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = Field(None, alias="messageId")

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def last_id(self) -> str:
        """Raises InvalidArgument."""
        message_id = self.last.get("id")
        if not isinstance(message_id, str):
            raise InvalidArgument("messages", "must have an id in the last message")
        return message_id


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions about the calls for which a run waits."""

    run_id: str
    approve: Sequence[str]
    refuse: Mapping[str, str | None]


def question_of(chat: ChatRequest, caller: Caller) -> ChatMessage:
    """The last message as the server stores it. Raises FormatError, OutOfScope and LimitExceeded."""
    if chat.last.get("role") != "user":
        raise InvalidArgument("messages", "must end with a message of the user, or with an answer that has approvals")
    (message,) = get_codec("ai-sdk").decode([chat.last]).messages
    refuse_all_but_questions(caller, [message], of="messages", besides=frozenset({"format", "residual"}))
    require_small([message])
    return message


def decisions_of(chat: ChatRequest) -> Decided:
    """The last message, an answer, has the decisions. Raises InvalidArgument if it has none."""
    approve: list[str] = []
    refuse: dict[str, str | None] = {}
    runs: set[str] = set()
    parts = chat.last.get("parts")
    for part in parts if isinstance(parts, list) else ():
        approval = (
            part.get("approval") if isinstance(part, dict) and part.get("state") == "approval-responded" else None
        )
        if not isinstance(approval, dict):
            continue
        approval_id, approved, reason = (approval.get(key) for key in ("id", "approved", "reason"))
        run_id, slash, call_id = approval_id.partition("/") if isinstance(approval_id, str) else ("", "", "")
        is_reason = reason is None or (isinstance(reason, str) and len(reason) <= _LONGEST_REASON)
        if not slash or not isinstance(approved, bool) or not is_reason:
            raise InvalidArgument(
                "messages", "has an approval that is none of this server, or a reason that is too long"
            )
        runs.add(run_id)
        if approved:
            approve.append(call_id)
        else:
            refuse[call_id] = reason
    if len(runs) != 1:
        what = "approvals of several answers" if runs else f"neither a question nor an approval at the end; {_RESULTS}"
        raise InvalidArgument("messages", f"has {what}")
    return Decided(runs.pop(), approve, refuse)


async def require_own_run(ledger: Ledger, run_id: str, thread_id: str) -> None:
    """Raises RunNotFound for a run of another thread, as for one that the caller does not have."""
    answer = await ledger.answers.get(run_id)
    if answer.run.thread_id != thread_id:
        raise RunNotFound(run_id)


async def find_question(ledger: Ledger, thread_id: str, message_id: str) -> ChatMessage:
    """The question that stands on the active branch where the client has that message. A client keeps the id of a
    question that it edits, and the ledger does not, so only the position is the same.

    Raises NotFound, and HTTPException (409) if no question stands there.
    """
    branch = (await ledger.branches.get(thread_id)).branch
    try:
        seq = (await ledger.messages.get(thread_id, message_id)).seq or 0
    except MessageNotFound:
        seq = await _find_imported(ledger, thread_id, branch, message_id)
    history = await ledger.messages.history(thread_id, Oldest(1, after=seq - 1), branch=branch)
    if not history.messages or history.messages[0].seq != seq or history.messages[0].role != "user":
        raise _went_on(message_id)
    return history.messages[0]


async def _find_imported(ledger: Ledger, thread_id: str, branch: int, message_id: str) -> int:
    """The position of a UI message among the last ones: an import keeps its id beside the ledger's. Raises
    MessageNotFound.
    """
    history = await ledger.messages.history(thread_id, Newest(_COMPARED), branch=branch)
    for message in reversed(history.messages):
        if isinstance(message.residual, dict) and message.residual.get("id") == message_id and message.seq is not None:
            return message.seq
    raise MessageNotFound(thread_id, message_id)


async def require_seen(ledger: Ledger, chat: ChatRequest, before: int | None) -> None:
    """Raises HTTPException (409) if the answer before the last message is one of the thread, but not the one that
    stands there: before that position of the active branch, or at its end. An id that the ledger does not have, such as
    that of a greeting, says nothing.
    """
    shown = chat.messages[-2] if len(chat.messages) > 1 else {}
    shown_id = shown.get("id")
    if shown.get("role") != "assistant" or not isinstance(shown_id, str):
        return
    try:
        await ledger.messages.get(chat.id, shown_id)
    except NotFound:
        return
    branch = (await ledger.branches.get(chat.id)).branch
    history = await ledger.messages.history(chat.id, Newest(_COMPARED, before=before), branch=branch)
    for message in reversed(history.messages):
        if message.message_id == shown_id:
            return
        if message.role == "user":
            raise _went_on(shown_id)
    if len(history.messages) < _COMPARED:
        raise _went_on(shown_id)


def _went_on(message_id: str) -> HTTPException:
    detail = f"the conversation went on behind message {message_id:.100}, or on another branch; read the thread again"
    return HTTPException(409, detail)
