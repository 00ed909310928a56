"""Bodies of requests: JSON in UTF-8, without the numbers that JSON does not have and as deep as the ledger stores."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from chatledger.models.json import MAX_DEPTH, Place, json_problem

_DEEPEST = MAX_DEPTH + 32  # a payload of full depth stands inside a message, and that in a list of the body
_NO_NUMBER = "is NaN, infinite or too large for a number of JSON"


class InvalidBody(HTTPException):
    """A body that is no JSON. `errors` has the place."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(400, f"{path}: {detail}")
        self.errors = [{"path": path, "detail": detail, "kind": "json_invalid"}]


class JsonRequest(Request):
    async def json(self) -> Any:
        return read_body(await self.body())


def read_body(body: bytes) -> Any:
    """Raises InvalidBody with the place of what is no JSON."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBody("body", f"byte {error.start} is not UTF-8") from None
    value = _parse(text)
    if text.count("[") + text.count("{") > _DEEPEST:
        problem = json_problem(value, max_depth=_DEEPEST)
        if problem is not None:
            raise InvalidBody("body" + problem[0].removeprefix("$"), problem[1])
    return value


def _parse(text: str) -> Any:
    try:
        return _load(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError:
        raise InvalidBody(_place_of_no_number(_load(text, parse_int=_short)), _NO_NUMBER) from None


def _load(text: str, **readers: Any) -> Any:
    try:
        return json.loads(text, **readers)
    except json.JSONDecodeError as error:
        raise InvalidBody(f"body.{error.pos}", f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise InvalidBody("body", f"nested deeper than {_DEEPEST}") from None


def _refuse(name: str) -> float:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


def _short(digits: str) -> float:
    """The integer, or infinity for one that Python does not read."""
    return int(digits) if len(digits.lstrip("-")) <= sys.get_int_max_str_digits() else math.inf


def _place_of_no_number(value: Any) -> str:
    """The path to a number that is not finite, as in `body.metadata.0`."""
    pending: list[tuple[Any, Place]] = [(value, (None, "body"))]
    while pending:
        item, place = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return _path_of(place)
        steps = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        pending.extend((child, (place, step)) for step, child in steps)
    return "body"  # only a value that a later key of the same name replaced


def _path_of(place: Place) -> str:
    steps, around = [str(place[1])], place[0]
    while around is not None:
        steps.append(str(around[1]))
        around = around[0]
    return ".".join(reversed(steps))
