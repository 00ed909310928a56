"""Keys, and the file that they may come from."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chatledger import InvalidArgument, KeyRing
from chatledger.admin import read_keys
from chatledger.errors import EncryptionError, MissingExtra

KEY = bytes(range(32))


def key_file(path: Path, content: Any, mode: int = 0o600) -> Path:
    file = path / "keys.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    file.chmod(mode)
    return file


def ring_of(**keys: bytes) -> dict[str, Any]:
    return {"current": "k1", "keys": {name: base64.b64encode(key).decode() for name, key in keys.items()}}


def test_the_only_key_is_the_current_one() -> None:
    assert KeyRing({"k1": KEY}).current == "k1"


@pytest.mark.parametrize(
    ("keys", "current"),
    [
        ({}, None),
        ({"a": KEY, "b": KEY}, None),
        ({"a": KEY}, "b"),
        ({"a": KEY[:16]}, None),
        ({"a": "x" * 32}, None),
        ({"": KEY}, None),
        ({"a:b": KEY}, None),
        ({"a" * 65: KEY}, None),
        ({1: KEY}, None),
        (KEY, None),
        ({"a": KEY}, 1),
    ],
    ids=[
        *("none", "no current", "other current", "short", "text", "no id", "colon", "long id", "id of another type"),
        *("no dict", "current of another type"),
    ],
)
def test_an_invalid_ring_is_refused(keys: Any, current: str | None) -> None:
    with pytest.raises(
        InvalidArgument, match=r"^current must|^keys\['a'\] must be 32 bytes|^keys (has the id|must be)"
    ):
        KeyRing(keys, current=current)


def test_a_ring_does_not_show_its_keys() -> None:
    assert repr(KeyRing({"k1": KEY})) == "KeyRing(current='k1', 1 keys)"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match=r"pip install 'chatledger\[crypto\]'"):
        KeyRing({"k1": KEY})


def test_a_file_gives_each_tenant_its_ring(tmp_path: Path) -> None:
    keys = read_keys(key_file(tmp_path, {"acme": ring_of(k1=KEY, k0=KEY), "lone": {"keys": ring_of(k9=KEY)["keys"]}}))
    acme, lone = keys("acme"), keys("lone")
    assert (acme and acme.current, lone and lone.current, keys("nobody")) == ("k1", "k9", None)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncryptionError, match="run: chmod 600"):
        read_keys(key_file(tmp_path, {"acme": ring_of(k1=KEY)}, mode=0o640))


@pytest.mark.parametrize(
    "content",
    [
        "SECRET{",
        [],
        {"acme": "SECRET"},
        {"acme": {"keys": {"k1": "SECRET!"}}},
        {"acme": {"keys": {"k1": "U0VDUkVU"}}},
        {"acme": {"keys": {}, "more": "SECRET"}},
    ],
    ids=str,
)
def test_a_file_that_holds_no_keys_is_refused_and_not_quoted(tmp_path: Path, content: Any) -> None:
    with pytest.raises(EncryptionError, match="does not hold keys as") as caught:
        read_keys(key_file(tmp_path, content))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncryptionError, match=r"the keys cannot be read: .*No such file"):
        read_keys(tmp_path / "none.json")
