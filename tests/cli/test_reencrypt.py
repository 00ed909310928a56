"""--keys and reencrypt from the command line."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import chatledger

KEY, NEXT = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))


def key_file(path: Path, current: str, **keys: str) -> Path:
    file = path / f"{current} of {len(keys)}.json"
    file.write_text(json.dumps({"default": {"current": current, "keys": keys}}))
    file.chmod(0o600)
    return file


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "sunny.json"
    file.write_text(json.dumps([{"role": "user", "content": "Sun?"}, {"role": "assistant", "content": "Sunburn."}]))
    return file


def titles(*words: object, url: str) -> Any:
    return [thread["preview"] for thread in chatledger(*words, "threads", "--json", url=url).json["items"]]


def test_an_import_with_keys_is_readable_only_with_them(url: str, source: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path, "k1", k1=KEY)
    assert chatledger("--keys", keys, "import", source, "--format", "openai-chat", url=url).code == 0
    assert titles("--keys", keys, url=url) == ["Sunburn."]
    assert b"Sunburn" not in b"".join(file.read_bytes() for file in tmp_path.glob("ledger.db*"))
    refused = chatledger("threads", url=url)
    assert (refused.code, refused.out) == (3, "")
    assert "encrypted with the key 'k1', and no keys were given" in refused.error


def test_the_environment_names_the_file_as_well(
    url: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATLEDGER_KEYS", str(key_file(tmp_path, "k1", k1=KEY)))
    chatledger("import", source, "--format", "openai-chat", url=url)
    assert chatledger("check", url=url).code == 0
    monkeypatch.delenv("CHATLEDGER_KEYS")
    assert chatledger("check", url=url).code == 3


def test_a_plain_database_is_encrypted_and_its_key_replaced(url: str, source: Path, tmp_path: Path) -> None:
    chatledger("import", source, "--format", "openai-chat", url=url)
    first, both, last = (
        key_file(tmp_path, "k1", k1=KEY),
        key_file(tmp_path, "k2", k1=KEY, k2=NEXT),
        key_file(tmp_path, "k2", k2=NEXT),
    )
    refused = chatledger("--keys", first, "reencrypt", url=url)
    assert refused.code == 3
    assert "`chatledger reencrypt --plaintext` encrypts it" in refused.error
    encrypted = chatledger("--keys", first, "reencrypt", "--plaintext", "--json", url=url)
    assert encrypted.json["rows"]["messages"] == 2
    assert "ROWS ENCRYPTED" in chatledger("--keys", both, "reencrypt", url=url).out
    assert "nothing to encrypt" in chatledger("--keys", both, "reencrypt", url=url).error
    assert titles("--keys", last, url=url) == ["Sunburn."]


def test_a_backup_needs_no_keys_and_its_copy_does(url: str, source: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path, "k1", k1=KEY)
    chatledger("--keys", keys, "import", source, "--format", "openai-chat", url=url)
    copy = str(tmp_path / "copy.db")
    assert chatledger("backup", copy, url=url).code == 0
    assert titles("--keys", keys, url=copy) == ["Sunburn."]
    assert (
        chatledger("--keys", keys, "export", "--all", url=copy).out
        == chatledger("--keys", keys, "export", "--all", url=url).out
    )


def test_a_thread_whose_key_is_lost_can_be_erased(url: str, source: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path, "k1", k1=KEY)
    chatledger("--keys", keys, "import", source, "--format", "openai-chat", url=url)
    keys.unlink()
    assert chatledger("erase", "--whole-tenant", "--yes", url=url).code == 0
    assert chatledger("threads", "--json", url=url).json["items"] == []


def test_reencrypt_without_keys_says_what_to_give(url: str) -> None:
    chatledger("migrate", url=url)
    refused = chatledger("reencrypt", url=url)
    assert "there are no keys to encrypt with" in refused.error
    assert "chatledger --keys FILE reencrypt" in refused.error


def test_a_file_that_others_may_read_is_refused(url: str, tmp_path: Path) -> None:
    keys = key_file(tmp_path, "k1", k1=KEY)
    keys.chmod(0o644)
    chatledger("migrate", url=url)
    refused = chatledger("--keys", keys, "threads", url=url)
    assert refused.code == 3
    assert "chmod 600" in refused.error
