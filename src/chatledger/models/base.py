"""The base of all models: frozen, without unknown fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="constants")


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("outside the years 1 to 9999 in UTC") from error


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
"""A time with its zone, kept in UTC. A time without a zone is refused, since it could mean any of 26 hours."""
