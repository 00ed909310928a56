"""Messages as a payload: those of the format itself as they came, those of other origin as they fit.

Leading system messages are the `system` of the request; a later one stays in its place in `messages`, as the API takes
it there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.formats.anthropic.as_read import is_as_read
from chatledger.formats.anthropic.decode import MESSAGES, PAYLOAD, SYSTEM
from chatledger.formats.anthropic.fit import fit
from chatledger.formats.anthropic.joining import Linked, content_blocks, joins, link, write_group, write_system
from chatledger.formats.anthropic.names import NAME, is_listed, own_residual
from chatledger.formats.losses.measure import Written
from chatledger.formats.wire.residual import nested, put_back
from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """What the API takes."""
    fitted = [(place, message) for place, message in enumerate(map(fit, messages)) if message is not None]
    leading = next((count for count, (_, message) in enumerate(fitted) if not _is_prompt(message)), len(fitted))
    prompts, groups = fitted[:leading], _groups(link(fitted[leading:]))
    payload: dict[str, Any] = {SYSTEM: _system([message for _, message in prompts])} if prompts else {}
    payload[MESSAGES] = [write_group(group) for group in groups]
    origins: list[tuple[int, ...]] = [tuple(place for place, _ in prompts)] if prompts else []
    origins += [(linked.place,) for group in groups for linked in group]
    around = nested(own_residual(messages[0]), PAYLOAD) if messages else None
    own = [place for place, message in enumerate(messages) if message.format == NAME]
    as_read = len(prompts) <= 1 and all(map(is_as_read, messages))
    return Written(put_back(payload, around), origins, own, as_read=as_read)


def _is_prompt(message: ChatMessage) -> bool:
    return message.role == "system" and not is_listed(message)


def _system(prompts: Sequence[ChatMessage]) -> JsonValue:
    """One prompt as it is, several as one list of their blocks."""
    if len(prompts) == 1:
        return write_system(prompts[0])
    return [block for prompt in prompts for block in content_blocks(prompt) if block.get("text") != ""]


def _groups(messages: Sequence[Linked]) -> list[list[Linked]]:
    groups: list[list[Linked]] = []
    for linked in messages:
        if groups and joins(groups[-1][-1].message, linked.message):
            groups[-1].append(linked)
        else:
            groups.append([linked])
    return groups
