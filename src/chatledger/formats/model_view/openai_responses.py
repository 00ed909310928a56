"""Repairs for OpenAI's Responses API: reasoning directly before the item that followed it, and each item once.

The API accepts an item with an id of its own only together with the item's reasoning. So an item that lost its
reasoning, or that is in the history twice, is written without its id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatledger.formats.model_view import repairs, request_keys
from chatledger.formats.model_view.message import with_objects, with_text
from chatledger.formats.model_view.provider import Provider, RequestKeys
from chatledger.formats.model_view.repairs import RepairLog, rewritten
from chatledger.formats.openai_responses.foreign import fit
from chatledger.formats.openai_responses.items import ARGUMENTS, FUNCTION_CALL, MESSAGE, OUTPUT_OF, REASONING, Source
from chatledger.formats.openai_responses.write import INPUT, ITEMS, NAME, write_message
from chatledger.formats.wire.residual import nested
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart
from chatledger.models.base import copy_with


def _prepare(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Writes a message item with role tool as an output."""
    if message.format != NAME or message.role != "tool":
        return message
    entries = nested(message.residual, ITEMS)
    if not isinstance(entries, list) or not entries or nested(entries[0], "kind") != MESSAGE:
        return message
    log.add(repairs.ROLE, message, "a message item cannot have role 'tool': written as an output")
    return rewritten(message)


def _fit(message: ChatMessage, log: RepairLog) -> ChatMessage | None:
    if message.format != NAME:
        bare = _without_thoughts(message, log)
        if bare is not message and not (bare.content or bare.tool_calls):
            return None
        message = bare
    return _with_content(_with_arguments(_without_odd_items(message, log), log), log)


def _without_odd_items(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out calls that lenient rules accepted, but that cannot be run."""
    parts = message.content if isinstance(message.content, list) else []
    if message.format != NAME or not any(isinstance(part, OpaquePart) and part.type in _PAIRED for part in parts):
        return message
    log.add(repairs.NAME, message, "a call without a name, or an invalid item: left out")
    return _anew(message)


_PAIRED = (MESSAGE, REASONING, *OUTPUT_OF, *OUTPUT_OF.values())


def _without_thoughts(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out reasoning: the API accepts only its own."""
    if message.role != "assistant" or not any(item.get("type") == REASONING for item in _items(message)):
        return message
    log.add(repairs.REASONING, message, "reasoning that OpenAI did not write: left out")
    return copy_with(message, {"reasoning": None, "content": _without_thinking(message.content)})


def _without_thinking(content: str | list[Part] | None) -> str | list[Part] | None:
    if not isinstance(content, list):
        return content
    return [part for part in content if not isinstance(part, ThinkPart)]


def _with_arguments(message: ChatMessage, log: RepairLog) -> ChatMessage:
    items = [item for item in _items(message) if item.get("type") in ARGUMENTS]
    if not all(isinstance(item.get(ARGUMENTS[item["type"]]), str) for item in items):
        log.add(repairs.ARGUMENTS, message, "arguments that are not text: written as JSON text")
        return _anew(message)
    are_functions = any(call.id is None for call in message.tool_calls or ())  # such a message is written with new ids
    return with_objects(message, [are_functions or item["type"] == FUNCTION_CALL for item in items], log)


def _with_content(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """The API refuses a message or an output without content, and an empty list of parts."""
    if not any(_is_empty(item) for item in _items(message)):
        return message
    log.add(repairs.EMPTY, message, "no content: written as empty text")
    return copy_with(_anew(message), {"content": ""})


def _is_empty(item: Source) -> bool:
    key = _CONTENT.get(item.get("type") or MESSAGE)
    return key is not None and item.get(key) in (None, [])


_CONTENT = {MESSAGE: "content", **dict.fromkeys(OUTPUT_OF.values(), "output")}


def _items(message: ChatMessage) -> list[Source]:
    """The items that the message alone is written as."""
    own = write_message(message)
    return fit(message, message.seq or 0, None) if own is None else own


def _anew(message: ChatMessage) -> ChatMessage:
    """The message without its ids and reasoning; a single text part becomes plain text.

    All its calls become function calls.
    """
    content = _without_thinking(message.content)
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], TextPart):
        content = content[0].text
    calls = None if message.tool_calls is None else list(map(with_text, message.tool_calls))
    return rewritten(message, reasoning=None, content=content, tool_calls=calls)


def _finish(messages: list[ChatMessage], log: RepairLog) -> list[ChatMessage]:
    seen: set[str] = set()
    forms: dict[str | None, str] = {}
    finished = []
    for message in messages:
        bare = _without_lone_reasoning(message, log)
        if bare is not message and not (bare.content or bare.tool_calls):
            continue
        message = _with_items_once(bare, seen, log)
        if message.role == "tool":
            message = _in_form(message, forms.get(message.tool_call_id))
        message = _with_content(message, log)  # a message that was rewritten may have lost its only part
        items = _items(message)
        seen |= {item["id"] for item in items if isinstance(item.get("id"), str)}
        forms |= {item.get("call_id"): OUTPUT_OF[item["type"]] for item in items if item.get("type") in OUTPUT_OF}
        finished.append(message)
    return finished


def _without_lone_reasoning(message: ChatMessage, log: RepairLog) -> ChatMessage:
    """Leaves out reasoning, if the item that followed it is not directly behind it or has lost its id."""
    if message.format != NAME or message.role != "assistant":
        return message
    items = _items(message)
    is_written = write_message(message) is not None
    if not any(item.get("type") == REASONING for item in items) or (is_written and _all_led_to_something(items)):
        return message
    log.add(repairs.REASONING, message, "reasoning without the item that must follow it: left out")
    return _anew(message)


def _all_led_to_something(items: Sequence[Source]) -> bool:
    followed = zip(items, [*items[1:], None], strict=True)
    return all(_was_given(next_item) for item, next_item in followed if item.get("type") == REASONING)


def _was_given(item: Source | None) -> bool:
    """Whether the item came from the API. A message without an id was written by a program."""
    if item is None:
        return False
    return (item.get("type") or MESSAGE) != MESSAGE or isinstance(item.get("id"), str)


def _with_items_once(message: ChatMessage, seen: set[str], log: RepairLog) -> ChatMessage:
    ids = [item["id"] for item in _items(message) if isinstance(item.get("id"), str)]
    if seen.isdisjoint(ids) and len(set(ids)) == len(ids):
        return message
    log.add(repairs.REUSED_ID, message, "items whose ids occur earlier: written again without ids")
    return _anew(message)


def _in_form(result: ChatMessage, form: str | None) -> ChatMessage:
    """The result as an output of the type of its call."""
    [item] = _items(result)
    return result if form is None or item.get("type") == form else rewritten(result, format=None)


OPENAI_RESPONSES = Provider(
    name=NAME,
    messages_key=INPUT,
    keys=RequestKeys(request_keys.OPENAI_RESPONSES, under=(INPUT,)),
    call_ids=re.compile(r"[\s\S]{1,64}"),
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    keeps=lambda message: write_message(message) is not None,
    prepare=_prepare,
    writes_fields_of_other_roles=False,
    fit=_fit,
    finish=_finish,
)
