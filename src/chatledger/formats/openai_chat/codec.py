"""The codec of `format="openai-chat"`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.codec import Decoded, Written
from chatledger.formats.openai_chat.foreign import fit
from chatledger.formats.openai_chat.read import plain_message, read_payload
from chatledger.formats.openai_chat.write import NAME, ROLES, write_message
from chatledger.formats.wire.call_pairs import Pairing
from chatledger.models import ChatMessage, RulesLevel


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A list of messages of chat completions, dicts or the SDK's objects, each of which becomes one ChatMessage."""

    name: str = NAME

    def recognises(self, payload: object) -> bool:
        return is_openai_chat(payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        """One message for each object. Lenient rules keep an unknown role as its text and a malformed part whole."""
        return Decoded(read_payload(payload, lenient=rules == "lenient"))

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        """A list of dicts. `carry` has no effect: the API refuses unknown keys, so there is no free field."""
        return write_payload(messages)


def write_payload(messages: Sequence[ChatMessage]) -> Written:
    """The list that the API accepts: messages of the format as they came in, others fitted to the format."""
    pairing = Pairing()
    payload: list[dict[str, Any]] = []
    origins: list[tuple[int, ...]] = []
    for index, message in enumerate(messages):
        answered = pairing.follow(message, index + 1)
        fitted = message if message.format == NAME else fit(message, index + 1, answered)
        if fitted is not None:
            payload.append(write_message(fitted))
            origins.append((index,))
    own = [index for index, message in enumerate(messages) if message.format == NAME]
    return Written(payload, origins, own)


# --- Recognition ------------------------------------------------------------------------------------------------------
# Whether a payload is surely a list of chat completions messages.
#
# Plain messages of a role and a text are enough, since this is the most common of the formats with such messages. A
# single message that only another system writes, or might write, is enough to reject the whole payload.

_SPEAKING_KEYS = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
_FOREIGN_KEYS = frozenset({"type", "kind", "parts", "extra", "partial"})
"""Keys of other systems: Responses and the agent service, our models, Gemini and UI messages, Qwen-Agent, kosong."""
_PART_TYPES = frozenset({"text", "image_url", "input_audio", "file", "refusal", "thinking"})


def is_openai_chat(payload: object) -> bool:
    if not isinstance(payload, list) or not payload:
        return False
    try:
        messages = [plain_message(value, "messages") for value in payload]
    except DecodeError:
        return False
    return all(_is_message(message) for message in messages) and not _is_qwen_agent(messages)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or not _SPEAKING_KEYS & message.keys() or _FOREIGN_KEYS & message.keys():
        return False
    if not isinstance(message.get("role"), str) or message["role"] not in ROLES:
        return False
    return _is_content(message.get("content")) and _are_calls(message.get("tool_calls"))


def _is_content(content: Any) -> bool:
    if isinstance(content, list):
        return all(_is_part(part) for part in content)
    return content is None or isinstance(content, str)


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str) or part["type"] not in _PART_TYPES:
        return False
    if part["type"] == "thinking" and not isinstance(part.get("thinking"), list):
        return False  # with a text it is Anthropic's
    image = part.get("image_url")
    return not (isinstance(image, dict) and "id" in image)  # kosong's images have an id


def _are_calls(calls: Any) -> bool:
    return calls is None or (isinstance(calls, list) and all(_is_call(call) for call in calls))


def _is_call(call: Any) -> bool:
    if not isinstance(call, dict) or "extras" in call:  # kosong's calls have extras
        return False
    return isinstance(call.get("function"), dict) or isinstance(call.get("custom"), dict)


def _is_qwen_agent(messages: list[dict[str, Any]]) -> bool:
    """Qwen-Agent writes legacy calls together with reasoning, unlike the models of that time."""
    legacy = any(message.get("function_call") or message["role"] == "function" for message in messages)
    return legacy and any("reasoning_content" in message for message in messages)


CODEC = OpenAIChat()
