"""Bodies of requests: JSON in UTF-8, without the numbers that JSON does not have, as deep as the ledger stores and with
a limited number of values.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from chatledger.models.json import MAX_DEPTH, Place, scan
from chatledger.models.limits import MOST_DIGITS, MOST_VALUES
from chatledger.models.weight import in_thread
from chatledger.server.callers.request_cookies import PlainRequest
from chatledger.server.shares import enter

if TYPE_CHECKING:
    from fastapi._compat import ModelField

_DEEPEST = MAX_DEPTH + 32  # a payload of full depth stands inside a message, and that in a list of the body
_LARGE = 1 << 13
"""Bytes of a body that is read in a thread, so that the event loop goes on."""
_MOST_ERRORS = 20
"""Maximum number of mistakes that a problem lists."""
_NO_NUMBER = "is NaN, infinite or too large for a number of JSON"


class InvalidBody(HTTPException):
    """A body that does not fit its route. `errors` has the first mistakes with their places."""

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        self.errors = [dict(mistake) for mistake in errors[:_MOST_ERRORS]]
        super().__init__(400, "; ".join(f"{mistake['path']}: {mistake['detail']}" for mistake in self.errors[:3]))

    @classmethod
    def at(cls, path: str, detail: str) -> InvalidBody:
        """A body that is no JSON."""
        return cls([{"path": path, "detail": detail, "kind": "json_invalid"}])

    @classmethod
    def of(cls, errors: Sequence[Any]) -> InvalidBody:
        """The mistakes as Pydantic lists them."""
        first = [
            (".".join(map(str, mistake["loc"])), mistake["msg"], mistake["type"]) for mistake in errors[:_MOST_ERRORS]
        ]
        return cls([{"path": path, "detail": detail, "kind": kind} for path, detail, kind in first])


class JsonRequest(PlainRequest):
    """A request whose body is read once. `field` is what its route expects, which is checked in the same thread."""

    def __init__(self, scope: Scope, receive: Receive, field: ModelField | None) -> None:
        super().__init__(scope, receive)
        self._field = field

    async def json(self) -> Any:
        """Waits for the place of the request first: a parsed body takes many times the memory of its text."""
        body = await self.body()
        await enter(self)
        return read_body(body) if len(body) < _LARGE else await in_thread(lambda: self._read(body))

    def _read(self, body: bytes) -> Any:
        value = read_body(body)
        if self._field is not None:
            value, errors = self._field.validate(value, loc=("body",))
            if errors:
                raise InvalidBody.of(errors)
        return value


def read_body(body: bytes) -> Any:
    """Raises InvalidBody with the place of what is no JSON, and 413 for too many values."""
    _require_bounded(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidBody.at("body", f"byte {error.start} is not UTF-8") from None
    return _parse(text)


def _require_bounded(body: bytes) -> None:
    count = scan(body, deepest=_DEEPEST)
    if count.deepest > _DEEPEST:
        raise InvalidBody.at("body", f"nested deeper than {_DEEPEST}")
    if count.values > MOST_VALUES:
        raise HTTPException(413, f"the body has more than {MOST_VALUES:,} values")
    if count.digits > MOST_DIGITS:
        what = f"numbers of more than 30 digits have more than {MOST_DIGITS:,} digits together"
        raise HTTPException(413, f"body.{count.long_number}: {what}; the first one begins here")


def _parse(text: str) -> Any:
    try:
        return _load(text, parse_constant=_refuse, parse_float=_finite)
    except ValueError:
        raise InvalidBody.at(_place_of_no_number(_load(text, parse_int=_short)), _NO_NUMBER) from None


def _load(text: str, **readers: Any) -> Any:
    try:
        return json.loads(text, **readers)
    except json.JSONDecodeError as error:
        raise InvalidBody.at(f"body.{error.pos}", f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise InvalidBody.at("body", f"nested deeper than {_DEEPEST}") from None


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
