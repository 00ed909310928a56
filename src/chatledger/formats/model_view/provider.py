"""What the providers differ in, as values: one mechanism repairs for all of them.

The limits are what the providers answer with when they refuse a request, not taste. OpenAI's chat completions had 40
characters for the id of a call and have 64 now; ids that are made here keep to the shorter one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from chatledger.formats.model_view.repairs import RepairLog
from chatledger.models import ChatMessage

MADE_ID = 40
"""Characters of an id that is made here, at most."""

Fit = Callable[[ChatMessage, RepairLog], ChatMessage | None]
"""A message as the provider takes it, whatever stands around it; None if there is nothing to be sent."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider behind a format. `name` is the format's."""

    name: str
    call_ids: re.Pattern[str]
    tool_names: re.Pattern[str]
    keeps: Callable[[ChatMessage], bool]
    """Whether a message is written as it came, and not made to fit as those of other origin are."""
    fit: Fit
    """What only its provider finds wrong with a message."""
    prepare: Callable[[ChatMessage, RepairLog], ChatMessage] = lambda message, _log: message
    """Before results find their calls: a message of the format itself in a role that the format has."""
    has_ids: Callable[[ChatMessage], bool] = lambda _message: True
    """Whether the message's calls need ids, and its results theirs: legacy forms do without."""
    is_result_without_id: Callable[[ChatMessage], bool] = lambda _message: False
    finish: Callable[[list[ChatMessage], RepairLog], list[ChatMessage]] = lambda messages, _log: messages
    """The messages in their order as the provider takes them: what only their neighbours tell."""
