"""The messages of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Response

from chatledger import Payload
from chatledger.errors import InvalidArgument
from chatledger.formats import get_codec, recognise
from chatledger.models import Appended, ChatMessage, Cursor, Newest, NewThread, Oldest, Put, Revision, Tokens, Turns
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.repositories.history import History, history_of
from chatledger.server.answers.headers import ExpectedState, IdempotencyKey
from chatledger.server.answers.pages import (
    fitting_part,
    fitting_section,
    require_fitting,
    require_small_answer,
    whole_answer,
)
from chatledger.server.answers.sizes import require_small
from chatledger.server.callers.ask_scope import refuse_all_but_questions, refuse_beyond_ask
from chatledger.server.callers.chosen_ids import chooses, refuse_chosen, require_own_runs
from chatledger.server.json_route import json_router
from chatledger.server.paths import MessageId, ThreadId, api_path
from chatledger.server.query import Cursor as CursorQuery
from chatledger.server.query import Limit, OfBranch
from chatledger.server.requests.bodies import (
    Append,
    Items,
    LostValue,
    Message,
    MessagePage,
    Stored,
    ThreadFields,
    items,
)
from chatledger.server.requests.turns import TokensQuery, TurnsQuery, newest_turns, require_one
from chatledger.server.state import Asking, Mine, Shared, Who
from chatledger.storage.history.window_request import Window

router = json_router(prefix="/threads/{thread_id}/messages", tags=["messages"])
_DIGITS = 20
_TO_WRITE = ("payload", "run_id", "rules", "kv")
"""Fields of an append that need a token that may write."""


@router.get("")
async def read_messages(
    ledger: Mine,
    thread_id: ThreadId,
    response: Response,
    limit: Limit,
    state: Shared,
    branch: OfBranch = None,
    before: Annotated[
        str | None, Query(description="Only messages before this cursor, mark, or seq of `branch`, the newest of them.")
    ] = None,
    after: Annotated[
        str | None, Query(description="Only messages after this cursor, mark, or seq of `branch`, the oldest of them.")
    ] = None,
    turns: TurnsQuery = None,
    tokens: TokensQuery = None,
    run_id: Annotated[str | None, Query(description="Only messages of this run.")] = None,
    format: Annotated[str | None, Query(description="Return a `payload` in this format too.")] = None,  # noqa: A002
) -> MessagePage:
    """Read the newest messages, or a page before or after a cursor. `mark` and the `ETag` are the state of the branch.
    A page ends before the message with which it would have more than 8 MiB. A payload and a window by turns are never
    cut: 413 says how large they are.
    """
    require_one(before=before, after=after, turns=turns, tokens=tokens)
    part = newest_turns(state.limits, turns, tokens) or _page(limit, before, after)
    window = Window.shown(scope_of(ledger).tenant, thread_id, part, branch, run_id)
    if format is None and not isinstance(part, (Turns, Tokens)):
        page = MessagePage.of(history_of(await fitting_section(ledger, window)))
        response.headers["ETag"] = f'"{page.mark}"'
        return page
    if not isinstance(part, Tokens):
        await require_fitting(ledger, window)
    with whole_answer():
        history = await ledger.messages.history(thread_id, part, branch=branch, run_id=run_id)
    written = {} if format is None else await apart(lambda: _written(history, format), history.messages)
    page = await apart(lambda: MessagePage.of(history, **written), history.messages, written)
    await require_small_answer(page)
    response.headers["ETag"] = f'"{page.mark}"'
    return page


def _page(limit: int, before: str | None, after: str | None) -> Newest | Oldest:
    return Newest(limit, before=_position(before)) if after is None else Oldest(limit, after=_position(after))


def _position(text: str | None) -> Cursor | int | None:
    if text is None:
        return None
    return int(text) if text.isdecimal() and len(text) < _DIGITS else Cursor(text)


def _written(history: History, format: str) -> dict[str, Any]:  # noqa: A002
    """The payload in the format, with what it lost."""
    encoded = history.encode(format, as_="dicts")
    return {"payload": encoded.payload, "losses": [LostValue(**asdict(loss)) for loss in encoded.losses]}


@router.post("", status_code=201, responses={200: {"model": Stored, "description": "A repeat, which stored nothing."}})
async def append_messages(
    ledger: Asking,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: Append,
    response: Response,
    idempotency_key: IdempotencyKey,
    expected: ExpectedState,
) -> Stored:
    """Append messages, all or none. Send the same request again if its answer was lost, with the same key or with ids
    in the messages: a repeat returns 200 with `replayed` and stores nothing. A token of scope `ask` appends `messages`
    of role user, without a run, values or rules.
    """
    refuse_beyond_ask(caller, **{name: getattr(body, name) is not None for name in _TO_WRITE})
    refuse_beyond_ask(caller, on_open_calls=body.on_open_calls != "error")
    refuse_beyond_ask(caller, rules=isinstance(body.create, ThreadFields) and body.create.rules is not None)
    refuse_all_but_questions(caller, body.messages or ())
    refuse_chosen(state.ids, caller, create=body.create)
    terms = body.model_dump(exclude={"messages", "payload", "format", "kv", "create"})
    terms |= {"idempotency_key": idempotency_key, "expected": expected, "create": body.create}
    if isinstance(body.create, ThreadFields):
        terms["create"] = NewThread(**body.create.model_dump())
    if body.kv is not None:
        terms["kv"] = {key: Put(put.value, put.expected) for key, put in body.kv.items()}
    given_messages = body.messages if body.payload is None else body.payload
    await apart(lambda: require_small(given_messages), given_messages)
    appended: Appended
    if (body.messages is None) == (body.payload is None):
        raise InvalidArgument("messages", "or payload must be given, and not both")
    if not chooses(state.ids, caller):
        messages = await apart(lambda: _messages_of(body), body)
        await require_own_runs(ledger, [body.run_id, *(message.run_id for message in messages)])
    if body.messages is not None:
        if body.format is not None:
            raise InvalidArgument("format", "goes with payload")
        appended = await ledger.messages.append(thread_id, body.messages, **terms)
    else:
        appended = await ledger.messages.append(thread_id, Payload(body.payload, body.format), **terms)
    if appended.replayed:
        response.status_code = 200
    else:
        branch = {"branch": appended.messages[-1].branch} if appended.messages else {}
        response.headers["Location"] = api_path("threads", thread_id, "messages", **branch)
    response.headers["ETag"] = f'"{appended.mark}"'
    return await apart(lambda: Stored.of(appended), appended.messages, appended.losses)


def _messages_of(body: Append) -> Sequence[ChatMessage]:
    """The messages of a body, those of a payload at the level that reads the most of it."""
    if body.messages is not None:
        return body.messages
    codec = recognise(body.payload) if body.format is None else get_codec(body.format)
    return codec.decode(body.payload, rules="lenient").messages


@router.get("/{message_id}")
async def get_message(ledger: Mine, thread_id: ThreadId, message_id: MessageId) -> ChatMessage:
    """Read a message by its id, on whichever branch it is."""
    return await ledger.messages.get(thread_id, message_id)


@router.put("/{message_id}")
async def revise_message(ledger: Mine, thread_id: ThreadId, message_id: MessageId, body: Message) -> ChatMessage:
    """Change the content of a message in its place. Its revisions keep it as it was."""
    await apart(lambda: require_small([body]), body)
    return await ledger.messages.revise(thread_id, message_id, body)


@router.get("/{message_id}/revisions")
async def list_revisions(
    ledger: Mine, thread_id: ThreadId, message_id: MessageId, limit: Limit, cursor: CursorQuery = None
) -> Items[Revision]:
    """List the changes of a message, oldest first, each with the message as it was before."""

    async def read(skip: int, count: int) -> Sequence[Revision]:
        return await ledger.messages.revisions(thread_id, message_id, skip=skip, limit=count)

    return items(await fitting_part(read, limit, cursor))


@router.delete("/{message_id}")
async def remove_message(ledger: Mine, thread_id: ThreadId, message_id: MessageId) -> ChatMessage:
    """Remove a message from every branch that shares it, and return it. Its revisions keep it."""
    return await ledger.messages.remove(thread_id, message_id)
