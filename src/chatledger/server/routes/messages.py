"""The messages of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query, Response

from chatledger import Payload
from chatledger.errors import InvalidArgument
from chatledger.formats import get_codec, recognise
from chatledger.models import Appended, ChatMessage, Put, Revision
from chatledger.models.weight import apart
from chatledger.server.asking import refuse_all_but_questions, refuse_beyond_ask
from chatledger.server.bodies import Append, Items, Message, MessagePage, Stored, items
from chatledger.server.chosen_ids import chooses, refuse_chosen, require_own_runs
from chatledger.server.headers import ExpectedMark, IdempotencyKey
from chatledger.server.json_route import json_router
from chatledger.server.pages import counting, fitting_history, fitting_part, require_fitting, require_small_answer
from chatledger.server.paths import MessageId, ThreadId
from chatledger.server.sizes import require_small
from chatledger.server.state import Asking, Cursor, Limit, Mine, Shared, Who

router = json_router(prefix="/threads/{thread_id}/messages", tags=["messages"])
MOST_TOKENS = 1_000_000
"""Maximum of `max_tokens`, since a window by tokens is not limited by a number of messages."""
_TO_WRITE = ("payload", "run_id", "rules", "kv")
"""Fields of an append that need a token that may write."""


@router.get("")
async def read_messages(
    ledger: Mine,
    thread_id: ThreadId,
    response: Response,
    limit: Limit,
    state: Shared,
    branch: Annotated[int | None, Query(description="The branch; the active one by default.")] = None,
    before: Annotated[int | None, Query(description="Only messages before this seq, the newest of them.")] = None,
    after: Annotated[int | None, Query(description="Only messages after this seq, the oldest of them.")] = None,
    last_turns: Annotated[int | None, Query(description="The newest turns instead of the newest messages.")] = None,
    max_tokens: Annotated[
        int | None, Query(le=MOST_TOKENS, description="The newest turns that fit, at four letters a token.")
    ] = None,
    run_id: Annotated[str | None, Query(description="Only messages of this run.")] = None,
    partials: Annotated[bool, Query(description="Whether to return a message that is still being written.")] = True,
    format: Annotated[str | None, Query(description="Return a `payload` in this format too.")] = None,  # noqa: A002
    view: Annotated[
        Literal["stored", "model"], Query(description="The payload as stored, or as the provider accepts it.")
    ] = "stored",
) -> MessagePage:
    """Read the newest messages, or a page before or after a seq. `mark` and the `ETag` are the state of the branch. A
    page ends before the message with which it would have more than 8 MiB. A payload and a window by turns are never
    cut: 413 says how large they are.
    """
    of_turns = last_turns is not None or max_tokens is not None
    if last_turns is not None and last_turns > state.limits.page:
        raise InvalidArgument("last_turns", f"must be at most {state.limits.page}")
    window: dict[str, Any] = {
        "branch": branch,
        "before": before,
        "after": after,
        "last_turns": last_turns,
        "run_id": run_id,
        "partials": partials,
        **({} if of_turns else {"limit": limit} if after is not None else {"newest": limit}),
    }
    if format is None and view != "stored":
        raise InvalidArgument("view", "needs a format")
    if format is None and not of_turns:
        found = MessagePage.of(thread_id, await fitting_history(ledger, thread_id, window))
        response.headers["ETag"] = f'"{found.mark}"'
        return found
    if max_tokens is None:
        await require_fitting(ledger, thread_id, window)
    else:
        window |= {"max_tokens": max_tokens, "count_tokens": counting()}
    if format is None:
        found = MessagePage.of(thread_id, await ledger.messages.history(thread_id, **window))
    else:
        formatted = await ledger.history(thread_id, format=format, view=view, as_="dicts", **window)
        weighed = (formatted.messages, formatted.payload, formatted.repairs)  # losses are measured when they are read
        found = await apart(lambda: MessagePage.of(thread_id, formatted), *weighed)
    await require_small_answer(found)
    response.headers["ETag"] = f'"{found.mark}"'
    return found


@router.post("", status_code=201, responses={200: {"model": Stored, "description": "A repeat, which stored nothing."}})
async def append_messages(
    ledger: Asking,
    caller: Who,
    state: Shared,
    thread_id: ThreadId,
    body: Append,
    response: Response,
    idempotency_key: IdempotencyKey,
    expected: ExpectedMark,
) -> Stored:
    """Append messages, all or none. Send the same request again if its answer was lost, with the same key or with ids
    in the messages: a repeat returns 200 with `replayed` and stores nothing. A token of scope `ask` appends `messages`
    of role user, without a run, values or rules.
    """
    refuse_beyond_ask(caller, **{name: getattr(body, name) is not None for name in _TO_WRITE})
    refuse_beyond_ask(caller, on_open_calls=body.on_open_calls != "error")
    refuse_all_but_questions(caller, body.messages or ())
    refuse_chosen(state.ids, caller, create=body.create)
    given = body.model_dump(exclude={"messages", "payload", "format", "kv"})
    given |= {"idempotency_key": idempotency_key, "expected": expected}
    if body.kv is not None:
        given["kv"] = {key: Put(one.value, one.expected) for key, one in body.kv.items()}
    given_messages = body.messages if body.payload is None else body.payload
    await apart(lambda: require_small(given_messages), given_messages)
    appended: Appended
    if (body.messages is None) == (body.payload is None):
        raise InvalidArgument("messages", "or payload must be given, and not both")
    if not chooses(state.ids, caller):
        messages = await apart(lambda: _messages_of(body), body)
        await require_own_runs(ledger, [body.run_id, *(one.run_id for one in messages)])
    if body.messages is not None:
        if body.format is not None:
            raise InvalidArgument("format", "goes with payload")
        appended = await ledger.messages.append(thread_id, body.messages, **given)
    else:
        appended = await ledger.messages.append(thread_id, Payload(body.payload, body.format), **given)
    if appended.replayed:
        response.status_code = 200
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
    """Change the words of a message in its place. Its revisions keep it as it was."""
    await apart(lambda: require_small([body]), body)
    return await ledger.messages.revise(thread_id, message_id, body)


@router.get("/{message_id}/revisions")
async def list_revisions(
    ledger: Mine, thread_id: ThreadId, message_id: MessageId, limit: Limit, cursor: Cursor = None
) -> Items[Revision]:
    """List the changes of a message, oldest first, each with the message as it was before."""

    async def read(skip: int, count: int) -> Sequence[Revision]:
        return await ledger.messages.revisions(thread_id, message_id, skip=skip, limit=count)

    return items(await fitting_part(read, limit, cursor))


@router.delete("/{message_id}")
async def remove_message(ledger: Mine, thread_id: ThreadId, message_id: MessageId) -> ChatMessage:
    """Remove a message from every branch that shares it, and return it. Its revisions keep it."""
    return await ledger.messages.remove(thread_id, message_id)
