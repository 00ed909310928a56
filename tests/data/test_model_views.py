"""The model view of every imported thread, for each provider: the checker finds nothing in it, and it is stable."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from chatledger import ChatMessage, Ledger
from chatledger.errors import UnknownFormat
from chatledger.formats import get_codec
from chatledger.formats.model_view import model_view, provider_names
from chatledger.models.json import same_json
from chatledger.transfer.report import ImportReport
from chatledger.types import PromptFormat
from tests.data.test_importers import SETS, all_threads, bring_file, files_of
from tests.data.test_recorded_requests import recorded
from tests.formats.model_view.test_laws import body
from tests.formats.provider_checker import refusals
from tests.formats.sdk_types import validate

RECORDED = "pydantic_ai_http"
THREADS = {"tau_bench_airline": 20, "llamafactory_glaive": 600, "oasst_trees": 99, "swe_agent": 3, RECORDED: 116}


@pytest.mark.parametrize("name", [*SETS, RECORDED])
async def test_every_imported_thread_is_viewed_as_each_provider_takes_it(ledger: Ledger, data: Path, name: str) -> None:
    for file in files_of(data, name):
        with suppress(UnknownFormat):  # recordings of providers that we do not speak, of which nothing is stored
            await bring_file(ledger, file, ImportReport())
    threads = await all_threads(ledger)
    assert len(threads) == THREADS[name]
    refused = {}
    for thread in threads:
        for branch in await ledger.branches.list(thread.thread_id):
            messages = (await ledger.messages.history(thread.thread_id, branch=branch.branch)).messages
            for provider in provider_names():
                found = problems(provider, messages)
                if found:
                    refused[thread.thread_id, branch.branch, provider] = found
    assert refused == {}


def problems(provider: str, messages: list[ChatMessage]) -> list[str]:
    codec = get_codec(provider)
    encoded, repairs = model_view(codec, messages)
    validate(provider, encoded.payload)
    found = refusals(provider, body(provider, encoded.payload))
    again, more = model_view(codec, codec.decode(encoded.payload).messages)
    if more or not same_json(again.payload, encoded.payload):
        found.append(f"repaired again: {more}")
    if not repairs and not same_json(encoded.payload, codec.encode(messages).payload):
        found.append("changed without a word")
    return found


async def test_the_ledger_gives_the_same_view(ledger: Ledger, data: Path) -> None:
    for file in files_of(data, "tau_bench_airline"):
        await bring_file(ledger, file, ImportReport())
    for thread in await all_threads(ledger):
        messages = (await ledger.messages.history(thread.thread_id)).messages
        for provider in provider_names():
            viewed = await ledger.messages.prompt(thread.thread_id, cast(PromptFormat, provider))
            encoded, repairs = model_view(get_codec(provider), messages)
            assert same_json(viewed.payload, encoded.payload)
            assert list(viewed.repairs) == repairs


def test_a_request_that_a_provider_accepted_is_unchanged(data: Path) -> None:
    """But for an empty list of calls, which Mistral took and OpenAI does not, for a null that OpenAI took although its
    type has none, and for what stands open on purpose.
    """
    repaired: Counter[tuple[str, str]] = Counter()
    for where, provider, request, refused in recorded(data):
        payload: Any = request["messages"] if provider == "openai-chat" else request.get("input", request)
        messages = get_codec(provider).decode(payload).messages
        encoded, repairs = model_view(get_codec(provider), messages)
        if not refused and not repairs:
            assert same_json(encoded.payload, get_codec(provider).encode(messages).payload), where
        repaired.update({(provider, repair.code) for repair in repairs} if not refused else ())
    assert repaired == {
        ("openai-chat", "empty"): 2,
        ("openai-responses", "keys"): 2,
        ("openai-responses", "orphan-result"): 2,
    }
