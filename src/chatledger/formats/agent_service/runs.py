"""A service's requests as the ledger's records: the message and the run of a UserInput, a score of its Feedback.

Credentials are never stored. Agents get them in `agent_config`. So a key in it, at any depth, is left out with its
value if its letters contain one of SECRET_WORDS or end with one of SECRET_ENDINGS, ignoring case and other characters:
`OPENAI_API_KEY`, `x-api-key`, `dbPassword`, `hf_token`; but not `max_tokens`.
"""

from __future__ import annotations

import re
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.agent_service.read import fields_of
from chatledger.formats.wire.plain import require_json
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Feedback as LedgerFeedback
from chatledger.models.json import JsonValue

SECRET_WORDS = ("apikey", "secret", "password", "passwd", "passphrase", "credential", "authorization", "bearer")
SECRET_ENDINGS = ("token", "accesskey", "accesskeyid", "privatekey")

_CONFIG = "agent_config"
_NOT_A_LETTER = re.compile(r"[^a-z0-9]")


def user_input_to_message(user_input: object) -> LedgerMessage:
    """The user's message of a UserInput, of a service's own class, or of a dict."""
    return LedgerMessage(role="user", content=_request(user_input)["message"])


def run_input(user_input: object) -> dict[str, JsonValue]:
    """The fields of a UserInput or StreamInput without credentials, as `runs.start(input=...)` stores them.

    Raises DecodeError with the path of a value that is not JSON.
    """
    request = _request(user_input)
    require_json(request, "$")
    return {name: _without_secrets(value) if name == _CONFIG else value for name, value in request.items()}


def to_ledger_feedback(feedback: object) -> LedgerFeedback:
    """The record of a service's Feedback. Raises ValidationError for a score that is not finite or an empty key."""
    fields = fields_of(feedback)
    if fields is None:
        raise DecodeError("$", f"expected a feedback object, not {type(feedback).__name__}")
    return LedgerFeedback.model_validate({name: fields[name] for name in _FEEDBACK if name in fields})


_FEEDBACK = ("run_id", "key", "score", "kwargs")


def _request(user_input: object) -> dict[str, Any]:
    request = fields_of(user_input)
    if request is None or not isinstance(request.get("message"), str):
        raise DecodeError("$.message", "missing or not text")
    return request


def _without_secrets(value: JsonValue) -> JsonValue:
    """A copy without the credentials, made without recursion: a configuration may nest as deep as stored JSON."""
    root: list[Any] = [value]
    pending: list[tuple[Any, Any]] = [(root, 0)]
    while pending:
        holder, step = pending.pop()
        item = holder[step]
        if isinstance(item, dict):
            holder[step] = copy = {key: child for key, child in item.items() if not is_secret(key)}
            pending += [(copy, key) for key in copy]
        elif isinstance(item, list):
            holder[step] = items = list(item)
            pending += [(items, index) for index in range(len(items))]
    return root[0]


def is_secret(key: str) -> bool:
    """Whether a key of this name holds a credential."""
    letters = _NOT_A_LETTER.sub("", key.lower())
    return any(word in letters for word in SECRET_WORDS) or letters.endswith(SECRET_ENDINGS)
