"""Times in queries: ISO texts, as the description of the API has them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator


def _refuse_number(text: str) -> str:
    """Pydantic takes a number for the seconds since 1970, or for milliseconds if it is large."""
    try:
        float(text)
    except ValueError:
        return text
    raise ValueError("must be a time such as 2026-01-31T08:00:00Z, and not a number")


Time = Annotated[datetime, BeforeValidator(_refuse_number)]
"""A time in a query."""
