"""The kinds of values that a message file holds, checked when an object is built and never converted.

A dict that goes in comes out equal, so a number given as text is refused rather than read as a number, and 1 second
stays 1 and does not become 1.0. Free JSON is copied on its way in and out: what the caller keeps is never shared.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from chatledger.models.json import JsonObject, JsonValue, dumps, loads


def detached(value: JsonValue) -> JsonValue:
    """An equal value that shares nothing with this one. Without recursion of ours, so as deep as we keep JSON."""
    return loads(dumps(value)) if isinstance(value, (dict, list)) else value


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


Name = Annotated[str, AfterValidator(_not_empty)]
"""Not by Pydantic's `min_length`, which refuses a lone surrogate: names are people's words as well."""
Level = Annotated[int, Field(strict=True, ge=1, le=5)]
Count = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True)]
Number = Whole | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Seconds = Annotated[int, Field(strict=True, ge=0)] | Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
FreeObject = Annotated[JsonObject, AfterValidator(detached)]

HistoryMode = Literal["none", "include", "summary"]
HistoryEntries = Annotated[list[JsonObject], AfterValidator(detached)]
History = HistoryEntries | HistoryMode
