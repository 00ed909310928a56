"""The differences between providers, as values: the same code repairs for all of them.

The limits are from the error messages of the providers. OpenAI's chat completions once allowed 40 characters for the id
of a call and now allow 64; generated ids have at most 40.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from chatledger.formats.model_view.keys import RequestKeys
from chatledger.formats.model_view.repairs import RepairLog
from chatledger.models import ChatMessage

MADE_ID = 40
"""The maximum length of a generated id."""

Fit = Callable[[ChatMessage, RepairLog], ChatMessage | None]
"""The message as the provider accepts it, regardless of its neighbours; None if there is nothing to send."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider. `name` is the name of its format."""

    name: str
    messages_key: str
    """The key of the messages in a request."""
    keys: RequestKeys
    """The keys that the objects of a request may have."""
    call_ids: re.Pattern[str]
    tool_names: re.Pattern[str]
    keeps: Callable[[ChatMessage], bool]
    """Whether a message is written as it came in, and not fitted like a message of another format."""
    writes_fields_of_other_roles: bool
    """Whether such a message is written with its calls and its tool_call_id in any role. If not, they are losses."""
    fit: Fit
    """Repairs of a single message that only this provider needs."""
    ids_may_come_again: bool = False
    """Whether a call may have the id of an earlier call that has its result. OpenAI's chat completions look for the
    results of a message directly behind it, so there only the calls of one message need different ids."""
    prepare: Callable[[ChatMessage, RepairLog], ChatMessage] = lambda message, _log: message
    """Runs before the pairing: gives a message of the format itself a role that the format has."""
    has_ids: Callable[[ChatMessage], bool] = lambda _message: True
    """Whether the message's calls and their results need ids; legacy forms have none."""
    is_result_without_id: Callable[[ChatMessage], bool] = lambda _message: False
    finish: Callable[[list[ChatMessage], RepairLog], list[ChatMessage]] = lambda messages, _log: messages
    """Repairs that depend on the neighbours of a message."""
