"""Payloads against the types of the SDK, lists within lists included."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NotRequired

from anthropic.types import MessageParam, TextBlockParam
from pydantic import TypeAdapter
from typing_extensions import TypedDict  # Pydantic wants this one before Python 3.12


class Request(TypedDict):
    system: NotRequired[str | Iterable[TextBlockParam]]
    messages: Iterable[MessageParam]


def validate(payload: Any) -> None:
    """Raises ValidationError. The types say Iterable, which is judged item by item when somebody asks for the items."""
    _exhaust(_adapter().validate_python(payload))


@cache
def _adapter() -> TypeAdapter[Request]:
    return TypeAdapter(Request)


def _exhaust(value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str):
        for one in value:
            _exhaust(one)
