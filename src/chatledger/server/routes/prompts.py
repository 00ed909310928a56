"""What a model is sent of a thread."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from chatledger.errors import LimitExceeded
from chatledger.formats.history import prompt, require_provider
from chatledger.models import Newest, Tokens
from chatledger.models.weight import apart
from chatledger.repositories import scope_of
from chatledger.server.answers.pages import require_fitting, require_small_answer, whole_answer
from chatledger.server.json_route import json_router
from chatledger.server.paths import ThreadId
from chatledger.server.query import OfBranch
from chatledger.server.requests.bodies import Prompt
from chatledger.server.requests.turns import TokensQuery, TurnsQuery, newest_turns, require_one
from chatledger.server.state import Mine, Shared
from chatledger.storage.history.window_request import Window

router = json_router(prefix="/threads/{thread_id}", tags=["messages"])
MOST_MESSAGES = 10_000
"""Maximum number of messages of a prompt without `turns` or `tokens`."""


@router.get("/prompt")
async def read_prompt(
    ledger: Mine,
    thread_id: ThreadId,
    response: Response,
    state: Shared,
    format: Annotated[str, Query(description="The provider's format: `openai-chat`, `openai-responses`, `anthropic`.")],  # noqa: A002
    branch: OfBranch = None,
    turns: TurnsQuery = None,
    tokens: TokensQuery = None,
) -> Prompt:
    """Read a branch as the provider of the format accepts it, to send to the model: repaired, and without the draft.
    Without `turns` or `tokens` it is the whole branch. It is never cut: 413 says how large it is. `mark` and the `ETag`
    are the state of the branch. 422 if the provider would get no message.
    """
    require_one(turns=turns, tokens=tokens)
    require_provider(format)
    part = newest_turns(state.limits, turns, tokens) or Newest(MOST_MESSAGES)
    if not isinstance(part, Tokens):
        await require_fitting(ledger, Window.shown(scope_of(ledger).tenant, thread_id, part, branch, None))
    with whole_answer():
        history = await ledger.messages.history(thread_id, part, branch=branch)
    if isinstance(part, Newest) and history.previous_cursor is not None:
        raise LimitExceeded("messages of a prompt; pass turns or tokens", history.last_seq, MOST_MESSAGES)
    payload, repairs = await apart(lambda: prompt(format, history.messages, "dicts"), history.messages)
    answer = await apart(lambda: Prompt.of(history, payload=payload, repairs=repairs), payload)
    await require_small_answer(answer)
    response.headers["ETag"] = f'"{answer.mark}"'
    return answer
