"""The model view of real conversations, for each provider: what the checker finds nothing in, and is stable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, Ledger, ToolCall
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view, provider_names
from chatledger.models.json import same_json
from tests.data.test_recorded_requests import recorded
from tests.formats.model_view.test_laws import body
from tests.formats.provider_checker import refusals
from tests.formats.sdk_types import validate


def conversations(data: Path) -> dict[str, list[ChatMessage]]:
    """Every conversation of the sets as a lenient import stores it."""
    found = {**_decoded("openai-chat", _message_lists(data)), **_sharegpt(data), **_paths_of_trees(data)}
    for where, provider, request, _ in recorded(data):
        payload: Any = request["messages"] if provider == "openai-chat" else request.get("input", request)
        found |= _decoded(provider, {where: payload})
    return found


def _decoded(format: str, payloads: dict[str, Any]) -> dict[str, list[ChatMessage]]:  # noqa: A002
    return {name: get_codec(format).decode(payload, rules="lenient").messages for name, payload in payloads.items()}


def _message_lists(data: Path) -> dict[str, Any]:
    [tau] = (data / "tau_bench_airline").glob("*.json")
    found = {f"tau {number}": record["traj"] for number, record in enumerate(json.loads(tau.read_bytes()))}
    for file in sorted((data / "swe_agent").glob("*.traj")):
        found[file.name] = json.loads(file.read_bytes())["history"]
    return found


_SPEAKERS = {"system": "system", "human": "user", "gpt": "assistant", "observation": "tool"}


def _sharegpt(data: Path) -> dict[str, list[ChatMessage]]:
    files = sorted((data / "llamafactory_glaive").glob("*.json"))
    return {
        f"{file.name} {number}": [_sharegpt_message(turn) for turn in record["conversations"]]
        for file in files
        for number, record in enumerate(json.loads(file.read_bytes()))
    }


def _sharegpt_message(turn: dict[str, str]) -> ChatMessage:
    if turn["from"] != "function_call":
        return ChatMessage(role=_SPEAKERS[turn["from"]], content=turn["value"])
    said = json.loads(turn["value"])
    return ChatMessage(role="assistant", tool_calls=[ToolCall(name=said["name"], arguments=said["arguments"])])


def _paths_of_trees(data: Path) -> dict[str, list[ChatMessage]]:
    """Each path from a prompt to its last reply."""
    [file] = (data / "oasst_trees").glob("*.jsonl")
    paths: dict[str, list[ChatMessage]] = {}
    for line in file.read_text().splitlines():
        for path in _paths(json.loads(line)["prompt"]):
            roles = ["user" if node["role"] == "prompter" else "assistant" for node in path]
            said = zip(roles, path, strict=True)
            paths[path[-1]["message_id"]] = [ChatMessage(role=role, content=node["text"]) for role, node in said]
    return paths


def _paths(node: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    if not node["replies"]:
        yield [node]
    for reply in node["replies"]:
        yield from ([node, *rest] for rest in _paths(reply))


@pytest.mark.parametrize("provider", provider_names())
def test_every_conversation_is_viewed_as_the_provider_takes_it(data: Path, provider: str) -> None:
    codec = get_codec(provider)
    refused: dict[str, list[str]] = {}
    for name, messages in conversations(data).items():
        numbered = [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]
        encoded, repairs = model_view(codec, numbered)
        found = refusals(provider, body(provider, encoded.payload))
        again, more = model_view(codec, codec.decode(encoded.payload).messages)
        if more or not same_json(again.payload, encoded.payload):
            found.append(f"repaired again: {more}")
        if not repairs and not same_json(encoded.payload, codec.encode(numbered).payload):
            found.append("changed without a word")
        if found:
            refused[name] = found
    assert refused == {}


def test_what_a_provider_took_is_untouched(data: Path) -> None:
    """But for an empty list of calls, which Mistral took and OpenAI does not, and for what stands open on purpose."""
    repaired: Counter[tuple[str, str]] = Counter()
    for where, provider, request, refused in recorded(data):
        payload: Any = request["messages"] if provider == "openai-chat" else request.get("input", request)
        messages = get_codec(provider).decode(payload).messages
        encoded, repairs = model_view(get_codec(provider), messages)
        if not refused and not repairs:
            assert same_json(encoded.payload, get_codec(provider).encode(messages).payload), where
        repaired.update({(provider, repair.code) for repair in repairs} if not refused else ())
    assert repaired == {("openai-chat", "empty"): 2, ("openai-responses", "orphan-result"): 2}


async def test_stored_conversations_are_viewed_alike(ledger: Ledger, data: Path) -> None:
    for number, (name, messages) in enumerate(_decoded("openai-chat", _message_lists(data)).items()):
        await ledger.threads.create(str(number))
        await ledger.messages.append(str(number), messages, rules="lenient")
        for provider in provider_names():
            viewed = await ledger.history(str(number), format=provider, view="model")
            assert refusals(provider, body(provider, viewed.payload)) == [], name
            validate(provider, viewed.payload)
