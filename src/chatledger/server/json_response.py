"""JSON that every client can read."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.responses import JSONResponse


class JsonResponse(JSONResponse):
    """JSON in ASCII, since a stored text may hold half of a surrogate pair, which no encoding of Unicode has. NaN and
    the infinities, which a stored JSON value may hold and JSON does not have, become null.
    """

    def render(self, content: Any) -> bytes:
        return to_json(content).encode("ascii")


def to_json(content: Any) -> str:
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
