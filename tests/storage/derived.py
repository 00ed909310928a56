"""What somebody who knows a word can compute of it: every form in which a stored id, digest or cursor could tell it.

A form is searched by its first 12 bytes, so a shortened one is found too.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import chatledger
from chatledger import ChatMessage
from chatledger.ids import derived_id, erasure_digest
from chatledger.models.json import dumps
from chatledger.storage.rows.derive import netstring
from chatledger.storage.rows.digest import _text
from chatledger.storage.rows.messages import encode_message
from chatledger.storage.rows.secrets import hmac_of
from tests.conversations import assistant, user

PACKAGE = Path(chatledger.__file__).parent
WINDOW = 12
PLACES = ("t", "synced", "branched", "default", "0", "1", "")
"""What stands beside a word from which an id may be derived: threads, the tenant, an index, no user."""


def kinds() -> set[str]:
    """The first part of each derived id in the package, and those of earlier releases."""
    found = {"sync", "conversation", "record", "erased", "thread", "run"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DERIVING:
                found |= {str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant)}
    return found


_DERIVING = ("derived_id", "deriving")
_KINDS = sorted(kinds())
_NAMESPACES = (uuid.NAMESPACE_DNS, uuid.NAMESPACE_URL, uuid.NAMESPACE_OID, uuid.NAMESPACE_X500)
_HASHES = (
    hashlib.sha256,
    hashlib.sha1,
    hashlib.md5,
    hashlib.sha512,
    partial(hashlib.blake2b, digest_size=16),
)
_KNOWN_KEYS = (b"", b"\0" * 32)


def windows(words: Iterable[str], secrets: Sequence[str] = ()) -> dict[bytes, str]:
    """The beginnings of all forms of the words, each with its word. `secrets` are those that stand in clear."""
    return {form[:WINDOW]: word for word in words for form in _forms(word, secrets) if len(form) >= WINDOW}


def search(where: bytes, wanted: dict[bytes, str]) -> set[str]:
    """The words of which a form stands there."""
    pieces = re.split(rb"\0{64,}", where)  # a log is mostly empty
    found = (wanted.get(piece[at : at + WINDOW]) for piece in pieces for at in range(len(piece) - WINDOW + 1))
    return {word for word in found if word is not None}


def _forms(word: str, secrets: Sequence[str]) -> Iterator[bytes]:
    for text in _texts(word):
        for id_ in _ids(text):
            yield id_.encode()
            yield id_.replace("-", "").encode()
        for digest in _digests(text, secrets):
            yield from _written(digest)


def _texts(word: str) -> list[str]:
    """The word, and the ways in which the library writes a message or a record that says nothing else."""
    message, payload = user(word), {"role": "user", "content": word}
    return [
        word,
        dumps([payload]),
        dumps({"messages": [payload]}),
        json.dumps({"items": [payload], "metadata": None}, sort_keys=True),
        message.model_dump_json(),
        _text(encode_message(message)),
        repr(encode_message(message)),
    ]


def _digests(text: str, secrets: Sequence[str]) -> Iterator[bytes]:
    said = [text, *(kind + text for kind in _KINDS), *(place + text for place in PLACES[:4])]
    said += ["".join(map(netstring, parts)) for parts in ((text,), ("t", text), ("default", "t", text))]
    for one in said:
        encoded = one.encode()
        yield from (make(encoded).digest() for make in _HASHES)
        yield from (hmac.digest(key, encoded, "sha256") for key in _KNOWN_KEYS)
        for secret in secrets:
            yield bytes.fromhex(hmac_of(secret, encoded))
            yield bytes.fromhex(hmac_of(secret, erasure_digest("thread", one).encode()))


def _ids(text: str) -> Iterator[str]:
    """Ids that derive from the text, or from a digest of it, as ours and as those of the standard."""
    yield from (str(make(space, text)) for make in (uuid.uuid5, uuid.uuid3) for space in _NAMESPACES)
    for part in (text, hashlib.sha256(text.encode()).hexdigest()):
        for kind in _KINDS:
            yield derived_id(kind, part)
            for place in PLACES:
                yield derived_id(kind, place, part)
                yield derived_id(kind, part, place)
                yield derived_id(kind, place, "k", part)
                yield derived_id(kind, place, part, "0")
    for thread in PLACES:
        for branch, after in ((0, 0), (0, 1), (1, 1)):
            key = derived_id("sync", str(branch), str(after), repr(None), text)
            yield key
            yield derived_id("message", thread, key, "0")  # what messages.sync made of it


def _written(digest: bytes) -> Iterator[bytes]:
    yield digest
    digits = digest.hex()
    yield digits.encode()
    yield f"{digits[:8]}-{digits[8:12]}".encode()  # as a UUID
    yield base64.b64encode(digest)
    yield base64.urlsafe_b64encode(digest)
    yield base64.b32encode(digest)
    yield base64.b32encode(digest).lower()


def short(word: str) -> list[ChatMessage]:
    """A conversation that says the word and nothing else, as `_texts` writes it."""
    return [user(word), assistant(word)]
