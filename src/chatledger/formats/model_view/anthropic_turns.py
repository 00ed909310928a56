"""The order of an Anthropic request: instructions first, then user and assistant in turns, results before the rest.

Neighbouring messages of one role become one. The writer joins results with the user message after them, so here these
are only marked as continuing each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.formats.anthropic.foreign import fit
from chatledger.formats.anthropic.parts import NAME, PARTS, is_listed, is_result
from chatledger.formats.anthropic.write import CALLS_AT, REST_AT, joins
from chatledger.formats.model_view import repairs
from chatledger.formats.model_view.repairs import RepairLog
from chatledger.formats.wire.residual import nested, own_residual
from chatledger.models import CONTINUES, ChatMessage, Part, TextPart, continues
from chatledger.models.base import copy_with


def in_turns(messages: list[ChatMessage], log: RepairLog) -> list[ChatMessage]:
    return _without_last_space(_alternating(_hoisted(messages, log), log), log)


def _hoisted(messages: Sequence[ChatMessage], log: RepairLog) -> list[ChatMessage]:
    prompts = [message for message in messages if _is_prompt(message)]
    others = [message for message in messages if not _is_prompt(message)]
    for prompt in prompts[next((at for at, message in enumerate(messages) if not _is_prompt(message)), len(prompts)) :]:
        log.add(repairs.SYSTEM, prompt, "instructions inside the conversation: moved before it")
    return prompts + others


def _is_prompt(message: ChatMessage) -> bool:
    """Whether it is an instruction that belongs before the messages. If it came among them, it may stay there."""
    return message.role in ("system", "developer") and not is_listed(message)


def _alternating(messages: Sequence[ChatMessage], log: RepairLog) -> list[ChatMessage]:
    turns: list[ChatMessage] = []
    for message in messages:
        if not turns or _speaker(message) is None or _speaker(turns[-1]) != _speaker(message):
            turns.append(message)
        elif is_result(turns[-1]):
            turns.append(_behind_results(turns[-1], message, log))
        else:
            log.add(repairs.MERGED, message, f"a second {message.role} message in a row: joined with the first")
            turns[-1] = _merged(turns[-1], message, joined=len(turns) > 1 and is_result(turns[-2]))
    return turns


def _speaker(message: ChatMessage) -> str | None:
    """The role in the request; None for instructions, which belong to no turn."""
    if message.role == "tool":
        return "user"
    return message.role if message.role in ("user", "assistant") else None


def _behind_results(before: ChatMessage, message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Marks a result or a user message so that it is written into the message of the results before it."""
    if not joins(before, fit(message) or message):
        log.add(repairs.MERGED, message, "a second user message in a row: joined with the first")
        return copy_with(message, {"residual": {CONTINUES: True, **_residual(message)}})
    if nested(own_residual(message, NAME), REST_AT) is None:
        return message
    log.add(repairs.MOVED_RESULT, message, "content before results: moved after them")
    return copy_with(message, {"residual": {key: value for key, value in _residual(message).items() if key != REST_AT}})


def _residual(message: ChatMessage) -> dict[str, Any]:
    return message.residual if isinstance(message.residual, dict) else {}


def _merged(first: ChatMessage, second: ChatMessage, *, joined: bool) -> ChatMessage:
    """One message of the format with the content of both, and with the residuals of their parts."""
    first, second = _as_own(first), _as_own(second)
    content = _parts(first)
    of_parts = {**_part_residuals(first, 0), **_part_residuals(second, len(content))}
    own = {key: value for key, value in _residual(second).items() if key not in (PARTS, CALLS_AT, CONTINUES, REST_AT)}
    residual = {**own, **{key: value for key, value in _residual(first).items() if key != CONTINUES}, PARTS: of_parts}
    return copy_with(
        first,
        {
            "content": [*content, *_parts(second)],
            "tool_calls": second.tool_calls,
            "residual": {CONTINUES: True, **residual} if joined or continues(first) else residual,
        },
    )


def _as_own(message: ChatMessage) -> ChatMessage:
    fitted = fit(message) or message
    return fitted if fitted.format == NAME else copy_with(fitted, {"format": NAME, "residual": None})


def _parts(message: ChatMessage) -> list[Part]:
    if isinstance(message.content, list):
        return message.content
    return [TextPart(text=message.content)] if message.content else []


def _part_residuals(message: ChatMessage, shift: int) -> dict[str, Any]:
    residuals = nested(message.residual, PARTS)
    return {str(int(idx) + shift): value for idx, value in residuals.items()} if isinstance(residuals, dict) else {}


def _without_last_space(messages: list[ChatMessage], log: RepairLog) -> list[ChatMessage]:
    """The API continues a last message of the assistant, and refuses one that ends in white space."""
    if not messages or messages[-1].role != "assistant":
        return messages
    last, content = messages[-1], messages[-1].content
    if isinstance(content, str):
        stripped: str | list[Part] = content.rstrip()
    else:
        stripped = _stripped(content or [], own=last.format == NAME)
    if stripped == (content or []):
        return messages
    log.add(repairs.SPACE, last, "white space at the end of the last message: removed")
    return [*messages[:-1], copy_with(last, {"content": stripped})]


def _stripped(parts: list[Part], *, own: bool) -> list[Part]:
    """Strips the last part, if it is a text. Of other formats only texts are written."""
    at = max((idx for idx, part in enumerate(parts) if own or isinstance(part, TextPart)), default=None)
    part = None if at is None else parts[at]
    if at is None or not isinstance(part, TextPart):
        return parts
    return [*parts[:at], part.model_copy(update={"text": part.text.rstrip()}), *parts[at + 1 :]]
