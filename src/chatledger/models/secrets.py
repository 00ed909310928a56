"""Masks keys and passwords in a payload before it is stored. It recognises them by their names.

Applications store the configuration of a model as the input or metadata of a run, and its credentials with it. Names
are compared regardless of case, `-` and camelCase: `apiKey`, `X-API-Key` and `api_key` are the same name.
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
"""A name that ends in `_` and one of these counts as well: `openai_api_key`, `db_password`."""
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")
_ENDING = re.compile(rf"(?:.*_)?(?:{'|'.join(sorted(SECRET_NAMES))})")
_LAST_WORDS = tuple({name.rpartition("_")[2] for name in SECRET_NAMES})
_LONGEST = 2 * max(map(len, SECRET_NAMES))
"""No secret name is found further from the end of a name."""


def is_secret_name(name: str) -> bool:
    if len(name) > 200 or not name.lower().endswith(_LAST_WORDS):
        return False
    return _ENDING.fullmatch(_WORD.sub("_", name[-_LONGEST:]).lower()) is not None


def masked(value: JsonValue) -> JsonValue:
    """A copy of the value with `***` under secret names. None and `""` stay, since they say that there is no secret.

    It does not recurse.
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
    # Prefixes of the keys of OpenAI, Anthropic, Stripe, GitHub, GitLab, Slack, AWS, Google, …
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
    """The text, such as an error that quotes a request, with `***` for everything that looks like a key.

    A key is recognised by its prefix, by `Bearer` before it, by its position in a URL, or by a secret name before it.
    """
    for pattern, mask in _IN_TEXT:
        text = pattern.sub(mask, text)
    return text
