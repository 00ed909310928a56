"""Repairs a history for a provider that would refuse it as it is stored, and lists the repairs.

    view, repairs = model_view(codec, messages)
    view.payload          a payload that the provider's API accepts
    view.find_losses()    what the format cannot express of the repaired messages
    repairs               the changes; empty for a history that the API accepts as it is

No API accepts an empty list of messages, so a history without a message that can be sent raises NothingToSend.

Repairs change copies of messages, which the format's codec then writes; stored data never changes. Last, the keys that
a request may not have are left out. A provider is defined by a few values and two or three functions (`provider.py`).
Tests check two laws: a history that the provider accepts is written like the stored view, and a repaired history needs
no repair.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatledger.errors import NothingToSend, UnknownFormat
from chatledger.formats.codec import Codec
from chatledger.formats.losses.measure import LossesLater, write
from chatledger.formats.model_view.exchanges import Exchange, MessageOrExchange, pair, with_ids
from chatledger.formats.model_view.message import repair_message
from chatledger.formats.model_view.provider import Provider
from chatledger.formats.model_view.repairs import CUSTOM, KEYS, RepairLog
from chatledger.models import ChatMessage, Loss, Repair

__all__ = ["INSTRUCTIONS", "get_provider", "is_refusal", "model_view", "provider_names", "repair"]

INSTRUCTIONS = "instructions are not sent as a message"
_SHOWN_KEYS = 8

_PROVIDERS = {
    "anthropic": "chatledger.formats.model_view.anthropic:ANTHROPIC",
    "openai-chat": "chatledger.formats.model_view.openai_chat:OPENAI_CHAT",
    "openai-responses": "chatledger.formats.model_view.openai_responses:OPENAI_RESPONSES",
}


def provider_names() -> list[str]:
    """The formats that belong to a provider."""
    return sorted(_PROVIDERS)


def get_provider(name: str) -> Provider:
    """Raises UnknownFormat, with the known names, for a format that belongs to no provider."""
    if name not in _PROVIDERS:
        names = ", ".join(provider_names())
        raise UnknownFormat(name, f"no provider accepts the format {name!r}; a model view exists for {names}")
    module, attribute = _PROVIDERS[name].split(":")
    provider: Provider = getattr(importlib.import_module(module), attribute)
    return provider


@dataclass(frozen=True, slots=True)
class ModelView:
    """The payload for a provider."""

    payload: Any
    losses: LossesLater
    stored: bool
    """Whether all messages of the history have a seq."""

    def find_losses(self) -> tuple[Loss, ...]:
        """What the format cannot express. A generated message has no seq: it is not part of the history, so its losses
        do not count.
        """
        return tuple(loss for loss in self.losses() if loss.seq is not None or not self.stored)


def model_view(codec: Codec, messages: Sequence[ChatMessage]) -> tuple[ModelView, list[Repair]]:
    """The messages as the provider behind the format accepts them.

    Raises UnknownFormat as `get_provider`, and NothingToSend if the payload would have no message.
    """
    provider = get_provider(codec.name)
    repaired, repairs = repair(provider, messages)
    losses = LossesLater.of(codec, repaired)
    payload, repairs = _without_odd_keys(codec, provider, repaired, repairs)
    if _is_empty(payload, provider):
        raise NothingToSend(codec.name, _reasons(messages, repairs))
    return ModelView(payload, losses, all(message.seq is not None for message in messages)), repairs


def _without_odd_keys(
    codec: Codec, provider: Provider, messages: Sequence[ChatMessage], repairs: list[Repair]
) -> tuple[Any, list[Repair]]:
    """The messages as the provider's format, without the keys that a request may not have.

    Only messages of the format itself have such keys, in their residuals. Each is written alone to see which it has.
    """
    payload, removed = provider.keys.fit(write(codec, messages).payload)
    log = RepairLog(repairs)
    for message in messages if removed else ():
        if message.format == provider.name:
            _, keys = provider.keys.fit(write(codec, [message]).payload)
            if keys:
                log.add(KEYS, message, f"keys that a request may not have: left out: {_listed(keys)}")
    return payload, log.in_order()


def _listed(keys: Sequence[str]) -> str:
    return ", ".join([key[:80] for key in keys[:_SHOWN_KEYS]] + ["…"] * (len(keys) > _SHOWN_KEYS))


def _is_empty(payload: Any, provider: Provider) -> bool:
    listed = payload.get(provider.messages_key) if isinstance(payload, dict) else payload
    return listed is None or listed == []


def _reasons(messages: Sequence[ChatMessage], repairs: Sequence[Repair]) -> list[tuple[int | None, str]]:
    """Why each message is not sent: its last repair. Only instructions have none, since they are sent elsewhere."""
    left_out = {repair.seq: repair.detail for repair in repairs}
    return [(message.seq, left_out.get(message.seq, INSTRUCTIONS)) for message in messages]


def repair(provider: Provider, messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[Repair]]:
    """Messages that the provider accepts, and the repairs. Takes linear time."""
    log = RepairLog()
    seen = [repaired for message in messages if (repaired := repair_message(message, provider, log)) is not None]
    items = [item for paired in pair(seen, log) if (item := _fit_item(paired, provider, log)) is not None]
    return provider.finish(with_ids(items, provider, log), log), log.in_order()


def _fit_item(item: MessageOrExchange, provider: Provider, log: RepairLog) -> MessageOrExchange | None:
    """The message as the provider accepts it; None if nothing is left. Messages of an exchange are never left out."""
    if isinstance(item, ChatMessage):
        return provider.fit(item, log)
    answers = [(idx, provider.fit(result, log) or result) for idx, result in item.answers]
    return Exchange(provider.fit(item.asker, log) or item.asker, answers)


def is_refusal(repair: Repair) -> bool:
    """Whether the provider would have refused the history without the repair. Custom messages are never sent to it."""
    return repair.code != CUSTOM
