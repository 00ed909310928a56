"""What a provider accepts: a history repaired for it, with an account of each repair.

    encoded, repairs = model_view(codec, messages)
    encoded.payload   what the provider's API takes
    repairs           what was done; nothing for a history that it would have taken as it is

Repairs are made on messages, which the format's codec then writes; a provider is a handful of values and two or three
functions (`provider.py`). Nothing here changes what is stored. Two laws hold, and tests hold them: a history that the
provider takes is written as the stored view has it, and a repaired history needs no repair.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace

from chatledger.errors import UnknownFormat
from chatledger.formats.codec import Codec, Encoded
from chatledger.formats.model_view.fitting import fit_alone
from chatledger.formats.model_view.ids import with_ids
from chatledger.formats.model_view.pairing import Exchange, Item, pair
from chatledger.formats.model_view.provider import Provider
from chatledger.formats.model_view.repairs import CUSTOM, RepairLog
from chatledger.models import ChatMessage, Repair

__all__ = ["get_provider", "is_refusal", "model_view", "provider_names", "repair"]

_PROVIDERS = {
    "anthropic": "chatledger.formats.model_view.anthropic:ANTHROPIC",
    "openai-chat": "chatledger.formats.model_view.openai_chat:OPENAI_CHAT",
    "openai-responses": "chatledger.formats.model_view.openai_responses:OPENAI_RESPONSES",
}


def provider_names() -> list[str]:
    """The formats that a provider stands behind."""
    return sorted(_PROVIDERS)


def get_provider(name: str) -> Provider:
    """Raises UnknownFormat, with the names there are, for a format that no provider stands behind."""
    if name not in _PROVIDERS:
        names = ", ".join(provider_names())
        raise UnknownFormat(name, f"{name!r} has no provider behind it; a model's view is to be had for {names}")
    module, attribute = _PROVIDERS[name].split(":")
    provider: Provider = getattr(importlib.import_module(module), attribute)
    return provider


def model_view(codec: Codec, messages: Sequence[ChatMessage]) -> tuple[Encoded, list[Repair]]:
    """The messages as the provider behind the format accepts them. Raises UnknownFormat as `get_provider`."""
    repaired, repairs = repair(get_provider(codec.name), messages)
    encoded = codec.encode(repaired)
    if any(message.seq is None for message in messages):
        return encoded, repairs
    # What was made here has no seq, and loses nothing by not being said.
    return replace(encoded, losses=[loss for loss in encoded.losses if loss.seq is not None]), repairs


def repair(provider: Provider, messages: Sequence[ChatMessage]) -> tuple[list[ChatMessage], list[Repair]]:
    """The messages without what the provider would refuse, and what was done to them. Linear in the messages."""
    log = RepairLog()
    seen = [fit for message in messages if (fit := fit_alone(message, provider, log)) is not None]
    items = [item for paired in pair(seen, log) if (item := _fit_item(paired, provider, log)) is not None]
    return provider.finish(with_ids(items, provider, log), log), log.in_order()


def _fit_item(item: Item, provider: Provider, log: RepairLog) -> Item | None:
    """What the provider makes of a message, when it is known whether it is a result. Nothing of an exchange goes."""
    if isinstance(item, ChatMessage):
        return provider.fit(item, log)
    answers = [(idx, provider.fit(result, log) or result) for idx, result in item.answers]
    return Exchange(provider.fit(item.asker, log) or item.asker, answers)


def is_refusal(repair: Repair) -> bool:
    """Whether the provider would have refused what was repaired, and not merely never seen it."""
    return repair.code != CUSTOM
