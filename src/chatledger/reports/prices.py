"""The cost of a run by the price list of the package genai-prices, in dollars. It is imported here only.

The list comes with the package, with the dates on which prices changed. Nothing here asks a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

from chatledger.errors import InvalidArgument, MissingExtra
from chatledger.models import RunPrices, Usage

_READ_FROM_CACHE = (
    "cache_read_tokens",
    "cached_tokens",
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
)
"""The names under which `Usage.details` counts input tokens that a cache gave. They are among `input_tokens`."""
_ANTHROPIC = {"cache_read_input_tokens": "cache_read_tokens", "cache_creation_input_tokens": "cache_write_tokens"}
"""Anthropic counts these beside `input_tokens`, and not among them."""
_FOR_AN_HOUR = "cache_creation.ephemeral_1h_input_tokens"


def read_prices(prices: bool | RunPrices) -> RunPrices | None:
    """The function that the argument `prices` means. Raises InvalidArgument, and MissingExtra for True without the
    extra.
    """
    if prices is True:
        _require_extra()
        return list_price
    if prices is False:
        return None
    if not callable(prices):
        raise InvalidArgument("prices", f"must be True, False or a function, not {type(prices).__name__}")
    return prices


def _require_extra() -> None:
    try:
        import genai_prices  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "genai_prices":
            raise
        raise MissingExtra("prices", "prices=True") from None


def list_price(model: str, usage: Usage, moment: datetime) -> Decimal | None:
    """The cost of the usage at the prices of that time, as if it were one request. None if the list does not have the
    model, or if the usage lacks its input or output tokens or contradicts itself.
    """
    from genai_prices import Usage as Counts
    from genai_prices import calc_price

    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    details = usage.details or {}
    counts = {"output_tokens": usage.output_tokens, **_input(usage.input_tokens, details)}
    for provider, name in _names(model):
        try:
            priced = calc_price(Counts(**counts), name, provider_id=provider, genai_request_timestamp=moment)
        except (LookupError, ValueError):
            continue
        return priced.total_price
    return None


def _names(model: str) -> list[tuple[str | None, str]]:
    """The model as it is, and as `provider:model` or `provider/model`."""
    names: list[tuple[str | None, str]] = [(None, model)]
    for mark in ":/":
        provider, separator, name = model.partition(mark)
        if separator and provider and name:
            names.append((provider, name))
    return names


def _input(input_tokens: int, details: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
    """The input tokens, cached ones included, and the cached ones by kind."""
    beside = {name: details[key] for key, name in _ANTHROPIC.items() if key in details}
    if beside:
        counts = {"input_tokens": input_tokens + sum(beside.values()), **beside}
        return counts | ({"cache_write_1h_tokens": details[_FOR_AN_HOUR]} if _FOR_AN_HOUR in details else {})
    read = next((details[key] for key in _READ_FROM_CACHE if key in details), None)
    written = details.get("cache_write_tokens")
    cached = {"cache_read_tokens": read, "cache_write_tokens": written}
    return {"input_tokens": input_tokens, **{name: count for name, count in cached.items() if count is not None}}
