"""JSON that every client can read."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from chatledger.models import ChatMessage
from chatledger.models.weight import apart


class JsonResponse(JSONResponse):
    """JSON in ASCII, since a stored text may hold half of a surrogate pair, which no encoding of Unicode has. NaN and
    the infinities, which a stored JSON value may hold and JSON does not have, become null.
    """

    def render(self, content: Any) -> bytes:
        return to_json(content).encode("ascii")


async def respond(content: Any, status: int) -> Response:
    """The response with an answer, written in a thread unless it is light."""
    body = await apart(lambda: in_pieces(content).encode("ascii"), content)
    return Response(body, status, media_type=JsonResponse.media_type)


def in_pieces(content: Any) -> str:
    """The JSON of an answer. Each element of its lists, and of those of a payload, is written by itself: while Python
    writes a value, no other thread runs, and the event loop waits too.
    """
    if isinstance(content, BaseModel):
        content = _fields_of(content)
    if not isinstance(content, dict):
        return _list(content)
    parts = [(name, _fields(value) if isinstance(value, dict) else _list(value)) for name, value in content.items()]
    return "{" + ",".join([f"{to_json(name)}:{text}" for name, text in parts]) + "}"


def _fields(value: dict[str, Any]) -> str:
    return "{" + ",".join([f"{to_json(name)}:{_list(member)}" for name, member in value.items()]) + "}"


def _list(value: Any) -> str:
    return f"[{','.join(map(to_json, value))}]" if isinstance(value, list) else to_json(value)


def to_json(content: Any) -> str:
    """Models are written field by field: Pydantic's own writer stops at half the depth that the ledger stores, and
    replaces half of a surrogate pair in a key.
    """
    try:
        return _WRITER.encode(content)
    except ValueError:
        return json.dumps(plain(content), separators=(",", ":"))


def to_utf8(content: Any) -> bytes:
    """As `to_json`, with each character as it is, but for half of a surrogate pair, and for what some clients take for
    the end of a line.
    """
    try:
        text = _UTF8.encode(content)
    except ValueError:
        text = json.dumps(plain(content), ensure_ascii=False, separators=(",", ":"))
    for end in _LINE_ENDS:
        text = text.replace(end, f"\\u{ord(end):04x}")
    return text.encode("utf-8", "backslashreplace")


def plain(content: Any) -> Any:
    """The JSON value of models, in which NaN and the infinities are null."""
    return json.loads(json.dumps(content, default=_plain), parse_constant=lambda name: None)


def _fields_of(model: BaseModel) -> dict[str, Any]:
    """The fields of a model: no model of an answer has others, but a message is easier to read with its text."""
    fields = vars(model)
    if isinstance(model, ChatMessage):
        return {"role": model.role, "content": model.content, "text": model.text, **fields}
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _fields_of(value)
    if isinstance(value, date):  # a time too
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_WRITER = json.JSONEncoder(allow_nan=False, default=_plain, separators=(",", ":"))
_LINE_ENDS = "\x85\u2028\u2029"
_UTF8 = json.JSONEncoder(allow_nan=False, ensure_ascii=False, default=_plain, separators=(",", ":"))
