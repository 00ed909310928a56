"""The codec of `format="ai-sdk"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.formats.ai_sdk.foreign import fit
from chatledger.formats.ai_sdk.names import DATA, DYNAMIC_TOOL, FILE, NAME, REASONING, ROLES, STEP_START, TEXT, TOOL
from chatledger.formats.ai_sdk.read import read_payload
from chatledger.formats.ai_sdk.write import UIMessageDraft, UIMessageWriter
from chatledger.formats.codec import Decoded, Written
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class AISDK:
    """A list of UI messages, as `useChat` has them and an application stores them."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_ai_sdk(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One row for a message of the system or the user; for one of the assistant, a row for each step and for each
        result.

        Lenient rules keep a malformed message or part whole.
        """
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of UI messages that the SDK's validation accepts. `carry` has no effect."""
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The payload: messages of the format as they came in, others fitted to the format."""
    writer = UIMessageWriter()
    for index, message in enumerate(messages):
        fitted = fit(message)
        if fitted is not None:
            writer.add(fitted, index)
    origins: list[tuple[int, ...]] = []
    payload = []
    for draft in writer.drafts:
        payload.append(draft.write() if isinstance(draft, UIMessageDraft) else draft[0])
        origins += draft.origins() if isinstance(draft, UIMessageDraft) else [(draft[1],)]
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(payload, origins, own)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely a list of UI messages: their parts have a type that only the SDK uses beside `role`.

_TYPES = frozenset(
    {
        *(TEXT, REASONING, FILE, STEP_START, DYNAMIC_TOOL),
        *("source-url", "source-document", "reasoning-file", "custom", "steering-message"),
    }
)


def is_ai_sdk(payload: object) -> bool:
    if not isinstance(payload, (list, tuple)) or not payload:
        return False
    return all(map(_is_message, payload)) and any(message["parts"] for message in payload)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    role, parts = message.get("role"), message.get("parts")
    return isinstance(role, str) and role in ROLES and isinstance(parts, list) and all(map(_is_part, parts))


def _is_part(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and (kind in _TYPES or kind.startswith((TOOL, DATA)))


CODEC = AISDK()
