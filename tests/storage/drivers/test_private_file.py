"""A file of secrets is opened once, and is refused if others can read it or could have written it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chatledger.storage.drivers.private_file import NotPrivate, read_private

OTHER = 12_345


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("words")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_or_write_is_refused(secret: Path, mode: int) -> None:
    secret.chmod(mode)
    with pytest.raises(NotPrivate, match=f"chmod 600 {secret}"):
        read_private(secret)


@pytest.mark.parametrize(("owner", "user", "read"), [(0, OTHER, True), (OTHER, OTHER, True), (OTHER, 1, False)])
def test_root_or_the_user_must_own_it(
    secret: Path, monkeypatch: pytest.MonkeyPatch, owner: int, user: int, *, read: bool
) -> None:
    if os.geteuid() == 0:
        os.chown(secret, owner, -1)
    else:  # only root gives files away
        owner = secret.stat().st_uid
        user, read = (owner, True) if read else (owner + 1, owner == 0)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if read:
        assert read_private(secret)[0] == "words"
    else:
        with pytest.raises(NotPrivate, match=f"chown {user} {secret}"):
            read_private(secret)


def test_the_file_that_was_looked_at_is_the_one_that_is_read(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file gets the name between the look and the reading."""
    look = os.fstat
    readable = secret.with_name("readable")
    readable.write_text("planted")

    def swap(descriptor: int) -> os.stat_result:
        found = look(descriptor)
        os.replace(readable, secret) if readable.exists() else None
        return found

    monkeypatch.setattr(os, "fstat", swap)
    text, state = read_private(secret)
    assert text == "words"
    assert state.st_ino != os.stat(secret).st_ino
