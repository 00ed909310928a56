"""The codec of `format="anthropic"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.anthropic.detect import is_anthropic
from chatledger.formats.anthropic.foreign import fit
from chatledger.formats.anthropic.names import MESSAGES, NAME, PAYLOAD, SYSTEM, is_listed, own_residual
from chatledger.formats.anthropic.read import read_payload
from chatledger.formats.anthropic.write import (
    PairedMessage,
    content_blocks,
    joins,
    pair_messages,
    write_group,
    write_system,
)
from chatledger.formats.codec import Decoded, Written
from chatledger.formats.wire.residual import nested, put_back
from chatledger.models import ChatMessage, RulesLevel
from chatledger.models.json import JsonValue


@dataclass(frozen=True, slots=True)
class Anthropic:
    """A request's `{"system", "messages"}`, or its list of messages alone, as dicts or as the SDK's objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_anthropic(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for the system prompt, one for each tool result, and one for the rest of each message.

        Lenient rules keep an unknown role as its text and a malformed block whole.
        """
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A dict of `messages`, and `system` if there is one, for `client.messages.create(…)`.

        `carry` has no effect: the API refuses unknown keys, so there is no free field.
        """
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The request: messages of the format as they came in, others fitted to the format.

    Leading system messages are the `system` of the request. A later one stays in its position in `messages`, where the
    API accepts it as well.
    """
    fitted = [(position, message) for position, message in enumerate(map(fit, messages)) if message is not None]
    leading = next((count for count, (_, message) in enumerate(fitted) if not _is_prompt(message)), len(fitted))
    prompts, groups = fitted[:leading], _groups(pair_messages(fitted[leading:]))
    payload: dict[str, Any] = {SYSTEM: _system([message for _, message in prompts])} if prompts else {}
    payload[MESSAGES] = [write_group(group) for group in groups]
    origins: list[tuple[int, ...]] = [tuple(position for position, _ in prompts)] if prompts else []
    origins += [(paired.position,) for group in groups for paired in group]
    around = nested(own_residual(messages[0]), PAYLOAD) if messages else None
    own = [position for position, message in enumerate(messages) if message.format == NAME]
    return Written(put_back(payload, around), origins, own)


def _is_prompt(message: ChatMessage) -> bool:
    return message.role == "system" and not is_listed(message)


def _system(prompts: Sequence[ChatMessage]) -> JsonValue:
    """A single prompt unchanged, several prompts as one list of their blocks."""
    if len(prompts) == 1:
        return write_system(prompts[0])
    return [block for prompt in prompts for block in content_blocks(prompt) if block.get("text") != ""]


def _groups(messages: Sequence[PairedMessage]) -> list[list[PairedMessage]]:
    groups: list[list[PairedMessage]] = []
    for paired in messages:
        if groups and joins(groups[-1][-1].message, paired.message):
            groups[-1].append(paired)
        else:
            groups.append([paired])
    return groups


CODEC = Anthropic()
