"""Repairs for Anthropic's Messages API: no blank texts, only reasoning that it signed itself, inputs that are objects.

A leading message of the assistant is left alone: the API accepts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from chatledger.formats.anthropic.foreign import fit
from chatledger.formats.anthropic.parts import MESSAGES, NAME, PARTS, ROLES, SYSTEM, TOOL_RESULT, TOOL_USE, is_listed
from chatledger.formats.anthropic.write import CALLS_AT, content_blocks
from chatledger.formats.model_view import repairs, request_keys
from chatledger.formats.model_view.anthropic_turns import in_turns
from chatledger.formats.model_view.provider import Provider, RequestKeys
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.formats.wire.arguments import as_object, fit_arguments
from chatledger.formats.wire.parts import ANTHROPIC as SIGNED_BY_ANTHROPIC
from chatledger.formats.wire.parts import signer_of
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart, ToolCall
from chatledger.models.base import copy_with


def _prepare(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Gives a message of the format itself a role that the format has."""
    if message.format != NAME or message.role in ROLES or (message.role == "tool" and not is_listed(message)):
        return message
    role = "system" if message.role == "developer" else message.role
    log.add(repairs.ROLE, message, f"role {message.role!r} is not accepted in the list of messages: written as {role}")
    return rewritten(message, role=role)


def _fit(message: ChatMessage, log: RepairLog) -> ChatMessage | None:
    message = _without_blank_texts(_without_foreign_thinking(_without_odd_blocks(message, log), log), log)
    message = _without_last_thoughts(_with_inputs(message, log), log)
    if message.role != "tool" and not message.tool_calls and _says_nothing(message):
        log.add(repairs.EMPTY, message, "the message has nothing to send: left out")
        return None
    return message


def _without_odd_blocks(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out calls and results that lenient rules accepted, but that cannot be run or matched."""
    parts = message.content if isinstance(message.content, list) else []
    odd = [part for part in parts if isinstance(part, OpaquePart) and part.type in _PAIRED]
    odd += _server_results_without_call(parts)
    if message.format != NAME or not odd:
        return message
    log.add(repairs.ORPHAN_RESULT, message, "an invalid call block or a result without a call: left out")
    return _only(message, lambda part: not any(part is odd_part for odd_part in odd))


def _server_results_without_call(parts: Sequence[Part]) -> list[OpaquePart]:
    """Results of the API's own tools that have no call before them."""
    blocks = [(part, part.value) for part in parts if isinstance(part, OpaquePart) and isinstance(part.value, dict)]
    calls: list[object] = []
    odd = []
    for part, block in blocks:
        if (part.type or "").endswith("_tool_use"):
            calls.append(block.get("id"))
        elif (part.type or "").endswith("_tool_result") and block.get("tool_use_id") not in calls:
            odd.append(part)
    return odd


_PAIRED = (TOOL_USE, TOOL_RESULT)


def _without_foreign_thinking(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out reasoning whose signature is missing or not Anthropic's."""
    refused = _is_refused_thought(message)
    in_reasoning = isinstance(message.reasoning, list) and any(map(refused, message.reasoning))
    in_content = isinstance(message.content, list) and any(map(refused, message.content))
    if not in_reasoning and not in_content:
        return message
    log.add(repairs.REASONING, message, "reasoning that Anthropic did not sign: left out")
    if in_reasoning:
        message = copy_with(message, {"reasoning": None})
    return _only(message, lambda part: not refused(part)) if in_content else message


def _is_refused_thought(message: ChatMessage) -> Callable[[Part], bool]:
    """Returns a test for parts. Of other formats the codec would write only signed reasoning. Another provider signed
    it, unless the thought names Anthropic.
    """
    if message.format == NAME:
        return lambda part: isinstance(part, ThinkPart) and (message.role != "assistant" or not part.signature)
    return lambda part: (
        isinstance(part, ThinkPart)
        and message.role == "assistant"
        and part.signature is not None
        and not (part.signature and _is_anthropics(part, message))
    )


def _without_blank_texts(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out blank texts, if the message has anything else."""
    content = message.content
    if isinstance(content, str):
        if content.strip() or not message.tool_calls:
            return message
        _note_blank(message, [content], log)
        return rewritten(message, content=None)
    blank = [part.text for part in content or () if isinstance(part, TextPart) and not part.text.strip()]
    if not blank:
        return message
    _note_blank(message, blank, log)
    return _only(message, lambda part: not isinstance(part, TextPart) or bool(part.text.strip()))


def _note_blank(message: ChatMessage, texts: list[str], log: RepairLog) -> None:
    if message.format == NAME or any(texts):  # the codec writes no empty text of another format
        log.add(repairs.EMPTY, message, "blank text: left out")


def _with_inputs(message: ChatMessage, log: RepairLog) -> ChatMessage:
    calls = message.tool_calls or []
    if not any(_is_odd_input(call, message) for call in calls):
        return message
    log.add(repairs.ARGUMENTS, message, "input that is not an object: written as an object")
    calls_with_inputs = [
        call.model_copy(update={"arguments": fit_arguments(call.arguments)}) if _is_odd_input(call, message) else call
        for call in calls
    ]
    return copy_with(message, {"tool_calls": calls_with_inputs})


def _is_odd_input(call: ToolCall, message: ChatMessage) -> bool:
    """Whether the input cannot be sent. For other formats the codec writes JSON text as its object."""
    return isinstance(call.arguments, str) if message.format == NAME else as_object(call.arguments) is None


def _without_last_thoughts(message: ChatMessage, log: RepairLog) -> ChatMessage:
    parts = message.content if isinstance(message.content, list) else []
    count = next((count for count, part in enumerate(reversed(parts)) if not _is_thought(part)), len(parts))
    if not count or not _is_anthropics(parts[-1], message) or message.role != "assistant":
        return message
    if message.tool_calls:
        return _with_calls_last(message, log)
    log.add(repairs.REASONING, message, "reasoning at the end of a message: left out")
    others = {id(part) for part in parts[: len(parts) - count]}
    return _only(message, lambda part: id(part) in others)


def _is_anthropics(thought: Part, message: ChatMessage) -> bool:
    """Whether Anthropic is known to have made the reasoning."""
    if not isinstance(thought, ThinkPart):
        return message.format == NAME
    return signer_of(thought, message.format) == SIGNED_BY_ANTHROPIC


def _with_calls_last(message: ChatMessage, log: RepairLog) -> ChatMessage:
    if not isinstance(message.residual, dict) or CALLS_AT not in message.residual:
        return message
    log.add(repairs.REASONING, message, "reasoning at the end of a message: moved before the calls")
    return _only(message, lambda _part: True)


def _is_thought(part: Part) -> bool:
    return isinstance(part, ThinkPart) or (isinstance(part, OpaquePart) and part.type == "redacted_thinking")


def _says_nothing(message: ChatMessage) -> bool:
    fitted = fit(message)
    if fitted is None or not fitted.content:
        return True
    return not (fitted.content.strip() if isinstance(fitted.content, str) else content_blocks(fitted))


def _only(message: ChatMessage, wanted: Callable[[Part], bool]) -> ChatMessage:
    """The message with some of its parts and their residuals."""
    parts = message.content if isinstance(message.content, list) else []
    indexes = [idx for idx, part in enumerate(parts) if wanted(part)]
    content = [parts[idx] for idx in indexes]
    if message.format != NAME or not isinstance(message.residual, dict):
        return copy_with(message, {"content": content})
    residuals = {str(new): nested(message.residual, PARTS, str(old)) for new, old in enumerate(indexes)}
    rest = {key: value for key, value in message.residual.items() if key not in (PARTS, CALLS_AT)}
    return copy_with(message, {"content": content, "residual": {**rest, PARTS: residuals}})


ANTHROPIC = Provider(
    name=NAME,
    messages_key=MESSAGES,
    keys=RequestKeys(request_keys.ANTHROPIC, under=(MESSAGES, SYSTEM)),
    call_ids=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    keeps=lambda message: message.format == NAME,
    prepare=_prepare,
    writes_fields_of_other_roles=False,
    fit=_fit,
    finish=in_turns,
)
