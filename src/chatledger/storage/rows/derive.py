"""Derives a key for one purpose from a secret, by HKDF-SHA256 (RFC 5869), so that no two purposes share a key."""

from __future__ import annotations

from chatledger.errors import MissingExtra

DERIVED_BYTES = 32


def derive_key(secret: bytes, label: str, *names: str) -> bytes:
    """The 32 bytes for `label`, such as "cell 2", and for the names of whom it serves, such as a tenant. The secret
    must be random. Raises MissingExtra without `chatledger[crypto]`.
    """
    try:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ImportError:
        raise MissingExtra("crypto", "encryption") from None
    info = "".join(map(netstring, ("chatledger", label, *names))).encode()
    derived: bytes = HKDF(SHA256(), DERIVED_BYTES, salt=None, info=info).derive(secret)
    return derived


def netstring(value: object) -> str:
    """The value with its length before it, so that no two lists of values are written alike."""
    text = str(value)
    return f"{len(text)}:{text}"
