"""JSON that every client can read."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse


class JsonResponse(JSONResponse):
    """JSON in ASCII, since a stored text may hold half of a surrogate pair, which no encoding of Unicode has. NaN and
    the infinities, which a stored JSON value may hold and JSON does not have, become null.
    """

    def render(self, content: Any) -> bytes:
        return to_json(content).encode("ascii")


def to_json(content: Any) -> str:
    """Models are written field by field: Pydantic's own writer stops at half the depth that the ledger stores, and
    replaces half of a surrogate pair in a key.
    """
    try:
        return json.dumps(content, allow_nan=False, default=_plain, separators=(",", ":"))
    except ValueError:
        return json.dumps(plain(content), separators=(",", ":"))


def plain(content: Any) -> Any:
    """The JSON value of models, in which NaN and the infinities are null."""
    return json.loads(json.dumps(content, default=_plain), parse_constant=lambda name: None)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return vars(value)  # its fields: no model of an answer has others
    if isinstance(value, date):  # a time too
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
