"""Keys and passwords inside a payload: known by the name that they stand under, and masked before they are stored.

An application keeps the configuration of its model as a run's input or metadata, and with it what it signs in with. A
name is compared without regard to case, `-` and camelCase: `apiKey`, `X-API-Key` and `api_key` are one.
"""

from __future__ import annotations

import re
from typing import Any

from chatledger.models.json import JsonValue

MASK = "***"
SECRET_NAMES = frozenset(
    [
        "access_key",
        "access_token",
        "api_key",
        "api_token",
        "apikey",
        "auth_token",
        "authorization",
        "bearer_token",
        "client_secret",
        "cookie",
        "credentials",
        "id_token",
        "passphrase",
        "passwd",
        "password",
        "private_key",
        "proxy_authorization",
        "refresh_token",
        "secret",
        "secret_access_key",
        "secret_key",
        "session_token",
        "set_cookie",
        "sslpassword",
    ]
)
"""A name is also one of these if it ends in `_` and one of them: `openai_api_key`, `db_password`."""
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")
_ENDING = re.compile(rf"(?:.*_)?(?:{'|'.join(sorted(SECRET_NAMES))})")


def is_secret_name(name: str) -> bool:
    return len(name) <= 200 and _ENDING.fullmatch(_WORD.sub("_", name).lower()) is not None


def masked(value: JsonValue) -> JsonValue:
    """The value with `***` for whatever stands under such a name; None and `""` stay, which say that there is none.

    What holds nothing of the kind is given back as it is. Without recursion.
    """
    root: list[Any] = [value]
    pending: list[tuple[Any, Any]] = [(root, 0)]
    while pending:
        holder, step = pending.pop()
        item: Any = holder[step]
        if isinstance(item, (dict, list)):
            copy: Any = item.copy()
            holder[step] = copy
            for key in list(item) if isinstance(item, dict) else range(len(item)):
                if isinstance(key, str) and is_secret_name(key) and copy[key] not in (None, ""):
                    copy[key] = MASK
                else:
                    pending.append((copy, key))
    return root[0]


_NAMES = "|".join(name.replace("_", "[-_ ]?") for name in sorted(SECRET_NAMES))
_IN_TEXT = (
    # What their makers begin with: OpenAI's and Anthropic's, Stripe's, GitHub's, GitLab's, Slack's, AWS's, Google's, …
    (re.compile(r"\b(?:sk|rk|pk)[-_][\w-]{16,}|\bgh[a-z]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"), MASK),
    (re.compile(r"\bxox[a-z]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bhf_\w{20,}"), MASK),
    (re.compile(r"\b(bearer|basic) +[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"(://[^\s/:@]{0,200}:)[^\s/@]{1,200}@"), rf"\1{MASK}@"),
    (
        re.compile(rf"((?:{_NAMES})[\"']? ?[=:] ?[\"']?)(?=[^\s\"',;&]{{0,100}}\d)[^\s\"',;&]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
)


def masked_text(text: str) -> str:
    """A text, such as an error that quotes a request, with `***` for what looks like a key: known by how such keys
    begin, by `Bearer`, by its place in a URL, or by one of the names in front of it. What looks like nothing is kept.
    """
    for pattern, mask in _IN_TEXT:
        text = pattern.sub(mask, text)
    return text
