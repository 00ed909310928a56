"""The requests that the three providers refuse, from their own error messages and independent of our code.

`refusals(provider, body)` takes a request body as it is sent and gives a sentence for each thing that is unpaired, out
of order, empty or spelled wrongly. A body that a provider took gives none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")


def refusals(provider: str, body: Body) -> list[str]:
    return list(_CHECKERS[provider](body))


# --- Chat completions -------------------------------------------------------------------------------------------------


def _openai_chat(body: Body) -> Iterator[str]:
    waiting: list[str] = []
    function: str | None = None
    for place, message in enumerate(body["messages"]):
        role = message.get("role")
        where = f"messages[{place}]"
        if role not in ("system", "developer", "user", "assistant", "tool", "function"):
            yield f"{where}: unknown role {role!r}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"{where}: a result of no call that waits: {message.get('tool_call_id')!r}"
            else:
                waiting.remove(message["tool_call_id"])
        elif role == "function":
            if function is None or message.get("name") != function:
                yield f"{where}: a function result without its function_call"
            function = None
        else:
            if waiting or function is not None:
                yield f"{where}: calls wait for their results: {waiting or function}"
            waiting, function = [], None
            if message.get("name") is not None and not SPEAKER.fullmatch(message["name"]):
                yield f"{where}: name {message['name']!r}"
        yield from _chat_content(message, where)
        if role != "assistant" and (message.get("tool_calls") or message.get("function_call")):
            yield f"{where}: calls on a {role} message"
        if message.get("tool_calls") is not None:
            yield from _chat_calls(message["tool_calls"], waiting, where)
        if message.get("function_call") is not None:
            function = message["function_call"]["name"]
            yield from _function(function, message["function_call"].get("arguments"), where)
    if waiting or function is not None:
        yield f"the end: calls wait for their results: {waiting or function}"


def _chat_content(message: Body, where: str) -> Iterator[str]:
    said = ("tool_calls", "function_call", "refusal", "audio")
    content = message.get("content")
    if content is None and not (message.get("role") == "assistant" and any(message.get(key) for key in said)):
        yield f"{where}: no content"
    if content == []:
        yield f"{where}: an empty list of parts"
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "input_audio" and part["input_audio"].get("format") not in ("wav", "mp3"):
            yield f"{where}: audio of a kind that is not known"


def _chat_calls(calls: list[Body], waiting: list[str], where: str) -> Iterator[str]:
    for call in calls:  # Mistral takes an empty list, OpenAI does not: what was taken somewhere passes here
        kind = call.get("type", "function")
        if kind not in ("function", "custom"):
            yield f"{where}: a call of type {kind!r}"
            continue
        id_ = call.get("id")
        if not isinstance(id_, str) or not 1 <= len(id_) <= 64:
            yield f"{where}: call id {id_!r}"
        if id_ in waiting:  # OpenAI looks for results right behind a call, so a later turn may have its id
            yield f"{where}: call id {id_!r} twice"
        waiting.append(str(id_))
        if kind == "function":
            yield from _function(call[kind]["name"], call[kind].get("arguments"), where)
        else:
            yield from _named(call[kind]["name"], call[kind].get("input"), where)


def _function(name: str, arguments: Any, where: str) -> Iterator[str]:
    """Many servers of the format parse the arguments, and fill them into the model's template as an object."""
    yield from _named(name, arguments, where)
    if isinstance(arguments, str) and not _is_object(arguments):
        yield f"{where}: arguments that are no object {arguments!r}"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _named(name: str, arguments: Any, where: str) -> Iterator[str]:
    if not TOOL_NAME.fullmatch(name):
        yield f"{where}: tool name {name!r}"
    if not isinstance(arguments, str):
        yield f"{where}: arguments {arguments!r}"


# --- Anthropic --------------------------------------------------------------------------------------------------------


def _anthropic(body: Body) -> Iterator[str]:
    system = body.get("system", [{"type": "text", "text": "none is given"}])
    for block in system if isinstance(system, list) else [{"type": "text", "text": system}]:
        yield from _blank(block, "system")
    if not system:
        yield "system: no content"
    before: str | None = None
    waiting: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(body["messages"]):
        where, role = f"messages[{place}]", message.get("role")
        if role not in ("user", "assistant", "system"):
            yield f"{where}: unknown role {role!r}"
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"{where}: no content"
            continue
        yield from (problem for block in blocks for problem in _blank(block, where))
        yield from _results(blocks, waiting, where)
        waiting = []
        if role == "assistant":
            yield from _tool_uses(blocks, seen, waiting, where)
            yield from _thinking(blocks, where)
        elif any(block["type"] == "tool_use" for block in blocks):
            yield f"{where}: calls on a {role} message"
        if role == before and role != "system":
            yield f"{where}: two {role} messages in a row"
        before = role
    if waiting:
        yield f"the end: calls wait for their results: {waiting}"
    last = body["messages"][-1] if body["messages"] else {}
    text = _last_text(last.get("content")) if last.get("role") == "assistant" else None
    if text is not None and text != text.rstrip():
        yield "the end: the last text ends with white space"


def _last_text(content: Any) -> str | None:
    if isinstance(content, str) or not content:
        return content or None
    return content[-1]["text"] if content[-1]["type"] == "text" else None


def _blank(block: Body, where: str) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield f"{where}: a text without a word"
    if block["type"] == "tool_result" and isinstance(block.get("content"), list):
        yield from (problem for inner in block["content"] for problem in _blank(inner, where))


def _results(blocks: list[Body], waiting: list[str], where: str) -> Iterator[str]:
    leading = True
    missing = list(waiting)
    for block in blocks:
        if block["type"] != "tool_result":
            leading = False
            continue
        if not leading:
            yield f"{where}: a result after other content"
        if block["tool_use_id"] not in missing:
            yield f"{where}: a result of no call in the message before: {block['tool_use_id']!r}"
        else:
            missing.remove(block["tool_use_id"])
    if missing:
        yield f"{where}: calls without a result in this message: {missing}"


def _tool_uses(blocks: list[Body], seen: set[str], waiting: list[str], where: str) -> Iterator[str]:
    served: list[Any] = []
    for block in blocks:
        if block["type"].endswith("_tool_use"):
            served.append(block.get("id"))
        elif block["type"].endswith("_tool_result") and block.get("tool_use_id") not in served:
            yield f"{where}: a {block['type']} without its call"
        if block["type"] != "tool_use":
            continue
        if not ANTHROPIC_ID.fullmatch(block["id"]):
            yield f"{where}: call id {block['id']!r}"
        if block["id"] in seen:
            yield f"{where}: call id {block['id']!r} twice"
        if not ANTHROPIC_NAME.fullmatch(block["name"]):
            yield f"{where}: tool name {block['name']!r}"
        if not isinstance(block.get("input"), dict):
            yield f"{where}: input {block.get('input')!r}"
        seen.add(block["id"])
        waiting.append(block["id"])


def _thinking(blocks: list[Body], where: str) -> Iterator[str]:
    for block in blocks:
        if block["type"] == "thinking" and not block.get("signature"):
            yield f"{where}: thinking that nobody signed"
    if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        yield f"{where}: thinking at the end of a message"


# --- Responses --------------------------------------------------------------------------------------------------------

_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_INPUTS = {*_CALLS.values(), "item_reference"}


def _openai_responses(body: Body) -> Iterator[str]:
    if isinstance(body["input"], str):
        return
    continues = body.get("previous_response_id") is not None or body.get("conversation") is not None
    seen: set[str] = set()
    ids: set[str] = set()
    waiting: dict[str, str] = {}
    items = body["input"]
    for place, item in enumerate(items):
        where = f"input[{place}]"
        kind = item.get("type") or "message"
        if item.get("id") is not None and kind != "item_reference":
            if item["id"] in ids:
                yield f"{where}: item id {item['id']!r} twice"
            ids.add(item["id"])
        if kind in _CALLS:
            yield from _response_call(item, kind, seen, waiting, where)
        elif kind in _CALLS.values():
            if item.get("output") in (None, []):
                yield f"{where}: no output"
            if waiting.pop(item.get("call_id", ""), None) != kind and not continues:
                yield f"{where}: an output of no call that waits: {item.get('call_id')!r}"
        elif kind == "message":
            if item.get("role") != "assistant" and waiting:
                yield f"{where}: calls wait for their outputs: {sorted(waiting)}"
            if item.get("role") not in ("system", "developer", "user", "assistant"):
                yield f"{where}: unknown role {item.get('role')!r}"
            if item.get("content") in (None, []):
                yield f"{where}: no content"
        elif kind == "reasoning" and not _is_output(items[place + 1] if place + 1 < len(items) else None):
            yield f"{where}: reasoning without the item that it led to"
    if waiting:
        yield f"the end: calls wait for their outputs: {sorted(waiting)}"


def _response_call(item: Body, kind: str, seen: set[str], waiting: dict[str, str], where: str) -> Iterator[str]:
    id_ = item.get("call_id")
    if not isinstance(id_, str) or not 1 <= len(id_) <= 64:
        yield f"{where}: call id {id_!r}"
    if id_ in seen:
        yield f"{where}: call id {id_!r} twice"
    if kind == "function_call":
        yield from _function(item["name"], item.get("arguments"), where)
    else:
        yield from _named(item["name"], item.get("input"), where)
    seen.add(str(id_))
    waiting[str(id_)] = _CALLS[kind]


def _is_output(item: Body | None) -> bool:
    """Whether a model gave the item: an easy message is somebody's own words."""
    if item is None or item.get("type") in _INPUTS:
        return False
    if (item.get("type") or "message") == "message":
        return item.get("role") == "assistant" and item.get("id") is not None
    return True


_CHECKERS = {"openai-chat": _openai_chat, "anthropic": _anthropic, "openai-responses": _openai_responses}
