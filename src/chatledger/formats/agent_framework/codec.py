"""The codec of `format="agent-framework"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.agent_framework.foreign import fit
from chatledger.formats.agent_framework.objects import build, is_object
from chatledger.formats.agent_framework.parts import CONTENTS, MESSAGE, NAME, TYPE
from chatledger.formats.agent_framework.read import read_payload
from chatledger.formats.agent_framework.write import FrameworkWriter
from chatledger.formats.codec import Decoded, Kind, Written
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class AgentFramework:
    """A list of messages, as `Message.to_dict` of the framework writes them, or its objects."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_agent_framework(payload)

    def given_as(self, messages: Sequence[ChatMessage]) -> Kind:
        """Always dicts: only `as_="models"` needs the framework."""
        return "dicts"

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for each message, and one for each content of a message of results.

        Lenient rules keep a malformed content whole.
        """
        return Decoded(*read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts for `Message.from_dict`. `carry` has no effect."""
        return write_payload(messages)

    def as_models(self, payload: Any) -> Any:
        return build(payload)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = FrameworkWriter()
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        fitted = fit(message)
        if fitted is not None:
            writer.write(fitted, index + 1, is_own=message.format == NAME)
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(writer.messages, origins, own)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely of the Microsoft Agent Framework: messages have a type and `contents`.


def is_agent_framework(payload: object) -> bool:
    """True only if each message is an object of the framework, or a dict as the framework dumps one."""
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(is_object(message) or _is_dict(message) for message in payload)


def _is_dict(message: Any) -> bool:
    if not isinstance(message, dict) or message.get(TYPE) != MESSAGE or not isinstance(message.get("role"), str):
        return False
    contents = message.get(CONTENTS)
    return isinstance(contents, list) and all(
        isinstance(content, dict) and isinstance(content.get(TYPE), str) for content in contents
    )


CODEC = AgentFramework()
